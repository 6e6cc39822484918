"""Where the ops went: what the NPU took and refused, what the scheduler placed elsewhere, and by which kernel it ran.

Three kinds of lines tell: `supports-op ...|yes` or `no` of the backend (verbose 1), the scheduler's `## SPLIT` and
`node #` lines (GGML_SCHED_DEBUG=2), and profile lines for what really ran.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hexnpu.errors import HexnpuError
from hexnpu.profile.columns import OpText
from hexnpu.profile.errors import LogError
from hexnpu.profile.formats import csv_text
from hexnpu.profile.optext import kernel_and_engine
from hexnpu.profile.parse import grammar
from hexnpu.profile.parse.source import read_blocks
from hexnpu.profile.table import Column, markdown, plain

SCHEMA = "hexnpu-audit/1"
_ANSWER = re.compile(
    rb"supports-op[ \t]+(?P<text>.*?)[ \t]*(?P<sep>[|:])[ \t]*(?P<answer>yes|no)\b"
    rb"[ \t:,(|-]*(?P<why>[^)\r\n]*)\)?[ \t]*$"
)
_SPLIT = re.compile(rb"## SPLIT #(\d+): (\S+) # (\d+) inputs")
_NODE = re.compile(rb"node #[ ]*(\d+) \([ ]*([A-Za-z0-9_]+)\):[ ]*(.*?) \([ ]*[0-9]+[KM]?\) \[[ ]*([^\s\]]+)[^\]]*\]")
_MARKS = (b"supports-op ", b"## SPLIT", b"node #", b"profile-op ")


@dataclass
class Placement:
    """One op, types and dims. yes, no: the backend's answers; ran: profiled runs by kernel; elsewhere: nodes the
    scheduler gave to other backends; npu_nodes: to the NPU."""

    op: str
    types: str
    dims: str
    example: str
    yes: int = 0
    no: int = 0
    why: str = ""
    ran: Counter[str] = field(default_factory=Counter)

    @property
    def kernels(self) -> str:
        return ", ".join(f"{name} x{count}" for name, count in self.ran.most_common())


@dataclass
class Nodes:
    """The scheduler's nodes of one op on one backend."""

    op: str
    backend: str
    count: int = 0
    example: str = ""


@dataclass
class Audit:
    source: str
    placements: list[Placement]
    nodes: list[Nodes]
    splits: Counter[str]
    most_splits: int
    notes: list[str]


def is_npu(backend: str) -> bool:
    """Scheduler lines cut backend names to five characters."""
    return backend.upper().startswith(("HTP", "HEXAG"))


def _answered(line: bytes) -> tuple[OpText, bool, str] | None:
    match = _ANSWER.search(line)
    if match is None:
        return None
    text = match["text"]
    parsed = grammar.op_text(text + (b"|" if match["sep"] == b"|" else b" :"))  # with buffers as the last field
    return (parsed, match["answer"] == b"yes", grammar.text_of(match["why"].strip())) if parsed else None


def _lines(source: str) -> Iterator[tuple[int, bytes]]:
    """(number, line) of the lines that may tell something."""
    number = 1
    for block in read_blocks(source):
        if any(mark in block for mark in _MARKS):
            yield from enumerate(block.split(b"\n"), number)
        number += block.count(b"\n")


