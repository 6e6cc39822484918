"""The figures of a report: ops in groups, the time between them in rows of its own, sums that add up.

In every section (phase, and device if split) the sum over all rows is the sum of its batches' device time, plus host
time. Ops count with their printed usec; prologue and epilogue are counter differences at the batch's clock; what a
batch's usec has beyond these is `gaps`, which therefore also holds the rounding of the ops' usec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hexnpu.errors import UsageError
from hexnpu.profile.columns import F64, HMX_THREAD, I32, I64, N_PMU
from hexnpu.profile.optext import NO_LAYER, OpFacts, facts
from hexnpu.profile.peaks import Peak
from hexnpu.profile.phases import PHASES, Steps
from hexnpu.profile.select import Chosen, Selection, check_filter, choose
from hexnpu.profile.timeline import Timeline

GAP_ROWS = ("prologue", "gaps", "epilogue", "host")
GAP_LABELS = {
    "prologue": "(prologue)",  # a batch's start to its first op
    "gaps": "(gaps)",  # between its ops
    "epilogue": "(epilogue)",  # its last op's end to its own
    "host": "(host)",  # between batches
    "other": "(filtered out)",
}

KEYS: dict[str, tuple[tuple[str, ...], Callable[[OpFacts], tuple[str, ...]]]] = {
    "op": (("op", "dims", "types"), lambda fact: (fact.op, fact.dims, fact.types)),
    "layer": (("layer",), lambda fact: ("-" if fact.layer == NO_LAYER else f"{fact.layer}",)),
    "role": (("role",), lambda fact: (fact.role,)),
    "engine": (("engine",), lambda fact: (fact.engine,)),
    "kernel": (("kernel",), lambda fact: (fact.kernel,)),
    "device": (("device",), lambda fact: ()),
}
SORTS = {
    "total": "total_usec", "avg": "avg_usec", "median": "median_usec", "max": "max_usec", "count": "count",
    "avg-cycles": "avg_cycles", "max-cycles": "max_cycles", "share": "total_usec", "gbs": "gbs", "gflops": "gflops",
    "name": "key", "pmu": "pmu",
}  # fmt: skip


@dataclass
class Row:
    """One group. kind: 'op', or the name of a row that is not an op. Rates are None where dims do not tell."""

    key: tuple[str, ...]
    kind: str
    count: int
    total_usec: float
    share: float = 0.0
    avg_usec: float | None = None
    median_usec: float | None = None
    max_usec: float | None = None
    avg_cycles: float | None = None
    max_cycles: float | None = None
    gbs: float | None = None
    gflops: float | None = None
    bandwidth_fraction: float | None = None
    compute_fraction: float | None = None
    pmu: tuple[float, ...] = ()  # mean per op of each chosen counter


@dataclass
class Section:
    """All rows of one phase (of one device if split). total_usec: the sum over the rows, all devices together."""

    phase: str
    device: str | None
    rows: list[Row]
    total_usec: float
    batches: int
    steps: int
    tokens: int
    wall_usec: float  # from its first batch to the end of its last, on the common axis


@dataclass
class Report:
    source: str
    by: str
    key_names: tuple[str, ...]
    sections: list[Section]
    devices: list[str]
    pmu_names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sort: str = "total"


@dataclass(frozen=True)
class Shape:
    """How the report is cut and ordered. pmu: (index, name) of the counters to show."""

    by: str = "op"
    sort: str = "total"
    pmu: tuple[tuple[int, str], ...] = ()
    peak: Peak | None = None

    def check(self) -> None:
        """Raises UsageError."""
        if self.by not in KEYS:
            raise UsageError(f"--by {self.by}: give one of {', '.join(KEYS)}")
        if self.sort not in SORTS:
            raise UsageError(f"--sort {self.sort}: give one of {', '.join(SORTS)}")
        for index, _ in self.pmu:
            if not 0 <= index < N_PMU:
                raise UsageError(f"--pmu-index {index}: give a number from 0 to {N_PMU - 1}")
        if self.sort == "pmu" and not self.pmu:
            raise UsageError("--sort pmu needs --pmu-index")


@dataclass
class BatchTimes:
    """Microseconds of each batch that no op line accounts for, and before it on the host."""

    prologue: F64
    gaps: F64
    epilogue: F64
    host: F64


def batch_times(line: Timeline) -> BatchTimes:
    """Prologue, gaps, epilogue and host time of each batch, in microseconds."""
    b, ops = line.batches, line.log.ops
    n = len(b)
    used = np.bincount(line.op_batch, ops.usec, n)[:n]
    first = np.full(n, np.iinfo(np.int64).max)
    last = np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(first, line.op_batch, line.op_start)
    np.maximum.at(last, line.op_batch, line.op_start + ops.cycles)
    measured = b.known & b.counted & (b.n_ops > 0)
    with_ops = np.flatnonzero(measured)
    prologue, epilogue, host = np.zeros(n), np.zeros(n), np.zeros(n)
    prologue[with_ops] = np.maximum(first[with_ops] - b.start[with_ops], 0) / b.mhz[with_ops]
    ends = b.start[with_ops] + b.cycles[with_ops]
    epilogue[with_ops] = np.maximum(ends - last[with_ops], 0) / b.mhz[with_ops]
    gaps = b.usec - used - prologue - epilogue
    next_is_same = b.device[1:] == b.device[:-1]
    host[1:][next_is_same] = np.maximum(b.begin_ns[1:] - b.end_ns[:-1], 0)[next_is_same] / 1000.0
    if not line.stamped:
        trailer = b.host_usec >= 0
        host[trailer] = np.maximum(b.host_usec[trailer] - b.usec[trailer], 0.0)
    return BatchTimes(prologue, gaps, epilogue, host)


def make_report(line: Timeline, steps: Steps, want: Selection, shape: Shape) -> Report:
    """The report of what `want` selects."""
    chosen = choose(line, steps, want)
    check_filter(chosen, want, line.log)
    times = None if want.partial else batch_times(line)
    report = Report(line.log.source, shape.by, KEYS[shape.by][0], [], line.log.devices)
    report.pmu_names, report.sort = [name for _, name in shape.pmu], shape.sort
    if shape.pmu and line.log.ops.pmu is None:
        raise UsageError(f"--pmu-index: {line.log.source} has no PMU counters: run with --profile 2")
    devices: list[int | None] = list(range(len(line.log.devices))) if want.split else [None]
    for phase in range(len(PHASES)):
        for device in devices:
            in_batch = chosen.batches & (steps.batch_phase == phase)
            if device is not None:
                in_batch &= line.batches.device == device
            if in_batch.any():
                section = _section(line, steps, chosen, times, in_batch, shape)
                section.phase = PHASES[phase]
                section.device = None if device is None else line.log.devices[device]
                if section.rows:
                    report.sections.append(section)
    report.notes = notes(line)
    return report


def _section(
    line: Timeline, steps: Steps, chosen: Chosen, times: BatchTimes | None, in_batch: I64, shape: Shape
) -> Section:
    inside = in_batch[line.op_batch]
    rows = _op_rows(line, np.flatnonzero(chosen.matching & inside), shape)
    _order(rows, shape.sort)
    left_out = np.flatnonzero(chosen.ops & ~chosen.matching & inside)
    blanks = ("",) * (len(KEYS[shape.by][0]) - 1)
    if len(left_out):
        usec = float(line.log.ops.usec[left_out].sum())
        rows.append(Row((GAP_LABELS["other"], *blanks), "other", len(left_out), usec))
    if times is not None:
        batches = np.flatnonzero(in_batch)
        for kind in GAP_ROWS:
            part = getattr(times, kind)[batches]
            if kind == "host":
                part = np.where(chosen.follows[batches] | (line.batches.host_usec[batches] >= 0), part, 0.0)
            if part.any():
                rows.append(Row((GAP_LABELS[kind], *blanks), kind, int(np.count_nonzero(part)), float(part.sum())))
    total = sum(row.total_usec for row in rows)
    for row in rows:
        row.share = row.total_usec / total if total else 0.0
    ids = steps.batch_step[in_batch].astype(np.int64) * (1 << 16) + line.batches.device[in_batch]
    one_device = line.batches.device[in_batch] == line.batches.device[in_batch][:1]
    _, first = np.unique(ids[one_device], return_index=True)
    tokens = int(steps.batch_tokens[in_batch][one_device][first].sum())
    wall = float(line.batches.end_ns[in_batch].max() - line.batches.begin_ns[in_batch].min()) / 1000.0
    return Section("", None, rows, total, int(in_batch.sum()), len(first), tokens, wall)


def _op_rows(line: Timeline, ops: I64, shape: Shape) -> list[Row]:
    log = line.log
    if not len(ops):
        return []
    known = [facts(text) for text in log.texts]
    names: list[tuple[str, ...]]
    if shape.by == "device":
        names = [(device,) for device in log.devices]
        group = log.ops.device[ops].astype(np.int64)
    else:
        index: dict[tuple[str, ...], int] = {}
        of_text = np.array([index.setdefault(KEYS[shape.by][1](fact), len(index)) for fact in known], np.int64)
        names, group = list(index), of_text[log.ops.text[ops]]
    usec, cycles, text = log.ops.usec[ops], log.ops.cycles[ops], log.ops.text[ops]
    by_group = np.argsort(group, kind="stable")
    sorted_group = group[by_group]
    first = np.concatenate([[0], np.flatnonzero(np.diff(sorted_group)) + 1])
    count = np.diff(np.concatenate([first, [len(ops)]]))
    ranked = np.sort((group << 32) | usec) & 0xFFFFFFFF  # usec in order within each group
    total = np.add.reduceat(ranked, first)
    median = (ranked[first + (count - 1) // 2] + ranked[first + count // 2]) / 2.0
    most = ranked[first + count - 1]
    cycles_total = np.add.reduceat(cycles[by_group], first)
    cycles_most = np.maximum.reduceat(cycles[by_group], first)
    exact = cycles / line.batches.mhz[line.op_batch[ops]]  # microseconds, not rounded
    seconds = np.add.reduceat(np.where(cycles > 0, exact, usec)[by_group], first)
    figures = ([fact.bytes for fact in known], [fact.flops for fact in known])
    rates = [_rate(figure, text[by_group], first, seconds) for figure in figures]
    pmu = _pmu(line, ops[by_group], first, count, shape)
    rows = []
    for i, g in enumerate(sorted_group[first].tolist()):
        n = int(count[i])
        gbs, gflops = (None if np.isnan(rate[i]) else float(rate[i]) / 1000.0 for rate in rates)
        row = Row(names[g], "op", n, float(total[i]), 0.0, float(total[i]) / n, float(median[i]), float(most[i]))
        row.avg_cycles, row.max_cycles = float(cycles_total[i]) / n, float(cycles_most[i])
        row.gbs, row.gflops, row.pmu = gbs, gflops, tuple(pmu[i].tolist()) if len(pmu) else ()
        if shape.peak is not None:
            row.bandwidth_fraction = None if gbs is None else gbs / shape.peak.dma_gbs
            row.compute_fraction = None if gflops is None else gflops / shape.peak.hmx_gflops
        rows.append(row)
    return rows


def _rate(per_text: list[int | None], text: I32, first: I64, usec: F64) -> F64:
    """Sum of a text's figure over each group per microsecond; NaN where an op of the group has none."""
    value = np.array([np.nan if figure is None else float(figure) for figure in per_text])
    with np.errstate(divide="ignore", invalid="ignore"):
        rate: F64 = np.add.reduceat(value[text], first) / usec
    return np.where(np.isfinite(rate), rate, np.nan)


