"""The common lines of a block, all at once. What is not certain here is left to `grammar`, line by line.

Event lines are read backwards from their end, op lines forwards from `usec`; both accept exactly what `grammar` reads
to the same values, which tests/profile/test_fast.py proves on random lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hexnpu.profile.columns import N_THREADS, U8, Bool
from hexnpu.profile.parse.grammar import U32_MAX, op_text, text_of
from hexnpu.profile.parse.swar import (
    PAD,
    Positions,
    Words,
    letters_before,
    number_at,
    number_before,
    word,
    words,
)

# No whole record fits in front of another in fewer bytes than this (`ggml-hex: ` + the shortest event is longer).
SHORT_PREFIX = 40

_START = word(b" start ") << np.uint64(8)
_STOP = word(b" stop ") << np.uint64(16)
_INFO = word(b" info ") << np.uint64(16)
_THREAD = word(b" thread ")
_ACE_EVT = word(b"ace-evt ")
_TR = word(b"tr") << np.uint64(48)
_TOP7 = np.uint64(0xFFFFFFFFFFFFFF00)
_TOP6 = np.uint64(0xFFFFFFFFFFFF0000)
_TOP2 = np.uint64(0xFFFF000000000000)
_CYCLES = word(b" cycles ")
_OP_START = word(b" start ")
_MHZ = word(b" mhz ")
_PMU = word(b" pmu [")
_OPBATCH = word(b"OPBATCH|")
_LOW7 = np.uint64(0x00FFFFFFFFFFFFFF)
_LOW6 = np.uint64(0x0000FFFFFFFFFFFF)
_LOW5 = np.uint64(0x000000FFFFFFFFFF)
_SPACE, _COLON, _NEWLINE, _DOT, _COMMA, _BRACKET = 32, 58, 10, 46, 44, 93
_DEVICE = re.compile(rb"[A-Za-z]+\d+(?::\d+)?")
_NAME = re.compile(rb"[^\s:|]+")
_MIX = [np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xD6E8FEB86659FD93)]


@dataclass
class Names:
    """Texts by number, in order of appearance."""

    values: list[str] = field(default_factory=list)
    _index: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        found = self._index.get(text)
        if found is None:
            found = self._index[text] = len(self.values)
            self.values.append(text)
        return found


@dataclass
class Block:
    """A block of whole lines with padding; `starts` and `ends` are each line's first byte and its newline."""

    data: bytes
    text: U8
    view: Words
    starts: Positions
    ends: Positions

    @staticmethod
    def of(lines: bytes) -> Block:
        """`lines` ends in a newline."""
        data = b"".join((b"\0" * PAD, lines, b"\0" * PAD))
        text = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(text == _NEWLINE)
        starts = np.empty_like(ends)
        starts[:1] = PAD
        starts[1:] = ends[:-1] + 1
        return Block(data, text, words(text), starts, ends)

    def has_other_record(self, line: int, before: int) -> bool:
        """A second record (or its beginning) stands in the line in front of position `before`."""
        start = int(self.starts[line])
        return self.data.find(b"profile-", start, before) >= 0 or self.data.find(b"trace-", start, before) >= 0


@dataclass
class EventRows:
    line: Positions  # index into the block's lines
    device: U8
    thread: U8
    name: U8
    stop: Bool
    info: npt.NDArray[np.uint32]
    cycles: npt.NDArray[np.uint32]


class Keys:
    """Short words of lines (device, event name) to small numbers, by a 64-bit mix of their bytes."""

    def __init__(self) -> None:
        self._mixes = np.empty(0, np.uint64)
        self._values = np.empty((0, 2), np.int64)

    def look_up(self, mixes: Words, resolve: Resolver) -> npt.NDArray[np.int64]:
        """(device number, name number) per row, -1 where the words are neither; new words go to `resolve`."""
        if len(mixes) == 0:
            return np.empty((0, 2), np.int64)
        place = self._place(mixes)
        missing = self._mixes[place] != mixes if len(self._mixes) else np.ones(len(mixes), np.bool_)
        if missing.any():
            fresh, first = np.unique(mixes[missing], return_index=True)
            values = np.array([resolve(int(row)) for row in np.flatnonzero(missing)[first]], np.int64).reshape(-1, 2)
            order = np.argsort(both := np.concatenate([self._mixes, fresh]))
            self._mixes = both[order]
            self._values = np.concatenate([self._values, values])[order]
            place = self._place(mixes)
        return self._values[place]

    def _place(self, mixes: Words) -> npt.NDArray[np.intp]:
        return np.minimum(np.searchsorted(self._mixes, mixes), max(len(self._mixes) - 1, 0))


