"""When everything happened: ops and events in their batches, counters with their high halves, one axis in nanoseconds.

- A batch is an OPBATCH line; where the log has none, the ops up to a `profile-batch` trailer, else a run of ops.
- The clock of a batch is its own cycles over usec. An op's printed mhz is never used: it is cycles over a rounded usec.
- Counters stop while the NPU sleeps, host stamps do not: a batch ends no later than the stamp of its line, and keeps
  at least the distance its counter shows to its neighbours. Of all placements that satisfy this, the latest is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hexnpu.profile.columns import F64, I32, I64, N_THREADS, NAMES, OPBATCH, U16, AnyArray, Bool, Log
from hexnpu.profile.optext import facts, identities

WRAP = 1 << 32
LOW = WRAP - 1
DEFAULT_MHZ = 1000.0
PROLOGUE, EPILOGUE = -1, -2
RESTART_US = 1_000_000  # a stamp that falls by more begins another run in the same file


@dataclass
class Batches:
    """One row a batch, by device, then in order. Cycles are the device's, ns the common axis."""

    device: U16
    known: Bool  # from an OPBATCH line, else made of its ops
    start: I64
    cycles: I64
    usec: F64
    mhz: F64
    n_ops: I64  # ops whose lines are in the log
    declared_ops: I64  # what the batch line says, -1 without one
    host_usec: I64
    stamp_us: I64
    line: I64
    evt_cnt: I64
    begin_ns: I64
    end_ns: I64
    counted: Bool  # the ops have start counters; without, they are laid end to end

    def __len__(self) -> int:
        return len(self.device)


@dataclass
class Timeline:
    """The log in time. op_start, event_cycles: the full counter; event_op: index of an op, PROLOGUE or EPILOGUE."""

    log: Log
    batches: Batches
    op_batch: I32
    op_start: I64
    event_batch: I32
    event_cycles: I64
    event_op: I32
    stamped: bool

    def ns_of(self, batch: I32 | I64, cycles: I64) -> I64:
        """Counter values within a batch to nanoseconds on the common axis."""
        b = self.batches
        offset = (cycles - b.start[batch]) * (1000.0 / b.mhz[batch])
        return b.begin_ns[batch] + np.rint(offset).astype(np.int64)


@dataclass
class _Device:
    """The batches of one device while they are found; ops and events by their index in the log."""

    start: I64
    cycles: I64
    usec: F64
    known: Bool
    counted: Bool
    rows: AnyArray  # row of the batch line, -1 without one
    line: I64
    ops: I64
    op_batch: I64
    op_start: I64


def _cumulative(start: I64) -> I64:
    """Counters of ops in order, each at or after the one before: 32-bit values without their wraps, from the first."""
    steps = np.diff(start, prepend=start[:1]) & LOW
    full: I64 = start[0] + np.cumsum(steps)
    return full


def _signed(distance: I64) -> I64:
    return ((distance + (WRAP >> 1)) & LOW) - (WRAP >> 1)


