"""A whole log to columns: the fast path for the common lines of each block, `grammar` for every other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from hexnpu.profile.columns import (
    N_THREADS,
    OPBATCH,
    TRAILER,
    AnyArray,
    BatchLines,
    Events,
    Log,
    Ops,
    OpText,
    Unreadable,
)
from hexnpu.profile.errors import LogError
from hexnpu.profile.parse import grammar
from hexnpu.profile.parse.fast import Block, EventRows, EventScanner, Names, OpRows, OpScanner
from hexnpu.profile.parse.source import read_blocks
from hexnpu.profile.parse.swar import Positions, word

HEAD_LOOKAHEAD_BYTES = 16 << 20
_MARKS = (b"profile-", b"trace-")
_PROFILE, _OP_MARK = word(b"profile-"), word(b"file-op ")
_G0_END, _BANNER_END = b" us", b"]"


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
        self.raw_texts: dict[bytes, int] = {}
        self.op_scan = OpScanner(self.devices, self.raw_texts)
        self.event_scan = EventScanner(self.devices, self.event_names)
        self.odd_texts: dict[str, int] = {}
        self.texts: list[OpText] = []
        self.ops: list[OpRows] = []
        self.events: list[EventRows] = []
        self.batches: list[tuple[int, ...]] = []
        self.evt_cnt: list[tuple[int, ...]] = []
        self.bad: dict[str, Unreadable] = {}
        self.lines = self.bytes = self.n_events = 0
        self.mode: int | None = None
        self.pmu_events: list[int] = []
        self.saw_hex = self.saw_nul = False
        self.column = 0  # where the last mark stood in its line
        self.all_heads_at: int | None = None
        self.per_device: dict[int, int] = {}

    # -- blocks -------------------------------------------------------------------------------------------------

    def block(self, lines: bytes) -> None:
        cut = not lines.endswith(b"\n")
        block = Block.of(lines + b"\n" if cut else lines)
        n = len(block.ends)
        if cut:
            last = Block(block.data, block.text, block.view, block.starts[:-1], block.ends[:-1])
            self._whole_lines(last)
            self._cut_line(block)
        else:
            self._whole_lines(block)
        self.lines += n
        self.bytes += len(lines)
        if not self.batches and not self.ops and not self.n_events:
            self.saw_hex = self.saw_hex or b"ggml-hex" in lines
            self.saw_nul = self.saw_nul or b"\0" in lines

    def _whole_lines(self, block: Block) -> None:
        events = self.event_scan.scan(block)
        marks, rest = self._marks(block, events.line)
        op_marks, op_lines, odd = _sort_marks(block, marks, rest)
        ops = self.op_scan.scan(block, op_marks, op_lines)
        unread = np.zeros(len(block.ends), np.bool_)
        unread[op_lines] = True
        unread[ops.line] = False
        odd_lines = set(odd.tolist())
        odd_lines.update(np.flatnonzero(unread).tolist())
        odd_lines.update(_line_ends(block, rest))
        found = _Odd()
        for line in sorted(odd_lines):
            text = block.data[int(block.starts[line]) : int(block.ends[line])]
            self._odd_line(text, line, found, cut=False)
        self._keep(events, ops, found)

    def _cut_line(self, block: Block) -> None:
        found = _Odd()
        line = len(block.ends) - 1
        text = block.data[int(block.starts[line]) : int(block.ends[line])]
        self._odd_line(text, line, found, cut=True)
        self._keep(None, None, found)

    def _marks(self, block: Block, event_lines: Positions) -> tuple[Positions, Positions]:
        """(positions of `profile-` and `trace-` outside the lines read as events, those other lines)."""
        other = np.ones(len(block.ends), np.bool_)
        other[event_lines] = False
        rest = np.flatnonzero(other)
        if not len(rest):
            return np.empty(0, np.int64), rest
        # Most op lines have the mark in the same column: where each of a run's marks is there, counting is enough.
        guess = block.starts[rest] + self.column
        hit = (block.view[np.minimum(guess, len(block.view) - 1)] == _PROFILE) & (guess < block.ends[rest])
        first = np.concatenate([[0], np.flatnonzero(np.diff(rest) > 1) + 1])
        last = np.concatenate([first[1:] - 1, [len(rest) - 1]])
        hits = np.add.reduceat(hit.astype(np.int64), first)
        marks: list[int] = []
        runs = (first, last, hits, block.starts[rest[first]], block.ends[rest[last]])
        for a, b, n, begin, stop in zip(*(part.tolist() for part in runs), strict=True):
            if block.data.count(_MARKS[0], begin, stop) == n:
                hit_at = guess[a : b + 1]
                marks.extend(hit_at[hit[a : b + 1]].tolist())
            else:
                marks.extend(_find_all(block.data, _MARKS[0], begin, stop))
            marks.extend(_find_all(block.data, _MARKS[1], begin, stop))
        marks.sort()
        found = np.array(marks, np.int64)
        if len(found) and not hit.all():
            line = np.searchsorted(block.ends, found[-1])
            self.column = int(found[-1] - block.starts[line])
        return found, rest

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
        """A last line without newline may end inside its counter: near the device's last event it is whole."""
        for rows in reversed(self.events):
            mine = np.flatnonzero(rows.device == device)
            if len(mine):
                away = (cycles - int(rows.cycles[mine[-1]]) + (1 << 31)) % (1 << 32) - (1 << 31)
                return abs(away) < 1 << 28
        return True

    def _text_number(self, text: OpText) -> int:
        key = text.generation + text.raw
        number = self.odd_texts.get(key)
        if number is None:
            number = self.odd_texts[key] = -2 - len(self.texts)  # merged with the fast path's numbers at the end
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
        if known:
            known.count += 1
        else:
            example = grammar.text_of(text[:200]).encode("utf-8", "replace").decode()
            self.bad[kind] = Unreadable(kind, 1, line, example)

    # -- rows ---------------------------------------------------------------------------------------------------

    def _keep(self, events: EventRows | None, ops: OpRows | None, found: _Odd) -> None:
        event_rows, op_rows = _merged_events(events, found), _merged_ops(ops, found)
        if event_rows is not None:
            self.n_events += len(event_rows.line)
            if self.want_events:
                event_rows.line = event_rows.line + (self.lines + 1)
                self.events.append(event_rows)
        if op_rows is not None:
            op_rows.line = op_rows.line + (self.lines + 1)
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
        texts, ops = self._ops()
        return Log(
            self.source,
            self.devices.values,
            texts,
            self.event_names.values,
            ops,
            self._events(),
            self._batch_lines(),
            sorted(self.bad.values(), key=lambda bad: bad.first_line),
            self.lines,
            self.bytes,
            self.mode,
            self.pmu_events,
        )

    def _ops(self) -> tuple[list[OpText], Ops]:
        parsed = [grammar.op_text(raw) for raw in self.op_scan.values]
        texts = [text for text in parsed if text is not None]
        by_text: dict[OpText, int] = {}
        fast_to_final = np.array([by_text.setdefault(text, len(by_text)) for text in texts] or [0], np.int32)
        odd_to_final = np.array([by_text.setdefault(text, len(by_text)) for text in self.texts] or [0], np.int32)
        rows, self.ops = self.ops, []
        number = _joined([part.text for part in rows], np.int32)
        odd = number < -1
        final = np.where(odd, odd_to_final[np.where(odd, -2 - number, 0)], fast_to_final[np.where(odd, 0, number)])
        pmu = None
        if any(part.pmu is not None for part in rows):
            blank = [part.pmu if part.pmu is not None else np.zeros((len(part.line), 8), np.uint32) for part in rows]
            pmu = np.concatenate(blank)
        ops = Ops(
            _joined([part.device for part in rows], np.uint8),
            final.astype(np.int32),
            _joined([part.usec for part in rows], np.int64),
            _joined([part.cycles for part in rows], np.int64),
            _joined([part.start for part in rows], np.int64),
            _joined([part.line for part in rows], np.int64),
            pmu,
        )
        return list(by_text), ops

    def _events(self) -> Events:
        rows, self.events = self.events, []
        return Events(
            _joined([part.device for part in rows], np.uint8),
            _joined([part.thread for part in rows], np.uint8),
            _joined([part.name for part in rows], np.uint8),
            _joined([part.stop for part in rows], np.bool_),
            _joined([part.info for part in rows], np.uint32),
            _joined([part.cycles for part in rows], np.uint32),
            _joined([part.line for part in rows], np.int64),
        )

    def _batch_lines(self) -> BatchLines:
        table = np.array(self.batches, np.int64).reshape(-1, 9)
        device, kind = table[:, 0].astype(np.uint8), table[:, 1].astype(np.uint8)
        n_ops, usec, cycles, start, host, stamp, line = (table[:, i].copy() for i in range(2, 9))
        evt = np.array(self.evt_cnt, np.int64).reshape(-1, N_THREADS)
        return BatchLines(device, kind, n_ops, usec, cycles, start, host, stamp, line, evt)


