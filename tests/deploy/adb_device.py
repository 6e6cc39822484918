"""A device that an adb server can connect to over TCP: the ADB transport, and adbd's shell, exec and sync services.

Written from the protocol's documents in AOSP (packages/modules/adb: protocol.txt, SYNC.TXT, file_sync_protocol.h,
shell_protocol.h). It runs as a program of its own, so that its speed and its death are its own:

    python -m tests.deploy.adb_device ROOT [--no-shell-v2] [--zstd] [--banner device|unauthorized]

prints its port. Commands run by /bin/sh with HOME=ROOT; paths of the sync service are those of this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import selectors
import signal
import socket
import stat
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import IO

import zstandard

CNXN, OPEN, OKAY, CLSE, WRTE, AUTH = (
    int.from_bytes(name, "little") for name in (b"CNXN", b"OPEN", b"OKAY", b"CLSE", b"WRTE", b"AUTH")
)
TOKEN, RSA_PUBLIC_KEY = 1, 3
VERSION, MAX_PAYLOAD = 0x01000001, 1024 * 1024
STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)
ZSTD = 4


class Stream:
    """One opened service. Each side may have one WRTE under way until the other has said OKAY."""

    def __init__(self, transport: Transport, local: int, remote: int) -> None:
        self.transport, self.local, self.remote = transport, local, remote
        self.incoming: Queue[bytes | None] = Queue()
        self._acknowledged = threading.Semaphore(1)
        self._rest = memoryview(b"")
        self.closed = False

    def okay(self) -> None:
        self._acknowledged.release()

    def write(self, data: bytes) -> None:
        for start in range(0, len(data), MAX_PAYLOAD):
            self._acknowledged.acquire()
            if self.closed:
                raise ConnectionResetError
            self.transport.send(WRTE, self.local, self.remote, data[start : start + MAX_PAYLOAD])

    def read(self, n: int) -> bytes:
        parts = []
        while n:
            if not self._rest:
                self._rest = self._next()
                if not self._rest:
                    raise EOFError
            parts.append(self._rest[:n])
            self._rest = self._rest[n:]
            n -= len(parts[-1])
        return b"".join(parts)

    def read_some(self) -> memoryview:
        """What is there next; empty at the end."""
        data, self._rest = self._rest or self._next(), memoryview(b"")
        return data

    def _next(self) -> memoryview:
        data = self.incoming.get()
        if data is None:
            return memoryview(b"")
        self.transport.send(OKAY, self.local, self.remote)
        return memoryview(data)

    def close(self) -> None:
        if not self.closed:
            self.hang_up()
            self.transport.send(CLSE, self.local, self.remote)

    def hang_up(self) -> None:
        self.closed = True
        self.incoming.put(None)
        self._acknowledged.release()


class Transport:
    def __init__(
        self, sock: socket.socket, features: str, banner: str, services: Callable[[Stream, str], None]
    ) -> None:
        self._sock, self._features, self._banner, self._services = sock, features, banner, services
        self._streams: dict[int, Stream] = {}
        self._sending = threading.Lock()
        self._next = 1

    def send(self, command: int, arg0: int, arg1: int, data: bytes = b"") -> None:
        checksum = sum(data) if command in (CNXN, AUTH) else 0
        header = struct.pack("<6I", command, arg0, arg1, len(data), checksum, command ^ 0xFFFFFFFF)
        with self._sending, contextlib.suppress(OSError):
            self._sock.sendall(header + data)

    def serve(self) -> None:
        with self._sock, self._sock.makefile("rb", 1 << 17) as stream:
            while len(header := stream.read(24)) == 24:
                command, arg0, arg1, length, _, _ = struct.unpack("<6I", header)
                self._message(command, arg0, arg1, stream.read(length))
        for open_stream in self._streams.values():
            open_stream.hang_up()

    def _message(self, command: int, arg0: int, arg1: int, data: bytes) -> None:
        if command in (CNXN, AUTH) and self._banner == "unauthorized":
            # A token for each signature that is tried; to the public key that comes at last, nobody says yes.
            if arg0 != RSA_PUBLIC_KEY:
                self.send(AUTH, TOKEN, 0, bytes(20))
        elif command == CNXN:
            names = "ro.product.name=test;ro.product.model=Test;ro.product.device=test"
            self.send(CNXN, VERSION, MAX_PAYLOAD, f"device::{names};features={self._features}".encode())
        elif command == OPEN:
            stream = Stream(self, self._next, arg0)
            self._next += 1
            self._streams[stream.local] = stream
            self.send(OKAY, stream.local, arg0)
            threading.Thread(target=self._serve_stream, args=(stream, data.rstrip(b"\0")), daemon=True).start()
        elif (found := self._streams.get(arg1)) is None:
            return
        elif command == OKAY:
            found.okay()
        elif command == WRTE:
            found.incoming.put(data)
        elif command == CLSE:
            found.hang_up()
            del self._streams[arg1]

    def _serve_stream(self, stream: Stream, name: bytes) -> None:
        with contextlib.suppress(EOFError, OSError):
            self._services(stream, name.decode("utf-8", "surrogateescape"))
        stream.close()


class Services:
    def __init__(self, root: Path, shell_v2: bool) -> None:
        self._root, self._shell_v2 = root, shell_v2

    def __call__(self, stream: Stream, name: str) -> None:
        service, _, argument = name.partition(":")
        if service == "sync":
            Sync(stream).serve()
        elif service == "shell,v2,raw" and self._shell_v2:
            self._shell(stream, argument)
        elif service == "exec":
            self._exec(stream, argument)

    def _start(self, command: str, stderr: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["/bin/sh", "-c", command], cwd="/", env={**os.environ, "HOME": str(self._root)}, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip

    def _shell(self, stream: Stream, command: str) -> None:
        child = self._start(command, subprocess.PIPE)
        assert child.stdin and child.stdout and child.stderr
        threading.Thread(target=self._stdin, args=(stream, child), daemon=True).start()
        selector = selectors.DefaultSelector()
        selector.register(child.stdout, selectors.EVENT_READ, STDOUT)
        selector.register(child.stderr, selectors.EVENT_READ, STDERR)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, 65536)
                if data:
                    stream.write(struct.pack("<BI", key.data, len(data)) + data)
                else:
                    selector.unregister(key.fileobj)
        code = child.wait()
        stream.write(struct.pack("<BIB", EXIT, 1, code if code >= 0 else 128 - code))

    def _stdin(self, stream: Stream, child: subprocess.Popen[bytes]) -> None:
        assert child.stdin
        with contextlib.suppress(EOFError, OSError, ValueError):
            while True:
                kind, length = struct.unpack("<BI", stream.read(5))
                data = stream.read(length)
                if kind == STDIN:
                    child.stdin.write(data)
                    child.stdin.flush()
                elif kind == CLOSE_STDIN:
                    child.stdin.close()
        # The other side hung up: adbd ends what it left running.
        if child.poll() is None and stream.closed:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGHUP)

    def _plain_stdin(self, stream: Stream, stdin: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := stream.read_some():
                stdin.write(data)
                stdin.flush()
            stdin.close()

    def _exec(self, stream: Stream, command: str) -> None:
        child = self._start(command, subprocess.STDOUT)
        assert child.stdin and child.stdout
        threading.Thread(target=self._plain_stdin, args=(stream, child.stdin), daemon=True).start()
        while data := os.read(child.stdout.fileno(), 65536):
            stream.write(data)


class Sync:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def serve(self) -> None:
        while True:
            kind, length = struct.unpack("<4sI", self._stream.read(8))
            if kind == b"QUIT":
                return
            if length > 1024:
                self._fail("invalid namelen")
                return
            name = self._stream.read(length).decode("utf-8", "surrogateescape")
            if kind == b"SEND":
                path, _, mode = name.rpartition(",")
                self._send(path, int(mode))
            elif kind == b"SND2":
                again, mode2, flags = struct.unpack("<4sII", self._stream.read(12))
                if again != kind or flags not in (0, ZSTD):
                    self._fail(f"{again!r} with flags {flags:#x}")
                    return
                self._send(name, mode2, zstandard.ZstdDecompressor().decompressobj() if flags else None)
            elif kind == b"RECV":
                self._recv(name)
            elif kind == b"STAT":
                self._stat(name)
            else:
                self._fail(f"unknown command {kind!r}")

    def _fail(self, reason: str) -> None:
        self._stream.write(struct.pack("<4sI", b"FAIL", len(reason)) + reason.encode())

    def _send(self, name: str, mode: int, zstd: zstandard.ZstdDecompressionObj | None = None) -> None:
        path = Path(name)
        error: OSError | None = None
        out = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if not stat.S_ISLNK(mode):
                out = path.open("wb", buffering=0)
        except OSError as failure:
            error = failure
        while True:
            kind, length = struct.unpack("<4sI", self._stream.read(8))
            if kind == b"DONE":
                break
            if length > 65536:
                self._fail("oversize data message")
                raise EOFError
            data = self._stream.read(length)
            if zstd:
                data = zstd.decompress(data)
            if error is None:
                try:
                    if out is None:
                        path.symlink_to(os.fsdecode(data))
                    else:
                        left = memoryview(data)
                        while left:
                            left = left[out.write(left) :]
                except OSError as failure:
                    error = failure
        if zstd and not zstd.eof:
            error = OSError(errno.EIO, "the zstd frame has no end")
        if out:
            out.close()
            # As adbd does: the owner's bits also for group and others.
            path.chmod((mode & 0o700) * 0o111 // 0o100 & 0o777)
            os.utime(path, (length, length))
        if error:
            self._fail(f"couldn't create file: {error.strerror}")
        else:
            self._stream.write(struct.pack("<4sI", b"OKAY", 0))

    def _recv(self, name: str) -> None:
        try:
            with Path(name).open("rb") as file:
                while data := file.read(65536):
                    self._stream.write(struct.pack("<4sI", b"DATA", len(data)) + data)
        except OSError as error:
            self._fail(f"open failed: {error.strerror}")
            return
        self._stream.write(struct.pack("<4sI", b"DONE", 0))

    def _stat(self, name: str) -> None:
        try:
            info = os.lstat(name)
            answer = (info.st_mode, info.st_size & 0xFFFFFFFF, int(info.st_mtime))
        except OSError:
            answer = (0, 0, 0)
        self._stream.write(struct.pack("<4s3I", b"STAT", *answer))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--no-shell-v2", action="store_true")
    parser.add_argument("--zstd", action="store_true")
    parser.add_argument("--banner", default="device")
    options = parser.parse_args()
    features = "cmd" if options.no_shell_v2 else "shell_v2,cmd"
    if options.zstd:
        features += ",sendrecv_v2,sendrecv_v2_zstd"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            services = Services(options.root, not options.no_shell_v2)
            transport = Transport(sock, features, options.banner, services)
            threading.Thread(target=transport.serve, daemon=True).start()


if __name__ == "__main__":
    main()
