"""A random timeline of batches, ops and events on several devices, printed as a log with noise, comes back exactly."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hexnpu.profile.columns import Log
from hexnpu.profile.parse.reader import read_log
from hexnpu.profile.timeline import EPILOGUE, PROLOGUE, build

LOW = (1 << 32) - 1
NOISE = [
    "llama_decode: ok", "", "main: |/-\\ loading", "ggml-hex: HTP0:0 mapped buffer: base 0x7", "Once upon a time, ",
    "ggml-hex: trace of a profile", "  total time = 12.3 ms", "日本語 Ġtext", "usec 5 cycles 7", "-" * 40,
]  # fmt: skip
PREFIXES = [
    "", "0.03.395.836 D ", "11-29 18:09:17.123  1234  5678 D llama   : ", "a word", "\b|\b/",
    "\x1b[36m0.01.000.000 D \x1b[0m",
]  # fmt: skip
TEXTS = [
    "MUL_MAT+ADD|blk.0.attn_output.weight x kqv-0 -> out-0|64:64 x 64:1 -> 64:1|q4_1 x f32 -> f32|20:40 x 4:9 -> 4:9"
    "|hvx-tiled vtcm 8|",
    "ADD|a|b x c x d -> e -> f|64:1 x 64:1! -> 64:1|f32 x f32 -> f32|4:256 x 4:256! -> 4:256|----|",
    "SET_ROWS|輸出 x Ġi -> cache_k_l3 (view)|64:1 x 1 -> 64:256|f32 x i64 -> f16|4:256 x 8 -> 2:128|dma 2d|",
]
NAMES = ["HVX_COMP", "DMA", "HMX_COMP", "L2FLUSH", "HVX_W_DEQUANT"]


@dataclass
class Event:
    thread: int
    name: str
    info: int
    stop: bool
    at: int


@dataclass
class Op:
    text: str
    usec: int
    cycles: int
    at: int


@dataclass
class Batch:
    device: int
    start: int
    cycles: int = 0
    usec: int = 0
    ops: list[Op] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


@st.composite
def timelines(draw: st.DrawFn) -> list[Batch]:
    """Batches in the order they are printed; some are longer than the counter's low half."""
    batches = []
    for device in range(draw(st.integers(1, 3))):
        counter = draw(st.integers(0, 1 << 45))
        for _ in range(draw(st.integers(1, 4))):
            batch = Batch(device, counter)
            step = draw(st.sampled_from([1000, 1_000_000, 3_000_000_000]))  # the last makes batches that wrap inside
            cursor = counter + draw(st.integers(0, 5000))
            for _ in range(draw(st.integers(0, 4))):
                cycles = draw(st.integers(0, min(step, 900_000)))
                batch.ops.append(Op(draw(st.sampled_from(TEXTS)), draw(st.integers(0, 99999)), cycles, cursor))
                cursor += cycles + draw(st.integers(0, step))
            batch.cycles = cursor - counter + draw(st.integers(0, 5000))
            batch.usec = draw(st.integers(1, 10**6))
            for thread in draw(st.lists(st.sampled_from([0, 3, 10]), unique=True, max_size=3)):
                times = sorted(draw(st.lists(st.integers(0, batch.cycles), max_size=5)))
                near = [t for i, t in enumerate(times) if t < (1 << 31) and (i == 0 or t - times[i - 1] < (1 << 31))]
                for at in near:
                    stop, info = draw(st.booleans()), draw(st.integers(0, 32767))
                    batch.events.append(Event(thread, draw(st.sampled_from(NAMES)), info, stop, counter + at))
            batches.append(batch)
            counter += batch.cycles + draw(st.sampled_from([1, 1 << 20, 1 << 33, 5 << 32]))
    return batches


