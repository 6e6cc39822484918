"""A Perfetto trace. Descriptors and interned texts are made with the perfetto package's protos; the packets of slices,
which are many and alike, are laid out as rows of bytes.

Each track is a packet sequence of its own, in order of time. Numbers are varints of fixed width (padding is legal in
protobuf), so that a whole track's packets are one array. Format: protos/perfetto/trace/trace_packet.proto and
track_event/*.proto of the Perfetto project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackDescriptor, TrackEvent

from hexnpu.profile.columns import I64, N_PMU, U8, AnyArray
from hexnpu.profile.optext import facts
from hexnpu.profile.phases import PHASES
from hexnpu.profile.tracks import BATCHES, EVENTS, HOST, OPS, Model, Process, Track, step_name

_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_CHUNK_ROWS = 1 << 15
_FLOW_OUT, _FLOW_IN = b"\xf9\x02", b"\x81\x03"  # tags of flow_ids (47) and terminating_flow_ids (48), fixed64

ARGUMENTS = (
    "names", "dims", "types", "strides", "kernel", "layer", "role", "usec", "cycles", "log line", "info", "DMA index",
    "fence sequence", "incomplete", "phase", "step", "tokens", "ops", "MHz", *(f"PMU {i}" for i in range(N_PMU)),
)  # fmt: skip
ARGUMENT_IID = {name: iid for iid, name in enumerate(ARGUMENTS, 1)}


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint_columns(values: AnyArray, width: int) -> U8:
    """Each value as a varint of exactly `width` bytes: [n, width]."""
    rest = values.astype(np.uint64)
    out = np.empty((len(rest), width), np.uint8)
    for i in range(width):
        out[:, i] = (rest & np.uint64(0x7F)).astype(np.uint8) | (0x80 if i < width - 1 else 0)
        rest = rest >> np.uint64(7)
    return out


def _width(values: AnyArray) -> int:
    return max(1, -(-int(values.max(initial=0)).bit_length() // 7))


@dataclass
class _Layout:
    """A row of bytes with places for numbers: constant bytes, then per row varints of a fixed width or fixed64s."""

    parts: list[bytes | U8] = field(default_factory=list)

    def constant(self, data: bytes) -> None:
        self.parts.append(data)

    def column(self, columns: U8) -> None:
        self.parts.append(columns)

    @property
    def width(self) -> int:
        return sum(len(part) if isinstance(part, bytes) else part.shape[1] for part in self.parts)

    def rows(self, n: int) -> U8:
        out = np.empty((n, self.width), np.uint8)
        at = 0
        for part in self.parts:
            if isinstance(part, bytes):
                out[:, at : at + len(part)] = np.frombuffer(part, np.uint8)
                at += len(part)
            else:
                out[:, at : at + part.shape[1]] = part
                at += part.shape[1]
        return out


def _annotation(name: str, width: int) -> bytes:
    """The bytes in front of an unsigned debug annotation's value of `width` bytes."""
    iid = varint(ARGUMENT_IID[name])
    return b"\x22" + varint(len(iid) + 2 + width) + b"\x08" + iid + b"\x18"


def _text_annotation(name: str, iid: int) -> bytes:
    body = b"\x08" + varint(ARGUMENT_IID[name]) + b"\x88\x01" + varint(iid)
    return b"\x22" + varint(len(body)) + body


def _packet_head(sequence: int, time: U8) -> _Layout:
    """timestamp (8), trusted_packet_sequence_id (10), sequence_flags (13): needs incremental state."""
    layout = _Layout()
    layout.constant(b"\x40")
    layout.column(time)
    layout.constant(b"\x50" + varint(sequence) + b"\x68\x02")
    return layout


