"""A whole log to columns: `scan` for the common lines of each block, `grammar` for every other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hexnpu.profile.columns import (
    N_PMU,
    N_THREADS,
    NAMES,
    OPBATCH,
    TRAILER,
    U8,
    U16,
    AnyArray,
    BatchLines,
    Events,
    Log,
    Ops,
    OpText,
    Unreadable,
)
from hexnpu.profile.errors import LogError
from hexnpu.profile.parse import grammar, scan
from hexnpu.profile.parse.scan import EventRows, OpRows
from hexnpu.profile.parse.source import read_blocks

HEAD_LOOKAHEAD_BYTES = 16 << 20
LINE_CHARACTERS = 200  # of a line that a message quotes
_ODD = (b"profile-", b"trace-", b": total ", b"Profiling mode")


@dataclass
class Names:
    """Texts by number, in order of appearance. `scanned`: scan.c's numbers as these."""

    values: list[str] = field(default_factory=list)
    scanned: list[int] = field(default_factory=list)
    _index: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        found = self._index.get(text)
        if found is None:
            found = self._index[text] = len(self.values)
            self.values.append(text)
            if found > np.iinfo(NAMES).max:
                raise LogError(f"more than {found} devices or event names: the log is damaged")
        return found

    def learn(self, fresh: list[bytes]) -> None:
        self.scanned.extend(self.number(grammar.text_of(name)) for name in fresh)

    def translated(self, numbers: U8 | U16) -> U16:
        """scan.c's numbers as ours."""
        table: U16 = np.array(self.scanned, NAMES)
        return table[numbers]


@dataclass
class _Odd:
    """Records of single lines, read by `grammar`."""

    ops: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    pmu: list[tuple[int, ...]] = field(default_factory=list)
    events: list[tuple[int, int, int, int, bool, int, int]] = field(default_factory=list)


