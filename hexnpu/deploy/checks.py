"""What a check of `hexnpu doctor` gives, and how checks are run: each with its own time-out."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from hexnpu.deploy.process import start_thread
from hexnpu.errors import HexnpuError


class State(Enum):
    OK = "ok"
    NOTE = "note"  # worth knowing; nothing fails of it
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One line. `remedy` says what to do, for whatever is not OK."""

    what: str
    state: State
    text: str
    remedy: str = ""


@dataclass(frozen=True)
class Check:
    """`run` finds one or more things within `timeout_s`."""

    what: str
    timeout_s: float
    run: Callable[[], list[Finding]]


def ok(what: str, text: str) -> list[Finding]:
    return [Finding(what, State.OK, text)]


def note(what: str, text: str, remedy: str) -> list[Finding]:
    return [Finding(what, State.NOTE, text, remedy)]


def wrong(what: str, text: str, remedy: str) -> list[Finding]:
    return [Finding(what, State.WRONG, text, remedy)]


def run_checks(checks: list[Check]) -> Iterator[Finding]:
    """The findings of each check in turn. One that hangs or fails is a finding itself, and the next goes on."""
    for check in checks:
        yield from _run(check)


def _run(check: Check) -> list[Finding]:
    result: queue.Queue[list[Finding]] = queue.Queue()

    def work() -> None:
        try:
            result.put(check.run())
        except HexnpuError as error:
            result.put(wrong(check.what, str(error), "mend that first; what depends on it was not checked"))
        except Exception as error:  # a check must not take the others with it
            result.put(wrong(check.what, f"the check itself failed: {error!r}", "please report this"))

    start_thread(work)
    try:
        return result.get(timeout=check.timeout_s)
    except queue.Empty:
        return wrong(
            check.what, f"no answer within {check.timeout_s:g} s", "see whether the machine or the service there hangs"
        )
