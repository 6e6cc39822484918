"""What a trace shows, before any file format: processes, tracks without overlapping slices, instants, counters.

One process per device and one for the host, all on one axis. Per device: Batches, Ops, HMX, then T0..T9 with lanes for
HVX, DMA and the runtime's own work; events that overlap take further lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hexnpu.profile.columns import HMX_THREAD, I64, N_THREADS
from hexnpu.profile.pairs import Slices, lanes, pair
from hexnpu.profile.phases import PHASES, Steps
from hexnpu.profile.select import Chosen
from hexnpu.profile.timeline import Timeline

BATCHES, OPS, EVENTS, STEPS, HOST = "batches", "ops", "events", "steps", "host"
LANE_GROUPS = ("HVX", "DMA", "Runtime")


@dataclass
class Track:
    """Slices in order of time, none overlapping. rows: what the kind counts (batches, ops, slices of `Model.slices`,
    steps, host gaps). parent: number of the track above, None for the process."""

    kind: str
    name: str
    rank: int
    begin_ns: I64
    end_ns: I64
    rows: I64
    parent: int | None = None


@dataclass
class Process:
    """device: its number, -1 for the host."""

    device: int
    name: str
    tracks: list[Track] = field(default_factory=list)
    counter_ns: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    counter_mhz: list[float] = field(default_factory=list)
    lone: I64 = field(default_factory=lambda: np.empty(0, np.int64))  # events without a partner
    lone_track: list[int] = field(default_factory=list)


@dataclass
class Model:
    """The whole picture. slices: pairs of event rows that the event tracks' rows count."""

    line: Timeline
    steps: Steps
    processes: list[Process]
    slices: Slices

    @property
    def n_slices(self) -> int:
        return sum(len(track.rows) for process in self.processes for track in process.tracks)


def _laned(
    process: Process, kind: str, name: str, rank: int, begin: I64, end: I64, rows: I64, parent: int | None = None
) -> None:
    """Adds one track, and as many more as overlapping slices need (`name 2`, ...)."""
    order = np.lexsort((end, begin))
    begin, end, rows = begin[order], end[order], rows[order]
    lane = lanes(begin, end)
    for number in range(int(lane.max(initial=0)) + 1):
        mine = slice(None) if lane.max(initial=0) == 0 else lane == number
        title = name if number == 0 else f"{name} {number + 1}"
        process.tracks.append(Track(kind, title, rank + number, begin[mine], end[mine], rows[mine], parent))


def lane_group(name: str) -> int:
    """The number in LANE_GROUPS of an event by its name."""
    if name.startswith(("HVX", "HMX")):
        return 0
    return 1 if name == "DMA" else 2


def _event_tracks(model: Model, process: Process, slices: I64, begin: I64, end: I64) -> None:
    log = model.line.log
    group_of = np.array([lane_group(name) for name in log.event_names] or [0], np.int64)
    start = model.slices.start[slices]
    thread, group = log.events.thread[start], group_of[log.events.name[start]]
    lone_thread = log.events.thread[process.lone]
    lone_group = group_of[log.events.name[process.lone]]
    home: dict[tuple[int, int], int] = {}
    for number in (HMX_THREAD, *range(N_THREADS - 1)):
        mine = thread == number
        if not mine.any() and not (lone_thread == number).any():
            continue
        rank = 10 if number == HMX_THREAD else 100 + 10 * number
        parent = len(process.tracks)
        nothing = np.empty(0, np.int64)
        title = "HMX" if number == HMX_THREAD else f"T{number}"
        process.tracks.append(Track(EVENTS, title, rank, nothing, nothing, nothing))
        for which, label in enumerate(LANE_GROUPS):
            rows = np.flatnonzero(mine & (group == which))
            if len(rows) or ((lone_thread == number) & (lone_group == which)).any():
                home[number, which] = len(process.tracks)
                label = "HMX" if (number, which) == (HMX_THREAD, 0) else label
                _laned(process, EVENTS, label, which * 100, begin[rows], end[rows], slices[rows], parent)
    process.lone_track = [home[t, g] for t, g in zip(lone_thread.tolist(), lone_group.tolist(), strict=True)]