class _Counts:
    def __init__(self) -> None:
        self.placements: dict[tuple[str, str, str], Placement] = {}
        self.nodes: dict[tuple[str, str], Nodes] = {}
        self.splits: Counter[str] = Counter()
        self.most_splits = 0
        self.number = 0  # of the line
        self.bad: dict[str, tuple[int, int]] = {}  # by kind: how many lines cannot be read, the first one's number

    def _bad(self, kind: str) -> None:
        count, first = self.bad.get(kind, (0, self.number))
        self.bad[kind] = (count + 1, first)

    def placement(self, text: OpText) -> Placement:
        key = (text.op, text.types, text.dims)
        if key not in self.placements:
            self.placements[key] = Placement(*key, text.names)
        return self.placements[key]

    def line(self, line: bytes) -> None:
        if b"supports-op " in line:
            answer = _answered(line)
            if answer is None:
                self._bad("supports-op")
            elif answer[0].op != "NONE":  # weights and inputs, of which llama.cpp asks too, are no ops
                placement = self.placement(answer[0])
                placement.yes += answer[1]
                placement.no += not answer[1]
                placement.why = answer[2] or placement.why
        elif b"profile-op " in line:
            for record in grammar.parse_line(line):
                if isinstance(record, grammar.BadRecord):
                    self._bad(record.kind)
                elif isinstance(record, grammar.OpRecord):
                    self.placement(record.text).ran[kernel_and_engine(record.text)[0]] += 1
        elif b"node #" in line:
            for match in _NODE.finditer(line):
                self._node(match)
        for split in _SPLIT.finditer(line):
            self.splits[grammar.text_of(split.group(2))] += 1
            self.most_splits = max(self.most_splits, int(split.group(1)) + 1)

    def _node(self, match: re.Match[bytes]) -> None:
        op, name, backend = (grammar.text_of(match.group(i)) for i in (2, 3, 4))
        node = self.nodes.setdefault((op, backend), Nodes(op, backend))
        node.count += 1
        node.example = node.example or name.strip()


def _reasons(placements: list[Placement]) -> None:
    """The log gives no reason with a refusal; what sets the op apart from those that were accepted is a hint."""
    accepted: dict[str, list[Placement]] = {}
    for placement in placements:
        if placement.yes or placement.ran:
            accepted.setdefault(placement.op, []).append(placement)
    for placement in placements:
        if not placement.no or placement.why:
            continue
        others = accepted.get(placement.op, [])
        if not others:
            placement.why = "no such op was accepted"
        elif placement.types not in {other.types for other in others}:
            placement.why = "these types were never accepted"
        elif placement.dims not in {other.dims for other in others}:
            placement.why = "accepted with these types, not with these dims"
        else:
            placement.why = "accepted elsewhere: strides, buffers or a full NPU"


def audit(source: str) -> Audit:
    """Counts every line that tells of placement. LogError when there is none."""
    counts = _Counts()
    for counts.number, line in _lines(source):
        counts.line(line)
    if not counts.placements and not counts.nodes and not counts.splits:
        raise LogError(
            f"{'stdin' if source == '-' else source} says nothing about placement: run with --verbose 1 "
            "(GGML_HEXAGON_VERBOSE=1), --sched-debug (GGML_SCHED_DEBUG=2) and -v"
        )
    placements = list(counts.placements.values())
    _reasons(placements)
    placements.sort(key=lambda item: (-item.no, -(item.yes + item.ran.total()), item.op, item.types, item.dims))
    nodes = sorted(counts.nodes.values(), key=lambda node: (is_npu(node.backend), -node.count, node.op))
    notes = [
        f"{count} {kind} line{'s' * (count > 1)} not readable, the first at line {first}"
        for kind, (count, first) in counts.bad.items()
    ]
    return Audit(source, placements, nodes, counts.splits, counts.most_splits, notes)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _matches(pattern: re.Pattern[str], op: str, text: str) -> bool:
    """In the op's name alone, so that ^ADD$ means what it says, or in its whole text."""
    return bool(pattern.search(op) or pattern.search(text))


def require(found: Audit, pattern: re.Pattern[str]) -> None:
    """Raises HexnpuError (exit 1) when an op that matches left the NPU, or none matches at all."""
    left = [
        f"{item.op} ({item.types}, {item.dims}) was refused {_times(item.no)}: {item.why}"
        for item in found.placements
        if item.no and _matches(pattern, item.op, f"{item.op}|{item.example}|{item.dims}|{item.types}")
    ]
    left += [
        f"{node.op} ran {_times(node.count)} on {node.backend}, for example {node.example}"
        for node in found.nodes
        if not is_npu(node.backend) and _matches(pattern, node.op, f"{node.op}|{node.example}")
    ]
    if left:
        more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
        raise HexnpuError(f"--require {pattern.pattern!r}: {left[0]}{more}")
    texts = [(item.op, f"{item.op}|{item.example}|{item.dims}|{item.types}") for item in found.placements]
    texts += [(node.op, f"{node.op}|{node.example}") for node in found.nodes]
    if not any(_matches(pattern, *both) for both in texts):
        raise HexnpuError(f"--require {pattern.pattern!r}: no op of the log matches, nothing is proved")


