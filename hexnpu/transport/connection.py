"""The framed protocol of include/htp-frames.h over a stream socket: requests, replies, buffers, and how a server dies.

A request that the server refuses raises DeviceError with the server's sentence. A server that dies, or says nothing for
`reply_timeout_s`, raises SessionLost, and so does every request after that; nothing waits for ever.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np

from hexnpu import wire
from hexnpu.errors import DeviceError, SessionLost
from hexnpu.transport.buffer import Buffer
from hexnpu.wire import FrameType, Status

HELLO_TIMEOUT_S, REPLY_TIMEOUT_S = 30.0, 300.0
# The sanitizers' own words, or those of the server about a crash; the rest of stderr is context.
_TELLING = ("ERROR:", "runtime error:", "WARNING: ThreadSanitizer", "htp-server:")

Doing = str | Callable[[], str]


@dataclass(slots=True)
class Reply:
    """One frame from the server. `fd`: the descriptor that came with it."""

    type: int
    session: int
    status: int
    tag: int
    payload: bytearray
    fd: int | None


class Server(Protocol):
    """What stands behind a connection. `obituary` says how it ended, `last_words` gives the end of its stderr."""

    def obituary(self) -> str: ...
    def last_words(self) -> str: ...
    def end(self) -> None: ...


@dataclass(frozen=True)
class Hello:
    """What the server said of itself; see struct htp_hello."""

    arch: int
    n_threads: int
    n_hmx: int
    vtcm_bytes: int
    max_map_bytes: int
    can_share: bool
    clock_khz: int
    flavour: str


class Connection:
    """One client's line to a device server."""

    def __init__(self, sock: socket.socket, server: Server, name: str, *, shares: bool = True) -> None:
        """`shares`: whether file descriptors can pass over `sock` at all, which the family alone does not tell."""
        self.name = name
        self._shares = shares and sock.family == socket.AF_UNIX
        self._sock = sock
        self._server = server
        self._tags = itertools.count(1)
        self._lock = threading.Lock()
        self._dead: str | None = None
        self._garbage: list[int] = []
        # Batches that were sent and not collected, and replies to them that came while another one was awaited.
        self._posted: set[int] = set()
        self._early: list[Reply] = []
        self._header = bytearray(wire.FRAME.itemsize)
        sock.settimeout(HELLO_TIMEOUT_S)
        # Held apart from self, so that a forgotten connection ends its server too.
        self._finalizer = weakref.finalize(self, _end, sock, server)
        self.hello = self._hello()
        self.wait_at_most(REPLY_TIMEOUT_S)

    def _hello(self) -> Hello:
        (row,) = np.frombuffer(self.request(FrameType.HELLO, doing="hello"), wire.HELLO, count=1)
        if row["protocol"] != wire.VERSION:
            self.close()
            raise SessionLost(
                f"{self.name} speaks protocol {row['protocol']}, this hexnpu speaks {wire.VERSION}; rebuild the server"
            )
        return Hello(
            arch=int(row["arch"]),
            n_threads=int(row["n_threads"]),
            n_hmx=int(row["n_hmx"]),
            vtcm_bytes=int(row["vtcm_bytes"]),
            max_map_bytes=int(row["max_map_bytes"]),
            can_share=bool(row["can_share"]) and self._shares,
            clock_khz=int(row["clock_khz"]),
            flavour=row["flavour"].decode("ascii", "replace"),
        )

    def wait_at_most(self, reply_timeout_s: float) -> None:
        """For each answer from now on."""
        self.reply_timeout_s = reply_timeout_s
        self._sock.settimeout(reply_timeout_s)

    # Requests

    def request(
        self, type: FrameType, *parts: bytes | bytearray | memoryview, session: int = 0, doing: Doing = ""
    ) -> bytearray:
        """Sends one frame and gives the payload of its reply. `doing` names the request in an error."""
        return self._exchange(type, parts, session, doing)[1]

    def submit(self, session: int, batch: bytearray, doing: Doing) -> bytearray:
        """The response of one op batch. `batch` begins with room for the frame's header (wire.FRAME.itemsize bytes)."""
        with self._lock:
            tag = self._address(session, batch)
            return self._talk(FrameType.SUBMIT, (batch,), tag, False, doing)[1]

    def post(self, session: int, batch: bytearray, doing: Doing) -> int:
        """Sends an op batch without waiting for its response, which `collect` gives; the tag tells which it is."""
        with self._lock:
            tag = self._address(session, batch)
            self._send((batch,), doing)
            self._posted.add(tag)
            return tag

    def _address(self, session: int, batch: bytearray) -> int:
        """Writes the header of the batch's frame, and gives its tag."""
        tag = next(self._tags)
        size = len(batch) - wire.FRAME.itemsize
        wire.PACK_FRAME.pack_into(
            batch, 0, wire.FRAME_MAGIC, wire.FRAME_VERSION, FrameType.SUBMIT, session, 0, tag, size
        )
        return tag

    def collect(
        self, doing: Doing, timeout_s: float | None = None
    ) -> tuple[int, bytearray | SessionLost | DeviceError]:
        """The next response to a posted batch, in the order in which they come: its tag, and what it is or why there is
        none. Raises SessionLost where the server is gone or says nothing for `timeout_s`."""
        with self._lock:
            self._sock.settimeout(self.reply_timeout_s if timeout_s is None else timeout_s)
            reply = self._early.pop(0) if self._early else self._receive_reply(False, doing)
            self._sock.settimeout(self.reply_timeout_s)
            if reply.tag not in self._posted:
                self._die(f"it answered with type {reply.type:#x}, tag {reply.tag}", doing)
            self._posted.remove(reply.tag)
            try:
                return reply.tag, self._checked(FrameType.SUBMIT, reply, doing)
            except (SessionLost, DeviceError) as error:
                if self._dead:
                    raise
                return reply.tag, error

    def open_session(
        self, device: str, n_threads: int, vtcm_mib: int, max_map_bytes: int = 0, fence_timeout_ms: int = 0
    ) -> int:
        """Opens an NPU session and gives its number. 0 leaves a value to the server."""
        body = np.zeros(1, wire.OPEN)
        body[0] = (n_threads, vtcm_mib, max_map_bytes, device.encode(), fence_timeout_ms, 0)
        return self._exchange(FrameType.OPEN, (body.tobytes(),), 0, f"opening {device}")[0]

    def alloc(self, session: int, n_bytes: int) -> Buffer:
        """A zeroed buffer of the session, shared by mapping where the line can pass file descriptors."""
        share = self.hello.can_share
        body = np.zeros(1, wire.ALLOC)
        body[0] = (n_bytes, int(share), 0)
        doing = f"allocating {n_bytes} bytes"
        with self._lock:
            self._free_garbage(session)
            tag = next(self._tags)
            _, reply, fd = self._talk(
                FrameType.ALLOC, self._frame(FrameType.ALLOC, session, tag, (body.tobytes(),)), tag, share, doing
            )
        handle = int(np.frombuffer(reply, wire.BUFFER_REF, count=1)["handle"][0])
        return Buffer(self, session, handle, n_bytes, fd, self._garbage)

    def profile(self, session: int, mode: int, pmu: tuple[int, ...] = ()) -> None:
        body = np.zeros(1, wire.PROFILE_SET)
        body["mode"] = mode
        body["pmu"][0, : len(pmu)] = pmu
        self.request(FrameType.PROFILE, body.tobytes(), session=session, doing="setting the profile mode")

    def stats(self, session: int = 0) -> dict[str, int]:
        (row,) = np.frombuffer(self.request(FrameType.STATS, session=session, doing="stats"), wire.STATS, count=1)
        return {name: int(row[name]) for name in wire.STATS.names or ()}

    # The wire

    def _exchange(
        self, type: FrameType, parts: tuple[bytes | bytearray | memoryview, ...], session: int, doing: Doing
    ) -> tuple[int, bytearray]:
        with self._lock:
            if self._garbage:
                self._free_garbage(session)
            tag = next(self._tags)
            return self._talk(type, self._frame(type, session, tag, parts), tag, False, doing)[:2]

    def _frame(
        self, type: FrameType, session: int, tag: int, parts: tuple[bytes | bytearray | memoryview, ...]
    ) -> tuple[bytes | bytearray | memoryview, ...]:
        size = sum(len(p) for p in parts)
        head = wire.PACK_FRAME.pack(wire.FRAME_MAGIC, wire.FRAME_VERSION, type, session, 0, tag, size)
        return (head, *parts)

    def _talk(
        self,
        type: FrameType,
        parts: tuple[bytes | bytearray | memoryview, ...],
        tag: int,
        want_fd: bool,
        doing: Doing,
    ) -> tuple[int, bytearray, int | None]:
        """Sends the parts of a frame, gives (session, payload, descriptor) of the reply."""
        self._send(parts, doing)
        reply = self._receive_reply(want_fd, doing)
        while reply.tag in self._posted:
            self._early.append(reply)
            reply = self._receive_reply(want_fd, doing)
        if reply.status == Status.OK and reply.tag != tag:
            self._die(f"it answered frame {tag} with type {reply.type:#x}, tag {reply.tag}", doing)
        return reply.session, self._checked(type, reply, doing), reply.fd

    def _send(self, parts: tuple[bytes | bytearray | memoryview, ...], doing: Doing) -> None:
        if self._dead:
            raise SessionLost(f"{self.name}: {self._dead}; open a new session")
        with self._watched(doing):
            for part in parts:
                self._sock.sendall(part)

    def _receive_reply(self, want_fd: bool, doing: Doing) -> Reply:
        if self._dead:
            raise SessionLost(f"{self.name}: {self._dead}; open a new session")
        with self._watched(doing):
            fd = self._receive_header(want_fd)
            magic, version, type, session, status, tag, size = wire.PACK_FRAME.unpack(self._header)
            if (magic, version) != (wire.FRAME_MAGIC, wire.FRAME_VERSION) or size > wire.MAX_FRAME_BYTES:
                raise ConnectionError("it answered with something that is no frame")
            payload = bytearray(size)
            self._receive(memoryview(payload))
        return Reply(type, session, status, tag, payload, fd)

    @contextlib.contextmanager
    def _watched(self, doing: Doing) -> Iterator[None]:
        """Ends the connection with a SessionLost where the line breaks, and where a request is interrupted."""
        try:
            yield
        except TimeoutError:
            self._die(f"no answer for {self._sock.gettimeout() or 0:.0f} s", doing)
        except OSError as error:
            self._die(str(error) if error.args and not error.errno else self._server.obituary(), doing)
        except BaseException:
            # Ctrl-C, say: the reply would be taken for that of the next request.
            self._dead = "a request was interrupted"
            self.close()
            raise

    def _checked(self, type: FrameType, reply: Reply, doing: Doing) -> bytearray:
        """The payload of a good reply. Raises what the server says otherwise."""
        if reply.status == Status.OK and reply.type == type | wire.REPLY:
            return reply.payload
        if reply.fd is not None:
            os.close(reply.fd)
        if reply.status == Status.OK:
            self._die(f"it answered a frame of type {type:#x} with type {reply.type:#x}", doing)
        sentence = reply.payload.decode("utf-8", "replace").strip("\0\n ")
        return self._refused(type, reply.type, reply.status, sentence, doing)

    def _refused(self, type: FrameType, got: int, status: int, sentence: str, doing: Doing) -> NoReturn:
        if got == FrameType.ERROR:
            self._die(f"the server could not read the frame: {sentence}", doing)
        if type == FrameType.SUBMIT and status == Status.INTERNAL_ERR:
            raise self._lost(sentence, doing)  # the session's process died; the server and its other sessions live
        raise DeviceError(f"{self.name}: {sentence or _status_name(status)}")

    def _receive_header(self, want_fd: bool) -> int | None:
        """Fills the header; gives the file descriptor that came with it."""
        view = memoryview(self._header)
        if not want_fd:
            self._receive(view)
            return None
        first, fds, _, _ = socket.recv_fds(self._sock, len(view), 1)
        view[: len(first)] = first
        if not first:
            raise ConnectionResetError
        self._receive(view[len(first) :])
        return fds[0] if fds else None

    def _receive(self, view: memoryview) -> None:
        while view:
            n = self._sock.recv_into(view)
            if not n:
                raise ConnectionResetError
            view = view[n:]

    def _free_garbage(self, session: int) -> None:
        """Frees buffers whose objects are gone: a finalizer may run in the middle of a request, so it only notes."""
        while self._garbage:
            body = np.zeros(1, wire.BUFFER_REF)
            body["handle"] = self._garbage.pop()
            tag = next(self._tags)
            with contextlib.suppress(DeviceError):
                self._talk(
                    FrameType.FREE, self._frame(FrameType.FREE, session, tag, (body.tobytes(),)), tag, False, "freeing"
                )

    def _die(self, reason: str, doing: Doing) -> NoReturn:
        self._dead = reason
        lost = self._lost(reason, doing)
        self.close()
        raise lost from None

    def _lost(self, reason: str, doing: Doing) -> SessionLost:
        what = doing() if callable(doing) else doing
        words = self._server.last_words()
        telling = [line.strip() for line in words.splitlines() if any(t in line for t in _TELLING)]
        shown = telling[0] if telling else (words.strip().splitlines() or [""])[-1]
        text = f"{self.name} is lost: {reason}" + (f"; in flight: {what}" if what else "")
        if shown and reason not in shown:
            text += f"; its last words: {shown[:300]}"
        return SessionLost(text, words)

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def close(self) -> None:
        """Ends the connection, and the server where it is our child. Safe to call twice."""
        if self._dead is None:
            self._dead = "the session was closed"
        self._finalizer()


def _end(sock: socket.socket, server: Server) -> None:
    with contextlib.suppress(OSError):
        sock.close()
    server.end()


def _status_name(status: int) -> str:
    try:
        return Status(status).name
    except ValueError:
        return f"status {status}"
