"""A device behind a connection that OpenSSH keeps open: `ControlMaster` and `ControlPath` of ~/.ssh/config.

Its master process serves a Unix socket, which only the user can open. We ask it for a session (PROTOCOL.mux of OpenSSH)
and hand it three of our own sockets, which become the program's streams. No key exchange, no authentication and no
paramiko: a command starts within milliseconds. Host keys and logins were checked when the master connected.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading

from hexnpu.deploy.device import Command
from hexnpu.deploy.errors import ConnectionLost, DeployError
from hexnpu.deploy.posix import ssh_line
from hexnpu.deploy.process import STDERR, STDOUT, start_thread
from hexnpu.deploy.quoting import decode
from hexnpu.deploy.ssh_config import SshHost
from hexnpu.deploy.stream import StreamDevice, StreamProcess
from hexnpu.deploy.targets import Target

_HELLO, _NEW_SESSION, _ALIVE_CHECK = 1, 0x10000002, 0x10000004
_DENIED, _FAILURE, _EXIT, _ALIVE, _OPENED = 0x80000002, 0x80000003, 0x80000004, 0x80000005, 0x80000006
_VERSION = 4
_NO_ESCAPE = 0xFFFFFFFF
_MAX_MESSAGE = 1 << 16
# A master answers at once, unless it is stopped or its connection hangs.
_ANSWER_S = 5
_SESSION_S = 15
_PIECE = 1 << 18


class _Line:
    """The conversation with a master: messages of u32 length, u32 type and u32s and strings. Raises OSError."""

    def __init__(self, path: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.settimeout(_ANSWER_S)
            self.sock.connect(path)
            self.send(_HELLO, _VERSION)
            kind, body = self.receive()
            if kind != _HELLO or body[:4] != struct.pack(">I", _VERSION):
                raise OSError("it speaks another protocol")
        except BaseException:
            self.sock.close()
            raise

    def send(self, *values: int | bytes) -> None:
        parts = (
            struct.pack(">I", value) if isinstance(value, int) else struct.pack(">I", len(value)) + value
            for value in values
        )
        message = b"".join(parts)
        self.sock.sendall(struct.pack(">I", len(message)) + message)

    def receive(self) -> tuple[int, bytes]:
        (length,) = struct.unpack(">I", self._exactly(4))
        if not 4 <= length <= _MAX_MESSAGE:
            raise OSError("it speaks another protocol")
        (kind,) = struct.unpack(">I", self._exactly(4))
        return kind, self._exactly(length - 4)

    def _exactly(self, n: int) -> bytes:
        data = b""
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            if not more:
                raise ConnectionResetError("it hung up")
            data += more
        return data


class MasterProcess(StreamProcess):
    """`streams`: our ends of the program's stdin, stdout and stderr."""

    def __init__(self, command: Command, device: MasterDevice, line: _Line, streams: list[socket.socket]) -> None:
        super().__init__(command, device)
        self._line = line
        self._streams = streams
        self._stdin = streams[0]
        self._writing = threading.Lock()
        self._code: int | None = None
        self._over = threading.Event()
        self._threads = [
            start_thread(self._await_code),
            start_thread(lambda: self._copy(STDOUT, streams[1])),
            start_thread(lambda: self._copy(STDERR, streams[2])),
        ]
        start_thread(self._follow)

    def _await_code(self) -> None:
        with contextlib.suppress(OSError, struct.error):
            while self._code is None:
                kind, body = self._line.receive()
                if kind == _EXIT:
                    self._code = struct.unpack(">II", body)[1]
        self._over.set()

    def _copy(self, number: int, stream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := stream.recv(_PIECE):
                self._arrived(number, data)

    def _follow(self) -> None:
        for thread in self._threads:
            thread.join()
        self._finished(self._code)

    def write(self, data: bytes) -> None:
        with self._writing, contextlib.suppress(OSError):
            self._stdin.sendall(data)

    @property
    def writable(self) -> bool:
        return not self._over.is_set()

    def close_stdin(self) -> None:
        with contextlib.suppress(OSError):
            self._stdin.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for sock in (*self._streams, self._line.sock):
            with contextlib.suppress(OSError):
                # Wakes the thread that reads it.
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


class MasterDevice(StreamDevice):
    def __init__(self, target: Target, path: str) -> None:
        self.target = target
        self.name = str(target)
        self._path = path

    @classmethod
    def find(cls, target: Target, host: SshHost) -> MasterDevice | None:
        """None where no master answers: it is not for us to start one."""
        for path in host.control_paths if hasattr(socket, "send_fds") else ():
            with contextlib.suppress(OSError, struct.error):
                if os.stat(path).st_uid != os.getuid():  # noqa: PTH116
                    continue
                line = _Line(path)
                with line.sock:
                    line.send(_ALIVE_CHECK, 0)
                    if line.receive()[0] == _ALIVE:
                        return cls(target, path)
        return None

    def open(self, command: Command) -> MasterProcess:
        ours, theirs = zip(*(socket.socketpair() for _ in range(3)), strict=True)
        try:
            line = self._session(ssh_line(self.name, command), theirs)
        except BaseException:
            for sock in ours:
                sock.close()
            raise
        finally:
            for sock in theirs:
                sock.close()
        return MasterProcess(command, self, line, list(ours))

    def _session(self, command: bytes, streams: tuple[socket.socket, ...]) -> _Line:
        """Has the command started with these as its stdin, stdout and stderr."""
        try:
            line = _Line(self._path)
        except OSError as error:
            raise ConnectionLost(f"{self.name}: its master connection {self._path} is gone ({error}): repeat") from None
        try:
            line.sock.settimeout(_SESSION_S)
            # Request 0: no terminal, no X11, no agent, no subsystem.
            line.send(_NEW_SESSION, 0, b"", 0, 0, 0, 0, _NO_ESCAPE, b"", command)
            for stream in streams:
                socket.send_fds(line.sock, [b"\0"], [stream.fileno()])
            kind, body = line.receive()
            if kind in (_DENIED, _FAILURE):
                reason = decode(body[8:])
                raise DeployError(
                    f"{self.name}: its master connection opened no session ({reason}): ssh -O stop it, "
                    "or raise MaxSessions there"
                )
            if kind != _OPENED:
                raise OSError(f"unexpected answer {kind:#x}")
            line.sock.settimeout(None)
        except OSError as error:
            line.sock.close()
            raise ConnectionLost(f"{self.name}: the master connection {self._path} failed: {error}") from None
        except DeployError:
            line.sock.close()
            raise
        return line

    def close(self) -> None:
        return