class _Reader:
    def __init__(self, source: str, want_events: bool, head: int | None) -> None:
        self.source = source
        self.want_events = want_events
        self.head = head
        self.devices, self.event_names = Names(), Names()
        library = scan.library()
        self.scanner = scan.Scanner(library) if library else None
        self.texts: list[OpText] = []
        self.text_numbers: dict[OpText, int] = {}
        self.scanned_texts = np.empty(0, np.int32)  # scan.c's numbers as ours, -1 unreadable
        self.ops: list[OpRows] = []
        self.events: list[EventRows] = []
        self.batches: list[tuple[int, ...]] = []
        self.evt_cnt: list[tuple[int, ...]] = []
        self.bad: dict[str, Unreadable] = {}
        self.lines = self.bytes = self.n_events = 0
        self.mode: int | None = None
        self.pmu_events: list[int] = []
        self.saw_hex = self.saw_nul = False
        self.last_line = ""  # while no line is a record
        self.all_heads_at: int | None = None
        self.per_device: dict[int, int] = {}

    # -- blocks -------------------------------------------------------------------------------------------------

    def block(self, lines: bytes) -> None:
        whole = lines.rfind(b"\n") + 1
        if whole:
            self._whole_lines(lines if whole == len(lines) else lines[:whole])
        if whole < len(lines):
            found = _Odd()
            self._odd_line(lines[whole:], 0, found, cut=True)
            self._keep(None, None, found)
            self.lines += 1
        self.bytes += len(lines)
        if not self.batches and not self.ops and not self.n_events:
            self.saw_hex = self.saw_hex or b"ggml-hex" in lines
            self.saw_nul = self.saw_nul or b"\0" in lines
            self.last_line = _shown(lines) or self.last_line

    def _whole_lines(self, data: bytes) -> None:
        if self.scanner is None:
            found = _Odd()
            lines = data.split(b"\n")[:-1]
            for number, line in enumerate(lines):
                if any(mark in line for mark in _ODD):
                    self._odd_line(line, number, found, cut=False)
            self._keep(None, None, found)
            self.lines += len(lines)
            return
        parts = self.scanner.blocks(data, self.want_events)
        self.devices.learn(self.scanner.devices(len(self.devices.scanned)))
        self.event_names.learn(self.scanner.events(len(self.event_names.scanned)))
        self._learn_texts()
        for part in parts:
            self.n_events += part.n_events
            self._part(data, part)
        self.lines += parts[-1].lines

    def _learn_texts(self) -> None:
        assert self.scanner is not None
        fresh = [grammar.op_text(raw) for raw in self.scanner.texts(len(self.scanned_texts))]
        if fresh:
            numbers = [-1 if text is None else self._text_number(text) for text in fresh]
            self.scanned_texts = np.concatenate([self.scanned_texts, np.array(numbers, np.int32)])

    def _part(self, data: bytes, part: scan.Scanned) -> None:
        events, ops, odd = part.events, part.ops, part.odd
        events.device, events.name = self.devices.translated(events.device), self.event_names.translated(events.name)
        ops.device = self.devices.translated(ops.device)
        if len(ops.text):
            ops.text = self.scanned_texts[ops.text]
            bad = ops.text < 0
            if bad.any():
                texts = data.split(b"\n")
                for line in ops.line[bad].tolist():
                    self._unreadable("profile-op", self.lines + line + 1, texts[line])
                ops = _picked(ops, ~bad)
        found = _Odd()
        for line, begin, end in odd:
            self._odd_line(data[begin:end], line, found, cut=False)
        self._keep(events, ops, found)

    # -- single lines -------------------------------------------------------------------------------------------

    def _odd_line(self, text: bytes, line: int, found: _Odd, cut: bool) -> None:
        records = grammar.parse_line(text, cut)
        if not records:
            banner = grammar.parse_banner(text)
            if banner:
                self.mode, self.pmu_events = banner
            return
        for record in records:
            if isinstance(record, grammar.BadRecord):
                self._unreadable(record.kind, self.lines + line + 1, text)
            elif isinstance(record, grammar.OpRecord):
                device, number = self.devices.number(record.device), self._text_number(record.text)
                found.ops.append((line, device, number, record.usec, record.cycles, record.start))
                found.pmu.append(record.pmu)
            elif isinstance(record, grammar.EventRecord):
                device, name = self.devices.number(record.device), self.event_names.number(record.name)
                if cut and not self._plausible(device, record.cycles):
                    self._unreadable("trace-evt", self.lines + line + 1, text)
                    continue
                found.events.append((line, device, record.thread, name, record.stop, record.info, record.cycles))
            else:
                self._batch(record, self.lines + line + 1, grammar.parse_stamp_us(text, text.find(b"profile-")))

    def _plausible(self, device: int, cycles: int) -> bool:
        """A last line without newline may end inside its counter: near the device's last op it is whole."""
        for rows in reversed(self.ops):
            mine = np.flatnonzero((rows.device == device) & (rows.start >= 0))
            if len(mine):
                away = (cycles - int(rows.start[mine[-1]]) + (1 << 31)) % (1 << 32) - (1 << 31)
                return abs(away) < 1 << 29
        return True

    def _text_number(self, text: OpText) -> int:
        number = self.text_numbers.get(text)
        if number is None:
            number = self.text_numbers[text] = len(self.texts)
            self.texts.append(text)
        return number

    def _batch(self, record: grammar.BatchRecord, line: int, stamp_us: int) -> None:
        kind = OPBATCH if record.opbatch else TRAILER
        device = self.devices.number(record.device)
        figures = (record.n_ops, record.usec, record.cycles, record.start, record.host_usec, stamp_us, line)
        self.batches.append((device, kind, *figures))
        self.evt_cnt.append(record.evt_cnt + (-1,) * (N_THREADS - len(record.evt_cnt)))

    def _unreadable(self, kind: str, line: int, text: bytes) -> None:
        known = self.bad.get(kind)
        count = known.count if known else 0
        if known is None or line < known.first_line:  # within a block they do not come in order
            example = grammar.text_of(text[:200]).encode("utf-8", "replace").decode()
            known = self.bad[kind] = Unreadable(kind, count, line, example)
        known.count += 1

    # -- rows ---------------------------------------------------------------------------------------------------

    def _keep(self, events: EventRows | None, ops: OpRows | None, found: _Odd) -> None:
        self.n_events += len(found.events)
        event_rows, op_rows = _merged_events(events, found), _merged_ops(ops, found)
        if event_rows is not None and self.want_events:
            event_rows.line = event_rows.line + np.int64(self.lines + 1)
            self.events.append(event_rows)
        if op_rows is not None:
            op_rows.line = op_rows.line + np.int64(self.lines + 1)
            self.ops.append(op_rows)
            if self.head is not None:
                for device, count in enumerate(np.bincount(op_rows.device).tolist()):
                    self.per_device[device] = self.per_device.get(device, 0) + count

    def enough(self) -> bool:
        """`head` ops of each device have been read, and no new device has turned up for a while after that."""
        if self.head is None or not self.per_device:
            return False
        if any(self.per_device.get(device, 0) < self.head for device in range(len(self.devices.values))):
            self.all_heads_at = None
            return False
        if self.all_heads_at is None:
            self.all_heads_at = self.bytes
        return self.bytes - self.all_heads_at >= HEAD_LOOKAHEAD_BYTES

    # -- the end ------------------------------------------------------------------------------------------------

    def log(self) -> Log:
        return Log(
            self.source,
            self.devices.values,
            self.texts,
            self.event_names.values,
            self._ops(),
            self._events(),
            self._batch_lines(),
            sorted(self.bad.values(), key=lambda bad: bad.first_line),
            self.lines,
            self.bytes,
            self.mode,
            self.pmu_events,
        )

    def _ops(self) -> Ops:
        rows, self.ops = self.ops, []
        pmu = None
        if any(part.pmu is not None for part in rows):
            pmu = np.concatenate([_counters(part) for part in rows])
        return Ops(
            _joined([part.device for part in rows], NAMES),
            _joined([part.text for part in rows], np.int32),
            _joined([part.usec for part in rows], np.int64),
            _joined([part.cycles for part in rows], np.int64),
            _joined([part.start for part in rows], np.int64),
            _joined([part.line for part in rows], np.int64),
            pmu,
        )

    def _events(self) -> Events:
        rows, self.events = self.events, []
        return Events(
            _joined([part.device for part in rows], NAMES),
            _joined([part.thread for part in rows], np.uint8),
            _joined([part.name for part in rows], NAMES),
            _joined([part.stop for part in rows], np.bool_),
            _joined([part.info for part in rows], np.uint32),
            _joined([part.cycles for part in rows], np.uint32),
            _joined([part.line for part in rows], np.int64),
        )

    def _batch_lines(self) -> BatchLines:
        table = np.array(self.batches, np.int64).reshape(-1, 9)
        device, kind = table[:, 0].astype(NAMES), table[:, 1].astype(np.uint8)
        n_ops, usec, cycles, start, host, stamp, line = (table[:, i].copy() for i in range(2, 9))
        evt = np.array(self.evt_cnt, np.int64).reshape(-1, N_THREADS)
        return BatchLines(device, kind, n_ops, usec, cycles, start, host, stamp, line, evt)


