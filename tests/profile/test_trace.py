"""Traces parsed back with Perfetto's own protos, and held against the timeline they were made from."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackDescriptor, TrackEvent

from hexnpu.profile import chrome, run
from hexnpu.profile.errors import LogError
from hexnpu.profile.formats import to_csv, to_json
from hexnpu.profile.pairs import lanes
from hexnpu.profile.parse.reader import read_log
from hexnpu.profile.perfetto import Writer, estimate_bytes, varint, varint_columns
from hexnpu.profile.phases import Steps, find_steps
from hexnpu.profile.report import KEYS, Shape, make_report
from hexnpu.profile.select import Selection, choose
from hexnpu.profile.table import table
from hexnpu.profile.timeline import Timeline, build
from hexnpu.profile.tracks import Model, build_model
from tests.profile.test_roundtrip import Batch, logs, read
from tests.profile.test_scan import lines

GOLDEN = Path(__file__).parent / "golden"
Sample = tuple[Timeline, Steps]
EVERYTHING = Selection()


@dataclass
class Slice:
    track: int
    name: str
    begin: int
    end: int
    arguments: dict[str, Any]
    flows: list[int]
    from_flows: list[int]


@dataclass
class Parsed:
    """What a viewer would see. path: names from the process down to the track."""

    tracks: dict[int, TrackDescriptor] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    counters: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))

    def path(self, uuid: int) -> tuple[str, ...]:
        track = self.tracks[uuid]
        name = track.process.process_name if track.HasField("process") else track.name
        return (*self.path(track.parent_uuid), name) if track.parent_uuid else (name,)


def parse(data: bytes) -> Parsed:
    """Also checks: time never runs back in a sequence, begins and ends balance on each track, nothing overlaps, texts
    are interned before they are used."""
    trace = Trace()
    trace.ParseFromString(data)
    found, last = Parsed(), dict[int, int]()
    interned: dict[tuple[int, str], dict[int, str]] = defaultdict(dict)
    open_: dict[int, Slice] = {}
    free_from: dict[int, int] = defaultdict(int)
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        assert sequence > 0
        for kind in ("event_names", "event_categories", "debug_annotation_names", "debug_annotation_string_values"):
            for entry in getattr(packet.interned_data, kind):
                text = entry.str.decode() if kind.endswith("values") else entry.name
                interned[sequence, kind][entry.iid] = text
        if packet.HasField("track_descriptor"):
            found.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event, at = packet.track_event, packet.timestamp
        assert at >= last.get(sequence, 0), "time runs back in a sequence"
        last[sequence] = at
        assert event.track_uuid in found.tracks
        if event.type == TrackEvent.TYPE_COUNTER:
            found.counters[event.track_uuid].append((at, event.double_counter_value))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            slice_ = open_.pop(event.track_uuid)
            slice_.end = at
            free_from[event.track_uuid] = at
            found.slices.append(slice_)
        else:
            assert [interned[sequence, "event_categories"][iid] for iid in event.category_iids]
            arguments = {}
            for note in event.debug_annotations:
                value: Any = note.uint_value
                if note.HasField("string_value_iid"):
                    value = interned[sequence, "debug_annotation_string_values"][note.string_value_iid]
                elif note.HasField("double_value"):
                    value = note.double_value
                arguments[interned[sequence, "debug_annotation_names"][note.name_iid]] = value
            name = interned[sequence, "event_names"][event.name_iid]
            flows, from_flows = list(event.flow_ids), list(event.terminating_flow_ids)
            new = Slice(event.track_uuid, name, at, at, arguments, flows, from_flows)
            if event.type == TrackEvent.TYPE_INSTANT:
                found.instants.append(new)
                continue
            assert event.type == TrackEvent.TYPE_SLICE_BEGIN
            assert event.track_uuid not in open_, "a slice begins inside another"
            assert at >= free_from[event.track_uuid], "slices overlap"
            open_[event.track_uuid] = new
    assert not open_, "a slice has no end"
    return found


def model_of(line: Timeline, steps: Steps, want: Selection = EVERYTHING) -> Model:
    devices = list(range(len(line.log.devices)))
    return build_model(line, steps, choose(line, steps, want), devices, want.filter is not None)


def written(model: Model) -> bytes:
    stream = io.BytesIO()
    Writer(model, stream).write()
    return stream.getvalue()


def golden_model(name: str) -> Model:
    line = build(read_log(str(GOLDEN / f"{name}.log")))
    return model_of(line, find_steps(line))


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.expected")))
def test_every_golden_log_makes_a_sound_trace(name: str) -> None:
    parsed = parse(written(golden_model(name)))
    assert [s for s in parsed.slices if parsed.path(s.track)[1] == "Ops"] or name == "unreadable"


def test_ops_and_events_are_all_there_with_their_arguments(sample: Sample) -> None:
    line, steps = sample
    log = line.log
    parsed = parse(written(model_of(line, steps)))
    ops = {s.arguments["log line"]: s for s in parsed.slices if parsed.path(s.track)[1:] == ("Ops",)}
    assert len(ops) == len(log.ops)
    for i in range(len(log.ops)):
        slice_, text = ops[int(log.ops.line[i])], log.texts[log.ops.text[i]]
        assert slice_.name == text.op
        shown = {name: slice_.arguments[name] for name in ("names", "dims", "types", "strides", "kernel")}
        assert shown == dict(
            names=text.names, dims=text.dims, types=text.types, strides=text.strides, kernel=text.params
        )
        assert (slice_.arguments["usec"], slice_.arguments["cycles"]) == (log.ops.usec[i], log.ops.cycles[i])
        assert parsed.path(slice_.track)[0] == log.devices[log.ops.device[i]]
        exact = log.ops.cycles[i] * 1000 / line.batches.mhz[line.op_batch[i]]
        assert abs(slice_.end - slice_.begin - exact) <= 1.0
    events = [s for s in parsed.slices if len(parsed.path(s.track)) == 3]
    assert 2 * len(events) + len(parsed.instants) == len(log.events)


def test_events_lie_in_their_batch_and_device_and_last_their_cycles(sample: Sample) -> None:
    line, steps = sample
    parsed = parse(written(model_of(line, steps)))
    row_of = {int(number): i for i, number in enumerate(line.log.events.line)}
    for slice_ in parsed.slices:
        path = parsed.path(slice_.track)
        if len(path) != 3:
            continue
        row = row_of[slice_.arguments["log line"]]
        batch = line.event_batch[row]
        device, thread = line.log.devices[line.log.events.device[row]], int(line.log.events.thread[row])
        assert path[:2] == (device, "HMX" if thread == 10 else f"T{thread}")
        assert path[2].startswith("DMA" if slice_.name == "DMA" else "HVX")
        assert abs(slice_.end - slice_.begin - slice_.arguments["cycles"] * 1000 / line.batches.mhz[batch]) <= 1.0
        assert line.batches.begin_ns[batch] <= slice_.begin <= slice_.end <= line.batches.end_ns[batch]
        key = "DMA index" if slice_.name == "DMA" else "info"
        assert slice_.arguments[key] == line.log.events.info[row]


def test_flows_lead_from_each_op_to_its_events(sample: Sample) -> None:
    line, steps = sample
    parsed = parse(written(model_of(line, steps)))
    op_of = {flow: s for s in parsed.slices for flow in s.flows}
    row_of = {int(number): i for i, number in enumerate(line.log.events.line)}
    arrivals = [s for s in parsed.slices if s.from_flows]
    assert len(arrivals) == len(op_of) > 1000
    for slice_ in arrivals:
        op = line.event_op[row_of[slice_.arguments["log line"]]]
        source = op_of[slice_.from_flows[0]]
        assert source.arguments["log line"] == line.log.ops.line[op]
        assert parsed.path(source.track)[0] == parsed.path(slice_.track)[0]
        assert source.begin <= slice_.begin


def test_tracks_stand_in_order_with_explicit_ranks(sample: Sample) -> None:
    parsed = parse(written(golden_model("g4")))
    by_path = {parsed.path(uuid): track for uuid, track in parsed.tracks.items()}
    names = [("HTP0", "Batches"), ("HTP0", "Ops"), ("HTP0", "Batch clock"), ("HTP0", "HMX"), ("HTP0", "T0")]
    ranks = [by_path[path].sibling_order_rank for path in names]
    assert ranks == sorted(ranks) and len(set(ranks)) == len(ranks)
    assert by_path[("HTP0",)].child_ordering == TrackDescriptor.EXPLICIT
    assert {("HTP0", "HMX", "HMX"), ("HTP0", "T0", "HVX"), ("HTP0", "T0", "Runtime"), ("Host", "Steps")} <= set(by_path)
    clock = next(uuid for uuid in parsed.counters if parsed.path(uuid) == ("HTP0", "Batch clock"))
    assert parsed.counters[clock] == [(0, 1380.0)]


def test_overlapping_events_take_further_lanes() -> None:
    parsed = parse(written(golden_model("hmx-overlap")))
    lanes_ = {s.arguments["info"]: parsed.path(s.track)[2] for s in parsed.slices if len(parsed.path(s.track)) == 3}
    assert lanes_ == {0: "HMX", 1: "HMX 2", 2: "HMX"}


def test_events_without_partner_are_marked_and_last_no_time() -> None:
    parsed = parse(written(golden_model("same-key-twice")))
    marked = [(s.name, s.arguments["incomplete"], s.arguments["log line"]) for s in parsed.instants]
    assert sorted(marked, key=lambda m: m[2]) == [
        ("BUFF (incomplete)", "a start without its stop", 11),
        ("BUFF (incomplete)", "a stop without its start", 14),
    ]
    assert {parsed.path(s.track) for s in parsed.instants} == {("HTP0", "T1", "Runtime"), ("HTP0", "T2", "Runtime")}


def test_two_devices_and_the_host_are_on_one_axis() -> None:
    parsed = parse(written(golden_model("two-devices")))
    batches = {parsed.path(s.track)[0]: (s.begin, s.end) for s in parsed.slices if parsed.path(s.track)[1] == "Batches"}
    assert batches == {"HTP0:0": (1_000_800_000, 1_000_900_000), "HTP1:0": (1_000_701_000, 1_000_901_000)}
    steps = [(s.begin, s.end) for s in parsed.slices if parsed.path(s.track) == ("Host", "Steps")]
    assert steps == [(1_000_701_000, 1_000_901_000)]


def test_a_filter_takes_the_events_of_its_ops_along(sample: Sample) -> None:
    line, steps = sample
    parsed = parse(written(model_of(line, steps, Selection(filter=r"^FLASH_ATTN_EXT"))))
    ops = {s.name for s in parsed.slices if parsed.path(s.track)[1] == "Ops"}
    assert ops == {"FLASH_ATTN_EXT"}
    events = [s for s in parsed.slices if len(parsed.path(s.track)) == 3]
    home = {int(number): int(op) for number, op in zip(line.log.events.line, line.event_op, strict=True)}
    assert events and not parsed.instants
    for slice_ in events:
        op = home[slice_.arguments["log line"]]
        assert line.log.texts[line.log.ops.text[op]].op == "FLASH_ATTN_EXT"


def test_a_range_of_batches(sample: Sample) -> None:
    line, steps = sample
    parsed = parse(written(model_of(line, steps, Selection(batch_range=(1, 3)))))
    assert sum(parsed.path(s.track)[1] == "Batches" for s in parsed.slices) == 4


def test_pmu_counters_become_arguments() -> None:
    parsed = parse(written(golden_model("g4")))
    op = next(s for s in parsed.slices if s.name == "MUL_MAT")
    assert [op.arguments[f"PMU {i}"] for i in range(8)] == [11, 12, 13, 14, 15, 16, 17, 4294967295]


def test_chrome_json_has_the_same_slices(sample: Sample) -> None:
    model = model_of(*sample)
    stream = io.BytesIO()
    chrome.write(model, stream)
    events = json.loads(stream.getvalue())["traceEvents"]
    parsed = parse(written(model))
    ours = sorted((s.begin, s.end - s.begin) for s in parsed.slices)
    theirs = sorted((round(e["ts"] * 1000), round(e["dur"] * 1000)) for e in events if e["ph"] == "X")
    assert ours == theirs
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"Host", "HTP0:0", "HTP1:0"}


@settings(deadline=None)
@given(st.integers(0, (1 << 63) - 1))
def test_fixed_width_varints_read_back(value: int) -> None:
    trace = Trace()
    packet = b"\x40" + varint_columns(np.array([value]), 9).tobytes()
    trace.ParseFromString(b"\x0a" + varint(len(packet)) + packet)
    assert trace.packet[0].timestamp == value


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=25))
def test_lanes_never_overlap_and_are_as_few_as_needed(spans: list[tuple[int, int]]) -> None:
    spans.sort(key=lambda span: (span[0], span[0] + span[1]))
    begin = np.array([a for a, _ in spans], np.int64)
    end = np.array([a + length for a, length in spans], np.int64)
    lane = lanes(begin, end)
    for i in range(len(spans)):
        for k in range(i):
            assert lane[i] != lane[k] or begin[i] >= end[k]
    busy = [(begin <= t) & ((end > t) | ((begin == t) & (end == t))) for t in range(100)]
    at_once = max(int(now.sum()) for now in busy)
    assert int(lane.max(initial=0)) + 1 <= max(at_once, 1)


@settings(max_examples=60, deadline=None)
@given(logs())
def test_any_timeline_makes_a_sound_trace(drawn: tuple[list[Batch], str]) -> None:
    """On random timelines: nothing lost, slices last their cycles at the batch's clock, events stay in their device."""
    line = build(read(drawn[1], utf16=False))
    log = line.log
    parsed = parse(written(model_of(line, find_steps(line))))
    ops = [s for s in parsed.slices if parsed.path(s.track)[1].startswith("Ops")]
    events = [s for s in parsed.slices if len(parsed.path(s.track)) == 3]
    assert len(ops) == len(log.ops) and 2 * len(events) + len(parsed.instants) == len(log.events)
    op_row = {int(number): i for i, number in enumerate(log.ops.line)}
    event_row = {int(number): i for i, number in enumerate(log.events.line)}
    for slice_, batch_of, rows, device in (
        *((s, line.op_batch, op_row, log.ops.device) for s in ops),
        *((s, line.event_batch, event_row, log.events.device) for s in events),
    ):
        row = rows[slice_.arguments["log line"]]
        exact = slice_.arguments["cycles"] * 1000 / line.batches.mhz[batch_of[row]]
        assert abs(slice_.end - slice_.begin - exact) <= 1.0
        assert parsed.path(slice_.track)[0] == log.devices[device[row]]