def _pmu(line: Timeline, ops: I64, first: I64, count: I64, shape: Shape) -> F64:
    counters = line.log.ops.pmu
    if not shape.pmu or counters is None:
        return np.empty((0, 0))
    picked = counters[ops][:, [index for index, _ in shape.pmu]].astype(np.float64)
    means: F64 = np.add.reduceat(picked, first, axis=0) / count[:, None]
    return means


def _order(rows: list[Row], sort: str) -> None:
    attribute = SORTS[sort]
    if sort == "name":
        rows.sort(key=lambda row: [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in row.key])
        return

    def figure(row: Row) -> float:
        value = getattr(row, attribute)
        value = value[0] if isinstance(value, tuple) and value else value
        return -1.0 if value is None or value == () else float(value)

    rows.sort(key=figure, reverse=True)


def notes(line: Timeline) -> list[str]:
    """What the reader of any report must know about this log, one sentence each."""
    log, b = line.log, line.batches
    found = [
        f"{bad.count} {bad.kind} line{'s' * (bad.count > 1)} not readable, the first at line {bad.first_line}"
        for bad in log.unreadable
    ]
    short = int(np.count_nonzero(b.known & (b.n_ops < b.declared_ops)))
    if short:
        found.append(f"{_batches(short)} fewer op lines than n-ops says: log lines are missing")
    made = int(np.count_nonzero(~b.known & (b.declared_ops < 0)))
    if made and b.known.any():
        found.append(f"{made} run{'s' * (made > 1)} of ops without an OPBATCH line")
    found.extend(full_buffers(line))
    if log.stopped_early:
        found.append(f"read up to line {log.lines}: --head had enough")
    return found


