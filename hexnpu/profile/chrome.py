"""The JSON trace format, for tools that read only that: complete events (ph X), instants, counters, names as metadata.

Times are microseconds with three decimals. Format: the "Trace Event Format" document of the Chromium project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

from hexnpu.profile.optext import facts
from hexnpu.profile.phases import PHASES
from hexnpu.profile.tracks import BATCHES, EVENTS, OPS, Model, Process, Track, step_name


def _arguments(model: Model, track: Track, row: int) -> tuple[str, dict[str, Any]]:
    line = model.line
    log = line.log
    if track.kind == OPS:
        text = log.texts[int(log.ops.text[row])]
        fact = facts(text)
        arguments: dict[str, Any] = {
            "names": text.names, "dims": text.dims, "types": text.types, "strides": text.strides,
            "kernel": text.params, "layer": fact.layer, "role": fact.role, "usec": int(log.ops.usec[row]),
            "cycles": int(log.ops.cycles[row]), "log line": int(log.ops.line[row]),
        }  # fmt: skip
        if log.ops.pmu is not None:
            arguments["pmu"] = log.ops.pmu[row].tolist()
        return text.op, arguments
    if track.kind == EVENTS:
        start, stop = int(model.slices.start[row]), int(model.slices.stop[row])
        cycles = int(line.event_cycles[stop] - line.event_cycles[start])
        name = log.event_names[int(log.events.name[start])]
        return name, {"info": int(log.events.info[start]), "cycles": cycles, "log line": int(log.events.line[start])}
    if track.kind == BATCHES:
        b = line.batches
        phase = PHASES[int(model.steps.batch_phase[row])]
        return f"{phase} batch", {"usec": float(b.usec[row]), "cycles": int(b.cycles[row]), "MHz": float(b.mhz[row])}
    return (step_name(model.steps, row) if track.kind == "steps" else "host"), {}


def _process(model: Model, pid: int, process: Process) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process.name}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    for tid, track in enumerate(process.tracks, 1):
        if not len(track.rows):
            continue
        above = process.tracks[track.parent].name + " " if track.parent is not None else ""
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": above + track.name}}
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}
        for row, begin, end in zip(track.rows.tolist(), track.begin_ns.tolist(), track.end_ns.tolist(), strict=True):
            name, arguments = _arguments(model, track, row)
            yield {
                "ph": "X", "pid": pid, "tid": tid, "name": name, "cat": track.kind, "ts": begin / 1000,
                "dur": (end - begin) / 1000, "args": arguments,
            }  # fmt: skip
    for at, mhz in zip(process.counter_ns.tolist(), process.counter_mhz, strict=True):
        yield {"ph": "C", "pid": pid, "name": "Batch clock", "ts": at / 1000, "args": {"MHz": mhz}}
    line = model.line
    times = line.ns_of(line.event_batch[process.lone], line.event_cycles[process.lone]).tolist()
    for row, at, tid in zip(process.lone.tolist(), times, process.lone_track, strict=True):
        name = line.log.event_names[int(line.log.events.name[row])]
        yield {
            "ph": "i", "s": "t", "pid": pid, "tid": tid + 1, "name": f"{name} (incomplete)", "cat": EVENTS,
            "ts": at / 1000, "args": {"log line": int(line.log.events.line[row])},
        }  # fmt: skip


def write(model: Model, stream: IO[bytes]) -> None:
    """One event a line."""
    stream.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
    first = True
    for pid, process in enumerate(model.processes, 1):
        for event in _process(model, pid, process):
            text = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
            stream.write(text if first else b",\n" + text)
            first = False
    stream.write(b"\n]}\n")
