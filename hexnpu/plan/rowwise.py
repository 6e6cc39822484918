"""What the row-wise families share: threads, tiles and VTCM regions of kernels/htp-rows-pipe.h.

A tile is a block of rows, or a column chunk of one row. Region s holds source s, the region behind the last source
the destination; each thread has `stages` buffers of every one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import VTCM_ALIGN, Device, OpSpec, Plan, Refusal, ShapeError
from hexnpu.tensor import DTYPES, Desc, Shape, Type

Array = npt.NDArray[np.floating]

# A second thread pays from this much traffic a thread on; below it, waking costs more than it saves (an emulator's
# thread moves some 30 bytes a nanosecond and wakes in 10 to 80 us, the device is of the same order).
MIN_THREAD_BYTES = 256 << 10
# How many times as long a byte takes where each element costs an exponential.
EXP_WORK = 4
# One tensor's share of a tile: long enough to hide a transfer's set-up, short enough to stay in the L2 cache.
TILE_BYTES = 16 << 10
CHUNK_ALIGN = 64
STAGES = 2


def plan_rows(
    device: Device,
    dst: Desc,
    src: Sequence[Desc],
    *,
    kernel_name: str,
    elementwise: bool,
    work: int = 1,
    args: Sequence[int] = (),
) -> Plan:
    """The plan of an op that walks the rows of `dst`.

    `src` are the sources as the kernel loads them. `elementwise`: columns do not depend on each other, so rows may be
    cut into column chunks, and narrower sources repeat over the columns. `work`: 1, or EXP_WORK. `args` follow the
    pipeline's own in kernel_params. Raises Refusal where one row of every tensor does not fit the VTCM.
    """
    tensors = [*src, dst]
    n_rows, n_cols = dst.n_rows, dst.ne[0]
    cut = elementwise and all(t.ne[0] in (1, n_cols) for t in src)
    row_bytes = sum(_itemsize(t) * t.ne[0] for t in tensors)
    threads = max(1, min(device.n_threads, n_rows * row_bytes * work // MIN_THREAD_BYTES))
    chunk = _chunk(n_cols, n_rows, threads, max(map(_itemsize, tensors))) if cut else max(n_cols, 1)
    n_chunks = max(1, -(-n_cols // chunk))
    threads = max(1, min(threads, n_rows * n_chunks))
    share = max(1, -(-n_rows * n_chunks // threads))
    pitches = [_pitch(t, n_cols, chunk, elementwise) for t in tensors]
    block = 1 if n_chunks > 1 else max(1, min(TILE_BYTES // max(*pitches, 1), share))
    stages = 1 if share <= block and dst.ne[2] * dst.ne[3] == 1 else STAGES

    def layout(n_threads: int, block: int, stages: int) -> Plan:
        plan = Plan(0, kernel_name, n_threads, block, (chunk, stages, *args))
        for t, pitch in zip(tensors, pitches, strict=True):
            plan.per_thread(stages * pitch * (1 if t is not dst and _one_row(t, dst) else block))
        return plan

    for choice in ((threads, block, stages), (threads, 1, stages), (threads, 1, 1), (1, 1, 1)):
        plan = layout(*choice)
        if plan.vtcm_bytes <= device.vtcm_bytes:
            return plan
    raise Refusal(
        f"rows of {n_cols} columns need {plan.vtcm_bytes} bytes of VTCM, the session has {device.vtcm_bytes}"
    )


def _chunk(n_cols: int, n_rows: int, threads: int, itemsize: int) -> int:
    """Columns a tile: all of them, or fewer where a row is long or there are fewer rows than threads."""
    chunk = max(n_cols, 1)
    if n_rows and n_rows < threads:
        chunk = -(-n_cols // -(-threads // n_rows))
    chunk = min(chunk, TILE_BYTES // itemsize)
    return chunk if chunk >= n_cols else -(-chunk // CHUNK_ALIGN) * CHUNK_ALIGN


def _itemsize(t: Desc) -> int:
    return DTYPES[t.type].itemsize


def _pitch(t: Desc, n_cols: int, chunk: int, elementwise: bool) -> int:
    """Bytes from row to row in VTCM: rows_pitch() of the kernel."""
    repeats = elementwise and t.ne[0] < n_cols
    padded = -(-min(chunk, n_cols if repeats else t.ne[0]) * _itemsize(t) // VTCM_ALIGN) * VTCM_ALIGN
    return padded + (VTCM_ALIGN if repeats else 0)


def _one_row(t: Desc, dst: Desc) -> bool:
    """Whether one row of `t` serves a whole tile."""
    return t.ne[1] == 1 and (dst.ne[1] > 1 or t.n_rows == 1)


def need_type(role: str, desc: Desc, *types: Type) -> None:
    """Refuses a tensor the kernels cannot walk: another type, or elements of a row apart from each other."""
    if desc.type not in types:
        raise Refusal(f"{role} is {desc.type.name}, the kernel takes {' or '.join(t.name for t in types)}")
    if desc.ne[0] > 1 and desc.nb[0] != _itemsize(desc):
        raise Refusal(f"{role} has elements {desc.nb[0]} bytes apart in a row; make it contiguous first")


def need_repeat(op: str, small: Desc, role: str, ne: Shape, dims: range = range(4)) -> None:
    """Raises ShapeError where `small` does not repeat into `ne` as ggml broadcasts."""
    for d in dims:
        if ne[d] % small.ne[d] if small.ne[d] else ne[d]:
            raise ShapeError(f"{op}: {role} {small} does not repeat into {':'.join(map(str, ne))} in dimension {d}")


def tile_to(a: Array, shape: tuple[int, ...]) -> Array:
    """`a` repeated to `shape`, as ggml broadcasts."""
    return np.tile(a, tuple(n // m if m else 1 for n, m in zip(shape, a.shape, strict=True)))


def no_params(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """The parameter words of an op that has none."""
    if params:
        raise ShapeError(f"{op} takes no parameters, not {', '.join(params)}")
    return (0,) * 16


def number(op: str, name: str, value: object) -> float:
    """A numeric parameter."""
    if not isinstance(value, (int, float, np.floating, np.integer)):
        raise ShapeError(f"{op}: {name} must be a number, not {value!r}")
    return float(value)


def one_tensor(op: str, src: Sequence[Desc | None]) -> Desc:
    if len(src) != 1 or src[0] is None:
        raise ShapeError(f"{op} takes one tensor, not {len(src)}")
    return src[0]


def src_of(spec: OpSpec, i: int) -> Desc | None:
    """Source `i`, None where it is missing."""
    return spec.src[i] if i < len(spec.src) else None


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x); e^-|x| cannot overflow."""
    e = np.exp(-np.abs(x))
    y: Array = np.where(x < 0, e, 1) / (1 + e)
    return y


def gelu(x: Array) -> Array:
    """ggml's GELU, the tanh form: x / 2 (1 + tanh(u)) = x sigmoid(2 u)."""
    y: Array = x * sigmoid(x.dtype.type(2 * 0.79788456080286535588) * x * (1 + x.dtype.type(0.044715) * x * x))
    return y