def _device_batches(log: Log, device: int) -> _Device:
    lines, ops = log.batches, log.ops
    mine = np.flatnonzero(ops.device == device)
    rows = np.flatnonzero(lines.device == device)
    if not len(mine) and not (lines.kind[rows] == OPBATCH).any():
        return _only_events(log, device)
    real = rows[lines.kind[rows] == OPBATCH]
    trailers = rows[lines.kind[rows] != OPBATCH]
    start, op_line = ops.start[mine], ops.line[mine]
    home = _windows(lines.start[real], lines.cycles[real], lines.line[real], start, op_line)
    stray = np.flatnonzero(home < 0)
    op_start = np.zeros(len(mine), np.int64)
    held = np.flatnonzero(home >= 0)
    op_start[held] = _unwrapped(lines.start[real][home[held]], lines.cycles[real][home[held]], start[held], home[held])
    groups = _stray_groups(log, mine[stray], lines.line[real], lines.line[trailers])
    n = len(groups)
    real_start, real_cycles = lines.start[real], lines.cycles[real]
    made = [_made_batch(log, mine[stray[group]], real_start, real_cycles, before) for group, before, _ in groups]
    for index, ((group, _, _), batch) in enumerate(zip(groups, made, strict=True)):
        home[stray[group]] = len(real) + index
        op_start[stray[group]] = batch[0]
    first_lines = [int(op_line[stray[group[0]]]) for group, _, _ in groups]
    line = np.concatenate([lines.line[real], first_lines]).astype(np.int64)
    order = np.argsort(line, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))

    def column(known: AnyArray, new: list[float], dtype: type) -> AnyArray:
        return np.concatenate([known, np.array(new, dtype)]).astype(dtype)[order]

    return _Device(
        column(lines.start[real], [int(batch[0][0]) for batch in made], np.int64),
        column(lines.cycles[real], [batch[1] for batch in made], np.int64),
        column(lines.usec[real], [batch[2] for batch in made], np.float64),
        column(np.ones(len(real)), [0] * n, np.bool_),
        column(np.ones(len(real)), [batch[3] for batch in made], np.bool_),
        column(real, [int(trailers[t]) if t >= 0 else -1 for _, _, t in groups], np.int64),
        line[order],
        mine,
        place[home] if len(home) else home,
        op_start,
    )


def _only_events(log: Log, device: int) -> _Device:
    """A device that has events and neither ops nor batches: one batch that holds them."""
    events = log.events
    mine = np.flatnonzero(events.device == device)
    nothing = np.empty(0, np.int64)
    if not len(mine):
        flags, usec = nothing.astype(np.bool_), nothing.astype(np.float64)
        return _Device(nothing, nothing, usec, flags, flags, nothing, nothing, nothing, nothing, nothing)
    low = events.cycles[mine].astype(np.int64)
    full = low[0] + np.cumsum(_signed(np.diff(low, prepend=low[:1])))
    start, cycles = full.min(keepdims=True), full.max(keepdims=True) - full.min()
    known, counted, row = np.array([False]), np.array([True]), np.array([-1])
    line = events.line[mine[:1]]
    return _Device(start, cycles, cycles / DEFAULT_MHZ, known, counted, row, line, nothing, nothing, nothing)


def _windows(b_start: I64, b_cycles: I64, b_line: I64, start: I64, line: I64) -> I64:
    """Per op (or event) the OPBATCH whose window holds its counter: the last one printed before it, or the next; -1."""
    if not len(b_start):
        return np.full(len(start), -1, np.int64)
    before = np.searchsorted(b_line, line, side="right") - 1

    def holds(batch: I64) -> Bool:
        inside = np.clip(batch, 0, len(b_start) - 1)
        within = ((start - b_start[inside]) & LOW) <= b_cycles[inside]
        result: Bool = (batch >= 0) & (batch < len(b_start)) & (within | (start < 0))
        return result

    return np.where(holds(before), before, np.where(holds(before + 1), before + 1, -1))


def _unwrapped(b_start: I64, b_cycles: I64, start: I64, batch: I64) -> I64:
    """Counters inside their batch: from its 64-bit start; in a batch of 2^32 cycles and more, by order as well."""
    full = b_start + ((start - b_start) & LOW)
    for long in np.unique(batch[b_cycles >= WRAP]):
        rows = np.flatnonzero(batch == long)
        full[rows] = full[rows[0]] - start[rows[0]] + _cumulative(start[rows])
    return full