_PLACEMENTS = [
    Column("op", "Op", lambda row: row.op, left=True),
    Column("types", "Types", lambda row: row.types, left=True),
    Column("dims", "Dims", lambda row: row.dims, left=True),
    Column("no", "Refused", lambda row: f"{row.no:,}" if row.no else ""),
    Column("yes", "Taken", lambda row: f"{row.yes:,}" if row.yes else ""),
    Column("kernels", "Ran by kernel", lambda row: row.kernels, left=True),
    Column("why", "Hint", lambda row: row.why, left=True, drop=1),
]
_NODES = [
    Column("op", "Op", lambda row: row.op, left=True),
    Column("backend", "Backend", lambda row: row.backend, left=True),
    Column("count", "Nodes", lambda row: f"{row.count:,}"),
    Column("example", "For example", lambda row: row.example, left=True),
]


def _headline(found: Audit) -> list[str]:
    no, yes = (sum(getattr(item, name) for item in found.placements) for name in ("no", "yes"))
    ran = sum(item.ran.total() for item in found.placements)
    npu = sum(node.count for node in found.nodes if is_npu(node.backend))
    other = sum(node.count for node in found.nodes) - npu
    runs = f"{ran:,} profiled run{'s' * (ran != 1)}"
    if yes or no:
        asked = f"{yes + no:,} op{'s' * (yes + no != 1)}"
        lines = [f"the backend was asked for {asked}: {yes:,} taken, {no:,} refused; {runs}"]
    else:
        lines = [
            "no readable supports-op line says what the backend took and refused: run with --verbose 1 "
            f"(GGML_HEXAGON_VERBOSE=1) and -v; {runs}"
        ]
    if found.nodes or found.splits:
        parts = ", ".join(f"{backend} {count:,}" for backend, count in found.splits.most_common())
        most = f"{found.most_splits} split{'s' * (found.most_splits != 1)}"
        lines.append(f"scheduler: {npu:,} node{'s' * (npu != 1)} on the NPU, {other:,} elsewhere; at most {most}"
                     f" a graph ({parts})")
    return lines


def render(found: Audit, form: str, top: int, width: int) -> str:
    """The audit in the wanted format; top 0: all rows."""
    placements = found.placements[:top] if top else found.placements
    nodes = found.nodes[:top] if top else found.nodes
    if form == "json":
        items: list[dict[str, Any]] = [asdict(item) | {"ran": dict(item.ran)} for item in placements]
        whole = {
            "schema": SCHEMA,
            "source": found.source,
            "placements": items,
            "nodes": [asdict(node) | {"npu": is_npu(node.backend)} for node in nodes],
            "splits": dict(found.splits),
            "most_splits": found.most_splits,
            "notes": found.notes,
        }
        return json.dumps(whole, indent=1) + "\n"
    if form == "csv":
        rows = [
            dict(op=p.op, types=p.types, dims=p.dims, refused=p.no, taken=p.yes, ran=p.kernels, why=p.why)
            for p in placements
        ]
        return csv_text(["op", "types", "dims", "refused", "taken", "ran", "why"], rows)
    def draw(titles: list[Column], rows: Sequence[Any]) -> str:
        return markdown(titles, rows) if form == "markdown" else plain(titles, rows, width)

    parts = ["\n".join(_headline(found))]
    if placements:
        parts.append(draw(_PLACEMENTS, placements))
    if len(placements) < len(found.placements):
        parts.append(f"… {len(found.placements) - len(placements)} more (-n 0 shows all)")
    if nodes:
        parts.append(draw(_NODES, nodes))
    if found.notes:
        parts.append("\n".join(f"note: {note}" for note in found.notes))
    return "\n\n".join(parts) + "\n"
