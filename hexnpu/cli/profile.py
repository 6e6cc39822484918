"""`hexnpu profile`: a device log as a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hexnpu.cli import profiler


def profile(
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="a log (also .gz, .zst), a folder written by --export, or - for stdin")
    ],
    by: Annotated[str, typer.Option(help="group by op, layer, role, engine, device or kernel")] = "op",
    sort: Annotated[str, typer.Option(help="total, avg, median, max, count, gbs, gflops, name ...")] = "total",
    top: Annotated[
        int | None,
        typer.Option(
            "-n", "--top", help="groups to show, 0 = all", show_default="25, or 40 bubbles, in a table, else all"
        ),
    ] = None,
    filter: Annotated[str | None, typer.Option(help="only ops whose text matches this regular expression")] = None,
    device: Annotated[str | None, typer.Option(help="devices (HTP0,HTP1:0), or `split` for a table each")] = None,
    phase: Annotated[str, typer.Option(help="prefill, decode, warm-up or all")] = "all",
    head: Annotated[int | None, typer.Option(help="only the first N ops of each device")] = None,
    tail: Annotated[int | None, typer.Option(help="only the last N ops of each device")] = None,
    skip_batches: Annotated[int, typer.Option(help="leave out the first N batches of each device")] = 0,
    width: Annotated[list[str] | None, typer.Option(help="COLUMN:CHARACTERS, repeatable")] = None,
    pmu_index: Annotated[list[int] | None, typer.Option(help="show this PMU counter (0-7), repeatable")] = None,
    pmu_name: Annotated[list[str] | None, typer.Option(help="its name, one for each --pmu-index")] = None,
    arch: Annotated[str | None, typer.Option(help="v73, v75, v79, v81: fractions of the chip's peak")] = None,
    timeline: Annotated[str | None, typer.Option(help="summary: busy time per thread; bubbles: long idle gaps")] = None,
    format: Annotated[str, typer.Option("--format", help="table, json, csv or markdown")] = "table",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="write to this file, not to stdout")] = None,
    html: Annotated[Path | None, typer.Option(help="write one self-contained HTML page, and no report")] = None,
    export: Annotated[
        Path | None, typer.Option(help="write ops, events and batches as Parquet to this folder, beside the report")
    ] = None,
) -> None:
    """Where the time of a run went, from a llama.cpp or hexnpu log."""
    run = profiler.load()
    arguments = run.ProfileArguments(log, by, sort, top, filter, device, phase, head, tail, skip_batches)
    arguments.width = tuple(width or ())
    arguments.pmu_index, arguments.pmu_name = tuple(pmu_index or ()), tuple(pmu_name or ())
    arguments.arch, arguments.timeline, arguments.format = arch, timeline, format
    arguments.output, arguments.html, arguments.export = output, html, export
    run.profile(arguments)
