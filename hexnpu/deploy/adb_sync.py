"""The sync service of adbd, which takes and gives files (AOSP packages/modules/adb: SYNC.TXT, file_sync_protocol.h).

Files go over several connections at once, on each one after the other without waiting for each answer: while adbd makes
one file, the others fill the link. Where adbd can, their bytes are compressed, as `adb push` does.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hexnpu.deploy.adb_server import lost
from hexnpu.deploy.device import Upload
from hexnpu.deploy.download import download
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.posix import remote_error
from hexnpu.deploy.process import start_thread
from hexnpu.deploy.quoting import decode, encode

_LANES = 3
# Below the 64 KiB that are adbd's limit.
_CHUNK = 60 * 1024
# Sent in one go: bytes, and pieces that they are in (sendmsg takes 1024).
_PACKET, _MAX_PARTS = 512 * 1024, 900
_MAX_PATH = 1024
_REGULAR, _SYMLINK = 0o100600, 0o120777
# Of SND2 requests. The level is adb's own: the link is what is slow.
_FLAG_ZSTD, _ZSTD_LEVEL = 4, 1


class SyncUpload:
    """Sends `files` to a device's folder `root`. `connect` opens the service; `sent` is told how many bytes went."""

    def __init__(
        self,
        name: str,
        root: str,
        connect: Callable[[], socket.socket],
        files: Iterable[Upload],
        sent: Callable[[int], None],
        compress: bool,
    ) -> None:
        self._name, self._root, self._connect, self._sent, self._compress = name, root, connect, sent, compress
        self._files = iter(files)
        # Whose turn it is to ask for the next file, which can take its time (a sum is waited for): not under `_lock`.
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Returns when all files are written. Raises the errors of hexnpu.deploy.errors, or what `files` raises."""
        lanes = [start_thread(self._lane) for _ in range(_LANES)]
        try:
            for lane in lanes:
                lane.join()
        except BaseException as error:
            self._stop(error)
            raise
        if self._error:
            raise self._error

    def _lane(self) -> None:
        try:
            file = self._next()
            if file is None:
                return
            lane = _Lane(self._open(), self._sent, self._compress)
            try:
                while file is not None:
                    lane.file(f"{self._root}/{file.path}", file)
                    file = self._next()
                lane.finish()
            except OSError as error:
                raise lane.refusal(self._name, self._root) or lost(self._name, error) from None
            finally:
                # After a failure the connection is full of what adbd will not read: it is never used again.
                lane.close()
        except BaseException as error:
            self._stop(error)

    def _next(self) -> Upload | None:
        with self._turn:
            return next(self._files, None) if self._error is None else None

    def _open(self) -> socket.socket:
        sock = self._connect()
        with self._lock:
            self._sockets.append(sock)
            if self._error is not None:
                sock.shutdown(socket.SHUT_RDWR)
        return sock

    def _stop(self, error: BaseException) -> None:
        """The first error counts; the other lanes find their connections closed."""
        with self._lock:
            self._error = self._error or error
            for sock in self._sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)


class _Lane:
    """One connection. Small files are collected, so that some hundred bytes are not a packet of their own."""

    def __init__(self, sock: socket.socket, sent: Callable[[int], None], compress: bool) -> None:
        self._sock, self._sent, self._compress = sock, sent, compress
        self._answers = _Answers(sock)
        self._pending: list[bytes | memoryview] = []
        self._length = self._of_files = self._count = 0

    def file(self, path: str, file: Upload) -> None:
        self._count += 1
        name = encode(path)
        if len(name) + len(f",{_SYMLINK}") > _MAX_PATH:
            raise DeployError(f"{path}: adb takes paths of at most {_MAX_PATH} bytes; use a shorter --target-dir")
        if file.symlink or not self._compress:
            self._add(b"SEND", name + f",{_SYMLINK if file.symlink else _REGULAR}".encode())
            chunks = self._counted(file)
        else:
            self._add(b"SND2", name)
            self._raw(struct.pack("<4sII", b"SND2", _REGULAR, _FLAG_ZSTD))
            chunks = _compressed(self._counted(file))
        for chunk in chunks:
            view = memoryview(chunk)
            for start in range(0, len(view), _CHUNK):
                self._add(b"DATA", view[start : start + _CHUNK])
            if max(self._length, self._of_files) >= _PACKET:
                self._flush()
        self._raw(struct.pack("<4sI", b"DONE", file.mtime & 0xFFFFFFFF))
        if len(self._pending) > _MAX_PARTS:
            self._flush()

    def _counted(self, file: Upload) -> Iterator[bytes]:
        for chunk in file.chunks():
            self._of_files += 0 if file.symlink else len(chunk)
            yield chunk

    def _add(self, kind: bytes, data: bytes | memoryview) -> None:
        self._raw(struct.pack("<4sI", kind, len(data)))
        self._raw(data)

    def _raw(self, data: bytes | memoryview) -> None:
        self._pending.append(data)
        self._length += len(data)

    def _flush(self) -> None:
        if self._answers.ended.is_set():
            raise ConnectionResetError
        # In one go and without a copy, where the system can.
        done = self._sock.sendmsg(self._pending) if hasattr(self._sock, "sendmsg") else 0
        if done < self._length:
            self._sock.sendall(b"".join(self._pending)[done:])
        self._sent(self._of_files)
        self._pending.clear()
        self._length = self._of_files = 0

    def finish(self) -> None:
        """Waits until all files are written. Raises OSError where that does not come."""
        self._flush()
        self._answers.wait(self._count)

    def refusal(self, name: str, root: str) -> DeployError | None:
        """Why adbd hung up: what it said before."""
        self._answers.ended.wait(1)
        reason = self._answers.reason
        return remote_error(f"{name}: {root}", reason) if reason else None

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # The thread that reads answers would keep the connection open.
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


def _compressed(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """One zstd frame."""
    import zstandard

    stream = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compressobj()
    for chunk in chunks:
        yield stream.compress(chunk)
    yield stream.flush()


class _Answers:
    """Reads OKAY or FAIL for each file while later ones are sent."""

    def __init__(self, sock: socket.socket) -> None:
        self.ended = threading.Event()
        self.reason = ""
        self._okays = 0
        self._changed = threading.Condition()
        start_thread(lambda: self._read(sock))

    def _read(self, sock: socket.socket) -> None:
        try:
            with sock.makefile("rb") as stream:
                while len(head := stream.read(8)) == 8:
                    kind, length = struct.unpack("<4sI", head)
                    if kind != b"OKAY":
                        self.reason = decode(stream.read(length)) or "adbd refused a file"
                        break
                    with self._changed:
                        self._okays += 1
                        self._changed.notify_all()
        except (OSError, ValueError):
            pass
        with self._changed:
            self.ended.set()
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._okays >= count or self.ended.is_set())
            if self._okays < count:
                raise ConnectionResetError("adbd hung up")


def pull(name: str, path: str, sock: socket.socket, to: Path) -> None:
    """Copies the device's file `path` to `to`, over a connection to its sync service."""
    request = encode(path)
    try:
        with download(to) as write, sock.makefile("rb") as stream:
            sock.sendall(struct.pack("<4sI", b"RECV", len(request)) + request)
            while True:
                kind, length = struct.unpack("<4sI", stream.read(8))
                if kind == b"DONE":
                    return
                data = stream.read(length)
                if kind == b"FAIL":
                    raise remote_error(f"{name}: {path}", decode(data))
                write(data)
    except (OSError, struct.error) as error:
        raise lost(name, error) from None
    finally:
        sock.close()