def printed(batch: Batch) -> list[str]:
    head = f"ggml-hex: HTP{batch.device}:0 "
    counts = [sum(event.thread == thread for event in batch.events) for thread in range(11)]
    lines = [
        f"{head}profile-op OPBATCH|----|n-ops {len(batch.ops)}|evt-cnt {','.join(map(str, counts))}|----|----|"
        f"usec {batch.usec} cycles {batch.cycles} start {batch.start} mhz {batch.cycles / batch.usec:.1f}"
    ]
    for op in batch.ops:
        mhz = op.cycles / op.usec if op.usec else 0.0
        lines.append(
            f"{head}profile-op {op.text}usec {op.usec} cycles {op.cycles} start {op.at & LOW} mhz {mhz:.1f}"
        )
    for event in batch.events:
        what = "stop" if event.stop else "start"
        lines.append(
            f"{head}trace-evt {event.name}: thread {event.thread} info {event.info} {what} {event.at & LOW}"
        )
    return lines


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Batch], str]:
    """The timeline, and its log: devices interleaved, noise between, prefixes and line ends of several kinds."""
    batches = draw(timelines())
    queues = {batch.device: [] for batch in batches}  # type: dict[int, list[str]]
    for batch in batches:
        queues[batch.device] += printed(batch)
    lines: list[str] = []
    while any(queues.values()):
        device = draw(st.sampled_from(sorted(d for d, queue in queues.items() if queue)))
        for _ in range(draw(st.integers(1, 6))):
            if queues[device]:
                lines.append(draw(st.sampled_from(PREFIXES)) + queues[device].pop(0))
        if draw(st.booleans()):
            lines.append(draw(st.sampled_from(NOISE)))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return batches, end.join(lines) + end


def read(text: str, utf16: bool) -> Log:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(b"\xff\xfe" + text.encode("utf-16-le") if utf16 else text.encode())
        return read_log(str(path))


@settings(max_examples=120, deadline=None)
@given(logs(), st.booleans())
def test_the_timeline_comes_back(drawn: tuple[list[Batch], str], utf16: bool) -> None:
    batches, text = drawn
    line = build(read(text, utf16))
    log, b = line.log, line.batches
    assert not log.unreadable
    names = {f"HTP{batch.device}:0": [x for x in batches if x.device == batch.device] for batch in batches}
    assert set(log.devices) == set(names)
    for device, name in enumerate(log.devices):
        rows = [i for i in range(len(b)) if b.device[i] == device]
        found = [(int(b.start[i]), int(b.cycles[i]), float(b.usec[i]), bool(b.known[i])) for i in rows]
        assert found == [(x.start, x.cycles, float(x.usec or 1), True) for x in names[name]] or any(
            not x.cycles for x in names[name]
        )
        for i, batch in zip(rows, names[name], strict=True):
            ops = [k for k in range(len(log.ops)) if line.op_batch[k] == i]
            texts = [log.texts[number].raw + "|" for number in log.ops.text]
            assert [(texts[k], log.ops.usec[k], log.ops.cycles[k], line.op_start[k]) for k in ops] == [
                (op.text, op.usec, op.cycles, op.at) for op in batch.ops
            ]
            events = log.events
            mine = [k for k in range(len(events)) if line.event_batch[k] == i]
            name = [log.event_names[number] for number in events.name]
            assert [
                (events.thread[k], name[k], events.info[k], bool(events.stop[k]), line.event_cycles[k]) for k in mine
            ] == [(e.thread, e.name, e.info, e.stop, e.at) for e in batch.events]
            for k in mine:
                assert home_of(batch, int(line.event_cycles[k])) == place(line.event_op[k], ops)


def home_of(batch: Batch, at: int) -> int:
    """By the rule: the last op that starts at or before the event, unless it was the batch's last and has ended."""
    before = [i for i, op in enumerate(batch.ops) if op.at <= at]
    if not before:
        return PROLOGUE
    op = batch.ops[before[-1]]
    return EPILOGUE if before[-1] == len(batch.ops) - 1 and at > op.at + op.cycles else before[-1]


def place(op: int, ops: list[int]) -> int:
    return ops.index(op) if op >= 0 else int(op)
