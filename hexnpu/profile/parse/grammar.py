"""The reference for one line: every record shape of the six generations, by regular expressions.

The fast path (`parse.fast`) reads the common shapes of many lines at once and must agree with this file; whatever it
does not recognise comes here. All functions work on bytes, since a log may hold any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hexnpu.profile.columns import N_THREADS, OpText

DEFAULT_DEVICE = "HTP0"
U32_MAX = 0xFFFFFFFF
I64_MAX = (1 << 63) - 1

_KINDS = (b"profile-op", b"profile-batch", b"trace-evt", b"trace-op")
_NAMED_DEVICE = re.compile(rb"[^\s:|]+(?::\d+)?")
_BARE_DEVICE = re.compile(rb"(?:.*\W)?([A-Za-z]+\d+(?::\d+)?)")
_OWN_PREFIX = re.compile(rb"(?:ggml-hex:[ \t]+)?(?:[^\s:|]+(?::\d+)?[ \t]+)?$")

_NUM = rb"\d{1,20}(?!\d)"
_LIST = rb"[ \t]*" + _NUM + rb"(?:[ \t]*,[ \t]*" + _NUM + rb")*[ \t]*"
_OP_TAIL = re.compile(
    rb"(?:op-)?usec[ \t]+(?P<usec>" + _NUM + rb")[ \t]+(?:op-)?cycles[ \t]+(?P<cycles>" + _NUM + rb")"
    rb"(?:[ \t]+(?:op-)?pkts[ \t]+\d+[ \t]+\([\w.+-]+\))?(?:[ \t]+call-usec[ \t]+\d+)?"
    rb"(?:[ \t]+start[ \t]+(?P<start>" + _NUM + rb"))?(?:[ \t]+mhz[ \t]+(?P<mhz>\d+(?:\.\d+)?))?"
    rb"(?:[ \t]+pmu[ \t]+\[(?P<pmu>" + _LIST + rb")\])?(?:[ \t]+evt[ \t]+\[(?P<evt>" + _LIST + rb")\])?"
    rb"(?P<rest>.*)$",
    re.DOTALL,
)
_EVENT = re.compile(
    rb"(?P<op>[^\s:|]+):[ \t]+thread[ \t]+(?P<thread>" + _NUM + rb")[ \t]+(?:event[ \t]+(?P<event>[\w-]+)[ \t]+)?"
    rb"info[ \t]+(?P<info>" + _NUM + rb")[ \t]+(?P<what>start|stop)[ \t]+(?P<cycles>" + _NUM + rb")"
)
_BATCH = re.compile(
    rb"n-ops[ \t]+(?P<n_ops>" + _NUM + rb")[ \t]+batch-dur-usec[ \t]+(?P<host>" + _NUM + rb")[ \t]+"
    rb"htp-ops-usec[ \t]+(?P<usec>" + _NUM + rb")(?:[ \t]+evt[ \t]+\[(?P<evt>" + _LIST + rb")\])?"
)
_OPBATCH = re.compile(
    rb"OPBATCH\|[^|]*\|n-ops[ \t]+(?P<n_ops>" + _NUM + rb")\|(?:evt-cnt[ \t]+(?P<evt>" + _LIST + rb")|----)\|"
)
_G0 = re.compile(
    rb"ggml-hex:[ \t]+(?:(?P<device>[A-Za-z]+\d+(?::\d+)?)[ \t]+)?(?P<op>[A-Za-z0-9_+]+)[ \t]+"
    rb"(?P<body>\S.*?) : total (?P<usec>" + _NUM + rb")[ \t]+us[ \t]+\([^)]*\)[ \t]+"
    rb"cycles[ \t]+(?P<cycles>" + _NUM + rb")[ \t]+pkts[ \t]+\d+"
)
_G0_LOOKS = re.compile(rb"ggml-hex:.* : total \d")
_G0_TENSOR = re.compile(rb"(?P<name>.*?)[ \t]*(?P<dims>(?<!\S)\d+(?::\d+)+!?|NONE)$", re.DOTALL)
_BANNER = re.compile(
    rb"ggml-hex: Profiling mode[ \t]+(?P<mode>\d{1,9})[ \t]+:[ \t]+pmu-evt[ \t]+\[(?P<events>[^\]]*)\]"
)
_STAMP = re.compile(rb"(?<!\d)(\d{1,6})\.(\d\d)\.(\d\d\d)\.(\d\d\d)[ \t]+[A-Z][ \t]")
_LOGCAT = re.compile(rb"(?<!\d)(\d\d)-(\d\d)[ \t]+(\d\d):(\d\d):(\d\d)\.(\d{3,6})(?!\d)")

_DIM = rb"(?:NONE|\d{1,18}(?::\d{1,18}){0,3}!?)"
_DIMS = re.compile(rb"(?:" + _DIM + rb"(?: x " + _DIM + rb")*)?[ ]?-> " + _DIM + rb"|----|" + _DIM)
_TYPE = rb"[A-Za-z][A-Za-z0-9_]*"
_TYPES = re.compile(rb"(?:" + _TYPE + rb"(?: x " + _TYPE + rb")*)?[ ]?-> " + _TYPE + rb"|----|" + _TYPE)
_OP_NAME = re.compile(rb"[A-Za-z0-9_+\-.()]+")


@dataclass(frozen=True)
class OpRecord:
    device: str
    text: OpText
    usec: int
    cycles: int
    start: int
    pmu: tuple[int, ...]


@dataclass(frozen=True)
class EventRecord:
    device: str
    thread: int
    name: str
    stop: bool
    info: int
    cycles: int


@dataclass(frozen=True)
class BatchRecord:
    device: str
    opbatch: bool
    n_ops: int
    usec: int
    cycles: int
    start: int
    host_usec: int
    evt_cnt: tuple[int, ...]


@dataclass(frozen=True)
class BadRecord:
    """Looks like a record of this kind, is not readable."""

    kind: str


Record = OpRecord | EventRecord | BatchRecord | BadRecord


def _numbers(text: bytes | None) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(b",")) if text else ()


def text_of(data: bytes) -> str:
    """Names may hold bytes that are not UTF-8; they come back as they were."""
    return data.decode("utf-8", "surrogateescape")


@lru_cache(maxsize=1 << 16)
def op_text(raw: bytes) -> OpText | None:
    """What stands between `profile-op ` and `usec`: None when its fields cannot be told apart."""
    raw = raw.rstrip(b" \t")
    if raw.endswith(b"|"):
        return _piped_text(raw[:-1])
    if raw.endswith(b":"):
        return _colon_text(raw[:-1].rstrip(b" \t"))
    return None


def _is_dims_types(dims: bytes, types: bytes) -> bool:
    return bool(_DIMS.fullmatch(dims) and _TYPES.fullmatch(types))


def _piped_text(raw: bytes) -> OpText | None:
    """NAME|names|dims|types|strides[|kernel params]; the names may hold pipes, the fields after them cannot."""
    fields = raw.split(b"|")
    if len(fields) < 5 or not _OP_NAME.fullmatch(fields[0].strip()):
        return None
    for first in (len(fields) - 4, len(fields) - 3):
        if first >= 2 and _is_dims_types(fields[first].strip(), fields[first + 1].strip()):
            rest = [text_of(part.strip()) for part in fields[first:]]
            names = text_of(b"|".join(fields[1:first]).strip(b" "))
            return OpText(text_of(raw), text_of(fields[0].strip()), names, *rest)
    return None


def _colon_text(raw: bytes) -> OpText | None:
    """NAME: names : dims : types : strides[ : buffers or kernel params]; the names may hold ' : '."""
    name = re.match(rb"([A-Za-z0-9_+\-.()]+)[ \t]*:", raw)
    if not name:
        return None
    fields = raw[name.end() :].split(b" : ")
    for first in (len(fields) - 4, len(fields) - 3):
        if first >= 1 and _is_dims_types(fields[first].strip(), fields[first + 1].strip()):
            rest = [text_of(part.strip()) for part in fields[first:]]
            names = text_of(b" : ".join(fields[:first]).strip(b" "))
            dims, types, strides, *params = rest
            op, shown = text_of(name.group(1)), text_of(raw)
            return OpText(shown, op, names, dims, types, strides, "".join(params), "colons")
    return None


def _op_tail(body: bytes) -> re.Match[bytes] | None:
    """The figures: at the last `usec N cycles N` of the line (`call-usec N` may follow it)."""
    at = body.rfind(b"usec")
    while at >= 0:
        old = at >= 3 and body.startswith(b"op-", at - 3)
        tail = _OP_TAIL.match(body, at - 3 if old else at)
        if tail is not None:
            return tail
        at = body.rfind(b"usec", 0, at)
    return None


def _op(device: str, body: bytes, last_cut: bool) -> Record:
    tail = _op_tail(body)
    if tail is None:
        return BadRecord("profile-op")
    usec, cycles, start = int(tail["usec"]), int(tail["cycles"]), int(tail["start"] or -1)
    raw = body[: tail.start()]
    rest = tail["rest"].strip()
    if b" pmu [" in tail["rest"] or b" evt [" in tail["rest"] or (last_cut and rest):
        return BadRecord("profile-op")
    if raw.startswith(b"OPBATCH|"):
        return _opbatch(device, raw, usec, cycles, start)
    text = op_text(raw)
    pmu = _numbers(tail["pmu"])
    if text is None or len(pmu) > 8 or max(usec, cycles, start, *pmu) > U32_MAX:
        return BadRecord("profile-op")
    if text.generation == "pipes" and (tail["start"] is None or tail["mhz"] is None):
        return BadRecord("profile-op")  # such a line always ends in `start N mhz F`: this one is torn
    return OpRecord(device, text, usec, cycles, start, pmu)


def _opbatch(device: str, raw: bytes, usec: int, cycles: int, start: int) -> Record:
    match = _OPBATCH.match(raw)
    evt = _numbers(match["evt"]) if match else ()
    if match is None or start < 0 or len(evt) > N_THREADS or max(cycles, start) > I64_MAX:
        return BadRecord("profile-op")
    n_ops = int(match["n_ops"])
    if max(n_ops, usec, *evt) > U32_MAX:
        return BadRecord("profile-op")
    return BatchRecord(device, True, n_ops, usec, cycles, start, -1, evt)


def _event(kind: str, device: str, body: bytes) -> Record:
    match = _EVENT.match(body)
    if match is None or int(match["thread"]) >= N_THREADS or int(match["cycles"]) > U32_MAX:
        return BadRecord(kind)
    if int(match["info"]) > U32_MAX or (kind == "trace-op") != (match["event"] is not None):
        return BadRecord(kind)
    name, stop = text_of(match["event"] or match["op"]), match["what"] == b"stop"
    return EventRecord(device, int(match["thread"]), name, stop, int(match["info"]), int(match["cycles"]))


def _batch(device: str, body: bytes) -> Record:
    match = _BATCH.match(body)
    evt = _numbers(match["evt"]) if match else ()
    if match is None or len(evt) > N_THREADS:
        return BadRecord("profile-batch")
    n_ops, usec, host = int(match["n_ops"]), int(match["usec"]), int(match["host"])
    if max(n_ops, usec, *evt) > U32_MAX or host > I64_MAX:
        return BadRecord("profile-batch")
    return BatchRecord(device, False, n_ops, usec, -1, -1, host, evt)


def _g0(line: bytes) -> Record | None:
    match = _G0.search(line)
    if match is None:
        return BadRecord("total ... us") if _G0_LOOKS.search(line) else None
    *inputs, output = re.split(rb" x | -> ", match["body"])
    names, dims = [], []
    for tensor in (*inputs, output):
        parts = _G0_TENSOR.match(tensor)
        if parts is None:
            return _g0_odd_names(match)
        names.append(parts["name"])
        dims.append(parts["dims"])
    return _g0_record(match, names, dims)


def _g0_odd_names(match: re.Match[bytes]) -> Record:
    """A name with ' x ' or ' -> ' inside: a tensor ends where dims stand."""
    tensors = re.findall(rb"(.*?)[ \t]+(\d+(?::\d+)+!?)(?: x | -> |$)", match["body"])
    if not tensors:
        return BadRecord("total ... us")
    return _g0_record(match, [name for name, _ in tensors], [dims for _, dims in tensors])


def _g0_record(match: re.Match[bytes], names: list[bytes], dims: list[bytes]) -> Record:
    def arrow(parts: list[bytes]) -> str:
        return text_of(b" x ".join(parts[:-1]) + b" -> " + parts[-1])

    raw = text_of(match["op"] + b" " + match["body"])
    text = OpText(raw, text_of(match["op"]), arrow(names), arrow(dims), "", generation="G0")
    device = text_of(match["device"] or DEFAULT_DEVICE.encode())
    if max(int(match["usec"]), int(match["cycles"])) > U32_MAX:
        return BadRecord("total ... us")
    return OpRecord(device, text, int(match["usec"]), int(match["cycles"]), -1, ())


def _marks(line: bytes) -> list[tuple[int, bytes]]:
    """(position, kind) of what begins a record, in order; the line may end inside the kind's name."""
    found = []
    torn = b"ggml-hex" in line
    for family in (b"profile-", b"trace-"):
        at = line.find(family)
        while at >= 0:
            for kind in _KINDS:
                after = line[at + len(kind) : at + len(kind) + 1]
                whole = line.startswith(kind, at) and after in (b" ", b"\t", b"")
                if whole or (torn and kind.startswith(line[at:].rstrip())):
                    found.append((at, kind))
                    break
            at = line.find(family, at + len(family))
    return sorted(found)


