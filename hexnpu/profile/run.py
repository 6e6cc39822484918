"""The commands behind `hexnpu profile`, `trace`, `compare` and `audit`: arguments checked, log read, output written."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from hexnpu.errors import UsageError
from hexnpu.profile import table
from hexnpu.profile.columns import Log
from hexnpu.profile.errors import LogError
from hexnpu.profile.output import spare, whole_file
from hexnpu.profile.parse.reader import read_log
from hexnpu.profile.peaks import peak_of
from hexnpu.profile.phases import PHASES, find_steps
from hexnpu.profile.report import Report, Shape, make_report, notes
from hexnpu.profile.select import Chosen, Selection, check_filter, choose, devices_of
from hexnpu.profile.timeline import Timeline, build

if TYPE_CHECKING:
    from hexnpu.profile.tracks import Model

TABLE_TOP = 25
WARN_BYTES = 500_000_000
FORMATS = ("table", "json", "csv", "markdown")
TIMELINES = ("summary", "bubbles")


@dataclass
class ProfileArguments:
    """The flags of `hexnpu profile`, as typed."""

    log: str
    by: str = "op"
    sort: str = "total"
    top: int | None = None
    filter: str | None = None
    device: str | None = None
    phase: str = "all"
    head: int | None = None
    tail: int | None = None
    skip_batches: int = 0
    width: tuple[str, ...] = ()
    pmu_index: tuple[int, ...] = ()
    pmu_name: tuple[str, ...] = ()
    arch: str | None = None
    timeline: str | None = None
    format: str = "table"
    output: Path | None = None
    html: Path | None = None
    export: Path | None = None


def load(source: str, want_events: bool, head: int | None = None) -> Log:
    """The log, or a folder that `--export` wrote."""
    if source != "-" and Path(source).is_dir():
        from hexnpu.profile import parquet

        return parquet.read(Path(source))
    return read_log(source, want_events, head)


def terminal_width() -> int:
    """Columns of the terminal (or COLUMNS); 0, unlimited, when the output is no terminal."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size((120, 24)).columns
    return 0


