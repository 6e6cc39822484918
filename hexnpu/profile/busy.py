"""Thread events as figures: how long each thread was busy with what, and where it stood idle for long.

Busy time is the union of a thread's slices of one engine (compute, DMA) within a batch, in cycles of the batch.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np

from hexnpu.profile.columns import F64, HMX_THREAD, I64
from hexnpu.profile.errors import LogError
from hexnpu.profile.formats import csv_text
from hexnpu.profile.pairs import pair
from hexnpu.profile.phases import Steps
from hexnpu.profile.select import Chosen, Selection, check_filter, choose
from hexnpu.profile.table import LAST, Column, markdown, plain
from hexnpu.profile.timeline import Timeline
from hexnpu.profile.tracks import lane_group

BUBBLE_CYCLES = 10_000
COMPUTE, DMA = 0, 1  # as `lane_group` numbers them; 2 is the runtime: fences, cache flushes
ENGINES = ("compute", "DMA")
_ROOM = np.int64(1) << 44  # more cycles than any batch has


@dataclass
class Intervals:
    """Merged busy intervals, in order of (batch, thread, engine), begin; cycles from the batch's start."""

    batch: I64
    thread: I64
    engine: I64
    begin: I64
    end: I64


@dataclass(frozen=True)
class Busy:
    """One thread and event (or engine, where event is '(any ...)'). share: of the time its device's batches took."""

    device: str
    thread: str
    event: str
    count: int
    total_usec: float
    avg_usec: float
    share: float


@dataclass(frozen=True)
class Bubble:
    """A long time without work of one engine on one thread, within a batch."""

    device: str
    batch_line: int
    thread: str
    engine: str
    start_usec: float
    usec: float
    cycles: int
    op: str


def thread_name(thread: int) -> str:
    return "HMX" if thread == HMX_THREAD else f"T{thread}"


def _slices(line: Timeline, chosen: Chosen) -> tuple[I64, I64, I64]:
    """(rows of starts, begin, end in cycles from the batch's start) of the chosen batches' slices of chosen ops."""
    batch, op = line.event_batch, line.event_op
    keep = chosen.batches[batch]
    if chosen.matching is not chosen.ops:
        keep &= (op >= 0) & chosen.matching[np.maximum(op, 0)]
    found = pair(line, np.flatnonzero(keep))
    base = line.batches.start[batch[found.start]]
    begin = line.event_cycles[found.start] - base
    return found.start, begin, np.maximum(line.event_cycles[found.stop] - base, begin)


def _engine_of(line: Timeline, rows: I64) -> I64:
    groups = np.array([lane_group(name) for name in line.log.event_names] or [COMPUTE], np.int64)
    engine: I64 = groups[line.log.events.name[rows]]
    return engine


def merge(line: Timeline, rows: I64, begin: I64, end: I64) -> Intervals:
    """The union of slices per (batch, thread, engine); waiting and the runtime's own work belong to no engine."""
    engine = _engine_of(line, rows)
    works = engine <= DMA
    rows, begin, end, engine = rows[works], begin[works], end[works], engine[works]
    events = line.log.events
    group = (line.event_batch[rows].astype(np.int64) << 5) | (events.thread[rows].astype(np.int64) << 1)
    group |= engine
    numbers, compact = np.unique(group, return_inverse=True)
    order = np.lexsort((begin, compact))
    offset = compact[order].astype(np.int64) * _ROOM
    a, z = begin[order] + offset, end[order] + offset
    reach = np.maximum.accumulate(z)
    first = np.concatenate([[0], np.flatnonzero(a[1:] > reach[:-1]) + 1]) if len(a) else np.empty(0, np.int64)
    last = np.concatenate([first[1:] - 1, [len(a) - 1]]).astype(np.int64) if len(a) else first
    keys = numbers[compact[order][first]] if len(a) else group
    return Intervals(keys >> 5, (keys >> 1) & 15, keys & 1, a[first] - offset[first], reach[last] - offset[first])


def summary(line: Timeline, chosen: Chosen) -> list[Busy]:
    """Per device, thread and event; and per thread the union over its compute and its DMA events."""
    events, b = line.log.events, line.batches
    rows, begin, end = _slices(line, chosen)
    usec_a_cycle = 1.0 / b.mhz
    length = (end - begin) * usec_a_cycle[line.event_batch[rows]]
    whole = np.bincount(b.device[chosen.batches], b.usec[chosen.batches], len(line.log.devices))
    found: list[Busy] = []
    merged = merge(line, rows, begin, end)
    merged_usec = (merged.end - merged.begin) * usec_a_cycle[merged.batch]
    for device, name in enumerate(line.log.devices):
        for thread in np.unique(events.thread[rows[events.device[rows] == device]]).tolist():
            mine = (events.device[rows] == device) & (events.thread[rows] == thread)
            for event in np.unique(events.name[rows[mine]]).tolist():
                part = length[mine & (events.name[rows] == event)]
                found.append(_busy(name, thread, line.log.event_names[event], part, float(whole[device])))
            for engine in (COMPUTE, DMA):
                part = merged_usec[
                    (b.device[merged.batch] == device) & (merged.thread == thread) & (merged.engine == engine)
                ]
                if len(part):
                    found.append(_busy(name, thread, f"(any {ENGINES[engine]})", part, float(whole[device])))
    return found


