"""A device behind an adb server: adbutils speaks to the server, the services of the device are spoken here.

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
from collections.abc import Callable, Iterable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from hexnpu.deploy.device import Command, Upload
from hexnpu.deploy.errors import (
    ConnectionLost,
    DeployError,
    DeviceNotReady,
    NoAdbServer,
    NoDevice,
    SeveralDevices,
)
from hexnpu.deploy.posix import EXPAND, PosixDevice, PosixProcess, remote_error, wrap
from hexnpu.deploy.process import STDERR, STDOUT, Process, start_thread
from hexnpu.deploy.quoting import decode, encode, join
from hexnpu.deploy.targets import Target

if TYPE_CHECKING:
    from adbutils import AdbClient

# Of shell,v2 packets: u8 id, u32 length.
_STDIN, _OUT, _ERR, _EXIT, _CLOSE_STDIN = range(5)
_SHELL_PACKET = 32768
# The sync service takes at most 64 KiB a chunk; a service's name at most 4 hex digits of length.
_SYNC_CHUNK = 64 * 1024
_MAX_SERVICE = 0xFFFF
_MAX_SYNC_PATH = 1024
_REGULAR, _SYMLINK = 0o100600, 0o120777

_EXIT_MARK = "hexnpu-exit:"
_EXIT_LINE = re.compile(rb"\x01" + _EXIT_MARK.encode() + rb"(\d+)\r?\n\Z")
_EXIT_LINE_MAX = 32


def server_address(environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Where the adb server listens, by the variables that adb itself reads."""
    host = environment.get("ANDROID_ADB_SERVER_ADDRESS") or environment.get("ANDROID_ADB_SERVER_HOST") or "127.0.0.1"
    port = environment.get("ANDROID_ADB_SERVER_PORT") or "5037"
    if not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise NoAdbServer(f"ANDROID_ADB_SERVER_PORT is {port!r}, which is no port: unset it or give the server's port")
    return host, int(port)


def client() -> AdbClient:
    """Raises NoAdbServer; a server is never started behind the user's back."""
    host, port = server_address()
    try:
        socket.create_connection((host, port), 5).close()
    except OSError:
        raise NoAdbServer(f"no adb server answers at {host}:{port}: start it (adb start-server)") from None
    from adbutils import AdbClient

    return AdbClient(host, port)


def attached() -> list[tuple[str, str]]:
    """(serial, state) of every device of the adb server; states are device, unauthorized, offline, recovery ..."""
    from adbutils import AdbError

    try:
        return [(info.serial, info.state) for info in client().list()]
    except (AdbError, OSError, ValueError) as error:
        raise NoAdbServer(f"the adb server did not list its devices ({error}): restart it (adb kill-server)") from None


