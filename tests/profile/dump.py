"""A log and its timeline as text, one line a thing: what the golden files hold."""

from __future__ import annotations

from hexnpu.profile.columns import Log
from hexnpu.profile.phases import PHASES, find_steps
from hexnpu.profile.timeline import EPILOGUE, PROLOGUE, build

HOMES = {PROLOGUE: "prologue", EPILOGUE: "epilogue"}


def dump(log: Log) -> str:
    line = build(log)
    steps = find_steps(line)
    out = [f"lines {log.lines}, devices {' '.join(log.devices)}"]
    if log.mode is not None:
        out.append(f"mode {log.mode} pmu-evt {' '.join(map(hex, log.pmu_events))}")
    b = line.batches
    for i in range(len(b)):
        kind = "OPBATCH" if b.known[i] else "made"
        out.append(
            f"batch {i} {log.devices[b.device[i]]} {kind} start {b.start[i]} cycles {b.cycles[i]} mhz {b.mhz[i]:.2f} "
            f"ops {b.n_ops[i]}/{b.declared_ops[i]} {PHASES[steps.batch_phase[i]]} step {steps.batch_step[i]} "
            f"ns {b.begin_ns[i]}..{b.end_ns[i]}"
        )
    for i in range(len(log.ops)):
        text = log.texts[log.ops.text[i]]
        pmu = "" if log.ops.pmu is None else f" pmu {log.ops.pmu[i].tolist()}"
        out.append(
            f"op {i} line {log.ops.line[i]} batch {line.op_batch[i]} {text.op} ({text.names}) ({text.dims}) "
            f"({text.types}) ({text.strides}) ({text.params}) {text.generation} usec {log.ops.usec[i]} "
            f"cycles {log.ops.cycles[i]} start {log.ops.start[i]} at {line.op_start[i]}{pmu}"
        )
    events = log.events
    for i in range(len(events)):
        home = HOMES.get(int(line.event_op[i]), f"op {line.event_op[i]}")
        what = "stop" if events.stop[i] else "start"
        out.append(
            f"event line {events.line[i]} {log.devices[events.device[i]]} T{events.thread[i]} "
            f"{log.event_names[events.name[i]]} {events.info[i]} {what} {events.cycles[i]} at {line.event_cycles[i]} "
            f"batch {line.event_batch[i]} {home}"
        )
    out.extend(f"unreadable {bad.kind} {bad.count} first {bad.first_line}" for bad in log.unreadable)
    return "\n".join(out) + "\n"