class Resolver:
    """Reads the device and the event name of one row that has words not seen before."""

    def __init__(self, data: bytes, device: Names, name: Names | None, spans: list[Positions]) -> None:
        self._data = data
        self._device = device
        self._name = name
        self._spans = spans

    def __call__(self, row: int) -> tuple[int, int]:
        bounds = [int(span[row]) for span in self._spans]
        device = self._data[bounds[0] : bounds[1]]
        if not _DEVICE.fullmatch(device):
            return -1, -1
        name = -1
        if self._name is not None:
            word_ = self._data[bounds[2] : bounds[3]]
            if not _NAME.fullmatch(word_):
                return -1, -1
            name = self._name.number(text_of(word_))
        return self._device.number(text_of(device)), name


class EventScanner:
    """`[..]DEVICE trace-evt NAME: thread N info N start|stop N`, the line's end right behind the counter."""

    def __init__(self, devices: Names, names: Names) -> None:
        self._devices = devices
        self._names = names
        self._keys = Keys()

    def scan(self, block: Block) -> EventRows:
        view, text, rows = block.view, block.text, np.arange(len(block.ends))
        at = block.ends
        tail = view[at - 8]
        last = (tail >> np.uint64(56)) - np.uint64(48) < np.uint64(10)  # ends in a digit
        rows = rows[last & (block.ends - block.starts > 20)]
        cycles, digits = number_before(view, block.ends[rows], wide=True)
        at = block.ends[rows] - digits
        before = view[at - 8]
        stop = (before & _TOP6) == _STOP
        keep = (digits < 11) & (cycles <= U32_MAX) & (stop | ((before & _TOP7) == _START))
        rows, cycles, stop, at = rows[keep], cycles[keep], stop[keep], at[keep]
        at = at - np.where(stop, 6, 7)
        info, digits = number_before(view, at, wide=False)
        at -= digits
        keep = (digits > 0) & (digits < 8) & ((view[at - 8] & _TOP6) == _INFO)
        at -= 6
        thread, digits = number_before(view, at, wide=False)
        at -= digits
        keep &= (digits > 0) & (digits < 8) & (thread < N_THREADS)
        keep &= (view[at - 8] == _THREAD) & (text[at - 9] == _COLON)
        at -= 9
        name_end = at
        low, low_count = letters_before(view, at, _SPACE)
        high, high_count = letters_before(view, at - 8, _SPACE)
        spill = low_count == 8
        high[~spill] = 0
        at = at - low_count - np.where(spill, high_count, 0)
        name_start = at
        keep &= (view[at - 8] == _ACE_EVT) & ((view[at - 16] & _TOP2) == _TR) & (text[at - 11] == _SPACE)
        device_end = at - 11
        device, count = letters_before(view, device_end, _SPACE)
        device_start = device_end - count
        keep &= (count > 0) & (count < 8) & (name_end > name_start) & ((high_count < 8) | ~spill)
        keep &= device_start >= block.starts[rows]
        picked = np.flatnonzero(keep)
        mixes = device[picked] * _MIX[0] + low[picked] * _MIX[1] + high[picked] * _MIX[2]
        mixes ^= mixes >> np.uint64(29)
        spans = [span[picked] for span in (device_start, device_end, name_start, name_end)]
        keys = self._keys.look_up(mixes, Resolver(block.data, self._devices, self._names, spans))
        good = keys[:, 0] >= 0
        good &= self._alone(block, rows[picked], spans[0])
        picked, keys = picked[good], keys[good]
        return EventRows(
            rows[picked],
            keys[:, 0].astype(np.uint8),
            thread[picked].astype(np.uint8),
            keys[:, 1].astype(np.uint8),
            stop[picked],
            info[picked].astype(np.uint32),
            cycles[picked].astype(np.uint32),
        )

    @staticmethod
    def _alone(block: Block, lines: Positions, device_start: Positions) -> Bool:
        alone = np.ones(len(lines), np.bool_)
        for row in np.flatnonzero(device_start - block.starts[lines] > SHORT_PREFIX):
            alone[row] = not block.has_other_record(int(lines[row]), int(device_start[row]))
        return alone


@dataclass
class OpRows:
    line: Positions
    device: U8
    text: npt.NDArray[np.int32]
    usec: npt.NDArray[np.int64]
    cycles: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    pmu: npt.NDArray[np.uint32] | None


