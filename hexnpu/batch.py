"""Ops with their tensors in buffers -> the bytes of one op batch, and the response to it.

A batch is built once and sent many times: only its sequence number and its room for trace events change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hexnpu import wire
from hexnpu.tensor import Desc
from hexnpu.transport import Buffer

HEAD = wire.FRAME.itemsize  # room for the frame's header in front, so that a submit copies nothing


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A tensor in a buffer."""

    desc: Desc
    buffer: Buffer
    offset: int
    flags: int = 0


@dataclass(slots=True)
class Batch:
    """One message to a session; `ops` are whatever the builder was given to tell them apart."""

    data: bytearray
    ops: list[Any]
    buffers: list[Buffer]
    sequences: list[tuple[int, int]]  # where a fence's sequence number stands in `data`, and its number within a run

    def stamp(self, seq: int, n_traces: int) -> None:
        self.data[HEAD + wire.SEQ_OFFSET : HEAD + wire.SEQ_OFFSET + 8] = seq.to_bytes(8, "little")
        self.data[HEAD + wire.N_TRACES_OFFSET : HEAD + wire.N_TRACES_OFFSET + 4] = n_traces.to_bytes(4, "little")


    def stamp_sequences(self, base: int) -> None:
        """Gives the fences of a run their numbers, which go on from `base`, modulo 2^32."""
        for at, number in self.sequences:
            self.data[at : at + 4] = ((base + number) & 0xFFFFFFFF).to_bytes(4, "little")


class BatchBuilder:
    """Collects ops until one of the protocol's limits, or the bytes a session maps at a time, is reached."""

    def __init__(self, max_map_bytes: int) -> None:
        self._max_map_bytes = max_map_bytes
        self._buffers: dict[int, Buffer] = {}
        self._buffer_index: dict[int, int] = {}
        self._mapped_bytes = 0
        self._tensors: dict[int, tuple[int, Placed]] = {}
        self._tensor_rows: list[bytes] = []
        self._op_rows: list[bytes] = []
        self._ops: list[Any] = []
        self._fence_handles: set[int] = set()
        self._sequences: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._ops)

    def fits(self, tensors: Sequence[Placed | None]) -> bool:
        """Whether one more op over these tensors keeps the batch within every limit."""
        new_buffers: dict[int, Buffer] = {}
        new_tensors = 0
        for t in tensors:
            if t is None or id(t) in self._tensors:
                continue
            new_tensors += 1
            if t.buffer.handle not in self._buffers:
                new_buffers[t.buffer.handle] = t.buffer
        if len(self._tensors) + new_tensors > wire.MAX_TENSORS or len(self._ops) >= wire.MAX_OPS:
            return False
        if not new_buffers:
            return True
        n_bytes = self._mapped_bytes + sum(b.bytes for b in new_buffers.values())
        return len(self._buffers) + len(new_buffers) <= wire.MAX_BUFS and n_bytes <= self._max_map_bytes

    def add(
        self,
        opcode: int,
        params: Sequence[int],
        kernel_params: Sequence[int],
        src: Sequence[Placed | None],
        dst: Sequence[Placed],
        op: Any = None,
        sequence: int | None = None,
    ) -> None:
        index = self._tensors
        sources = [wire.ABSENT if t is None else index[id(t)][0] if id(t) in index else self._tensor(t) for t in src]
        results = [index[id(t)][0] if id(t) in index else self._tensor(t) for t in dst]
        sources += [wire.ABSENT] * (wire.MAX_SRC - len(sources))
        results += [wire.ABSENT] * (wire.MAX_DST - len(results))
        self._op_rows.append(wire.PACK_OP.pack(opcode, 0, *params, *kernel_params, *sources, *results, 0))
        if sequence is not None:
            self._sequences[len(self._ops)] = sequence
        self._ops.append(op)

    def _tensor(self, t: Placed) -> int:
        handle = t.buffer.handle
        bi = self._buffer_index.get(handle)
        if bi is None:
            bi = self._buffer_index[handle] = len(self._buffers)
            self._buffers[handle] = t.buffer
            self._mapped_bytes += t.buffer.bytes
        if t.flags & wire.TENSOR_FENCE:
            self._fence_handles.add(handle)
        ti = len(self._tensor_rows)
        # The Placed is kept too: its id() must not be given to another while the batch is built.
        self._tensors[id(t)] = (ti, t)
        d = t.desc
        self._tensor_rows.append(wire.PACK_TENSOR.pack(t.offset, d.span_bytes, t.flags, d.type, bi, ti, *d.ne, *d.nb))
        return ti

    def finish(self) -> Batch:
        data = bytearray(HEAD)
        data += wire.PACK_REQUEST.pack(
            wire.MAGIC, wire.VERSION, 0, len(self._buffers), len(self._tensor_rows), len(self._op_rows), 0
        )
        for handle, buffer in self._buffers.items():
            flags = wire.BUF_FENCE if handle in self._fence_handles else 0
            data += wire.PACK_BUF.pack(0, buffer.bytes, flags, handle)
        data += b"".join(self._tensor_rows)
        first = len(data) + wire.PARAMS_OFFSET  # a sequence number is the op's first parameter
        data += b"".join(self._op_rows)
        sequences = [(first + i * wire.OP.itemsize, number) for i, number in self._sequences.items()]
        return Batch(data, self._ops, list(self._buffers.values()), sequences)


@dataclass(slots=True)
class Response:
    """What came back for a batch. `profiles` has a row an op; `traces` the events of each thread, in modes 1..3."""

    seq: int
    cycles_start: int
    cycles_stop: int
    status: int
    failing_op: int
    n_ops: int
    usecs: int
    n_traces: tuple[int, ...]
    detail: str
    profiles: npt.NDArray[Any]
    traces: list[npt.NDArray[Any]]


_UNPACK_RESPONSE = wire.packer(wire.RESPONSE)


def parse_response(data: bytearray) -> Response:
    """Reads a response. Raises ValueError where its counts and its length do not go together."""
    if len(data) < wire.RESPONSE.itemsize:
        raise ValueError(f"a response of {len(data)} bytes")
    *head, detail = _UNPACK_RESPONSE.unpack_from(data)
    seq, start, stop, status, failing_op, n_ops, usecs, n_profiles, *n_traces = head
    want = n_profiles * wire.PROFILE.itemsize + sum(n_traces) * wire.TRACE_EVENT.itemsize
    at = wire.RESPONSE.itemsize
    if len(data) != at + want:
        raise ValueError(f"a response of {len(data)} bytes that speaks of {at + want}")
    profiles = np.frombuffer(data, wire.PROFILE, count=n_profiles, offset=at) if n_profiles else _NO_PROFILES
    at += n_profiles * wire.PROFILE.itemsize
    traces = []
    if any(n_traces):
        for n in n_traces:
            traces.append(np.frombuffer(data, wire.TRACE_EVENT, count=n, offset=at))
            at += n * wire.TRACE_EVENT.itemsize
    text = detail.partition(b"\0")[0].decode("utf-8", "replace")
    return Response(seq, start, stop, status, failing_op, n_ops, usecs, tuple(n_traces), text, profiles, traces)


_NO_PROFILES = np.empty(0, wire.PROFILE)
