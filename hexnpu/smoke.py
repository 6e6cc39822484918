"""Every kernel on a target's server against float64 numpy: `hexnpu smoke`.

What it looks for is silent wrong output: a kernel that runs, says OK and computes nonsense, on one weight type, or for
one number of columns. Each case is one op with one type, run for every count of COLUMNS, twice, and compared with its
family's reference in float64. The table of smoke_cases.py names shapes; which ops and types there are is the planner's
to say (`hexnpu.support`), and `uncovered` tells what the table forgot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from hexnpu.compiled import Compiled
from hexnpu.errors import HexnpuError, SessionLost
from hexnpu.fallback import read_values
from hexnpu.graph import Kind, Node, Tensor
from hexnpu.plan import family
from hexnpu.plan.base import Device, OpSpec
from hexnpu.session import Session
from hexnpu.smoke_cases import CASES, GROUP_OPS, Array, Builder, Case
from hexnpu.support import support
from hexnpu.tensor import DTYPES, Desc, Type
from hexnpu.weights import read_source

COLUMNS = (1, 2, 4, 5, 31, 32, 33)

# Largest NMSE. Matrix products quantize their activations to 8 bits; half has 11 bits; the rest is float.
QUANTIZED, HALF, FLOAT = 5e-4, 2e-6, 1e-9
# An element may be off by this many times the rms error that NMSE allows: one wrong element must not hide among many.
OUTLIER = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One op, type and count of columns. `error`: what is wrong, empty where nothing is."""

    op: str
    type: str
    columns: int
    kernel: str
    nmse: float
    error: str


@dataclass(slots=True)
class Report:
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.error]


def cases(device: Device) -> Iterator[tuple[str, Type, Case]]:
    """Every op and type that the device's planner takes and the table has."""
    for row in support(device):
        for name in row.types:
            yield from ((row.op, Type[name], case) for case in CASES.get(row.op, ()))


def uncovered(device: Device) -> list[str]:
    """Ops with a kernel that the table has no case for."""
    return [row.op for row in support(device) if row.types and row.op not in CASES and row.op not in GROUP_OPS]


def run(session: Session, progress: Callable[[int, int], None] = lambda done, total: None) -> Report:
    """Runs every case in the session, which must have been opened with fusion=0 and strict=True.

    A case that is refused is a failure; a session that dies ends the run, its last case being the failure.
    """
    report = Report()
    start = time.monotonic()
    todo = list(cases(session.device))
    for i, (op, type, case) in enumerate(todo):
        progress(i, len(todo))
        try:
            report.outcomes += _run_case(session, op, type, case)
        except SessionLost as lost:
            report.outcomes.append(Outcome(op, type.name, 0, "", float("nan"), str(lost)))
            break
        except HexnpuError as error:
            report.outcomes.append(Outcome(op, type.name, 0, "", float("nan"), str(error)))
    progress(len(todo), len(todo))
    report.seconds = time.monotonic() - start
    return report


def _run_case(session: Session, op: str, type: Type, case: Case) -> list[Outcome]:
    """One op and type for all counts of columns, in one graph: the order of nodes is that of COLUMNS."""
    b = Builder(type, seed=1)
    outputs: list[list[str]] = []
    for n in COLUMNS:
        case(b, n)
        names = [f"y{n}.{i}" for i in range(len(b.g.nodes[-1].dst))]
        for name, t in zip(names, b.g.nodes[-1].dst, strict=True):
            b.g.output(t, name)
        outputs.append(names)
    compiled = session.compile(b.g)
    first, second = session.run(b.g, b.inputs), session.run(b.g, b.inputs)
    outcomes = []
    for n, node, names in zip(COLUMNS, b.g.nodes, outputs, strict=True):
        wants = reference(node, b.inputs)
        error, worst = "", 0.0
        for name, t, want in zip(names, node.dst, wants, strict=True):
            got = _values(t.desc, first[name])
            worst = max(worst, nmse(got, want))
            error = error or _judge(got, want, bound(op, type, t.type))
            if not error and first[name].tobytes() != second[name].tobytes():
                error = "the second run gave other bytes"
        outcomes.append(Outcome(op, type.name, n, _kernel(compiled, node), worst, error))
    session.forget(b.g)
    return outcomes


def bound(op: str, type: Type, result: Type) -> float:
    """The largest NMSE of a result, by what it was rounded to on the way."""
    if result not in DTYPES or (op.startswith("MUL_MAT") and type not in DTYPES):
        return QUANTIZED
    return HALF if Type.F16 in (type, result) or op == "FLASH_ATTN_EXT" else FLOAT


def nmse(got: Array, want: Array) -> float:
    """Squared error over squared reference; inf where NaN and infinities do not agree."""
    finite = np.isfinite(got) & np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return float("inf")
    return float(np.sum((got[finite] - want[finite]) ** 2)) / (float(np.sum(want[finite] ** 2)) or 1.0)


def _judge(got: Array, want: Array, limit: float) -> str:
    """What is wrong with a result, in words."""
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    error = nmse(got, want)
    if error > limit:
        return f"NMSE {error:.2g}, at most {limit:.0e} is right"
    off = np.abs(got - want)
    off[~np.isfinite(off)] = 0.0
    rms = float(np.sqrt(np.mean(np.square(want[np.isfinite(want)]))))
    if off.max() > OUTLIER * np.sqrt(limit) * rms:
        at = tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
        return f"element {at} is {got[at]:.6g} instead of {want[at]:.6g}"
    return ""


def reference(node: Node, inputs: dict[str, Array]) -> list[Array]:
    """The node's results in float64, from its inputs, weights and zeroed states."""
    descs = tuple(None if t is None else t.desc for t in node.src)
    spec = OpSpec(node.op, node.params, descs, tuple(t.desc for t in node.dst))
    arrays = [None if t is None else _leaf(t, inputs) for t in node.src]
    if node.op == "SET_ROWS":
        arrays.append(np.zeros(node.dst[0].ne[::-1]))
    with np.errstate(all="ignore"):
        results = family(node.op).reference(spec, arrays, np.float64)
    return [np.asarray(a, np.float64) for a in results]


def _leaf(t: Tensor, inputs: dict[str, Array]) -> Array:
    if t.root.kind is Kind.WEIGHT:
        values = read_values(t.desc, read_source(t.root.source), t.offset)
    else:
        values = inputs[t.name].reshape(t.ne[::-1])
    return values if values.dtype.kind == "i" else values.astype(np.float64)


def _values(desc: Desc, result: Array) -> Array:
    """A result as float64, 4-D; a quantized one comes as bytes."""
    if desc.type in DTYPES:
        return result.reshape(desc.ne[::-1]).astype(np.float64)
    return read_values(desc, np.frombuffer(result.tobytes(), np.uint8), 0).astype(np.float64)


def _kernel(compiled: Compiled, node: Node) -> str:
    for op in compiled.ops:
        if node in op.node.parts and op.plan is not None:
            return op.plan.kernel_name
    return ""