def _batches(count: int) -> str:
    return "1 batch has" if count == 1 else f"{count:,} batches have"


def full_buffers(line: Timeline) -> list[str]:
    """Trace buffers that were full (as many events as slots, a power of two), and events that were not printed."""
    cnt = line.batches.evt_cnt
    top = cnt.max(initial=0)
    if top <= 0:
        return []
    found = []
    rows, threads = np.nonzero((cnt == top) & (cnt >= 16) & ((cnt & (cnt - 1)) == 0))
    if len(rows):
        names = ", ".join(sorted({f"T{t}" if t < HMX_THREAD else "HMX" for t in threads.tolist()}))
        found.append(
            f"full trace buffer ({top} events) {len(rows)} times on {names}, "
            f"first in the batch of line {int(line.batches.line[rows].min())}: later events are lost"
        )
    events = line.log.events
    if len(events):
        size = len(cnt) * cnt.shape[1]
        key = line.event_batch.astype(np.int64) * cnt.shape[1] + events.thread
        printed = np.bincount(key[line.event_batch >= 0], minlength=size)[:size].reshape(cnt.shape)
        short = np.flatnonzero((cnt > printed).any(axis=1))
        if len(short):
            found.append(
                f"{_batches(len(short))} fewer event lines than evt-cnt says, "
                f"the first at line {int(line.batches.line[short].min())}"
            )
    return found
