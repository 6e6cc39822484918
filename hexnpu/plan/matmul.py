"""MUL_MAT (W, X), MUL_MAT_NX (X, W0, W1, ..), MUL_MAT_ADD (W, X, addend): dst[n, m] = sum over k of W[k, n] X[k, m].

W [K, N], X [K, M] and dst [N, M] in F32; dimensions 2 and 3 of X are multiples of W's, as in ggml. The kernels
and what the numbers of a plan mean are described in htp_kernels/kernels/matmul-shape.h.

`section`: so many k are summed as floats, and the sections' sums so that the result hardly depends on their order
(quantized weights; float ones ignore it). `pair`: MUL_MAT gives such a sum as [N, M, 2], a float and what it lacks, for
an ALLREDUCE of pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, ShapeError
from hexnpu.repack import TILED, repack
from hexnpu.tensor import BLOCKS, TILE, Desc, Type

__all__ = ["infer", "pack", "plan", "reference", "repack", "weight_type"]

Array = npt.NDArray[np.floating]

FLAT, TILED_KERNEL = 1, 2
FLAT_ROWS = 8
FLAT_SLACK = 128
MARK = 128
MAX_SRC = {"MUL_MAT": 2, "MUL_MAT_NX": 5, "MUL_MAT_ADD": 3}
TILE_TYPES = frozenset(TILED.values())

SECTION, PAIR = 0, 1  # params
MAX_SEGMENT = 4096  # k per transfer of X
GROUP = 128  # k that are quantized together
OWN_ELEMENTS = 4096  # activations up to which each thread prepares its own copy
BLOCK_COLS = 64  # columns per block of results
STEP_BYTES = 16 << 10  # weights per transfer, where one unit is smaller


@dataclass(frozen=True, slots=True)
class _Op:
    """An op's tensors by role, and the numbers that its plan depends on."""

    x: Desc
    weights: tuple[Desc, ...]
    addend: Desc | None
    dst: tuple[Desc, ...]
    pair: bool

    @property
    def k(self) -> int:
        return self.weights[0].ne[0]

    @property
    def tiled(self) -> bool:
        return self.weights[0].type in TILE_TYPES

    @property
    def unit_rows(self) -> int:
        return TILE if self.tiled else FLAT_ROWS

    @property
    def unit_bytes(self) -> int:
        w = self.weights[0]
        return w.nb[1] if self.tiled else FLAT_ROWS * _up(self.k * w.nb[0], 128)

    @property
    def n_units(self) -> int:
        return sum(-(-w.ne[1] // self.unit_rows) for w in self.weights)

    @property
    def n_cols(self) -> int:
        """Columns of one matrix product; where W is one matrix and all else is dense, all planes are columns of one."""
        ne = self.x.ne
        dense = all(_is_dense(d) for d in (self.x, *self.dst)) and all(w.ne[2:] == (1, 1) for w in self.weights)
        if self.addend is not None and self.addend.ne[1] == ne[1]:
            dense = dense and _is_dense(self.addend)
        return ne[1] * ne[2] * ne[3] if dense else ne[1]


def _up(n: int, to: int) -> int:
    return -(-n // to) * to


def _is_dense(d: Desc) -> bool:
    return (d.ne[2] == 1 or d.nb[2] == d.nb[1] * d.ne[1]) and (d.ne[3] == 1 or d.nb[3] == d.nb[1] * d.ne[1] * d.ne[2])


def _roles(op: str, src: Sequence[Desc | None]) -> tuple[Desc, tuple[Desc, ...], Desc | None]:
    given = [d for d in src if d is not None]
    few = 3 if op == "MUL_MAT_ADD" else 2
    if len(given) != len(src) or not few <= len(given) <= MAX_SRC[op]:
        raise ShapeError(f"{op} takes {few} to {MAX_SRC[op]} tensors without holes, not {len(given)}")
    if op == "MUL_MAT_NX":
        return given[0], tuple(given[1:]), None
    return given[1], (given[0],), given[2] if op == "MUL_MAT_ADD" else None


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """One F32 [N, M, ..] per weight. Raises ShapeError where K, the outer dimensions or the addend do not fit."""
    x, weights, addend = _roles(op, src)
    section, pair = _params(op, params)
    results = []
    for w in weights:
        if w.ne[0] != x.ne[0]:
            raise ShapeError(f"{op}: the weight {w} has K = {w.ne[0]}, the activation {x} has {x.ne[0]}")
        for d in (2, 3):
            if x.ne[d] % w.ne[d] if w.ne[d] else x.ne[d]:
                raise ShapeError(f"{op}: dimension {d} of the activation {x} is no multiple of that of the weight {w}")
        results.append(Desc.contiguous(Type.F32, (w.ne[1], x.ne[1], x.ne[2] * (1 + pair), x.ne[3])))
    if pair and (op != "MUL_MAT" or not section or x.ne[2:] != (1, 1)):
        raise ShapeError(f"{op}: a pair is the result of a MUL_MAT with sections, of one matrix")
    if addend is not None and addend.ne not in (results[0].ne, (results[0].ne[0], 1, 1, 1)):
        raise ShapeError(f"{op}: the addend {addend} is neither the result's shape {results[0]} nor one row of it")
    return tuple(results)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """`section` (k, in whole tiles) and `pair`."""
    return (*_params(op, params), *(0,) * 14)


def _params(op: str, params: dict[str, object]) -> tuple[int, bool]:
    section, pair = params.get("section", 0), params.get("pair", False)
    if set(params) - {"section", "pair"} or not isinstance(section, int) or not isinstance(pair, bool):
        raise ShapeError(f"{op} takes section (a number) and pair (or not), not {params}")
    if section < 0 or section % TILE:
        raise ShapeError(f"{op}: sections of {section}; they are of whole tiles of {TILE}")
    return section, pair


def weight_type(op: str, src_index: int, desc: Desc) -> Type | None:
    """The type a constant weight is repacked to at upload; None: it stays as it is."""
    is_weight = src_index >= 1 if op == "MUL_MAT_NX" else src_index == 0
    return TILED.get(desc.type) if is_weight else None


def plan(spec: OpSpec, device: Device) -> Plan:
    x, weights, addend = _roles(spec.op, spec.src)
    _refuse_types(x, weights, addend)
    op = _Op(x, weights, addend, spec.dst, bool(spec.params[PAIR]))
    if op.k == 0:
        raise Refusal("K is 0")
    if op.pair and (not op.tiled or spec.op != "MUL_MAT"):
        raise Refusal("a pair is what MUL_MAT gives of one quantized weight")
    smallest: Plan | None = None
    for candidate in _candidates(op, device):
        if candidate.vtcm_bytes <= device.vtcm_bytes:
            return candidate
        if smallest is None or candidate.vtcm_bytes < smallest.vtcm_bytes:
            smallest = candidate
    assert smallest is not None
    raise Refusal(
        f"{weights[0]} needs {smallest.vtcm_bytes} bytes of VTCM ({op.unit_bytes} bytes per {op.unit_rows} rows of "
        f"weights), the session has {device.vtcm_bytes}"
    )


def _refuse_types(x: Desc, weights: Sequence[Desc], addend: Desc | None) -> None:
    if x.type != Type.F32 or x.nb[0] != 4:
        raise Refusal(f"the activation is {x.type.name}; the kernel takes contiguous F32 rows")
    if addend is not None and (addend.type != Type.F32 or addend.nb[0] != 4):
        raise Refusal(f"the addend is {addend.type.name}; the kernel takes contiguous F32 rows")
    for w in weights:
        if w.type != weights[0].type:
            raise Refusal(f"weights of different types: {weights[0].type.name} and {w.type.name}")
        if w.type in TILE_TYPES:
            if w.ne[0] % TILE or not w.is_contiguous:
                raise Refusal(f"{w} is not made of whole tiles")
        elif w.type not in (Type.F16, Type.F32):
            raise Refusal(f"{w.type.name} weights that are not repacked into tiles")
        elif w.nb[0] != BLOCKS[w.type][1]:
            raise Refusal(f"the rows of the weight {w} are not contiguous")


def _candidates(op: _Op, device: Device) -> Iterator[Plan]:
    """Plans from the fastest to the smallest: fewer columns at a time, a shorter pipeline, fewer threads."""
    most = max(1, min(device.n_threads, op.n_units))
    for least_cols, n_threads in itertools.product((16, 1), range(most, 0, -1)):
        per_step = min(max(1, STEP_BYTES // max(1, op.unit_bytes)), -(-op.n_units // n_threads) or 1)
        for depth, step in ((3, per_step), (2, per_step), (2, 1)):
            chunk = max(1, op.n_cols)
            while True:
                yield _layout(op, n_threads, depth, step, chunk)
                if chunk <= least_cols:
                    break
                chunk = -(-chunk // 2)


def _layout(op: _Op, n_threads: int, depth: int, per_step: int, chunk: int) -> Plan:
    segment = min(_up(op.k, GROUP), MAX_SEGMENT)
    own = op.k * chunk <= OWN_ELEMENTS
    if chunk < n_threads and not own:
        segment = min(segment, _up(-(-op.k * chunk // n_threads), GROUP))
    scales = _up(segment // TILE * 4, 128)
    record = segment + 2 * scales + 128 if op.tiled else segment * 4
    block_cols = min(chunk, BLOCK_COLS)
    pitch = per_step * op.unit_rows * 4 + (0 if op.tiled else FLAT_SLACK)
    name = ("hvx-tiled-" if op.tiled else "hvx-flat-") + op.weights[0].type.name.lower().removeprefix("tile_")
    result = Plan(
        TILED_KERNEL if op.tiled else FLAT, name, n_threads, per_step, (chunk, block_cols, segment, depth)
    )  # fmt: skip
    (result.per_thread if own else result.shared)(chunk * -(-op.k // segment) * (record + MARK))
    result.per_thread(2 * 4 * segment + scales)
    result.per_thread(depth * per_step * op.unit_bytes)
    result.per_thread(depth * block_cols * pitch * (1 + op.pair))
    if op.addend is not None:
        result.per_thread(depth * (block_cols if op.addend.n_rows > 1 else 1) * pitch)
    return result


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    arrays = [a.astype(dtype, copy=False) for a in src if a is not None]
    if spec.op == "MUL_MAT_NX":
        return tuple(_multiply(w, arrays[0]) for w in arrays[1:])
    if spec.params[PAIR]:
        exact = _multiply(arrays[0].astype(np.float64), arrays[1].astype(np.float64))
        near = exact.astype(np.float32)
        return (np.concatenate([near, exact - near], axis=1).astype(dtype),)
    product = _multiply(arrays[0], arrays[1])
    return (product + arrays[2] if spec.op == "MUL_MAT_ADD" else product,)


def _multiply(w: Array, x: Array) -> Array:
    """w [W3, W2, N, K], x [X3, X2, M, K] -> [X3, X2, M, N]; every matrix of w serves X2 / W2 and X3 / W3 planes."""
    with np.errstate(all="ignore"):
        outer = tuple(a // b if b else 1 for a, b in zip(x.shape[:2], w.shape[:2], strict=True))
        spread = np.repeat(np.repeat(w, outer[0], axis=0), outer[1], axis=1)
        return np.asarray(np.matmul(x, spread.swapaxes(2, 3)))
