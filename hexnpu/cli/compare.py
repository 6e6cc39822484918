"""`hexnpu compare`: two device logs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hexnpu.cli import profiler


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="the log (or exported folder) to compare with")],
    b: Annotated[str, typer.Argument(metavar="B", help="the log (or exported folder) that is judged")],
    by: Annotated[str, typer.Option(help="match by op, layer, role, engine, device or kernel")] = "op",
    fail_above: Annotated[str | None, typer.Option(help="exit 1 when a group is slower by more, as in 5%")] = None,
    filter: Annotated[str | None, typer.Option(help="only ops whose text matches this regular expression")] = None,
    device: Annotated[str | None, typer.Option(help="devices (HTP0,HTP1:0)")] = None,
    phase: Annotated[str, typer.Option(help="prefill, decode, warm-up or all")] = "all",
    skip_batches: Annotated[int, typer.Option(help="leave out the first N batches of each device")] = 0,
    top: Annotated[
        int | None, typer.Option("-n", "--top", help="groups to show, 0 = all", show_default="40 in a table, else all")
    ] = None,
    width: Annotated[list[str] | None, typer.Option(help="COLUMN:CHARACTERS, repeatable")] = None,
    format: Annotated[str, typer.Option("--format", help="table, json, csv or markdown")] = "table",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="write to this file, not to stdout")] = None,
) -> None:
    """What became slower or faster from A to B, regressions first, with an estimate of the noise."""
    run = profiler.load()
    arguments = run.CompareArguments(a, b, by, fail_above, filter, device, phase, skip_batches, top)
    arguments.width, arguments.format, arguments.output = tuple(width or ()), format, output
    run.compare(arguments)
