"""One op on the NPU against its float64 reference, over DMA orders, VTCM sizes and thread counts.

    import numpy as np
    from hexnpu.tensor import Type
    from tests.ops.harness import Arg, View, check_op

    def test_mul_mat_q4_0(rng):
        w, x = rng.standard_normal((96, 256)), rng.standard_normal((5, 256))  # numpy order: ne reversed
        check_op("MUL_MAT", [Arg(w, Type.Q4_0, weight=True), Arg(x)], bound=5e-4)

    check_op("ADD", [Arg(a, view=View(pad=(64, 0, 0))), Arg(b)], bound=1e-10)      # rows 64 bytes apart
    check_op("ROPE", [Arg(q), Arg(pos, Type.I32), None], {"n_dims": 64}, bound=1e-10)  # None: a missing input
    check_op("SET_ROWS", [Arg(rows), Arg(idx, Type.I32)], dst=Arg(cache, Type.F16), exact=True)

What check_op asserts, in every configuration: NMSE <= bound (or the exact values of the reference in dst's type), the
same NaN and infinities as the reference, every byte outside dst untouched (inputs, gaps of strided tensors, guards),
the same dst bytes when run again and in every configuration.

An op whose destination exists beforehand (`dst=`) gives its reference the old contents as last input.
`HEXNPU_TEST_FLAVOUR=asan`, `HEXNPU_TEST_ARCH=75` and `HEXNPU_TEST_CONFIGS=full` change what the configurations run on;
with `HEXNPU_TEST_CONFIGS=fastrpc`, under `hexnpu emulate`, they go through FastRPC, and one does not.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gguf
import numpy as np

import hexnpu.session
from hexnpu.batch import BatchBuilder, Placed
from hexnpu.errors import DeviceError, SessionLost
from hexnpu.plan import family, op_table, plan
from hexnpu.plan.base import Device, OpSpec, Plan, Refusal
from hexnpu.session import Session
from hexnpu.tensor import DTYPES, Desc, Type
from hexnpu.wire import TENSOR_WEIGHT

GUARD_BYTES = 256
GUARD = 0xA5


@dataclass(frozen=True)
class View:
    """How a tensor lies in memory. `order`: its dimensions from the fastest to the slowest in memory. `pad`: bytes left
    free behind each row, plane and cube (of `order`). `offset`: bytes its start is off a 128-byte boundary."""

    order: tuple[int, int, int, int] = (0, 1, 2, 3)
    pad: tuple[int, int, int] = (0, 0, 0)
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Arg:
    """A tensor: numpy array in numpy order (ne reversed), stored as `type`. `weight`: constant, repacked as the family
    wishes. An array of uint8 and a quantized type is taken as the blocks themselves (last axis: bytes of a row)."""

    array: np.ndarray[Any, Any]
    type: Type = Type.F32
    view: View = View()
    weight: bool = False


@dataclass(frozen=True)
class Config:
    """What a session is opened with."""

    dma: str = "lazy"
    vtcm_mib: int = 8
    n_threads: int = 4
    flavour: str = field(default_factory=lambda: os.environ.get("HEXNPU_TEST_FLAVOUR", "release"))
    arch: int = field(default_factory=lambda: int(os.environ.get("HEXNPU_TEST_ARCH", "79")))
    target: str = "emu"

    @property
    def device(self) -> Device:
        return Device(self.arch, self.n_threads, self.vtcm_mib << 20)


FAST = (Config(), Config("random:7", 2, 3), Config("eager", 4, 1))
THROUGH_FASTRPC = (Config(), Config(target="npu"), Config("random:7", 2, 3, target="npu"))
FULL = tuple(Config(*c) for c in itertools.product(("eager", "lazy", "random:1", "random:2"), (2, 4, 8), (1, 3, 4)))
DEFAULT_CONFIGS = {"full": FULL, "fastrpc": THROUGH_FASTRPC}.get(os.environ.get("HEXNPU_TEST_CONFIGS", ""), FAST)

_sessions: dict[Config, Session] = {}


def session_for(config: Config) -> Session:
    """The open session of a configuration; they live until the process ends."""
    session = _sessions.get(config)
    if session is None or session.connection.closed:
        session = hexnpu.session.open(
            config.target, n_threads=config.n_threads, vtcm_mib=config.vtcm_mib, flavour=config.flavour,
            arch=config.arch if config.target == "emu" else None, env={"HEXNPU_EMU_DMA": config.dma},
        )  # fmt: skip
        _sessions[config] = session
    return session


def rows_of(arg: Arg) -> np.ndarray[Any, Any]:
    """The stored bytes, [ne3, ne2, ne1, bytes of a row]."""
    a = arg.array
    if arg.type in DTYPES:
        a = np.ascontiguousarray(a, DTYPES[arg.type])
        a = a.view(np.uint8) if a.shape[-1] else np.zeros(a.shape, np.uint8)
    elif a.dtype != np.uint8:
        kind = gguf.GGMLQuantizationType(int(arg.type))
        a = gguf.quants.quantize(np.ascontiguousarray(a, np.float32), kind)
    return a.reshape((1,) * (4 - a.ndim) + a.shape)


def values_of(rows: np.ndarray[Any, Any], type: Type) -> np.ndarray[Any, Any]:
    """Stored bytes as float64 (or the integers they are), 4-D in numpy order."""
    if type in DTYPES:
        values = np.ascontiguousarray(rows).view(DTYPES[type])
    else:
        values = gguf.quants.dequantize(np.ascontiguousarray(rows), gguf.GGMLQuantizationType(int(type)))
    return values if values.dtype.kind == "i" else values.astype(np.float64)


def desc_of(arg: Arg) -> Desc:
    """Type, shape and strides of an argument as it lies in memory."""
    rows = rows_of(arg)
    shape = arg.array.shape if arg.array.dtype != np.uint8 or arg.type in DTYPES else values_of(rows, arg.type).shape
    dense = Desc.contiguous(arg.type, tuple(reversed(shape)))
    if arg.view == View():
        return dense
    nb = [dense.nb[0], 0, 0, 0]
    step = rows.shape[3]
    assert arg.view.order[0] == 0, "dimension 0 is always the row"
    for i in range(1, 4):
        step += arg.view.pad[i - 1]
        nb[arg.view.order[i]] = step
        step *= dense.ne[arg.view.order[i]]
    return Desc(arg.type, dense.ne, (nb[0], nb[1], nb[2], nb[3]))


def spec_of(
    op: str, src: Sequence[Arg | None], params: Mapping[str, Any] | None = None, dst: Arg | None = None
) -> OpSpec:
    """The op as it is planned: weights in the type they are repacked to."""
    module = family(op)
    descs = [None if a is None else desc_of(a) for a in src]
    results = (desc_of(dst),) if dst is not None else tuple(module.infer(op, tuple(descs), dict(params or {})))
    planned = tuple(_planned(module, op, i, a, d) for i, (a, d) in enumerate(zip(src, descs, strict=True)))
    return OpSpec(op, module.pack(op, dict(params or {})), planned, results)


def plan_of(op: str, src: Sequence[Arg | None], params: Mapping[str, Any] | None = None, dst: Arg | None = None,
            config: Config | None = None) -> Plan:  # fmt: skip
    """The plan of an op in a configuration; raises Refusal as the planner does."""
    return plan(spec_of(op, src, params, dst), (config or Config()).device)


def _planned(module: Any, op: str, index: int, arg: Arg | None, desc: Desc | None) -> Desc | None:
    if arg is None or desc is None or not arg.weight:
        return desc
    type = module.weight_type(op, index, desc)
    return desc if type is None else Desc.contiguous(type, desc.ne)


@dataclass(eq=False)
class Outcome:
    """What one run left behind. `dst`: bytes of each destination [ne3, ne2, ne1, row bytes]; `error`: the refusal;
    `strayed`: the first bytes that changed outside the destinations."""

    dst: list[np.ndarray[Any, Any]]
    error: str | None
    strayed: list[str]


def run_op(
    op: str,
    src: Sequence[Arg | None],
    params: Mapping[str, Any] | None = None,
    *,
    dst: Arg | None = None,
    config: Config | None = None,
    planned: Plan | None = None,
) -> Outcome:
    """One op in one session, nothing asserted: also for ops that must be refused by the device."""
    config = config or Config()
    spec = spec_of(op, src, params, dst)
    planned = planned or plan(spec, config.device)
    arena = _Arena(session_for(config))
    module = family(op)
    for index, (arg, desc) in enumerate(zip(src, spec.src, strict=True)):
        if arg is None or desc is None:
            arena.skip()
        elif arg.weight and desc.type != arg.type:
            raw = module.repack(desc_of(arg), np.ascontiguousarray(rows_of(arg)).reshape(-1))
            arena.add(f"src{index}", desc, np.frombuffer(raw, np.uint8), TENSOR_WEIGHT)
        else:
            arena.add(f"src{index}", desc, rows_of(arg), TENSOR_WEIGHT if arg.weight else 0, arg.view.offset)
    for index, desc in enumerate(spec.dst):
        arena.add(f"dst{index}", desc, None if dst is None else rows_of(dst), 0, dst.view.offset if dst else 0, True)
    return arena.run(spec, planned)


class _Arena:
    """All tensors of one op in one shared buffer, with guard bytes around them."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._places: list[tuple[str, Desc, int, int, bool] | None] = []
        self._contents: list[np.ndarray[Any, Any] | None] = []
        self._end = GUARD_BYTES

    def skip(self) -> None:
        self._places.append(None)
        self._contents.append(None)

    def add(
        self, name: str, desc: Desc, rows: np.ndarray[Any, Any] | None, flags: int, shift: int = 0, out: bool = False
    ) -> None:
        offset = -(-self._end // 128) * 128 + shift
        self._places.append((name, desc, offset, flags, out))
        self._contents.append(rows)
        self._end = offset + desc.span_bytes + GUARD_BYTES

    def run(self, spec: OpSpec, planned: Plan) -> Outcome:
        buffer = self._session.alloc(self._end)
        memory = buffer.view
        memory[:] = GUARD
        writable = np.zeros(memory.size, bool)
        for place, rows in zip(self._places, self._contents, strict=True):
            if place is None or not place[1].n_elements:
                continue
            _, desc, offset, _, out = place
            if rows is not None:
                flat = desc.type >= Type.TILE_F32
                (memory[offset : offset + desc.span_bytes] if flat else _rows_at(memory, desc, offset))[...] = rows
            if out:
                _rows_at(writable, desc, offset)[...] = True
        before = memory.copy()
        buffer.flush(0, buffer.bytes)
        placed = [p and Placed(p[1], buffer, p[2], p[3]) for p in self._places]
        builder = BatchBuilder(self._session.max_map_bytes)
        n_src = len(spec.src)
        results = [p for p in placed[n_src:] if p is not None]
        builder.add(op_table()[spec.op][0], spec.params, planned.pack(), placed[:n_src], results, spec.op)
        error = None
        try:
            self._session.submit(builder.finish())
        except SessionLost as lost:
            raise AssertionError(f"{lost}\n{lost.stderr}") from None
        except DeviceError as refused:
            error = str(refused)
        buffer.fetch(0, buffer.bytes)
        changed = np.flatnonzero((memory != before) & ~writable)
        dst = [_rows_at(memory, p.desc, p.offset).copy() for p in results]
        return Outcome(dst, error, [self._name(int(i)) for i in changed[:4]])

    def _name(self, at: int) -> str:
        """Where a byte of the arena lies, in the words of the op."""
        places = [p for p in self._places if p is not None]
        name, desc, offset, _, _ = min(places, key=lambda p: max(p[2] - at, at - p[2] - p[1].span_bytes))
        inside = 0 <= at - offset < desc.span_bytes
        return f"byte {at - offset} of {name} {desc}" + ("" if inside else f" ({desc.span_bytes} bytes): a guard")


def _rows_at(memory: np.ndarray[Any, Any], desc: Desc, offset: int) -> np.ndarray[Any, Any]:
    """The tensor's bytes in the arena as [ne3, ne2, ne1, row bytes], by its strides."""
    shape = (desc.ne[3], desc.ne[2], desc.ne[1], desc.row_bytes)
    span = memory[offset : offset + desc.span_bytes]
    if not span.size:
        return np.zeros(shape, memory.dtype)
    return np.lib.stride_tricks.as_strided(span, shape, (desc.nb[3], desc.nb[2], desc.nb[1], 1))


def reference_of(
    op: str, src: Sequence[Arg | None], params: Mapping[str, Any] | None = None, dst: Arg | None = None
) -> list[np.ndarray[Any, Any]]:
    """The family's reference in float64 on the dequantized inputs; the old contents of `dst` are the last input."""
    spec = spec_of(op, src, params, dst)
    arrays = [None if a is None else values_of(rows_of(a), a.type) for a in src]
    if dst is not None:
        arrays.append(values_of(rows_of(dst), dst.type))
    with np.errstate(all="ignore"):
        return [np.asarray(a) for a in family(op).reference(spec, arrays, np.float64)]


def nmse(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> float:
    """Squared error over squared reference, of the finite elements; inf where NaN and infinities do not agree."""
    same = np.isfinite(got) & np.isfinite(want)
    if not np.array_equal(got[~same], want[~same], equal_nan=True):
        return float("inf")
    error = float(np.sum((got[same] - want[same]) ** 2))
    return error / (float(np.sum(want[same] ** 2)) or 1.0)


def check_op(
    op: str,
    src: Sequence[Arg | None],
    params: Mapping[str, Any] | None = None,
    *,
    bound: float = 0.0,
    exact: bool = False,
    dst: Arg | None = None,
    configs: Sequence[Config] | None = None,
    may_refuse: bool = False,
) -> None:
    """Runs the op in every configuration and asserts what the module's docstring says. `may_refuse`: a configuration
    whose planner refuses the op is skipped, as long as one takes it."""
    wants = reference_of(op, src, params, dst)
    spec = spec_of(op, src, params, dst)
    first: Outcome | None = None
    for config in configs or DEFAULT_CONFIGS:
        try:
            planned = plan(spec, config.device)
        except Refusal as refusal:
            assert may_refuse, f"{op} is refused with {config}: {refusal}"
            continue
        for _ in range(2):
            outcome = run_op(op, src, params, dst=dst, config=config, planned=planned)
            label = f"{op} {planned.kernel_name} {' x '.join(map(str, spec.src))} with {config}"
            assert outcome.error is None, f"{label}: {outcome.error}"
            assert not outcome.strayed, f"{label} wrote where it must not: {outcome.strayed}"
            if first is None:
                first = outcome
                _compare(label, spec, outcome, wants, bound, exact)
            for a, b in zip(outcome.dst, first.dst, strict=True):
                n_other = int(np.count_nonzero(a != b))
                assert not n_other, f"{label}: {n_other} of {a.size} bytes differ from the first run's"
    assert first is not None, f"{op} is refused in every configuration"


def _compare(
    label: str, spec: OpSpec, outcome: Outcome, wants: list[np.ndarray[Any, Any]], bound: float, exact: bool
) -> None:
    for i, (desc, rows, want) in enumerate(zip(spec.dst, outcome.dst, wants, strict=True)):
        got = values_of(rows, desc.type)
        assert want.shape == got.shape, f"{label}: the reference of dst{i} has shape {want.shape}, not {got.shape}"
        if exact:
            stored = values_of(rows_of(Arg(want, desc.type)), desc.type)
            wrong = ~((got == stored) | (np.isnan(got) & np.isnan(stored)))
            n, where = np.count_nonzero(wrong), np.argwhere(wrong)[:1]
            assert not n, f"{label}: {n} of {got.size} elements of dst{i} are wrong, the first at {where.tolist()}"
        else:
            error = nmse(got, want)
            assert error <= bound, f"{label}: NMSE of dst{i} is {error:.3g}, allowed {bound:.3g}\n{_worst(got, want)}"


def _worst(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> str:
    """The element that is most wrong."""
    with np.errstate(all="ignore"):
        off = np.nan_to_num(np.abs(got - want), nan=np.inf)
    at = np.unravel_index(int(np.argmax(off)), off.shape)
    return f"worst at {[int(i) for i in at]}: {got[at]!r} instead of {want[at]!r}"
