"""A client of htp-server that sends anything: raw frames and batches, for the tests of the server."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hexnpu import wire
from hexnpu.native import Target
from hexnpu.plan import op_table
from hexnpu.server_build import server_program
from hexnpu.tensor import Desc, Type
from hexnpu.wire import FrameType, Status
from tests.processes import HANG_S
from tests.processes import children as children_of

N = 1024
HEADER_BYTES = wire.FRAME.itemsize


@dataclass(frozen=True)
class Reply:
    type: int
    session: int
    status: int
    tag: int
    payload: bytes

    @property
    def text(self) -> str:
        return self.payload.decode()


class Server:
    """An htp-server child on a socket pair. `with Server() as s: s.ask(FrameType.HELLO)`."""

    def __init__(
        self,
        flavour: str = "release",
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        program: Path | None = None,
    ) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(HANG_S)
        self.process = subprocess.Popen(
            [program or server_program(Target(flavour)), *args], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )  # fmt: skip
        theirs.close()
        self.client = Client(self.socket)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> tuple[int, str]:
        """Exit status and stderr."""
        self.socket.close()
        stderr = self.process.communicate(timeout=HANG_S)[1]
        return self.process.returncode, stderr.decode()

    def children(self) -> list[int]:
        return children_of(self.process.pid)


class Client:
    """Frames over a connected socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.socket.settimeout(HANG_S)
        self.tag = 0

    def send(self, type: int, payload: bytes = b"", session: int = 0, **header: int) -> int:
        self.tag += 1
        fields = {"magic": wire.FRAME_MAGIC, "version": wire.FRAME_VERSION, "tag": self.tag, "bytes": len(payload)}
        fields |= header
        frame = wire.PACK_FRAME.pack(
            fields["magic"], fields["version"], type, session, 0, fields["tag"], fields["bytes"]
        )
        self.socket.sendall(frame + payload)
        return self.tag

    def receive(self) -> Reply:
        magic, version, type, session, status, tag, size = wire.PACK_FRAME.unpack(self._exactly(HEADER_BYTES))
        assert (magic, version) == (wire.FRAME_MAGIC, wire.FRAME_VERSION)
        return Reply(type, session, status, tag, self._exactly(size))

    def ask(self, type: int, payload: bytes = b"", session: int = 0) -> Reply:
        tag = self.send(type, payload, session)
        reply = self.receive()
        assert (reply.type, reply.tag) == (type | wire.REPLY, tag)
        return reply

    def _exactly(self, n: int) -> bytes:
        data = bytearray()
        while len(data) < n:
            part = self.socket.recv(min(n - len(data), 1 << 20))
            if not part:
                raise EOFError(f"the server closed the line after {len(data)} of {n} bytes")
            data += part
        return bytes(data)

    def at_end(self) -> bool:
        return self.socket.recv(1) == b""

    # Requests that are meant to succeed

    def good(self, type: int, payload: bytes = b"", session: int = 0) -> Reply:
        reply = self.ask(type, payload, session)
        assert reply.status == Status.OK, reply.text
        return reply

    def open(self, n_threads: int = 2, vtcm_mib: int = 2, max_map_bytes: int = 0) -> int:
        return self.good(FrameType.OPEN, record(wire.OPEN, n_threads, vtcm_mib, max_map_bytes, b"HTP0:0", 0, 0)).session

    def alloc(self, n_bytes: int) -> int:
        reply = self.good(FrameType.ALLOC, record(wire.ALLOC, n_bytes, 0, 0))
        return int(np.frombuffer(reply.payload, wire.BUFFER_REF)["handle"][0])

    def write(self, handle: int, data: bytes, offset: int = 0) -> None:
        self.good(FrameType.WRITE, record(wire.RANGE, handle, 0, offset, len(data)) + data)

    def read(self, handle: int, n_bytes: int, offset: int = 0) -> bytes:
        return self.good(FrameType.READ, record(wire.RANGE, handle, 0, offset, n_bytes)).payload

    def stats(self, session: int = 0) -> dict[str, int]:
        (row,) = np.frombuffer(self.good(FrameType.STATS, session=session).payload, wire.STATS)
        return {name: int(row[name]) for name in wire.STATS.names or ()}

    def submit(self, session: int, batch: bytes) -> Response:
        return Response.of(self.good(FrameType.SUBMIT, batch, session).payload)


