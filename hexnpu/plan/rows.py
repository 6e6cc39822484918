"""GET_ROWS: dst row i = table row idx[i]; SET_ROWS: row idx[i] of a state = src row i.

Indices are I32 or I64 [n, d2, d3]: one for each row of the dense side, repeated over its dimensions 2 and 3; the
planes of a table repeat the same way. An index outside the table is an error of the run, not of the plan; the other
rows are moved. Of two indices that name one row the later one wins. Rows of one type go from DDR to DDR; see
kernels/rows-ops.c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import VTCM_ALIGN, Device, OpSpec, Plan, Refusal, ShapeError
from hexnpu.plan.rowwise import MIN_THREAD_BYTES, no_params
from hexnpu.tensor import BLOCKS, Desc, Type, row_bytes

Array = npt.NDArray[Any]

INDEX_TYPES = (Type.I32, Type.I64)
READABLE = (Type.F32, Type.F16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q6_K)
WRITABLE = (Type.F32, Type.F16, Type.Q8_0)
# convert_row_bytes() and the constants of kernels/hvx-convert.h.
DIRECT = (*READABLE, Type.I32, Type.I64)
CHUNK_ALIGN = 256
SLACK_BYTES = 256
# Columns a tile: 16 KiB of floats, so that a buffer of each side stays in the L2 cache.
MAX_CHUNK = 4096
STAGES = 2


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """GET_ROWS (table, idx): [columns, idx], F32 or `type`. SET_ROWS (rows, idx, state): the state."""
    if op == "SET_ROWS":
        rows, idx, state = _operands(op, src, 3)
        _check(op, dense=rows, table=state, idx=idx)
        if rows.ne[2:] != state.ne[2:]:
            raise ShapeError(f"SET_ROWS: rows {rows} and the state {state} differ in dimensions 2 and 3")
        return (state,)
    table, idx = _operands(op, src, 2)
    wanted = params.get("type", table.type if table.type in INDEX_TYPES else Type.F32)
    if not isinstance(wanted, Type):
        raise ShapeError(f"GET_ROWS: type must be a Type, not {wanted!r}")
    ne = (table.ne[0], idx.ne[0], max(table.ne[2], idx.ne[1]), max(table.ne[3], idx.ne[2]))
    dst = Desc.contiguous(wanted, ne)
    _check(op, dense=dst, table=table, idx=idx)
    return (dst,)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """No words: `type` of GET_ROWS is that of its result."""
    return no_params(op, {name: value for name, value in params.items() if name != "type" or op != "GET_ROWS"})


def plan(spec: OpSpec, device: Device) -> Plan:
    """Threads and chunks by the bytes that move. Raises Refusal for a pair of types that is not converted."""
    src, idx, dst = spec.src[0], spec.src[1], spec.dst[0]
    assert src is not None and idx is not None
    dense, table = (src, dst) if spec.op == "SET_ROWS" else (dst, src)
    if idx.type not in INDEX_TYPES:
        raise Refusal(f"indices are {idx.type.name}, the kernel takes I32 or I64")
    for role, desc in (("src0", src), ("src1", idx), ("dst", dst)):
        if desc.ne[0] > 1 and desc.nb[0] != BLOCKS[desc.type][1]:
            raise Refusal(f"{role} has elements {desc.nb[0]} bytes apart in a row; make it contiguous first")
    _check(spec.op, dense, table, idx)
    name = f"{spec.op.lower()}-{src.type.name.lower()}"
    if src.type == dst.type:
        if src.type not in DIRECT:
            raise Refusal(f"rows of {src.type.name} are not moved")
        return _plan(device, dense, src.type, dst.type, name + "-dma", converted=False)
    if not (dst.type == Type.F32 and src.type in READABLE) and not (src.type == Type.F32 and dst.type in WRITABLE):
        raise Refusal(f"rows of {src.type.name} are not converted to {dst.type.name}")
    return _plan(device, dense, src.type, dst.type, f"{name}-{dst.type.name.lower()}", converted=True)


def _plan(device: Device, dense: Desc, source: Type, target: Type, name: str, *, converted: bool) -> Plan:
    n_cols, n_rows = dense.ne[0], dense.n_rows
    per_row = row_bytes(source, n_cols) + row_bytes(target, n_cols)
    threads = max(1, min(device.n_threads, n_rows * per_row // MIN_THREAD_BYTES))
    chunk = max(1, n_cols)
    if n_rows and n_rows < threads:
        chunk = _aligned(-(-n_cols // -(-threads // n_rows)), n_cols)
    if converted:
        chunk = _aligned(min(chunk, MAX_CHUNK), n_cols)
    threads = max(1, min(threads, n_rows * -(-n_cols // chunk)))
    plan = Plan(0, name, threads, 1, (chunk, STAGES))
    if converted:
        for type in (source, target):
            plan.per_thread(STAGES * _buffer_bytes(type, chunk))
    return plan


def _aligned(chunk: int, n_cols: int) -> int:
    """A chunk that rows may be cut into: whole blocks of every type, or all columns."""
    return max(1, min(n_cols, -(-chunk // CHUNK_ALIGN) * CHUNK_ALIGN))


def _buffer_bytes(type: Type, n: int) -> int:
    elements, size = BLOCKS[type]
    return -(-(n // elements * size) // VTCM_ALIGN) * VTCM_ALIGN + SLACK_BYTES


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    """For SET_ROWS the last array is the state before. Rows of bad indices stay as they were (GET_ROWS: zero)."""
    rows, idx = src[0], src[1]
    assert rows is not None and idx is not None
    if spec.op == "SET_ROWS":
        old = src[-1]
        assert old is not None
        out = old.astype(dtype)
        for k, j, i in np.ndindex(rows.shape[:3]):
            row = int(idx[0, k % idx.shape[1], j % idx.shape[2], i])
            if 0 <= row < out.shape[2]:
                out[k, j, row] = rows[k, j, i]
        return (out,)
    dst = spec.dst[0]
    got = np.zeros((*dst.ne[:0:-1], dst.ne[0]), rows.dtype if rows.dtype.kind == "i" else dtype)
    for k, j, i in np.ndindex(got.shape[:3]):
        row = int(idx[0, k % idx.shape[1], j % idx.shape[2], i])
        if 0 <= row < rows.shape[2]:
            got[k, j, i] = rows[k % rows.shape[0], j % rows.shape[1], row]
    return (got,)


def _operands(op: str, src: Sequence[Desc | None], n: int) -> tuple[Desc, ...]:
    present = tuple(d for d in src if d is not None)
    if len(src) != n or len(present) != n:
        what = "rows, indices and a state" if n == 3 else "a table and indices"
        raise ShapeError(f"{op} takes {what}, not {len(present)} tensors")
    return present


def _check(op: str, dense: Desc, table: Desc, idx: Desc) -> None:
    """Raises ShapeError where the shapes do not go together."""
    if idx.type not in INDEX_TYPES:
        raise ShapeError(f"{op}: indices must be I32 or I64, not {idx.type.name}")
    if dense.ne[0] != table.ne[0]:
        raise ShapeError(f"{op}: {dense} and {table} differ in dimension 0")
    if idx.ne[0] != dense.ne[1] or idx.ne[3] != 1:
        raise ShapeError(f"{op}: {dense.ne[1]} rows need as many indices, not {idx}")
    for d in (2, 3):
        for role, n in (("indices", idx.ne[d - 1]), ("table", table.ne[d])):
            if dense.ne[d] and (n == 0 or dense.ne[d] % n):
                raise ShapeError(f"{op}: {n} planes of the {role} do not repeat into {dense.ne[d]} (dimension {d})")
