"""A device behind an adb server: the services of its adbd.

Programs run by `shell,v2,raw` (separate streams, exit code); a device without it gets `exec`, and a line at the end of
the output with the exit code. Files go by the sync service, one after the other without waiting for each answer.
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

from hexnpu.deploy.adb_server import attached, choose, device_features, device_service, lost
from hexnpu.deploy.device import Command, Upload
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.posix import EXPAND, PosixDevice, PosixProcess, remote_error, wrap
from hexnpu.deploy.process import STDERR, STDOUT, Process, start_thread
from hexnpu.deploy.quoting import decode, encode, join
from hexnpu.deploy.targets import Target

# Of shell,v2 packets: u8 id, u32 length.
_STDIN, _OUT, _ERR, _EXIT, _CLOSE_STDIN = range(5)
_SHELL_PACKET = 32768
# The sync service takes at most 64 KiB a chunk.
_SYNC_CHUNK = 64 * 1024
# Sent in one go: bytes, and pieces that they are in (sendmsg takes 1024).
_PACKET, _MAX_PARTS = 512 * 1024, 900
_MAX_SYNC_PATH = 1024
_REGULAR, _SYMLINK = 0o100600, 0o120777

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
        """The sync service expands nothing."""
        if not path.startswith("~"):
            return path
        return decode(self.checked_shell(path, f'd=$1; {EXPAND}; printf %s "$d"', path))

    def upload(
        self, directory: str, files: Iterable[Upload], sent: Callable[[int], None], then: str | None = None
    ) -> None:
        root = self._absolute(directory)
        sock = device_service(self.serial, "sync:")
        answers = _Answers(sock)
        sender = _Sender(sock, answers, sent)
        try:
            count = 0
            for file in files:
                count += 1
                sender.file(f"{root}/{file.path}", file)
            sender.flush()
            answers.wait(count)
        except OSError as error:
            # Why adbd hung up stands in what it said before.
            answers.failed.wait(1)
            raise answers.error(self.name, root) or lost(self.name, error) from None
        finally:
            # After a failure the connection is full of what adbd will not read: it is never used again.
            sock.close()
        error_ = answers.error(self.name, root)
        if error_:
            raise error_
        if then:
            self.run_uploaded(directory, then)

    def pull(self, path: str, to: Path) -> None:
        sock = device_service(self.serial, "sync:")
        name = encode(self._absolute(path))
        try:
            sock.sendall(struct.pack("<4sI", b"RECV", len(name)) + name)
            with sock.makefile("rb") as stream, to.open("wb") as out:
                while True:
                    kind, length = struct.unpack("<4sI", stream.read(8))
                    if kind == b"DONE":
                        return
                    data = stream.read(length)
                    if kind == b"FAIL":
                        raise remote_error(f"{self.name}: {path}", decode(data))
                    out.write(data)
        except (OSError, struct.error) as error:
            to.unlink(missing_ok=True)
            raise lost(self.name, error) from None
        except DeployError:
            to.unlink()
            raise
        finally:
            sock.close()

    def close(self) -> None:
        return


class _Sender:
    """Collects what is small, so that a file of some hundred bytes is not a packet of its own."""

    def __init__(self, sock: socket.socket, answers: _Answers, sent: Callable[[int], None]) -> None:
        self._sock, self._answers, self._sent = sock, answers, sent
        self._pending: list[bytes | memoryview] = []
        self._length = self._of_files = 0

    def _add(self, kind: bytes, number: int, data: bytes | memoryview = b"") -> None:
        self._pending += (struct.pack("<4sI", kind, number), data)
        self._length += 8 + len(data)

    def file(self, path: str, file: Upload) -> None:
        name = encode(f"{path},{_SYMLINK if file.symlink else _REGULAR}")
        if len(name) > _MAX_SYNC_PATH:
            raise DeployError(f"{path}: adb takes paths of at most {_MAX_SYNC_PATH} bytes; use a shorter --target-dir")
        self._add(b"SEND", len(name), name)
        for chunk in file.chunks():
            view = memoryview(chunk)
            for start in range(0, len(view), _SYNC_CHUNK):
                piece = view[start : start + _SYNC_CHUNK]
                self._add(b"DATA", len(piece), piece)
            self._of_files += 0 if file.symlink else len(chunk)
            if self._length >= _PACKET:
                self.flush()
        self._add(b"DONE", file.mtime & 0xFFFFFFFF)
        if len(self._pending) > _MAX_PARTS:
            self.flush()

    def flush(self) -> None:
        if self._answers.failed.is_set():
            raise ConnectionResetError
        # In one go and without a copy, where the system can.
        done = self._sock.sendmsg(self._pending) if hasattr(self._sock, "sendmsg") else 0
        if done < self._length:
            self._sock.sendall(b"".join(self._pending)[done:])
        self._sent(self._of_files)
        self._pending.clear()
        self._length = self._of_files = 0


class _Answers:
    """Reads OKAY or FAIL for each file while later ones are sent."""

    def __init__(self, sock: socket.socket) -> None:
        self.failed = threading.Event()
        self._reason = ""
        self._okays = 0
        self._changed = threading.Condition()
        start_thread(lambda: self._read(sock))

    def _read(self, sock: socket.socket) -> None:
        try:
            with sock.makefile("rb") as stream:
                while len(head := stream.read(8)) == 8:
                    kind, length = struct.unpack("<4sI", head)
                    if kind != b"OKAY":
                        self._reason = decode(stream.read(length)) or "adbd refused a file"
                        break
                    with self._changed:
                        self._okays += 1
                        self._changed.notify_all()
        except (OSError, ValueError):
            pass
        with self._changed:
            self.failed.set()
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        """Until all files are written. Raises OSError where that does not come."""
        with self._changed:
            self._changed.wait_for(lambda: self._okays >= count or self.failed.is_set())
            if self._okays < count:
                raise ConnectionResetError("adbd hung up")

    def error(self, name: str, root: str) -> DeployError | None:
        return remote_error(f"{name}: {root}", self._reason) if self._reason else None
