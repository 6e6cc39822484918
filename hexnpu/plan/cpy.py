"""CPY: the elements of src as another type, into any strides. One type: DMA from DDR to DDR; F32 to F16 and back:
the row pipeline. See kernels/cpy-ops.c."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, ShapeError
from hexnpu.plan.rowwise import MIN_THREAD_BYTES, no_params, one_tensor, plan_rows
from hexnpu.tensor import BLOCKS, Desc, Type

Array = npt.NDArray[Any]

FLOATS = (Type.F32, Type.F16)
CHUNK_ALIGN_BYTES = 64
# Rows a transfer, where the strides of both sides go on that long.
BLOCK_ROWS = 1024


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """A contiguous tensor of the source's shape and of `type` (default: the source's)."""
    x = one_tensor(op, src[:1])
    wanted = params.get("type", x.type)
    if not isinstance(wanted, Type):
        raise ShapeError(f"CPY: type must be a Type, not {wanted!r}")
    if len(src) == 1:
        return (Desc.contiguous(wanted, x.ne),)
    (_, dst) = src
    if dst is None or dst.ne != x.ne:
        raise ShapeError(f"CPY: {x} and its destination {dst} differ in shape")
    return (dst,)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """No words: `type` is that of the result."""
    return no_params(op, {name: value for name, value in params.items() if name != "type"})


def plan(spec: OpSpec, device: Device) -> Plan:
    """Raises Refusal for a pair of types other than F32, F16 and two of a kind."""
    src, dst = spec.src[0], spec.dst[0]
    assert src is not None
    for role, desc in (("src0", src), ("dst", dst)):
        if desc.ne[0] > 1 and desc.nb[0] != BLOCKS[desc.type][1]:
            raise Refusal(f"{role} has elements {desc.nb[0]} bytes apart in a row")
    if src.type == dst.type:
        return _plan_dma(dst, device, f"cpy-dma-{src.type.name.lower()}")
    if src.type not in FLOATS or dst.type not in FLOATS:
        raise Refusal(f"{src.type.name} is not copied to {dst.type.name}")
    name = f"cpy-{src.type.name.lower()}-{dst.type.name.lower()}"
    return plan_rows(device, dst, (src,), kernel_name=name, elementwise=True)


def _plan_dma(dst: Desc, device: Device, name: str) -> Plan:
    bytes_a_row = max(1, dst.row_bytes)
    threads = max(1, min(device.n_threads, dst.n_rows * bytes_a_row // MIN_THREAD_BYTES))
    chunk = bytes_a_row
    if dst.n_rows and dst.n_rows < threads:
        pieces = -(-threads // dst.n_rows)
        chunk = min(chunk, -(-chunk // (pieces * CHUNK_ALIGN_BYTES)) * CHUNK_ALIGN_BYTES)
    return Plan(0, name, threads, BLOCK_ROWS, (chunk, 1))


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    x = src[0]
    assert x is not None
    return (x if x.dtype.kind == "i" else x.astype(dtype),)