def _end_packets(sequence: int, uuid: int, end_ns: I64, width: int) -> U8:
    """Whole packets of slice ends: [n, bytes]."""
    event = b"\x48" + bytes([_END]) + b"\x58" + varint(uuid)
    head = _packet_head(sequence, varint_columns(end_ns, width))
    head.constant(b"\x5a" + varint(len(event)) + event)
    whole = _Layout([b"\x0a" + varint(head.width), *head.parts])
    return whole.rows(len(end_ns))


class Interner:
    """Texts of one packet sequence by number, for its InternedData."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.texts: dict[str, int] = {}

    def name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names) + 1)

    def text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts) + 1)

    def packet(self, sequence: int, category: str) -> bytes:
        """The first packet of the sequence."""
        packet = TracePacket(trusted_packet_sequence_id=sequence)
        packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.interned_data.event_categories.add(iid=1, name=category)
        for text, iid in self.names.items():
            packet.interned_data.event_names.add(iid=iid, name=_utf8(text))
        for text, iid in ARGUMENT_IID.items():
            packet.interned_data.debug_annotation_names.add(iid=iid, name=text)
        for text, iid in self.texts.items():
            packet.interned_data.debug_annotation_string_values.add(iid=iid, str=_utf8(text).encode())
        return bytes(Trace(packet=[packet]).SerializeToString())


def _utf8(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class Writer:
    """Writes a model to a stream, track by track."""

    def __init__(self, model: Model, stream: IO[bytes]) -> None:
        self.model = model
        self.stream = stream
        self.sequence = 0
        ends = [track.end_ns for process in model.processes for track in process.tracks]
        self.time_width = max(_width(end) for end in ends) if ends else 1
        self.line_width = _width(np.array([model.line.log.lines]))
        self.info_width = _width(model.line.log.events.info)
        self._flows = self._number_flows()

    def write(self) -> None:
        for number, process in enumerate(self.model.processes, 1):
            self._process(number, process)

    # -- descriptors --------------------------------------------------------------------------------------------

    def _descriptor(self, **fields: Any) -> None:
        packet = TracePacket(trusted_packet_sequence_id=1, track_descriptor=TrackDescriptor(**fields))
        self.stream.write(Trace(packet=[packet]).SerializeToString())

    def _process(self, number: int, process: Process) -> None:
        base = number << 12
        explicit = TrackDescriptor.EXPLICIT
        self.sequence = max(self.sequence, 1)
        self._descriptor(
            uuid=base,
            process={"pid": number, "process_name": _utf8(process.name)},
            child_ordering=explicit,
            sibling_order_rank=number,
        )
        for index, track in enumerate(process.tracks, 1):
            parent = base if track.parent is None else base + track.parent + 1
            self._descriptor(
                uuid=base + index,
                name=track.name,
                parent_uuid=parent,
                child_ordering=explicit,
                sibling_order_rank=track.rank,
                sibling_merge_behavior=TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE,
            )
        if len(process.counter_ns):
            self._counter(process, base + len(process.tracks) + 1, base)
        for index, track in enumerate(process.tracks, 1):
            if len(track.rows):
                self.sequence += 1
                self._track(track, base + index)
        if len(process.lone):
            self.sequence += 1
            self._lone(process, base)

    def _counter(self, process: Process, uuid: int, parent: int) -> None:
        fields = {"counter": {"unit_name": "MHz"}, "sibling_order_rank": 5}
        self._descriptor(uuid=uuid, name="Batch clock", parent_uuid=parent, **fields)
        self.sequence += 1
        trace = Trace()
        for at, mhz in zip(process.counter_ns.tolist(), process.counter_mhz, strict=True):
            event = TrackEvent(type=TrackEvent.TYPE_COUNTER, track_uuid=uuid, double_counter_value=mhz)
            trace.packet.add(timestamp=at, trusted_packet_sequence_id=self.sequence, track_event=event)
        self.stream.write(trace.SerializeToString())

    # -- flows --------------------------------------------------------------------------------------------------

    def _number_flows(self) -> tuple[I64, I64, I64]:
        """(flow id per slice, 0 without an op; per op the first of its ids; how many): an op's ids are consecutive."""
        line, slices = self.model.line, self.model.slices
        op = line.event_op[slices.start].astype(np.int64)
        shown = np.zeros(len(line.log.ops), np.bool_)
        for process in self.model.processes:
            for track in process.tracks:
                if track.kind == OPS:
                    shown[track.rows] = True
        has = np.flatnonzero((op >= 0) & shown[np.maximum(op, 0)]) if len(shown) else np.empty(0, np.int64)
        order = has[np.argsort(op[has], kind="stable")]
        ids = np.zeros(len(op), np.int64)
        ids[order] = np.arange(1, len(order) + 1)
        count = np.bincount(op[order], minlength=len(shown)).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(count)[:-1]]) if len(count) else count
        return ids, first, count

    # -- tracks -------------------------------------------------------------------------------------------------

    def _track(self, track: Track, uuid: int) -> None:
        texts = Interner()
        if track.kind == EVENTS:
            blocks = self._event_blocks(track, uuid, texts)
        elif track.kind == OPS:
            blocks = self._op_blocks(track, uuid, texts)
        else:
            blocks = self._few_blocks(track, uuid, texts)
        first = next(blocks)  # the generator has named all its texts by then
        self.stream.write(texts.packet(self.sequence, track.kind))
        self.stream.write(first)
        for block in blocks:
            self.stream.write(block)

    def _event_blocks(self, track: Track, uuid: int, texts: Interner) -> Iterator[bytes]:
        log, line = self.model.line.log, self.model.line
        name_iid = np.array([texts.name(name) for name in log.event_names], np.int64)
        info_name = np.array([_info_argument(name) for name in log.event_names], np.uint8)
        for at in range(0, len(track.rows), _CHUNK_ROWS):
            rows = track.rows[at : at + _CHUNK_ROWS]
            start, stop = self.model.slices.start[rows], self.model.slices.stop[rows]
            name = log.events.name[start]
            flow = self._flows[0][rows]
            cycles = np.maximum(line.event_cycles[stop] - line.event_cycles[start], 0)
            begin_ns, end_ns = track.begin_ns[at : at + _CHUNK_ROWS], track.end_ns[at : at + _CHUNK_ROWS]
            ends = _end_packets(self.sequence, uuid, end_ns, self.time_width)
            event = _Layout([b"\x48\x01\x58" + varint(uuid) + b"\x18\x01\x50"])
            event.column(varint_columns(name_iid[name], 2))
            event.constant(b"\x22" + varint(3 + self.info_width) + b"\x08")
            event.column(info_name[name][:, None])
            event.constant(b"\x18")
            event.column(varint_columns(log.events.info[start], self.info_width))
            width = _width(cycles)
            event.constant(_annotation("cycles", width))
            event.column(varint_columns(cycles, width))
            event.constant(_annotation("log line", self.line_width))
            event.column(varint_columns(log.events.line[start], self.line_width))
            head = _packet_head(self.sequence, varint_columns(begin_ns, self.time_width))
            yield _interleaved(head, event, flow, ends)

    def _op_blocks(self, track: Track, uuid: int, texts: Interner) -> Iterator[bytes]:
        log = self.model.line.log
        constant: list[bytes] = []
        used = np.unique(log.ops.text[track.rows])
        constant = [b""] * len(log.texts)
        for number in used.tolist():
            text = log.texts[number]
            fact = facts(text)
            parts = [b"\x18\x01\x50" + varint(texts.name(text.op))]
            values = {
                "names": text.names, "dims": text.dims, "types": text.types, "strides": text.strides,
                "kernel": text.params, "role": fact.role, "layer": str(fact.layer) if fact.layer >= 0 else "-",
            }  # fmt: skip
            parts += [_text_annotation(name, texts.text(value)) for name, value in values.items() if value]
            constant[number] = b"".join(parts)
        for at in range(0, len(track.rows), _CHUNK_ROWS):
            part = slice(at, at + _CHUNK_ROWS)
            yield self._op_block(track.rows[part], track.begin_ns[part], track.end_ns[part], uuid, constant)

    def _op_block(self, rows: I64, begin_ns: I64, end_ns: I64, uuid: int, constant: list[bytes]) -> bytes:
        ops = self.model.line.log.ops
        _, first, count = self._flows
        figures = _Layout()
        for name, column in (("usec", ops.usec[rows]), ("cycles", ops.cycles[rows]), ("log line", ops.line[rows])):
            width = _width(column)
            figures.constant(_annotation(name, width))
            figures.column(varint_columns(column, width))
        if ops.pmu is not None:
            for i in range(N_PMU):
                figures.constant(_annotation(f"PMU {i}", 5))
                figures.column(varint_columns(ops.pmu[rows, i], 5))
        start = b"\x48\x01\x58" + varint(uuid)
        text = ops.text[rows]
        sizes = np.array([len(part) for part in constant], np.int64)[text]
        event_size = len(start) + sizes + figures.width + 10 * count[rows]
        width = _width(event_size + 64)
        head = _packet_head(self.sequence, varint_columns(begin_ns, self.time_width))
        head.constant(b"\x5a")
        head.column(varint_columns(event_size, width))
        packet_size = head.width + event_size
        whole = _Layout([b"\x0a", varint_columns(packet_size, width), *head.parts, start])
        heads, h = whole.rows(len(rows)).tobytes(), whole.width
        tails, t = figures.rows(len(rows)).tobytes(), figures.width
        ends_rows = _end_packets(self.sequence, uuid, end_ns, self.time_width)
        ends, e = ends_rows.tobytes(), ends_rows.shape[1]
        lowest = int(first[rows].min())
        most = int((first[rows] + count[rows]).max())
        flows = _flow_rows(np.arange(lowest + 1, most + 1), _FLOW_OUT).tobytes()
        out: list[bytes] = []
        flow_at, flow_n = ((first[rows] - lowest) * 10).tolist(), (count[rows] * 10).tolist()
        for i, (number, f, n) in enumerate(zip(text.tolist(), flow_at, flow_n, strict=True)):
            out += (heads[i * h : i * h + h], constant[number], tails[i * t : i * t + t], flows[f : f + n])
            out.append(ends[i * e : i * e + e])
        return b"".join(out)

    def _few_blocks(self, track: Track, uuid: int, texts: Interner) -> Iterator[bytes]:
        """Batches, steps, host time: few enough for one message each."""
        trace = Trace()
        for row, begin, end in zip(track.rows.tolist(), track.begin_ns.tolist(), track.end_ns.tolist(), strict=True):
            name, arguments = self._described(track.kind, row)
            event = TrackEvent(type=TrackEvent.TYPE_SLICE_BEGIN, track_uuid=uuid, name_iid=texts.name(name))
            event.category_iids.append(1)
            for key, value in arguments.items():
                note = event.debug_annotations.add(name_iid=ARGUMENT_IID[key])
                if isinstance(value, str):
                    note.string_value_iid = texts.text(value)
                elif isinstance(value, float):
                    note.double_value = value
                else:
                    note.uint_value = value
            self._add(trace, begin, event)
            self._add(trace, end, TrackEvent(type=TrackEvent.TYPE_SLICE_END, track_uuid=uuid))
        yield trace.SerializeToString()

    def _add(self, trace: Trace, at: int, event: TrackEvent) -> None:
        flags = TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        trace.packet.add(
            timestamp=at, trusted_packet_sequence_id=self.sequence, sequence_flags=flags, track_event=event
        )

    def _described(self, kind: str, row: int) -> tuple[str, dict[str, int | float | str]]:
        line, steps = self.model.line, self.model.steps
        if kind == HOST:
            return "host", {}
        if kind != BATCHES:
            return step_name(steps, row), {"step": row}
        b = line.batches
        step, phase = int(steps.batch_step[row]), PHASES[int(steps.batch_phase[row])]
        arguments: dict[str, int | float | str] = {
            "phase": phase,
            "step": step,
            "tokens": int(steps.batch_tokens[row]),
            "ops": int(b.n_ops[row]),
            "usec": round(float(b.usec[row])),
            "cycles": int(b.cycles[row]),
            "MHz": float(b.mhz[row]),
            "log line": int(b.line[row]),
        }
        return ("batch" if phase == "other" else f"{phase} batch"), arguments

    def _lone(self, process: Process, base: int) -> None:
        """Events without a partner: instants, marked, on the lane where their slice would stand."""
        line, texts, trace = self.model.line, Interner(), Trace()
        events = line.log.events
        at = line.ns_of(line.event_batch[process.lone], line.event_cycles[process.lone])
        b = line.batches
        batch = line.event_batch[process.lone]
        at = np.clip(at, b.begin_ns[batch], b.end_ns[batch])
        for index in np.argsort(at, kind="stable").tolist():
            row = int(process.lone[index])
            name = line.log.event_names[int(events.name[row])]
            event = TrackEvent(type=TrackEvent.TYPE_INSTANT, track_uuid=base + process.lone_track[index] + 1)
            event.name_iid = texts.name(f"{name} (incomplete)")
            event.category_iids.append(1)
            missing = "a stop without its start" if events.stop[row] else "a start without its stop"
            event.debug_annotations.add(name_iid=ARGUMENT_IID["incomplete"], string_value_iid=texts.text(missing))
            event.debug_annotations.add(name_iid=int(_info_argument(name)), uint_value=int(events.info[row]))
            event.debug_annotations.add(name_iid=ARGUMENT_IID["log line"], uint_value=int(events.line[row]))
            self._add(trace, int(at[index]), event)
        self.stream.write(texts.packet(self.sequence, EVENTS))
        self.stream.write(trace.SerializeToString())


