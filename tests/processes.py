"""What tests ask of processes that need not be their own, and how long they wait for what must come."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

# However loaded the machine is, what takes so long hangs.
HANG_S = 120.0


def children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in text.split()]


def is_alive(pid: int) -> bool:
    """One that only waits to be buried is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Handles:
    """Processes, whoever may get their numbers later."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._fds = [os.pidfd_open(pid) for pid in pids]

    def end(self, within_s: float = HANG_S) -> bool:
        """Whether all of them come to their end; closes the handles."""
        deadline = time.monotonic() + within_s
        ended = [bool(select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]) for fd in self._fds]
        for fd in self._fds:
            os.close(fd)
        return all(ended)


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    """For a state that stays, and that nothing tells of. The end of the process that is to bring it about is an error.

    It looks now and then: a loop without a pause would take the core that the others need.
    """
    deadline = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        if process is None:
            time.sleep(0.005)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise AssertionError(f"{process.args} ended with code {process.wait(0.005)}")