@dataclass(frozen=True)
class Response:
    row: Any
    tail: bytes

    @staticmethod
    def of(payload: bytes) -> Response:
        return Response(np.frombuffer(payload, wire.RESPONSE, count=1)[0], payload[wire.RESPONSE.itemsize :])

    @property
    def status(self) -> Status:
        return Status(self.row["status"])

    @property
    def detail(self) -> str:
        return bytes(self.row["detail"]).decode()

    def profiles(self) -> Any:
        return np.frombuffer(self.tail, wire.PROFILE, count=self.row["n_profiles"])

    def events(self) -> Iterator[Any]:
        """Trace events thread by thread."""
        at = self.row["n_profiles"] * wire.PROFILE.itemsize
        for n in self.row["n_traces"]:
            yield np.frombuffer(self.tail, wire.TRACE_EVENT, count=n, offset=at)
            at += n * wire.TRACE_EVENT.itemsize


def record(dtype: np.dtype[Any], *values: object) -> bytes:
    row = np.zeros(1, dtype)
    row[0] = values
    return row.tobytes()


class Batch:
    """Tables of a batch as numpy records, so that a test can spoil any field before `bytes()`."""

    def __init__(self, handle: int = 0, buffer_bytes: int = 0, seq: int = 1) -> None:
        self.request = np.zeros(1, wire.REQUEST)
        self.request["magic"], self.request["version"], self.request["seq"] = wire.MAGIC, wire.VERSION, seq
        self.bufs = np.zeros(0, wire.BUF)
        self.tensors = np.zeros(0, wire.TENSOR)
        self.ops = np.zeros(0, wire.OP)
        if handle:
            self.add_buf(handle, buffer_bytes)

    def add_buf(self, handle: int, size: int, base: int = 0) -> int:
        self.bufs = np.append(self.bufs, np.array([(base, size, 0, handle)], wire.BUF))
        return len(self.bufs) - 1

    def tensor(self, desc: Desc, offset: int, flags: int = 0, buf: int = 0) -> int:
        row = (offset, desc.span_bytes, flags, desc.type, buf, len(self.tensors), desc.ne, desc.nb)
        self.tensors = np.append(self.tensors, np.array([row], wire.TENSOR))
        return len(self.tensors) - 1

    def op(
        self, name: str, kparams: Iterable[int], src: Sequence[int], dst: Sequence[int], params: Sequence[int] = ()
    ) -> int:
        words = (*kparams,)
        row = (
            op_table()[name][0], 0, (*params, *[0] * (16 - len(params))), (*words, *[0] * (32 - len(words))),
            (*src, *[wire.ABSENT] * (wire.MAX_SRC - len(src))), (*dst, *[wire.ABSENT] * (wire.MAX_DST - len(dst))), 0,
        )  # fmt: skip
        self.ops = np.append(self.ops, np.array([row], wire.OP))
        return len(self.ops) - 1

    def copy_op(self, src: int, dst: int, n_bytes: int, n_threads: int = 1) -> int:
        """CPY of one type, by DMA."""
        return self.op("CPY", (0, n_threads, 0, 1024, n_bytes, 1), (src,), (dst,))

    def bytes(self) -> bytes:
        r = self.request
        r["n_bufs"], r["n_tensors"], r["n_ops"] = len(self.bufs), len(self.tensors), len(self.ops)
        return self.raw()

    def raw(self) -> bytes:
        return b"".join(a.tobytes() for a in (self.request, self.bufs, self.tensors, self.ops))


def copy_batch(handle: int, n: int = 1024, n_ops: int = 1, seq: int = 1) -> Batch:
    """n floats from the buffer's beginning to behind them, n_ops times over."""
    batch = Batch(handle, 8 * n, seq)
    desc = Desc.contiguous(Type.F32, (n,))
    src, dst = batch.tensor(desc, 0), batch.tensor(desc, 4 * n)
    for _ in range(n_ops):
        batch.copy_op(src, dst, 4 * n)
    return batch


def floats(n: int = N) -> bytes:
    return np.arange(n, dtype=np.float32).tobytes()


def copies(client: Client, session: int, handle: int | None = None) -> None:
    """The session works: a copy of N floats."""
    handle = handle or client.alloc(8 * N)
    client.write(handle, floats())
    response = client.submit(session, copy_batch(handle, seq=77).bytes())
    assert (response.status, response.detail) == (Status.OK, "")
    assert (response.row["seq"], response.row["n_ops"], response.row["failing_op"]) == (77, 1, 1)
    assert client.read(handle, 4 * N, 4 * N) == floats()
