"""A program that runs on a device: its output as it comes, its input, its end."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from hexnpu.deploy.errors import DeployError

T = TypeVar("T")

STDOUT, STDERR = 1, 2
_END = 0

# Of output that nobody has read yet; then the reader of the connection waits, and so does the program.
_QUEUED_CHUNKS = 64


class Process(ABC):
    """Transports start the reader threads, which `_put` what arrives and `_end` the process.

    Exit codes are the target's own, 128 + n after signal n.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._queue: queue.Queue[tuple[int, bytes]] = queue.Queue(_QUEUED_CHUNKS)
        self._code: int | None = None
        self._error: Exception | None = None
        self._ended = False

    # What the transports do.

    @abstractmethod
    def write(self, data: bytes) -> None:
        """To its standard input; silently nothing once the program has closed it."""

    @abstractmethod
    def close_stdin(self) -> None:
        """It reads end of file."""

    @abstractmethod
    def kill(self) -> None:
        """Ends the program and its descendants: TERM, then KILL for what is left. Returns when they are gone; raises
        DeployError within seconds where that cannot be reached or told."""

    @abstractmethod
    def close(self) -> None:
        """Gives up the connection's resources."""

    def _put(self, stream: int, data: bytes) -> None:
        self._queue.put((stream, data))

    def _end(self, code: int | None, error: Exception | None = None) -> None:
        self._code, self._error = code, error
        self._queue.put((_END, b""))

    # What their users do.

    def read(self, timeout_s: float | None = None) -> tuple[int, bytes] | None:
        """The next piece as (STDOUT or STDERR, bytes), or None at the end of all output.

        Raises TimeoutError, and ConnectionLost where the connection broke first.
        """
        if self._ended:
            return None
        try:
            stream, data = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"{self.what} printed nothing for {timeout_s:g} s") from None
        if stream != _END:
            return stream, data
        self._ended = True
        if self._error:
            raise self._error
        return None

    def exit_code(self) -> int:
        """Drops what output is left and waits for the end."""
        while self.read() is not None:
            pass
        assert self._code is not None
        return self._code

    def communicate(self, stdin: bytes = b"", timeout_s: float | None = None) -> tuple[int, bytes, bytes]:
        """Exit code, stdout, stderr of a program that is given `stdin`. Kills it and raises TimeoutError when late."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        output: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
        feeder = start_thread(lambda: (self.write(stdin) if stdin else None, self.close_stdin()))
        try:
            while piece := self.read(None if deadline is None else max(0.001, deadline - time.monotonic())):
                output[piece[0]].append(piece[1])
        except TimeoutError:
            with contextlib.suppress(DeployError):
                self.kill()
            raise
        finally:
            self.close()
        feeder.join(1)
        return self.exit_code(), b"".join(output[STDOUT]), b"".join(output[STDERR])


def start_thread(work: Callable[[], object]) -> threading.Thread:
    """A daemon thread: it never keeps the program from exiting."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def fulfil_in_thread(future: Future[T], work: Callable[[], T]) -> None:
    """Work that no signal interrupts, as they come to the main thread, and that one need not wait for. It is left out
    where the future is cancelled first."""

    def run() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

    start_thread(run)
