"""How SIGTERM and SIGHUP end us: not at once, so that what we started is ended too."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Inside, they raise SystemExit with 128 + their number, as Ctrl-C raises KeyboardInterrupt."""

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before: list[tuple[int, Callable[..., object] | int | None]] = []
    with contextlib.suppress(ValueError):  # not the main thread: whoever runs us there ends us himself
        before = [(number, signal.signal(number, leave)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