def _stray_groups(log: Log, ops: I64, real_lines: I64, trailer_lines: I64) -> list[tuple[I64, int, int]]:
    """Ops outside every OPBATCH, cut where a batch line stands or, without any, where the model starts again.

    Each group: (positions in `ops`, index of the OPBATCH before it or -1, index of its trailer or -1).
    """
    if not len(ops):
        return []
    line = log.ops.line[ops]
    before = np.searchsorted(real_lines, line) - 1
    trailer = np.searchsorted(trailer_lines, line)
    layer = np.array([facts(text).layer for text in log.texts], np.int64)[log.ops.text[ops]]
    cut = (np.diff(before) != 0) | (np.diff(trailer) != 0)
    has_trailer = trailer < len(trailer_lines)
    if not has_trailer.all():
        seen = np.maximum.accumulate(np.where(layer >= 0, np.arange(len(layer)), -1))
        last = np.where(seen >= 0, layer[np.maximum(seen, 0)], -1)
        restart = last[1:] < last[:-1]
        if layer[0] >= 0:
            op = identities(log.texts)[log.ops.text[ops]]
            restart |= op[1:] == op[0]
        cut |= restart & ~has_trailer[1:]
    bounds = np.concatenate([[0], np.flatnonzero(cut) + 1, [len(ops)]])
    groups = []
    for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        own = int(trailer[a]) if has_trailer[a] else -1
        groups.append((np.arange(a, b), int(before[a]), own))
    return groups


def _made_batch(log: Log, ops: I64, b_start: I64, b_cycles: I64, before: int) -> tuple[I64, int, float, bool]:
    """(counters of the ops, cycles, usec, counted) of a batch that has no OPBATCH line."""
    start, cycles, usec = log.ops.start[ops], log.ops.cycles[ops], log.ops.usec[ops]
    counted = bool((start >= 0).all())
    if counted:
        full = _cumulative(start)
        if before >= 0:
            end = int(b_start[before] + b_cycles[before])
            full = full - full[0] + end + ((int(start[0]) - end) & LOW)
        elif len(b_start):
            full = full - full[-1] + int(b_start[0]) - ((int(b_start[0]) - int(start[-1])) & LOW)
    else:
        full = np.concatenate([[0], np.cumsum(cycles[:-1])]).astype(np.int64)
    total_cycles, total_usec = int(cycles.sum()), int(usec.sum())
    span = int((full + cycles).max() - full[0])
    mhz = total_cycles / total_usec if total_cycles and total_usec else DEFAULT_MHZ
    return full, span, span / mhz, counted


def _chain_made(found: _Device, log: Log) -> None:
    """Without any OPBATCH the counter runs on from batch to batch: it is unwrapped over the whole device."""
    if found.known.any() or not found.counted.all() or not len(found.ops):
        return
    full = _cumulative(log.ops.start[found.ops])
    found.op_start = full
    first = np.concatenate([[0], np.flatnonzero(np.diff(found.op_batch)) + 1])
    found.start = full[first]


def build(log: Log) -> Timeline:
    """The whole log on one axis."""
    n_ops = len(log.ops)
    op_batch, op_start = np.full(n_ops, -1, np.int32), np.zeros(n_ops, np.int64)
    found, offset = [], 0
    for device in range(len(log.devices)):
        one = _device_batches(log, device)
        _chain_made(one, log)
        op_batch[one.ops] = one.op_batch + offset
        op_start[one.ops] = one.op_start
        found.append(one)
        offset += len(one.start)
    batches = _batches(log, found, op_batch)
    _place(batches, log)
    event_batch, event_cycles = _events(log, batches, op_batch, op_start)
    stamped = bool((batches.stamp_us >= 0).any())
    line = Timeline(log, batches, op_batch, op_start, event_batch, event_cycles, np.empty(0, np.int32), stamped)
    line.event_op = _event_homes(line)
    _begin_at_zero(line)
    return line


def _begin_at_zero(line: Timeline) -> None:
    """Without OPBATCH lines a batch begins at its first op; events before that must not fall before the axis."""
    batches = line.batches
    if not len(batches):
        return
    early = np.flatnonzero(line.event_cycles < batches.start[line.event_batch])
    if len(early):
        lowest = int(line.ns_of(line.event_batch[early], line.event_cycles[early]).min())
        batches.begin_ns -= min(lowest, 0)
        batches.end_ns -= min(lowest, 0)


