"""ALLREDUCE, ALLREDUCE_ADD: the sum of all ranks' inputs (and of a residual), the same bits on every rank. F32 or F16.

Sources: inputs 0..3 in rank order, fences 4..7, the residual 8. Every rank gets a slice of the elements (dense tensors)
or of the rows. See kernels/allreduce-ops.c.

`pairs`: the inputs are [N, M, 2], as MUL_MAT gives them, sums and what they lack; the result [N, M] is the float
nearest to the sum of all.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import VTCM_ALIGN, Device, OpSpec, Plan, Refusal, ShapeError
from hexnpu.plan.rowwise import MIN_THREAD_BYTES, need_type
from hexnpu.tensor import DTYPES, Desc, Type
from hexnpu.wire import MAX_RANKS

Array = npt.NDArray[Any]

SEQ, RANK, N_RANKS, PAIRS = 0, 1, 2, 3
FENCES, RESIDUAL = MAX_RANKS, 2 * MAX_RANKS
KERNEL_1D, KERNEL_2D = 0, 1
# Slices begin at whole vectors, so that no two ranks write into one line of memory.
SLICE_ALIGN_BYTES = 128
STAGES = 2
# One operand's share of a tile, and what it shrinks to where the VTCM is small. An op that only adds is all copies, and
# these are faster when long.
TILE_BYTES = 64 << 10
MIN_TILE_BYTES = 2 << 10


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """One contiguous result a rank. Raises ShapeError where the inputs differ or the residual does not fit."""
    n = _n_ranks(op, params)
    inputs = [d for d in src[:n] if d is not None]
    if len(inputs) != n:
        raise ShapeError(f"{op} over {n} ranks has {len(inputs)} inputs; GroupGraph.allreduce makes it")
    if any((d.ne, d.type) != (inputs[0].ne, inputs[0].type) for d in inputs):
        raise ShapeError(f"{op}: the ranks' inputs differ: {', '.join(map(str, inputs))}")
    residual = src[RESIDUAL] if len(src) > RESIDUAL else None
    if (op == "ALLREDUCE_ADD") != (residual is not None):
        raise ShapeError(f"{op} has {'no' if residual is None else 'a'} residual")
    ne = inputs[0].ne
    if params.get("pairs"):
        if ne[2:] != (2, 1) or inputs[0].type != Type.F32:
            raise ShapeError(f"{op}: {inputs[0]} are no pairs, which are F32 [N, M, 2]")
        ne = (*ne[:2], 1, 1)
    result = Desc.contiguous(inputs[0].type, ne)
    if residual is not None and not residual_fits(result, residual):
        raise ShapeError(f"{op}: the residual {residual} is neither like {result} nor one row of it")
    return (result,) * n


def residual_fits(x: Desc, residual: Desc) -> bool:
    """Of the same type, and of the same shape or one row of it."""
    return residual.type == x.type and residual.ne in (x.ne, (x.ne[0], 1, 1, 1))


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """`rank`, `n_ranks` and `pairs`."""
    rank, pairs = params.get("rank"), params.get("pairs", False)
    n = _n_ranks(op, params)
    if not isinstance(rank, int) or not 0 <= rank < n or set(params) - {"rank", "n_ranks", "pairs"}:
        raise ShapeError(f"{op}: rank {rank} of {n} ranks")
    return (0, rank, n, int(bool(pairs)), *[0] * 12)


def _n_ranks(op: str, params: dict[str, object]) -> int:
    n = params.get("n_ranks")
    if not isinstance(n, int) or not 2 <= n <= MAX_RANKS:
        raise ShapeError(f"{op}: n_ranks is {n}, it must be 2 to {MAX_RANKS}")
    return n


def plan(spec: OpSpec, device: Device) -> Plan:
    """Raises Refusal for other types, and rows that no single stride walks."""
    rank, n_ranks = spec.params[RANK], spec.params[N_RANKS]
    residual = spec.src[RESIDUAL] if len(spec.src) > RESIDUAL else None
    inputs = [d for d in spec.src[:n_ranks] if d is not None]
    sides = [*inputs, *([] if residual is None else [residual])]
    dst = spec.dst[0]
    for i, desc in enumerate((*sides, *spec.dst)):
        need_type(f"operand {i}", desc, Type.F32, Type.F16)
        if desc.type != dst.type:
            raise Refusal(f"operand {i} is {desc.type.name}, dst is {dst.type.name}; the kernel takes one type")
    if residual is not None and not residual_fits(dst, residual):
        raise Refusal(f"the residual {residual} is neither like {dst} nor one row of it")
    pairs = bool(spec.params[PAIRS])
    alike = (*sides[n_ranks if pairs else 0 :], *spec.dst)
    is_1d = all(d.is_contiguous for d in (*sides, *spec.dst)) and all(d.ne == dst.ne for d in alike)
    if pairs and not is_1d:
        raise Refusal("pairs are summed where all is dense and the residual is not one row for all")
    if not is_1d and not all(_rows_in_step(d) for d in (*sides, *spec.dst)):
        raise Refusal("an operand's rows do not follow each other with one stride; make it contiguous first")
    itemsize = DTYPES[dst.type].itemsize
    n_units = dst.n_elements if is_1d else dst.n_rows
    first, count = slice_of(n_units, SLICE_ALIGN_BYTES // itemsize if is_1d else 1, rank, n_ranks)
    slice_bytes = count * (1 if is_1d else dst.ne[0]) * itemsize
    threads = max(1, min(device.n_threads, slice_bytes * (len(sides) + len(spec.dst)) // MIN_THREAD_BYTES))
    cols, rows = (count, 1) if is_1d else (dst.ne[0], count)
    kind = f"{spec.op.lower().replace('_', '-')}-{'1d' if is_1d else '2d'}-{dst.type.name.lower()}"
    for n_threads in (threads, 1):
        tile_bytes = TILE_BYTES
        while tile_bytes >= MIN_TILE_BYTES:
            chunk = _chunk(cols, n_threads if is_1d else 1, itemsize, tile_bytes)
            pitch = -(-chunk * itemsize // VTCM_ALIGN) * VTCM_ALIGN
            block = max(1, min(tile_bytes // pitch, -(-rows // n_threads)))
            kernel = KERNEL_1D if is_1d else KERNEL_2D
            result = Plan(kernel, kind, n_threads, block, (chunk, STAGES, first, count))
            for i, desc in enumerate((*sides, dst)):
                rows = 2 if pairs and i < n_ranks else 1 if desc.n_rows == 1 else block
                result.per_thread(STAGES * pitch * rows)
            if result.vtcm_bytes <= device.vtcm_bytes:
                return result
            tile_bytes //= 2
    need, have = result.vtcm_bytes, device.vtcm_bytes
    raise Refusal(f"tiles of {chunk} columns need {need} bytes of VTCM, the session has {have}")


def slice_of(n: int, align: int, rank: int, n_ranks: int) -> tuple[int, int]:
    """First and count of the rank's share of n things, cut at multiples of `align`."""
    each = -(-n // (n_ranks * align)) * align
    first = min(rank * each, n)
    return first, min(each, n - first)


def _chunk(cols: int, threads: int, itemsize: int, tile_bytes: int) -> int:
    """Columns a tile: a tile's bytes, or a thread's share where that is less."""
    align = SLICE_ALIGN_BYTES // itemsize
    share = -(-cols // (threads * align)) * align
    return max(align, min(share, tile_bytes // itemsize))


def _rows_in_step(d: Desc) -> bool:
    """Whether one stride walks the rows of all dimensions."""
    walked = [(n, b) for n, b in zip(d.ne[1:], d.nb[1:], strict=True) if n > 1]
    return all(b == n_inner * b_inner for (n_inner, b_inner), (_, b) in pairwise(walked))


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    """The sum in rank order, then the residual, rounded after each addition as `dtype` does; that of pairs once."""
    inputs = [a.astype(dtype) for a in src[: spec.params[N_RANKS]] if a is not None]
    total = _sum_of_pairs(inputs).astype(dtype) if spec.params[PAIRS] else functools.reduce(np.add, inputs)
    for a in src[RESIDUAL : RESIDUAL + 1]:
        if a is not None:
            total = np.add(total, a.astype(dtype))
    return (total,) * len(spec.dst)


def _sum_of_pairs(pairs: Sequence[Array]) -> Array:
    """Of arrays [1, 2, M, N], as [1, 1, M, N] in float64."""
    return np.asarray(np.concatenate(pairs, axis=1).sum(axis=1, keepdims=True, dtype=np.float64))