def _joined(parts: list[AnyArray], dtype: type) -> AnyArray:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _picked(ops: OpRows, keep: AnyArray) -> OpRows:
    pmu = ops.pmu[keep] if ops.pmu is not None else None
    return OpRows(
        ops.line[keep], ops.device[keep], ops.text[keep], ops.usec[keep], ops.cycles[keep], ops.start[keep], pmu
    )


def _counters(ops: OpRows) -> AnyArray:
    return ops.pmu if ops.pmu is not None else np.zeros((len(ops.line), N_PMU), np.uint32)


def _merged_events(rows: EventRows | None, found: _Odd) -> EventRows | None:
    if not found.events:
        return rows if rows is not None and len(rows.line) else None
    table = np.array(found.events, np.int64).reshape(-1, 7)
    odd = EventRows(
        table[:, 0].astype(np.int32),
        table[:, 1].astype(NAMES),
        table[:, 2].astype(np.uint8),
        table[:, 3].astype(NAMES),
        table[:, 4].astype(np.bool_),
        table[:, 5].astype(np.uint32),
        table[:, 6].astype(np.uint32),
    )
    if rows is None or not len(rows.line):
        return odd
    order = np.argsort(np.concatenate([rows.line, odd.line]), kind="stable")
    fields = ("line", "device", "thread", "name", "stop", "info", "cycles")
    return EventRows(*(np.concatenate([getattr(rows, name), getattr(odd, name)])[order] for name in fields))