def _joined(parts: list[AnyArray], dtype: type) -> AnyArray:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _find_all(data: bytes, mark: bytes, begin: int, stop: int) -> list[int]:
    found = []
    at = data.find(mark, begin, stop)
    while at >= 0:
        found.append(at)
        at = data.find(mark, at + len(mark), stop)
    return found


def _sort_marks(block: Block, marks: Positions, rest: Positions) -> tuple[Positions, Positions, Positions]:
    """(marks of `profile-op ` alone in their line, those lines, the other lines with marks)."""
    if not len(marks):
        return marks, marks, marks
    lines = rest[np.searchsorted(block.ends[rest], marks)]
    again = lines[1:] == lines[:-1]
    is_op = block.view[marks + 3] == _OP_MARK
    is_op[1:] &= ~again
    is_op[:-1] &= ~again
    return marks[is_op], lines[is_op], lines[~is_op]


def _line_ends(block: Block, rest: Positions) -> Iterable[int]:
    """Lines without a mark that end as a G0 record or the banner does."""
    if not len(rest):
        return []
    ends = block.ends[rest]
    last = block.text[ends - 1]
    maybe = np.flatnonzero((last == ord("s")) | (last == ord("]")))
    picked = []
    for row in maybe.tolist():
        start, end = int(block.starts[rest[row]]), int(ends[row])
        is_g0 = block.data.endswith(_G0_END, start, end) and block.data.find(b": total ", start, end) >= 0
        if is_g0 or block.data.find(b"Profiling mode", start, end) >= 0:
            picked.append(int(rest[row]))
    return picked


def _merged_events(rows: EventRows | None, found: _Odd) -> EventRows | None:
    if not found.events:
        return rows if rows is not None and len(rows.line) else None
    table = np.array(found.events, np.int64).reshape(-1, 7)
    odd = EventRows(
        table[:, 0],
        table[:, 1].astype(np.uint8),
        table[:, 2].astype(np.uint8),
        table[:, 3].astype(np.uint8),
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
        pmu = np.array([row + (0,) * (8 - len(row)) for row in found.pmu], np.uint32)
    odd = OpRows(
        table[:, 0],
        table[:, 1].astype(np.uint8),
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
    blank = [part.pmu if part.pmu is not None else np.zeros((len(part.line), 8), np.uint32) for part in (rows, odd)]
    return OpRows(line, device, text, usec, cycles, start, np.concatenate(blank)[order])


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
    if reader.mode:
        return f"{shown} has no profile line although profiling was on (mode {reader.mode}): -v was missing"
    if reader.saw_hex:
        return (
            f"{shown} has lines of the NPU backend but no profile line: "
            "--profile 1 (GGML_HEXAGON_PROFILE=1) was missing, or -v"
        )
    return f"{shown} has no profile line: {_SWITCHES}"