def _host(model: Model, chosen: Chosen) -> Process:
    """Steps, and the time in which no device had a batch."""
    host = Process(-1, "Host")
    b = model.line.batches
    rows = np.flatnonzero(chosen.batches)
    step = model.steps.batch_step[rows]
    numbers = np.unique(step)
    begin, end = np.full(len(numbers), np.iinfo(np.int64).max), np.zeros(len(numbers), np.int64)
    at = np.searchsorted(numbers, step)
    np.minimum.at(begin, at, b.begin_ns[rows])
    np.maximum.at(end, at, b.end_ns[rows])
    _laned(host, STEPS, "Steps", 0, begin, end, numbers.astype(np.int64))
    order = np.argsort(b.begin_ns[rows], kind="stable")
    starts, reach = b.begin_ns[rows][order], np.maximum.accumulate(b.end_ns[rows][order])
    idle = np.flatnonzero(starts[1:] > reach[:-1])
    _laned(host, HOST, "Host time", 10, reach[:-1][idle], starts[1:][idle], idle)
    return host


def build_model(line: Timeline, steps: Steps, chosen: Chosen, devices: list[int], filtered: bool) -> Model:
    """The picture of what is chosen; events follow their ops, those of no op are shown unless a filter is set."""
    log, b = line.log, line.batches
    in_batch = chosen.batches[line.event_batch] if len(line.event_batch) else np.zeros(0, np.bool_)
    of_op = line.event_op >= 0
    wanted = np.where(of_op, chosen.matching[np.maximum(line.event_op, 0)] if len(log.ops) else False, not filtered)
    keep = np.flatnonzero(in_batch & wanted & np.isin(log.events.device, devices))
    slices = pair(line, keep)
    slices = _rejoined(line, slices, chosen)
    model = Model(line, steps, [], slices)
    model.processes.append(_host(model, chosen))
    batch = line.event_batch[slices.start]
    begin = line.ns_of(batch, line.event_cycles[slices.start])
    end = np.maximum(line.ns_of(batch, line.event_cycles[slices.stop]), begin)
    slice_device, lone_device = log.events.device[slices.start], log.events.device[slices.lone]
    for device in devices:
        process = Process(device, log.devices[device])
        rows = np.flatnonzero(chosen.batches & (b.device == device))
        _laned(process, BATCHES, "Batches", 0, b.begin_ns[rows], b.end_ns[rows], rows)
        ops = np.flatnonzero(chosen.matching & (log.ops.device == device))
        op_begin, op_end = op_times(line, ops)
        _laned(process, OPS, "Ops", 1, op_begin, op_end, ops)
        process.counter_ns, process.counter_mhz = b.begin_ns[rows], b.mhz[rows].tolist()
        process.lone = slices.lone[lone_device == device]
        mine = np.flatnonzero(slice_device == device)
        _event_tracks(model, process, mine, begin[mine], end[mine])
        model.processes.append(process)
    return model


def op_times(line: Timeline, ops: I64) -> tuple[I64, I64]:
    """Begin and end of ops in nanoseconds."""
    batch, start = line.op_batch[ops], line.op_start[ops]
    return line.ns_of(batch, start), line.ns_of(batch, start + line.log.ops.cycles[ops])


def _rejoined(line: Timeline, slices: Slices, chosen: Chosen) -> Slices:
    """Partners that a filter parted (a stop in the next op's window) are found again, so that it makes none lone."""
    if not len(slices.lone) or chosen.matching is chosen.ops:
        return slices
    whole = pair(line, np.flatnonzero(np.isin(line.event_batch, np.unique(line.event_batch[slices.lone]))))
    partner = dict(zip(whole.start.tolist(), whole.stop.tolist(), strict=True))
    partner_of_stop = set(whole.stop.tolist())
    starts, stops, lone = [], [], []
    for row in slices.lone.tolist():
        if row in partner:
            starts.append(row)
            stops.append(partner[row])
        elif row not in partner_of_stop:
            lone.append(row)
    return Slices(
        np.concatenate([slices.start, np.array(starts, np.int64)]),
        np.concatenate([slices.stop, np.array(stops, np.int64)]),
        np.array(lone, np.int64),
    )


def step_name(steps: Steps, number: int) -> str:
    """`decode 3 (1 token)` for a step of the first device that has it."""
    rows = np.flatnonzero(steps.batch_step == number)
    phase, tokens = PHASES[int(steps.batch_phase[rows[0]])], int(steps.batch_tokens[rows[0]])
    return f"{phase} step {number}" + (f" ({tokens} tokens)" if tokens > 1 else "")