def _merged_ops(rows: OpRows | None, found: _Odd) -> OpRows | None:
    if not found.ops:
        return rows if rows is not None and len(rows.line) else None
    table = np.array(found.ops, np.int64).reshape(-1, 6)
    pmu = None
    if any(found.pmu):
        pmu = np.array([row + (0,) * (N_PMU - len(row)) for row in found.pmu], np.uint32)
    odd = OpRows(
        table[:, 0].astype(np.int32),
        table[:, 1].astype(NAMES),
        table[:, 2].astype(np.int32),
        table[:, 3],
        table[:, 4],
        table[:, 5],
        pmu,
    )
    if rows is None or not len(rows.line):
        return odd
    order = np.argsort(np.concatenate([rows.line, odd.line]), kind="stable")
    fields = ("line", "device", "text", "usec", "cycles", "start")
    merged: list[AnyArray] = [np.concatenate([getattr(rows, name), getattr(odd, name)])[order] for name in fields]
    line, device, text, usec, cycles, start = merged
    if rows.pmu is None and odd.pmu is None:
        return OpRows(line, device, text, usec, cycles, start, None)
    return OpRows(line, device, text, usec, cycles, start, np.concatenate([_counters(rows), _counters(odd)])[order])


_SWITCHES = "run the tool with --profile 1 (GGML_HEXAGON_PROFILE=1; 3 for traces) and -v"


def read_log(source: str, want_events: bool = True, head: int | None = None) -> Log:
    """Reads `source` ('-': stdin). `head`: stop when each device has had this many ops.

    Raises LogError when nothing can be read or the log has no usable line; the text names the missing switch.
    """
    reader = _Reader(source, want_events, head)
    stopped = False
    for block in read_blocks(source):
        reader.block(block)
        if reader.enough():
            stopped = True
            break
    shown = "stdin" if source == "-" else source
    if not reader.ops and not reader.batches and not reader.n_events:
        raise LogError(_why_nothing(reader, shown))
    log = reader.log()
    log.stopped_early = stopped
    return log


def _why_nothing(reader: _Reader, shown: str) -> str:
    if reader.bytes == 0:
        return f"{shown} is empty: {_SWITCHES}"
    if reader.bad:
        first = min(reader.bad.values(), key=lambda bad: bad.first_line)
        count = sum(bad.count for bad in reader.bad.values())
        return (
            f"{shown} has {count} lines that look like profile records, none readable: "
            f"the first at line {first.first_line}"
        )
    if reader.saw_nul:
        return f"{shown} is a binary file, not a log"
    # The tool may have failed, and told why.
    end = f"; its last line: {reader.last_line}" if reader.last_line else ""
    if reader.mode:
        return f"{shown} has no profile line although profiling was on (mode {reader.mode}): -v was missing{end}"
    if reader.saw_hex:
        return (
            f"{shown} has lines of the NPU backend but no profile line: "
            f"--profile 1 (GGML_HEXAGON_PROFILE=1) was missing, or -v{end}"
        )
    return f"{shown} has no profile line: {_SWITCHES}{end}"


def _shown(lines: bytes) -> str:
    """The last of them that is not blank, for a message of one line."""
    last = lines.rstrip().rpartition(b"\n")[2].decode("utf-8", "replace")
    printable = "".join(c if c.isprintable() else " " for c in last).strip()
    return printable if len(printable) <= LINE_CHARACTERS else f"{printable[:LINE_CHARACTERS]}..."
