"""The program of a ProxyCommand: a socket of ours is its standard input and output, what it says is kept for errors."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from typing import Any

from hexnpu.deploy.process import start_thread

_END_S = 2
_KEPT_BYTES = 500


class Proxy(socket.socket):
    """Raises OSError where there is no shell to start it."""

    def __init__(self, command: str) -> None:
        # How the program ended, if it did so before we did.
        self.code: int | None = None
        self._closing = False
        self._said = b""
        ours, theirs = socket.socketpair()
        super().__init__(fileno=ours.detach())
        try:
            with theirs:
                end = theirs.fileno()
                # By a shell, as OpenSSH does. Ctrl-C must leave it alone: the program there is ended through it.
                script = ["sh", "-c", f"trap '' INT; exec {command}"]
                self._process = subprocess.Popen(script, stdin=end, stdout=end, stderr=subprocess.PIPE)
        except BaseException:
            super().close()
            raise
        self._drain = start_thread(self._keep_what_it_says)

    def _keep_what_it_says(self) -> None:
        assert self._process.stderr
        with self._process.stderr as stderr:
            while data := os.read(stderr.fileno(), 1 << 16):
                # What it says because we end it explains nothing.
                if self.code is not None or not self._closing:
                    self._said = (self._said + data)[-_KEPT_BYTES:]

    @property
    def last_line(self) -> str:
        """Of what it said, once it has ended."""
        # All of it is on its way, unless a child of the program lives on.
        self._drain.join(_END_S)
        lines = self._said.decode("utf-8", "replace").strip().splitlines()
        return "".join(char if char.isprintable() else " " for char in lines[-1]).strip() if lines else ""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        try:
            data = super().recv(size, flags)
        except ConnectionError:
            data = b""
        if not data:
            self._hung_up()
        return data

    def send(self, data: Any, flags: int = 0, /) -> int:
        try:
            return super().send(data, flags)
        except ConnectionError:
            self._hung_up()
            raise

    def _hung_up(self) -> None:
        """Its ends are closed: by us, or because it is ending."""
        if not self._closing:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.code = self._process.wait(_END_S)

    def shutdown(self, how: int, /) -> None:
        self._closing = True
        super().shutdown(how)

    def close(self) -> None:
        self._closing = True
        super().close()
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
