"""`hexnpu trace`: a device log as a Perfetto trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hexnpu.cli import profiler


def trace(
    log: Annotated[
        str, typer.Argument(metavar="LOG", help="a log (also .gz, .zst), a folder written by --export, or - for stdin")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="FILE.perfetto-trace")] = None,
    chrome: Annotated[Path | None, typer.Option(help="write the JSON trace format to this file")] = None,
    filter: Annotated[str | None, typer.Option(help="only ops whose text matches, with their events")] = None,
    device: Annotated[str | None, typer.Option(help="devices (HTP0,HTP1:0), or `split` for a file each")] = None,
    phase: Annotated[str, typer.Option(help="prefill, decode, warm-up or all")] = "all",
    head: Annotated[int | None, typer.Option(help="only the first N ops of each device")] = None,
    tail: Annotated[int | None, typer.Option(help="only the last N ops of each device")] = None,
    skip_batches: Annotated[int, typer.Option(help="leave out the first N batches of each device")] = 0,
    batches: Annotated[str | None, typer.Option(help="FIRST:END, a range of each device's batches")] = None,
) -> None:
    """Batches, ops and thread events on one time axis, for ui.perfetto.dev."""
    run = profiler.load()
    run.trace(run.TraceArguments(log, output, chrome, filter, device, phase, head, tail, skip_batches, batches))