def test_the_size_is_estimated(sample: Sample) -> None:
    model = model_of(*sample)
    assert estimate_bytes(model) == pytest.approx(len(written(model)), rel=0.35)


def test_a_large_trace_is_warned_about(
    sample_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "WARN_BYTES", 1000)
    run.trace(run.TraceArguments(str(sample_log), tmp_path / "t"))
    assert "more than the Perfetto UI opens well: cut a range with --batches A:B" in capsys.readouterr().err


@settings(max_examples=100, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=12))
def test_damaged_logs_still_make_reports_and_sound_traces(texts: list[str]) -> None:
    try:
        line = build(read("\n".join(texts) + "\n", utf16=False))
    except LogError:
        return
    steps = find_steps(line)
    parsed = parse(written(model_of(line, steps)))
    assert sum(parsed.path(s.track)[1].startswith("Ops") for s in parsed.slices) == len(line.log.ops)
    for by in KEYS:
        report = make_report(line, steps, EVERYTHING, Shape(by))
        ops = sum(row.total_usec for section in report.sections for row in section.rows if row.kind == "op")
        assert ops == line.log.ops.usec.sum()
        assert table(report, 80, 5, {}) and to_json(report, 0) and to_csv(report, 0)


def test_events_before_the_first_op_of_a_log_without_batches(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "ggml-hex: HTP0 trace-op INIT: thread 0 event DMA info 1 start 1000000\n"
        "ggml-hex: HTP0 trace-op INIT: thread 0 event DMA info 1 stop 1300000\n"
        "ggml-hex: HTP0 profile-op ADD|a -> b|4:1 -> 4:1|f32 -> f32|4:16 -> 4:16|hvx|usec 10 cycles 10000 "
        "start 1500000 mhz 1000.0\n"
    )
    line = build(read_log(str(path)))
    parsed = parse(written(model_of(line, find_steps(line), EVERYTHING)))
    assert [(s.name, s.begin, s.end) for s in parsed.slices if s.name in ("DMA", "ADD")] == [
        ("ADD", 500_000, 510_000), ("DMA", 0, 300_000),
    ]  # fmt: skip


def test_odd_device_names_and_huge_token_counts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(
        b"ggml-hex: ../HT\xffP profile-op MUL_MAT|a x b -> c|4:4 x 4:9 -> 4:99999999999|f32 x f32 -> f32|----|hvx|"
        b"usec 10 cycles 10000 start 15 mhz 1000.0\n"
    )
    run.trace(run.TraceArguments(str(path), tmp_path / "t", tmp_path / "t.json", device="split"))
    made = sorted(found.name for found in tmp_path.iterdir())
    assert made == ["log", "t...-HT-P", "t...-HT-P.json"]
    assert len(parse((tmp_path / made[1]).read_bytes()).slices) == 3
