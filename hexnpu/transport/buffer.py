"""Memory of a session, as this side sees it."""

from __future__ import annotations

import mmap
import os
import weakref
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hexnpu import wire
from hexnpu.wire import FrameType

# Data travels in frames of at most this size where memory is not shared.
CHUNK_BYTES = 64 << 20


class Line(Protocol):
    """What a buffer needs of its connection."""

    def request(
        self, type: FrameType, *parts: bytes | bytearray | memoryview, session: int = 0, doing: str = ""
    ) -> bytearray: ...


class Buffer:
    """Memory that an NPU session can map. `view` is the memory itself where it is shared, otherwise a copy on this
    side that `flush` sends and `fetch` brings. Freed when the last reference goes."""

    def __init__(self, line: Line, session: int, handle: int, n_bytes: int, fd: int | None, garbage: list[int]) -> None:
        """`fd`: the memory's file, ours now. `garbage` gets the handle when the buffer goes."""
        self.handle = handle
        self.bytes = n_bytes
        self.shared = fd is not None
        self._fd = -1 if fd is None else fd
        self._line = line
        self._session = session
        self._view: npt.NDArray[np.uint8] | None = None
        weakref.finalize(self, _let_go, fd, garbage, handle).atexit = False

    @property
    def view(self) -> npt.NDArray[np.uint8]:
        if self._view is None:
            if self.shared:
                self._view = np.frombuffer(mmap.mmap(self._fd, self.bytes), np.uint8)
            else:
                self._view = np.zeros(self.bytes, np.uint8)
        return self._view

    def write(self, offset: int, data: npt.NDArray[np.uint8]) -> None:
        """Puts bytes into the buffer without keeping a copy on this side."""
        if self.shared:
            # Not through a mapping: weights would stay in this process's memory, and a full disk would be a SIGBUS.
            rest = np.ascontiguousarray(data).data
            while len(rest):
                n = os.pwrite(self._fd, rest, offset)
                rest, offset = rest[n:], offset + n
            return
        for at in range(0, data.size, CHUNK_BYTES):
            part = np.ascontiguousarray(data[at : at + CHUNK_BYTES])
            head = self._range(offset + at, part.size)
            self._line.request(FrameType.WRITE, head, part.data, session=self._session, doing="writing a buffer")

    def flush(self, offset: int, n_bytes: int) -> None:
        """Makes what was written to `view` visible to the server; nothing to do where memory is shared."""
        if not self.shared and n_bytes:
            self.write(offset, self.view[offset : offset + n_bytes])

    def fetch(self, offset: int, n_bytes: int) -> None:
        """Brings what the server wrote into `view`; nothing to do where memory is shared."""
        if self.shared:
            return
        for at in range(offset, offset + n_bytes, CHUNK_BYTES):
            size = min(CHUNK_BYTES, offset + n_bytes - at)
            data = self._line.request(
                FrameType.READ, self._range(at, size), session=self._session, doing="reading a buffer"
            )
            self.view[at : at + size] = np.frombuffer(data, np.uint8)

    def load(self, offset: int, path: str, file_offset: int, n_bytes: int) -> None:
        """Brings a range of a file on the device's own file system into the buffer."""
        body = np.zeros(1, wire.LOAD)
        name = path.encode()
        body[0] = (self.handle, len(name), offset, file_offset, n_bytes)
        self._line.request(FrameType.LOAD, body.tobytes(), name, session=self._session, doing=f"loading {path}")

    def _range(self, offset: int, n_bytes: int) -> bytes:
        body = np.zeros(1, wire.RANGE)
        body[0] = (self.handle, 0, offset, n_bytes)
        return body.tobytes()


def _let_go(fd: int | None, garbage: list[int], handle: int) -> None:
    if fd is not None:
        os.close(fd)
    garbage.append(handle)
