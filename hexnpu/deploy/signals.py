"""How Ctrl-C, SIGTERM and SIGHUP end us: not at once, so that what we started is ended too."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator

_NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Inside, the first of them raises SystemExit with 128 + its number, or KeyboardInterrupt. Those that follow are
    ignored: they would interrupt the ending that the first one asked for."""

    def leave(number: int, frame: object) -> None:
        for other in _NUMBERS:
            signal.signal(other, _ignore)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    with _handled_by(leave):
        yield


@contextlib.contextmanager
def ignored_signals() -> Iterator[None]:
    """Inside, none of them does anything. (SIG_IGN would be inherited by what is started.)"""
    with _handled_by(_ignore):
        yield


def _ignore(number: int, frame: object) -> None:
    return


@contextlib.contextmanager
def _handled_by(handler: Callable[[int, object], None]) -> Iterator[None]:
    before: list[tuple[int, Callable[..., object] | int | None]] = []
    try:
        with contextlib.suppress(ValueError):  # not the main thread: whoever runs us there ends us himself
            for number in _NUMBERS:
                # What nohup or a shell's & has us ignore stays so.
                if signal.getsignal(number) != signal.SIG_IGN:
                    before.append((number, signal.signal(number, handler)))
        yield
    finally:
        for number, old in before:
            signal.signal(number, old)