def choose(devices: list[tuple[str, str]], serial: str | None) -> str:
    """The serial of the device meant. Raises NoDevice, SeveralDevices, DeviceNotReady."""
    listed = ", ".join(f"{name} ({state})" for name, state in devices) or "none"
    if serial is None:
        ready = [name for name, state in devices if state == "device"]
        if len(ready) > 1:
            raise SeveralDevices(f"several devices are attached: {listed}; choose one by --target android:SERIAL")
        if not devices:
            raise NoDevice("no device is attached: plug one in with USB debugging on, or adb connect HOST:PORT")
        serial = ready[0] if ready else devices[0][0]
    state = dict(devices).get(serial)
    if state is None:
        raise NoDevice(f"no device {serial} is attached (attached: {listed}): check the serial and the cable")
    if state == "unauthorized":
        raise DeviceNotReady(f"device {serial} is unauthorized: allow USB debugging in the dialog on its screen")
    if state != "device":
        raise DeviceNotReady(f"device {serial} is {state}: replug or reboot it, or adb reconnect, until it is `device`")
    return serial


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
    def __init__(self, target: Target, client: AdbClient, serial: str) -> None:
        self.target = target
        self.serial = serial
        self.name = f"android:{serial}"
        self._client = client
        self._features: frozenset[str] | None = None

    @classmethod
    def connect(cls, target: Target) -> AdbDevice:
        serial = choose(attached(), target.serial or os.environ.get("ANDROID_SERIAL") or None)
        return cls(target, client(), serial)

    def features(self) -> frozenset[str]:
        """What the device's adbd can, such as shell_v2."""
        if self._features is None:
            from adbutils import AdbError

            try:
                with self._client.make_connection(timeout=10) as connection:
                    connection.send_command(f"host-serial:{self.serial}:features")
                    connection.check_okay()
                    self._features = frozenset(connection.read_string_block().split(","))
            except (AdbError, OSError) as error:
                raise self._lost(error) from None
        return self._features

    def open(self, command: Command) -> Process:
        line = join(wrap(command))
        v2 = "shell_v2" in self.features()
        service = f"shell,v2,raw:{line}" if v2 else f"exec:{line}; printf '\\001{_EXIT_MARK}%d\\n' $?"
        return AdbProcess(command, self, self._service(service), v2)

    def _service(self, name: str) -> socket.socket:
        """A connection to one service of the device."""
        from adbutils import AdbError

        data = encode(name)
        if len(data) > _MAX_SERVICE:
            raise DeployError(f"the command has {len(data)} bytes, adb takes {_MAX_SERVICE}: put arguments into a file")
        try:
            connection = self._client.make_connection(timeout=15)
            for request in (encode(f"host:transport:{self.serial}"), data):
                connection.conn.sendall(b"%04x" % len(request) + request)
                connection.check_okay()
            connection.conn.settimeout(None)
            # Two small writes in a row must not wait 40 ms for each other (the offload path's frames).
            connection.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (AdbError, OSError) as error:
            raise self._lost(error) from None
        sock: socket.socket = connection.conn
        return sock

    def _lost(self, error: Exception) -> DeployError:
        text = str(error)
        if "unauthorized" in text or "offline" in text:
            return DeviceNotReady(f"{self.name}: {text.splitlines()[0]}; allow USB debugging on it, or replug it")
        return ConnectionLost(f"{self.name} cannot be reached ({text or 'connection closed'}): check adb devices")

    def _absolute(self, path: str) -> str:
        """The sync service expands nothing."""
        if not path.startswith("~"):
            return path
        return decode(self.checked_shell(path, f'd=$1; {EXPAND}; printf %s "$d"', path))

    def upload(
        self, directory: str, files: Iterable[Upload], sent: Callable[[int], None], then: str | None = None
    ) -> None:
        root = self._absolute(directory)
        sock = self._service("sync:")
        answers = _Answers(sock)
        try:
            count = 0
            for file in files:
                count += 1
                _send_file(sock, f"{root}/{file.path}", file, sent, answers)
            answers.wait(count)
        except OSError as error:
            # Why adbd hung up stands in what it said before.
            answers.failed.wait(1)
            raise answers.error(self.name, root) or self._lost(error) from None
        finally:
            # After a failure the connection is full of what adbd will not read: it is never used again.
            sock.close()
        error_ = answers.error(self.name, root)
        if error_:
            raise error_
        if then:
            self.run_uploaded(directory, then)

    def pull(self, path: str, to: Path) -> None:
        sock = self._service("sync:")
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
            raise self._lost(error) from None
        except DeployError:
            to.unlink()
            raise
        finally:
            sock.close()

    def close(self) -> None:
        return


def _send_file(
    sock: socket.socket, path: str, file: Upload, sent: Callable[[int], None], answers: _Answers
) -> None:
    name = encode(f"{path},{_SYMLINK if file.symlink else _REGULAR}")
    if len(name) > _MAX_SYNC_PATH:
        raise DeployError(f"{path}: adb takes paths of at most {_MAX_SYNC_PATH} bytes; use a shorter --target-dir")
    pending = bytearray(struct.pack("<4sI", b"SEND", len(name)) + name)
    for chunk in file.chunks():
        for start in range(0, len(chunk), _SYNC_CHUNK):
            piece = chunk[start : start + _SYNC_CHUNK]
            pending += struct.pack("<4sI", b"DATA", len(piece))
            pending += piece
        if answers.failed.is_set():
            raise ConnectionResetError
        sock.sendall(pending)
        pending.clear()
        if not file.symlink:
            sent(len(chunk))
    sock.sendall(pending + struct.pack("<4sI", b"DONE", file.mtime & 0xFFFFFFFF))


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