def _batches(log: Log, found: list[_Device], op_batch: I32) -> Batches:
    device = np.repeat(np.arange(len(found)), [len(one.start) for one in found]).astype(NAMES)

    def joined(name: str, dtype: type) -> AnyArray:
        return np.concatenate([getattr(one, name) for one in found] or [np.empty(0)]).astype(dtype)

    rows = joined("rows", np.int64)
    lines, has = log.batches, rows >= 0

    def from_line(column: AnyArray) -> AnyArray:
        out = np.full((len(rows), *column.shape[1:]), -1, np.int64)
        out[has] = column[rows[has]]
        return out

    cycles, usec = joined("cycles", np.int64), joined("usec", np.float64)
    n = len(rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        mhz = np.where((usec > 0) & (cycles > 0), cycles / usec, np.nan)
    sums = np.bincount(op_batch, log.ops.cycles, n)[:n], np.bincount(op_batch, log.ops.usec, n)[:n]
    for index in np.flatnonzero(~np.isfinite(mhz)):
        mhz[index] = sums[0][index] / sums[1][index] if sums[0][index] and sums[1][index] else DEFAULT_MHZ
    usec = np.where(usec > 0, usec, cycles / mhz)
    return Batches(
        device, joined("known", np.bool_), joined("start", np.int64), cycles, usec, mhz,
        np.bincount(op_batch, minlength=n)[:n].astype(np.int64), from_line(lines.n_ops), from_line(lines.host_usec),
        from_line(lines.stamp_us), joined("line", np.int64), from_line(lines.evt_cnt).reshape(-1, N_THREADS),
        np.zeros(n, np.int64), np.zeros(n, np.int64), joined("counted", np.bool_),
    )  # fmt: skip


def _steady_stamps(batches: Batches) -> F64:
    """The stamps in ns, NaN without; where the host clock starts again (two runs in one file) it goes on."""
    stamps = np.where(batches.stamp_us >= 0, batches.stamp_us, np.nan) * 1000.0
    order = np.argsort(batches.line, kind="stable")
    order = order[np.isfinite(stamps[order])]
    if len(order) > 1:
        steps = np.diff(stamps[order])
        lost = np.where(steps < -RESTART_US * 1000.0, -steps, 0.0)
        stamps[order[1:]] += np.cumsum(lost)
    if len(order) and np.nanmin(stamps) > 3600e9:  # a calendar date: count from the first
        stamps -= np.nanmin(stamps)
    return stamps


def _place(batches: Batches, log: Log) -> None:
    stamps = _steady_stamps(batches)
    for device in range(len(log.devices)):
        rows = np.flatnonzero(batches.device == device)
        if not len(rows):
            continue
        start, cycles, mhz = batches.start[rows], batches.cycles[rows], batches.mhz[rows]
        length = cycles * (1000.0 / mhz)
        gap = np.zeros(len(rows))
        gap[1:] = (start[1:] - start[:-1] - cycles[:-1]) / mhz[1:] * 1000.0
        gap[(gap < 0) | ~batches.counted[rows]] = 0.0
        end = np.cumsum(gap + length)
        shift = stamps[rows] - end
        latest = np.minimum.accumulate(np.where(np.isnan(shift), np.inf, shift)[::-1])[::-1]
        known = np.flatnonzero(np.isfinite(latest))
        fill = latest[known[-1]] if len(known) else 0.0
        latest = np.where(np.isfinite(latest), latest, fill)
        begin = np.rint(end - length + latest).astype(np.int64)
        if len(begin) > 1:  # rounding must not make neighbours overlap
            begin[1:] = np.maximum(begin[1:], begin[:-1] + np.rint(length[:-1]).astype(np.int64))
        batches.begin_ns[rows] = begin
        batches.end_ns[rows] = begin + np.rint(length).astype(np.int64)
    if len(batches) and batches.begin_ns.min() < 0:
        batches.end_ns -= batches.begin_ns.min()
        batches.begin_ns -= batches.begin_ns.min()


def _events(log: Log, batches: Batches, op_batch: I32, op_start: I64) -> tuple[I32, I64]:
    """(batch, full counter) of each event."""
    events = log.events
    batch, full = np.full(len(events), -1, np.int32), np.zeros(len(events), np.int64)
    for device in range(len(log.devices)):
        mine = np.flatnonzero(events.device == device)
        if not len(mine):
            continue
        low, line = events.cycles[mine].astype(np.int64), events.line[mine]
        rows = np.flatnonzero((batches.device == device) & batches.known)
        home = _windows(batches.start[rows], batches.cycles[rows], batches.line[rows], low, line)
        held = np.flatnonzero(home >= 0)
        batch[mine[held]] = rows[home[held]]
        full[mine[held]] = batches.start[rows[home[held]]] + ((low[held] - batches.start[rows[home[held]]]) & LOW)
        lost = np.flatnonzero(home < 0)
        if len(lost):
            near, anchor = _nearest(log, batches, device, rows, op_batch, op_start, low[lost], line[lost])
            batch[mine[lost]] = near
            full[mine[lost]] = anchor + _signed(low[lost] - anchor)
    _by_order_in_long_batches(log, batches, batch, full)
    return batch, full


def _nearest(
    log: Log, batches: Batches, device: int, rows: I64, op_batch: I32, op_start: I64, low: I64, line: I64
) -> tuple[I64, I64]:
    """For events outside every window: the batch of the op printed last, or the closer end of an OPBATCH nearby."""
    ops = np.flatnonzero(log.ops.device == device)
    own = np.flatnonzero(batches.device == device)[:1]
    if len(ops):
        last = ops[np.maximum(np.searchsorted(log.ops.line[ops], line, side="right") - 1, 0)]
        near, anchor = op_batch[last].astype(np.int64), op_start[last]
    else:
        near, anchor = np.repeat(own, len(low)), np.repeat(batches.start[own], len(low))
    if len(rows):
        before = np.searchsorted(batches.line[rows], line, side="right") - 1
        best = np.full(len(low), WRAP, np.int64)
        made = ~batches.known[near] if len(ops) else np.zeros(len(low), np.bool_)
        for side in (before, before + 1):
            pick = rows[np.clip(side, 0, len(rows) - 1)]
            for edge in (batches.start[pick], batches.start[pick] + batches.cycles[pick]):
                away = np.abs(_signed(low - edge))
                closer = (away < best) & ~made
                best[closer], near[closer], anchor[closer] = away[closer], pick[closer], edge[closer]
    return near, anchor


def _by_order_in_long_batches(log: Log, batches: Batches, batch: I32, full: I64) -> None:
    """In a batch of 2^32 cycles and more the low half is not enough: each thread's events are in order."""
    for long in np.flatnonzero((batches.cycles >= WRAP) & batches.known):
        for thread in range(N_THREADS):
            rows = np.flatnonzero((batch == long) & (log.events.thread == thread))
            if len(rows):
                low = log.events.cycles[rows].astype(np.int64)
                steps = _signed(np.diff(low, prepend=low[:1]))
                full[rows] = full[rows[0]] + np.cumsum(steps)


def _event_homes(line: Timeline) -> I32:
    """The op whose window [its start, the next op's start) holds the event; before the first PROLOGUE, after the last
    op's end EPILOGUE."""
    n = len(line.event_batch)
    if not n or not len(line.op_batch):
        return np.full(n, PROLOGUE, np.int32)
    room = np.int64(1) << 40
    base = line.batches.start
    op_key = line.op_batch.astype(np.int64) * room + np.clip(line.op_start - base[line.op_batch], 0, room - 1)
    order = np.argsort(op_key, kind="stable")
    key = line.event_batch.astype(np.int64) * room + np.clip(line.event_cycles - base[line.event_batch], -1, room - 1)
    at = np.searchsorted(op_key[order], key, side="right") - 1
    op = order[np.maximum(at, 0)]
    inside = (at >= 0) & (line.op_batch[op] == line.event_batch) & (line.event_cycles >= line.op_start[op])
    last = np.ones(len(order), np.bool_)
    last[:-1] = line.op_batch[order[1:]] != line.op_batch[order[:-1]]
    ended = last[np.maximum(at, 0)] & (line.event_cycles > line.op_start[op] + line.log.ops.cycles[op])
    return np.where(inside, np.where(ended, EPILOGUE, op), PROLOGUE).astype(np.int32)
