"""The bytes of a batch read back with the dtypes, the limits, and broken responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from hexnpu import wire
from hexnpu.batch import HEAD, BatchBuilder, Placed, parse_response
from hexnpu.tensor import Desc, Type

ZEROS = (0,) * 16
KP = tuple(range(32))


@dataclass
class FakeBuffer:
    handle: int
    bytes: int = 4096
    view: Any = field(default=None)


def tensor(buffer: Any, offset: int = 0, ne: tuple[int, ...] = (8, 2), type: Type = Type.F32) -> Placed:
    return Placed(Desc.contiguous(type, ne), buffer, offset)


def tables(data: bytearray) -> tuple[Any, Any, Any, Any]:
    (request,) = np.frombuffer(data, wire.REQUEST, 1, HEAD)
    at = HEAD + wire.REQUEST.itemsize
    result = [request]
    for dtype, n in ((wire.BUF, "n_bufs"), (wire.TENSOR, "n_tensors"), (wire.OP, "n_ops")):
        result.append(np.frombuffer(data, dtype, int(request[n]), at))
        at += dtype.itemsize * int(request[n])
    assert at == len(data)
    return (result[0], result[1], result[2], result[3])


def test_tables_read_back() -> None:
    a, b = FakeBuffer(7), FakeBuffer(9, 1 << 33)
    x, y = tensor(a, 128), tensor(b, 1 << 32)
    row = Placed(Desc(Type.F16, (8, 3, 1, 1), (2, 64, 192, 192)), b, 256, wire.TENSOR_WEIGHT)
    builder = BatchBuilder(1 << 40)
    builder.add(3, (-1, *ZEROS[1:]), KP, (x, None, row), (y,), "first")
    builder.add(4, ZEROS, KP, (y, x), (x, y), "second")
    batch = builder.finish()
    batch.stamp(99, 5)
    request, bufs, tensors, ops = tables(batch.data)
    assert [int(request[n]) for n in ("magic", "version", "seq", "n_traces")] == [wire.MAGIC, wire.VERSION, 99, 5]
    assert [tuple(map(int, (r["base"], r["size"], r["fd"]))) for r in bufs] == [(0, 4096, 7), (0, 1 << 33, 9)]
    assert [int(t["bi"]) for t in tensors] == [0, 1, 1]
    assert [int(t["data"]) for t in tensors] == [128, 256, 1 << 32]
    assert [int(t["size"]) for t in tensors] == [64, 2 * 64 + 16, 64]
    assert tensors[1]["nb"].tolist() == [2, 64, 192, 192] and int(tensors[1]["flags"]) == wire.TENSOR_WEIGHT
    assert ops[0]["src"][:4].tolist() == [0, wire.ABSENT, 1, wire.ABSENT]
    assert ops[0]["dst"].tolist() == [2, wire.ABSENT, wire.ABSENT, wire.ABSENT]
    assert ops[1]["dst"][:2].tolist() == [0, 2]
    assert ops[0]["params"][0] == -1 and ops[0]["kernel_params"].tolist() == list(KP)
    assert batch.ops == ["first", "second"] and [b.handle for b in batch.buffers] == [7, 9]


def test_limits_of_a_batch() -> None:
    buffers = [FakeBuffer(i, 100) for i in range(20)]
    builder = BatchBuilder(1450)
    for b in buffers[:14]:
        t = tensor(b)
        assert builder.fits((t, t))
        builder.add(0, ZEROS, KP, (t,), (t,))
    assert not builder.fits((tensor(buffers[14]),)), "the bytes of the window"
    assert builder.fits((tensor(buffers[3]), None)), "a buffer that is mapped already costs nothing"
    wide = BatchBuilder(1 << 40)
    for b in buffers[:16]:
        wide.add(0, ZEROS, KP, (tensor(b),), ())
    assert not wide.fits((tensor(buffers[16]),)), "16 buffers"


def test_tensors_and_ops_of_a_batch_are_counted() -> None:
    b = FakeBuffer(1)
    builder = BatchBuilder(1 << 40)
    keep = [tensor(b) for _ in range(wire.MAX_TENSORS)]
    for t in keep[:-1]:
        builder.add(0, ZEROS, KP, (t,), ())
    assert builder.fits((keep[-1],)) and not builder.fits((keep[-1], tensor(b)))
    builder.add(0, ZEROS, KP, (keep[-1],), ())
    assert not builder.fits((keep[0],)), "8192 ops"


def response(n_profiles: int = 0, traces: tuple[int, ...] = (), **fields: Any) -> bytearray:
    head = np.zeros(1, wire.RESPONSE)
    head["n_profiles"] = n_profiles
    head["n_traces"][0, : len(traces)] = traces
    for name, value in fields.items():
        head[name] = value
    body = np.zeros(n_profiles, wire.PROFILE).tobytes() + np.zeros(sum(traces), wire.TRACE_EVENT).tobytes()
    return bytearray(head.tobytes() + body)


def test_response_reads_back() -> None:
    r = parse_response(response(2, (3, 0, 1), seq=5, status=1, usecs=7, detail=b"op 3"))
    assert (r.seq, r.status, r.usecs, r.detail) == (5, 1, 7, "op 3")
    assert len(r.profiles) == 2 and [len(t) for t in r.traces] == [3, 0, 1] + [0] * 8


@pytest.mark.parametrize("data", [bytearray(), response()[:-1], response(1)[:-4], response() + b"x"])
def test_a_response_that_does_not_add_up_is_refused(data: bytearray) -> None:
    with pytest.raises(ValueError, match="a response of"):
        parse_response(data)