def _busy(device: str, thread: int, event: str, usec: F64, whole: float) -> Busy:
    total = float(usec.sum())
    share = total / whole if whole else 0.0
    return Busy(device, thread_name(thread), event, len(usec), total, total / len(usec), share)


def bubbles(line: Timeline, chosen: Chosen) -> list[Bubble]:
    """Idle gaps of BUBBLE_CYCLES and more, longest first, on each thread and engine that works in the batch at all."""
    b, log = line.batches, line.log
    rows, begin, end = _slices(line, chosen)
    merged = merge(line, rows, begin, end)
    if not len(merged.batch):
        return []
    key = (merged.batch << 5) | (merged.thread << 1) | merged.engine
    first = np.concatenate([[True], key[1:] != key[:-1]])
    last = np.concatenate([key[1:] != key[:-1], [True]])
    before = np.where(first, 0, np.concatenate([[0], merged.end[:-1]]))
    gap_start = np.concatenate([before, merged.end[last]])
    gap_end = np.concatenate([merged.begin, b.cycles[merged.batch[last]]])
    batch = np.concatenate([merged.batch, merged.batch[last]])
    thread = np.concatenate([merged.thread, merged.thread[last]])
    engine = np.concatenate([merged.engine, merged.engine[last]])
    long = np.flatnonzero(gap_end - gap_start >= BUBBLE_CYCLES)
    long = long[np.argsort(gap_start[long] - gap_end[long], kind="stable")]
    found = []
    for i in long.tolist():
        at, cycles, mhz = int(batch[i]), int(gap_end[i] - gap_start[i]), float(b.mhz[batch[i]])
        op = _op_at(line, at, int(b.start[at] + gap_start[i]))
        device = log.devices[int(b.device[at])]
        start = float(gap_start[i]) / mhz
        found.append(
            Bubble(device, int(b.line[at]), thread_name(int(thread[i])), ENGINES[int(engine[i])], start, cycles / mhz,
                   cycles, op)
        )  # fmt: skip
    return found


def _op_at(line: Timeline, batch: int, cycles: int) -> str:
    rows = np.flatnonzero(line.op_batch == batch)
    before = rows[line.op_start[rows] <= cycles]
    return line.log.texts[int(line.log.ops.text[before[-1]])].op if len(before) else "(prologue)"


_BUSY = [
    Column("device", "Device", lambda row: row.device, left=True),
    Column("thread", "Thread", lambda row: row.thread, left=True),
    Column("event", "Event", lambda row: row.event, left=True),
    Column("count", "Count", lambda row: f"{row.count:,}"),
    Column("total", "Busy us", lambda row: f"{row.total_usec:,.1f}"),
    Column("avg", "Avg us", lambda row: f"{row.avg_usec:,.2f}"),
    Column("share", "Of batches", lambda row: f"{100 * row.share:.1f}%"),
]
_BUBBLES = [
    Column("device", "Device", lambda row: row.device, left=True),
    Column("batch", "Batch line", lambda row: f"{row.batch_line}"),
    Column("thread", "Thread", lambda row: row.thread, left=True),
    Column("engine", "Idle engine", lambda row: row.engine, left=True),
    Column("start", "At us", lambda row: f"{row.start_usec:,.1f}", drop=LAST + 1),
    Column("usec", "Idle us", lambda row: f"{row.usec:,.1f}"),
    Column("cycles", "Cycles", lambda row: f"{row.cycles:,}", drop=LAST),
    Column("op", "During", lambda row: row.op, left=True),
]


def report(
    line: Timeline, steps: Steps, want: Selection, kind: str, form: str, top: int | None, width: int
) -> str:
    """`--timeline summary` or `bubbles` in the wanted format. LogError when the log has no trace events."""
    if not len(line.log.events):
        raise LogError(f"{line.log.source} has no trace events: run with --profile 3 (GGML_HEXAGON_PROFILE=3)")
    chosen = choose(line, steps, want)
    check_filter(chosen, want, line.log)
    rows: list[Busy] | list[Bubble] = summary(line, chosen) if kind == "summary" else bubbles(line, chosen)
    limit = top if top is not None else 0 if kind == "summary" or form != "table" else 40
    shown = rows[:limit] if limit else rows
    titles = _BUSY if kind == "summary" else _BUBBLES
    items = [asdict(row) for row in shown]
    if form == "json":
        return json.dumps({"schema": f"hexnpu-timeline-{kind}/1", "rows": items}, indent=1) + "\n"
    if form == "csv":
        names = list(items[0]) if items else [column.name for column in titles]
        return csv_text(names, items)
    if form == "markdown":
        return markdown(titles, shown) + "\n"
    if not shown:
        return f"no thread was idle for {BUBBLE_CYCLES:,} cycles and more\n"
    more = f"\n… {len(rows) - len(shown)} more (-n 0 shows all)" if len(shown) < len(rows) else ""
    return plain(titles, shown, width) + more + "\n"