def _device(head: bytes) -> str:
    """The device is the word before the record's kind; DEFAULT_DEVICE when there is none."""
    if not head[-1:].isspace():
        return DEFAULT_DEVICE
    words = head.rsplit(None, 2)
    if len(words) >= 2 and words[-2].endswith(b"ggml-hex:"):
        return text_of(words[-1]) if _NAMED_DEVICE.fullmatch(words[-1]) else DEFAULT_DEVICE
    bare = _BARE_DEVICE.fullmatch(words[-1]) if words else None
    return text_of(bare.group(1)) if bare else DEFAULT_DEVICE


def parse_line(line: bytes, cut: bool = False) -> list[Record]:
    """All records of a line, in order. `cut`: the log ends inside this line, what is not complete does not count."""
    marks = _marks(line)
    if not marks:
        oldest = _g0(line) if b"ggml-hex" in line else None
        return [oldest] if oldest else []
    records: list[Record] = []
    begin = 0
    for index, (at, kind) in enumerate(marks):
        device = _device(line[begin:at])
        begin = at + len(kind)
        last = index + 1 == len(marks)
        end = len(line)
        if not last:  # the next record's own prefix does not belong to this one
            prefix = _OWN_PREFIX.search(line, begin, marks[index + 1][0])
            end = prefix.start() if prefix else marks[index + 1][0]
        body = line[begin:end].lstrip()
        if kind == b"profile-op":
            records.append(_op(device, body, cut and last))
        elif kind == b"profile-batch":
            records.append(_batch(device, body))
        else:
            records.append(_event(kind.decode(), device, body))
    return records


def parse_banner(line: bytes) -> tuple[int, list[int]] | None:
    """(profiling mode, PMU event numbers) of the banner a session prints at start."""
    match = _BANNER.search(line)
    if match is None:
        return None
    words = re.findall(rb"0x[0-9a-fA-F]+|\d{1,20}", match["events"])
    return int(match["mode"]), [int(word, 0) for word in words]


def parse_stamp_us(line: bytes, end: int) -> int:
    """The last host stamp (`M.SS.mmm.uuu L ` or logcat's date and time) before column `end`, in microseconds; -1."""
    stamp = None
    for match in _STAMP.finditer(line, 0, end):
        stamp = match
    if stamp:
        minutes, seconds, millis, micros = (int(part) for part in stamp.groups())
        return ((minutes * 60 + seconds) * 1000 + millis) * 1000 + micros
    logcat = _LOGCAT.search(line, 0, end)
    if logcat:
        month, day, hour, minute, second = (int(part) for part in logcat.groups()[:5])
        days = month * 31 + day
        fraction = int(logcat.group(6).ljust(6, b"0"))
        return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction
    return -1