def _named_counters(indices: tuple[int, ...], names: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Counters without a name have an empty one until the log's banner may tell which events they count."""
    if len(names) > len(indices):
        raise UsageError("--pmu-name needs a --pmu-index for each name")
    return tuple(zip(indices, [*names, *[""] * (len(indices) - len(names))], strict=True))


def _events_as_names(shape: Shape, log: Log) -> Shape:
    events = [f"pmu {event:#x}" for event in log.pmu_events]
    named = [(i, name or (events[i] if i < len(events) else f"pmu{i}")) for i, name in shape.pmu]
    return replace(shape, pmu=tuple(named))


def _check(arguments: ProfileArguments) -> tuple[Selection, Shape, dict[str, int]]:
    a = arguments
    want = Selection(a.device, a.phase, a.filter, a.head, a.tail, a.skip_batches)
    want.check()
    shape = Shape(a.by, a.sort, _named_counters(a.pmu_index, a.pmu_name), peak_of(a.arch) if a.arch else None)
    shape.check()
    _check_format(a.format, a.top, a.width)
    if a.timeline is not None and a.timeline not in TIMELINES:
        raise UsageError(f"--timeline {a.timeline}: give summary or bubbles")
    if a.timeline and (want.partial or a.by != "op" or a.html):
        raise UsageError("--timeline is a report of its own: leave out --by, --head, --tail and --html")
    if a.html is not None and (a.output is not None or a.format != "table"):
        raise UsageError("--html is a report of its own: leave out --output and --format")
    return want, shape, table.parse_widths(list(a.width))


def _arch_note(report: Report, arch: str) -> None:
    peak = peak_of(arch)
    report.notes.append(f"%DMA of {peak.dma_gbs:g} GB/s: {peak.dma_source}")
    report.notes.append(f"%HMX of {peak.hmx_gflops:,g} GFLOP/s: {peak.hmx_source}")


def profile(arguments: ProfileArguments) -> None:
    """`hexnpu profile`."""
    want, shape, widths = _check(arguments)
    spare([arguments.log], [arguments.output, arguments.html, arguments.export])
    need_events = bool(arguments.timeline or arguments.html or arguments.export)
    head = arguments.head if not need_events and arguments.filter is None and arguments.device is None else None
    log = load(arguments.log, need_events, head)
    line = build(log)
    steps = find_steps(line)
    shape = _events_as_names(shape, log)
    if arguments.export is not None:
        from hexnpu.profile import parquet

        parquet.write(line, steps, arguments.export)
    if arguments.html is not None:
        from hexnpu.profile import html

        page = html.page(line, steps, want, shape)
        with whole_file(arguments.html) as stream:
            stream.write(page.encode("utf-8", "replace"))
        return
    if arguments.timeline is not None:
        from hexnpu.profile import busy

        width = 0 if arguments.output else terminal_width()
        text = busy.report(line, steps, want, arguments.timeline, arguments.format, arguments.top, width)
    else:
        report = make_report(line, steps, want, shape)
        if not report.sections:
            phases = ", ".join(sorted({PHASES[phase] for phase in steps.batch_phase.tolist()}))
            raise LogError(f"nothing of {log.source} is left to show; its batches are: {phases}")
        text = _report_text(arguments, report, widths)
    _write(text, arguments.output)


def _report_text(arguments: ProfileArguments, report: Report, widths: dict[str, int]) -> str:
    if arguments.arch:
        _arch_note(report, arguments.arch)
    if arguments.format == "table":
        top = TABLE_TOP if arguments.top is None else arguments.top
        return table.table(report, 0 if arguments.output else terminal_width(), top, widths)
    from hexnpu.profile import formats

    render = {"json": formats.to_json, "csv": formats.to_csv, "markdown": formats.to_markdown}[arguments.format]
    return render(report, arguments.top or 0)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    with whole_file(output) as stream:
        stream.write(text.encode("utf-8", "replace"))


@dataclass
class TraceArguments:
    """The flags of `hexnpu trace`, as typed."""

    log: str
    output: Path | None = None
    chrome: Path | None = None
    filter: str | None = None
    device: str | None = None
    phase: str = "all"
    head: int | None = None
    tail: int | None = None
    skip_batches: int = 0
    batches: str | None = None


def _batch_range(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, colon, end = text.partition(":")
    good = colon and all(part == "" or part.isdecimal() for part in (first, end))
    found = (int(first or 0), int(end) if end else 1 << 60) if good else (0, 0)
    if found[0] >= found[1]:
        raise UsageError(f"--batches {text}: give FIRST:END, the END not included, as in --batches 10:20")
    return found


def trace(arguments: TraceArguments) -> None:
    """`hexnpu trace`."""
    a = arguments
    batches = _batch_range(a.batches)
    want = Selection(a.device, a.phase, a.filter, a.head, a.tail, a.skip_batches, batches)
    want.check()
    if a.output is None and a.chrome is None:
        raise UsageError("give a file to write: -o FILE.perfetto-trace, or --chrome FILE.json")
    if a.output is not None and a.chrome is not None and a.output.absolute() == a.chrome.absolute():
        raise UsageError(f"--output and --chrome are both {a.output}: give two files")
    log = load(a.log, want_events=True)
    line = build(log)
    chosen = choose(line, find_steps(line), want)
    check_filter(chosen, want, log)
    if not chosen.matching.any() and not chosen.batches.any():
        raise LogError(f"nothing of {log.source} is left to draw: widen --filter, --phase or --batches")
    for note in notes(line):
        print(f"note: {note}", file=sys.stderr)
    devices = devices_of(log, want.device)
    parts = [(a, devices)]
    if want.split:
        parts = [(_of_device(a, log.devices[device]), [device]) for device in devices]
    spare([a.log], [path for part, _ in parts for path in (part.output, part.chrome)])
    for part, group in parts:
        _write_trace(part, line, chosen, group)


def _of_device(a: TraceArguments, device: str) -> TraceArguments:
    """The arguments with the device in the names of the files."""
    suffix = "." + re.sub(r"[^A-Za-z0-9_.-]", "-", device)
    output, chrome = (path and path.parent / f"{path.stem}{suffix}{path.suffix}" for path in (a.output, a.chrome))
    return replace(a, output=output, chrome=chrome)


def _write_trace(a: TraceArguments, line: Timeline, chosen: Chosen, devices: list[int]) -> None:
    mine = np.isin(line.batches.device, devices)
    part = replace(chosen, batches=chosen.batches & mine)
    from hexnpu.profile.tracks import build_model

    filtered = a.filter is not None or a.head is not None or a.tail is not None
    model = build_model(line, find_steps(line), part, devices, filtered)
    if a.output is not None:
        from hexnpu.profile import perfetto

        estimate = perfetto.estimate_bytes(model)
        if estimate > WARN_BYTES:
            print(
                f"warning: the trace will take about {estimate >> 20} MiB, more than the Perfetto UI opens well: "
                "cut a range with --batches A:B, or use --device split",
                file=sys.stderr,
            )
        _write_model(model, a.output, lambda stream: perfetto.Writer(model, stream).write())
    if a.chrome is not None:
        from hexnpu.profile import chrome

        _write_model(model, a.chrome, lambda stream: chrome.write(model, stream))


def _size(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MiB" if size >= 1 << 20 else f"{size / 1024:,.1f} KiB"


def _write_model(model: Model, path: Path, write: Callable[[IO[bytes]], None]) -> None:
    with whole_file(path) as stream:
        write(stream)
    size = f", {_size(path.stat().st_size)}" if path.is_file() else ""  # of a pipe there is none
    print(f"{path}: {model.n_slices:,} slices{size}", file=sys.stderr)


@dataclass
class CompareArguments:
    """The flags of `hexnpu compare`, as typed."""

    a: str
    b: str
    by: str = "op"
    fail_above: str | None = None
    filter: str | None = None
    device: str | None = None
    phase: str = "all"
    skip_batches: int = 0
    top: int | None = None
    width: tuple[str, ...] = ()
    format: str = "table"
    output: Path | None = None


def _percent(text: str) -> float:
    try:
        value = float(text.rstrip("% "))
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise UsageError(f"--fail-above {text}: give a percentage, as in --fail-above 5%")
    return value


def _check_format(form: str, top: int | None, width: tuple[str, ...] = ()) -> None:
    if form not in FORMATS:
        raise UsageError(f"--format {form}: give one of {', '.join(FORMATS)}")
    if top is not None and top < 0:
        raise UsageError(f"--top {top}: give a number from 0 (all) on")
    if width and form != "table":
        raise UsageError(f"--width is for tables, not for --format {form}")


def compare(arguments: CompareArguments) -> None:
    """`hexnpu compare`."""
    from hexnpu.profile import compare as work

    a = arguments
    limit = None if a.fail_above is None else _percent(a.fail_above)
    want = Selection(a.device, a.phase, a.filter, skip_batches=a.skip_batches)
    want.check()
    Shape(a.by).check()
    _check_format(a.format, a.top, a.width)
    if want.split:
        raise UsageError("--device split is not for compare: use --by device")
    if a.a == "-" and a.b == "-":
        raise UsageError("only one of the two logs can come from stdin")
    fixed = table.parse_widths(list(a.width))
    spare([a.a, a.b], [a.output])
    sides = []
    for source in (a.a, a.b):
        line = build(load(source, want_events=False))
        steps = find_steps(line)
        sides.append(work.Side(line, steps, choose(line, steps, want)))
    found = work.compare(sides[0], sides[1], a.by)
    if not found.pairs:
        raise LogError(f"nothing of {a.a} and {a.b} is left to compare: widen --filter or --phase")
    over = [] if limit is None else work.over_limit(found, limit)
    found.pairs = list(dict.fromkeys(over + found.pairs))  # what fails comes first: it is seen, however few are
    top = a.top if a.top is not None else 40 if a.format == "table" else 0
    _write(work.render(found, a.format, top, 0 if a.output else terminal_width(), fixed), a.output)
    if over and limit is not None:
        sys.stdout.flush()
        work.fail(over, limit)


@dataclass
class AuditArguments:
    """The flags of `hexnpu audit`, as typed."""

    log: str
    require: tuple[str, ...] = ()
    top: int | None = None
    format: str = "table"
    output: Path | None = None


def audit(arguments: AuditArguments) -> None:
    """`hexnpu audit`."""
    from hexnpu.profile import audit as work

    a = arguments
    _check_format(a.format, a.top)
    patterns = []
    for text in a.require:
        try:
            patterns.append(re.compile(text))
        except re.error as error:
            raise UsageError(f"--require {text!r} is not a regular expression: {error}") from None
    spare([a.log], [a.output])
    found = work.audit(a.log)
    top = a.top if a.top is not None else 40 if a.format == "table" else 0
    _write(work.render(found, a.format, top, 0 if a.output else terminal_width()), a.output)
    sys.stdout.flush()
    for pattern in patterns:
        work.require(found, pattern)