def _info_argument(name: str) -> int:
    return ARGUMENT_IID["DMA index" if name == "DMA" else "fence sequence" if name == "FENCE" else "info"]


def _flow_rows(ids: I64, tag: bytes) -> U8:
    rows = np.empty((len(ids), 10), np.uint8)
    rows[:, :2] = np.frombuffer(tag, np.uint8)
    rows[:, 2:] = ids.astype("<u8").view(np.uint8).reshape(-1, 8)
    return rows


def _begin_packets(head: _Layout, event: _Layout, n: int) -> U8:
    body = _Layout([*head.parts, b"\x5a" + varint(event.width), *event.parts])
    return _Layout([b"\x0a" + varint(body.width), *body.parts]).rows(n)


def _interleaved(head: _Layout, event: _Layout, flow: I64, ends: U8) -> bytes:
    """begin, end, begin, end ...; slices of no op have a begin packet without the flow."""
    n = len(ends)
    if not flow.any():
        return np.hstack([_begin_packets(head, event, n), ends]).tobytes()
    with_flow = _Layout([*event.parts, _flow_rows(flow, _FLOW_IN)])
    flowing = np.hstack([_begin_packets(head, with_flow, n), ends])
    if flow.all():
        return flowing.tobytes()
    plain = np.hstack([_begin_packets(head, event, n), ends])
    out = [(flowing if has else plain)[i].tobytes() for i, has in enumerate((flow > 0).tolist())]
    return b"".join(out)


def estimate_bytes(model: Model) -> int:
    """Roughly what the trace will take: measured on real logs, per slice of each kind."""
    events = len(model.slices.start)
    ops = sum(len(track.rows) for process in model.processes for track in process.tracks if track.kind == OPS)
    return 95 * events + 130 * ops + 200 * (model.n_slices - events - ops)
