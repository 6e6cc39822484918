"""A device behind an adb server: the services of its adbd.

Programs run by `shell,v2,raw` (separate streams, exit code); a device without it gets `exec`, and a line at the end of
the output with the exit code. Files go by the sync service (hexnpu.deploy.adb_sync).
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from io import BufferedReader
from pathlib import Path

from hexnpu.deploy.adb_server import attached, choose, device_features, device_service
from hexnpu.deploy.adb_sync import SyncUpload, pull
from hexnpu.deploy.device import Command, Upload
from hexnpu.deploy.posix import EXPAND, PosixDevice, PosixProcess, wrap
from hexnpu.deploy.process import STDERR, STDOUT, Process, start_thread
from hexnpu.deploy.quoting import decode, join
from hexnpu.deploy.targets import Target

# Of shell,v2 packets: u8 id, u32 length.
_STDIN, _OUT, _ERR, _EXIT, _CLOSE_STDIN = range(5)
_SHELL_PACKET = 32768

_EXIT_MARK = "hexnpu-exit:"
_EXIT_LINE = re.compile(rb"\x01" + _EXIT_MARK.encode() + rb"(\d+)\r?\n\Z")
_EXIT_LINE_MAX = 32


class AdbProcess(PosixProcess):
    def __init__(self, command: Command, device: AdbDevice, sock: socket.socket, v2: bool) -> None:
        super().__init__(command, device)
        self._sock = sock
        self._v2 = v2
        self._writing = threading.Lock()
        start_thread(self._follow)

    def _follow(self) -> None:
        code: int | None = None
        try:
            with self._sock.makefile("rb", 1 << 16) as stream:
                assert isinstance(stream, BufferedReader)
                code = self._packets(stream) if self._v2 else self._plain(stream)
        except (OSError, ValueError):
            code = None
        self._finished(code)

    def _packets(self, stream: BufferedReader) -> int | None:
        while len(header := stream.read(5)) == 5:
            kind, length = struct.unpack("<BI", header)
            data = stream.read(length)
            if kind == _EXIT and data:
                return data[0]
            if kind in (_OUT, _ERR) and data:
                self._arrived(STDOUT if kind == _OUT else STDERR, data)
        return None

    def _plain(self, stream: BufferedReader) -> int | None:
        """Output without packets: passed on at once, but for an end that can be the line with the exit code."""
        tail = b""
        while data := stream.read1(65536):
            tail += data
            start = tail.rfind(b"\x01", -_EXIT_LINE_MAX)
            if start < 0:
                start = len(tail)
            self._arrived(STDOUT, tail[:start])
            tail = tail[start:]
        found = _EXIT_LINE.search(tail)
        self._arrived(STDOUT, tail[: found.start()] if found else tail)
        return int(found[1]) if found else None

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._writing:
            try:
                for start in range(0, len(view), _SHELL_PACKET):
                    piece = view[start : start + _SHELL_PACKET]
                    self._sock.sendall((struct.pack("<BI", _STDIN, len(piece)) if self._v2 else b"") + piece)
            except OSError:
                return

    def close_stdin(self) -> None:
        if not self._v2:
            return
        with self._writing:
            try:
                self._sock.sendall(struct.pack("<BI", _CLOSE_STDIN, 0))
            except OSError:
                return

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # Wakes the thread that reads.
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


class AdbDevice(PosixDevice):
    def __init__(self, target: Target, serial: str) -> None:
        self.target = target
        self.serial = serial
        self.name = f"android:{serial}"
        self._features: frozenset[str] | None = None

    @classmethod
    def connect(cls, target: Target) -> AdbDevice:
        return cls(target, choose(attached(), target.serial or os.environ.get("ANDROID_SERIAL") or None))

    def features(self) -> frozenset[str]:
        """What the device's adbd can, such as shell_v2."""
        if self._features is None:
            self._features = device_features(self.serial)
        return self._features

    def open(self, command: Command) -> Process:
        line = join(wrap(command))
        v2 = "shell_v2" in self.features()
        service = f"shell,v2,raw:{line}" if v2 else f"exec:{line}; printf '\\001{_EXIT_MARK}%d\\n' $?"
        return AdbProcess(command, self, device_service(self.serial, service), v2)

    def _absolute(self, path: str) -> str:
        """The sync service expands nothing, and starts at /."""
        if path.startswith("/"):
            return path
        return decode(self.checked_shell(path, f'd=$1; {EXPAND}; printf %s "$d"', path))

    def upload(self, directory: str, files: Iterable[Upload], sent: Callable[[int], None]) -> None:
        root = self._absolute(directory)
        compress = {"sendrecv_v2", "sendrecv_v2_zstd"} <= self.features()
        SyncUpload(self.name, root, self._sync, files, sent, compress).run()

    def pull(self, path: str, to: Path) -> None:
        pull(self.name, self._absolute(path), self._sync(), to)

    def _sync(self) -> socket.socket:
        return device_service(self.serial, "sync:")

    def close(self) -> None:
        return
