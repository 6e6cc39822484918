"""A device server as a child process, talked to over a socket pair that is its stdin and stdout."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from hexnpu.errors import HexnpuError
from hexnpu.transport.connection import Connection

# How much of the server's stderr is kept for an error.
TAIL_BYTES = 16 << 10
END_TIMEOUT_S = 2.0


class Child:
    """The process behind a connection. Its stderr goes to an unnamed file, so that it never blocks on us."""

    def __init__(self, process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
        self.process = process
        self._stderr = stderr

    def obituary(self) -> str:
        try:
            code = self.process.wait(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return "the server closed the line"
        if code < 0:
            return f"the server was killed by {signal.Signals(-code).name}"
        return f"the server exited with status {code}"

    def last_words(self) -> str:
        if self._stderr.closed:
            return ""
        end = os.fstat(self._stderr.fileno()).st_size
        start = max(0, end - TAIL_BYTES)
        return os.pread(self._stderr.fileno(), end - start, start).decode("utf-8", "replace")

    def end(self) -> None:
        """Waits a moment for the server to see its line closed, then kills it."""
        if self.process.poll() is None:
            try:
                self.process.wait(timeout=END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._stderr.close()


def start(command: Sequence[str], name: str, env: Mapping[str, str] | None = None) -> Connection:
    """Starts a server and greets it. `env` is added to this process's environment.

    It is no member of the terminal's process group: Ctrl-C is for us, who then close its line.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed by Child.end
    try:
        process = subprocess.Popen(
            command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=stderr, env={**os.environ, **(env or {})},
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        ours.close()
        stderr.close()
        raise HexnpuError(f"cannot start the device server {command[0]}: {error.strerror}") from None
    finally:
        theirs.close()
    return Connection(ours, Child(process, stderr), name)