class OpScanner:
    """`[..]DEVICE profile-op TEXTusec N cycles N[ start N[ mhz N.N[ pmu [8 numbers]]]]` and the line's end."""

    def __init__(self, devices: Names, texts: dict[bytes, int]) -> None:
        self._devices = devices
        self._texts = texts  # raw text -> number, -1 unreadable; `number` below fills it
        self._keys = Keys()
        self.values: list[bytes] = []

    def number(self, raw: bytes) -> int:
        """The number of a raw op text, -1 when `grammar` cannot read it."""
        found = self._texts.get(raw)
        if found is None:
            found = -1
            if op_text(raw) is not None:
                found = len(self.values)
                self.values.append(raw)
            self._texts[raw] = found
        return found

    def scan(self, block: Block, marks: Positions, lines: Positions) -> OpRows:
        """marks: positions of `profile-op `, at most one a line; lines: the lines they stand in."""
        data, view, text = block.data, block.view, block.text
        single = view[marks + 11] != _OPBATCH
        marks, lines = marks[single], lines[single]
        find = data.rfind
        tails = [find(b"usec ", at, end) for at, end in zip(marks.tolist(), block.ends[lines].tolist(), strict=True)]
        raws = [data[at:tail] for at, tail in zip((marks + 11).tolist(), tails, strict=True)]
        numbers = list(map(self._texts.get, raws))
        if None in numbers:
            numbers = [self.number(raw) if known is None else known for known, raw in zip(numbers, raws, strict=True)]
        texts = np.array(numbers, np.int32)
        tail_at = np.array(tails, np.int64)
        device_end = marks - 1
        device, count = letters_before(view, device_end, _SPACE)
        device_start = device_end - count
        keep = (texts >= 0) & (tail_at >= 0) & (text[device_end] == _SPACE) & (count > 0) & (count < 8)
        keep &= device_start >= block.starts[lines]
        rows = np.flatnonzero(keep)
        at = tail_at[rows] + 5
        usec, cycles, start, pmu, good = _op_figures(block, at, block.ends[lines[rows]])
        pipes = text[at - 6] == ord("|")
        good &= (start >= 0) | ~pipes
        spans = [device_start[rows], device_end[rows]]
        keys = self._keys.look_up(device[rows], Resolver(data, self._devices, None, spans))
        good &= keys[:, 0] >= 0
        good &= EventScanner._alone(block, lines[rows], device_start[rows])
        rows, picked = rows[good], np.flatnonzero(good)
        return OpRows(
            lines[rows],
            keys[picked, 0].astype(np.uint8),
            texts[rows],
            usec[picked],
            cycles[picked],
            start[picked],
            pmu[picked] if pmu is not None else None,
        )


def _op_figures(
    block: Block, at: Positions, ends: Positions
) -> tuple[Positions, Positions, Positions, npt.NDArray[np.uint32] | None, Bool]:
    """The figures behind `usec `: (usec, cycles, start or -1, PMU counters, readable to the line's end)."""
    view, text = block.view, block.text
    usec, digits = number_at(view, at)
    good = (digits > 0) & (digits < 16)
    at = at + digits
    good &= view[at] == _CYCLES
    cycles, digits = number_at(view, at + 8)
    at = at + 8 + digits
    good &= (digits > 0) & (cycles <= U32_MAX)
    has_start = (view[at] & _LOW7) == _OP_START
    start, digits = number_at(view, at + 7)
    at = np.where(has_start, at + 7 + digits, at)
    good &= ~has_start | ((digits > 0) & (start <= U32_MAX))
    has_mhz = has_start & ((view[at] & _LOW5) == _MHZ)
    _, digits = number_at(view, at + 5)
    whole = at + 5 + digits
    _, decimals = number_at(view, whole + 1)
    at = np.where(has_mhz, whole + 1 + decimals, at)
    is_decimal = (digits > 0) & (digits < 16) & (text[np.minimum(whole, len(text) - 1)] == _DOT) & (decimals > 0)
    good &= ~has_mhz | is_decimal
    pmu, at, good = _pmu_figures(block, at, good, ends)
    pipes_need_mhz = has_mhz | ~has_start
    good &= (at == ends) & pipes_need_mhz
    return (
        usec.astype(np.int64),
        cycles.astype(np.int64),
        np.where(has_start, start.astype(np.int64), -1),
        pmu,
        good,
    )


def _pmu_figures(
    block: Block, at: Positions, good: Bool, ends: Positions
) -> tuple[npt.NDArray[np.uint32] | None, Positions, Bool]:
    view, text = block.view, block.text
    rows = np.flatnonzero(good & (at + 7 < ends) & ((view[np.minimum(at, len(view) - 1)] & _LOW6) == _PMU))
    if not len(rows):
        return None, at, good
    pmu = np.zeros((len(at), 8), np.uint32)
    place = at[rows] + 6
    fine = np.ones(len(rows), np.bool_)
    for column in range(8):
        value, digits = number_at(view, place)
        fine &= (digits > 0) & (value <= U32_MAX)
        pmu[rows, column] = value.astype(np.uint32)
        place = place + digits
        fine &= text[place] == (_COMMA if column < 7 else _BRACKET)
        place = np.minimum(place + 1, ends[rows])
    at = at.copy()
    at[rows] = place
    good = good.copy()
    good[rows] &= fine
    return pmu, at, good
