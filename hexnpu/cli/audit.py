"""`hexnpu audit`: which ops ran on the NPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hexnpu.cli import profiler


def audit(
    log: Annotated[str, typer.Argument(metavar="LOG", help="a verbose log (also .gz, .zst), or - for stdin")],
    require: Annotated[
        list[str] | None, typer.Option(help="exit 1 when an op that matches this regex left the NPU, repeatable")
    ] = None,
    top: Annotated[
        int | None, typer.Option("-n", "--top", help="rows to show, 0 = all", show_default="40 in a table, else all")
    ] = None,
    format: Annotated[str, typer.Option("--format", help="table, json, csv or markdown")] = "table",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="write to this file, not to stdout")] = None,
) -> None:
    """Which ops the NPU took and refused, where the scheduler put them, and which kernels ran."""
    run = profiler.load()
    run.audit(run.AuditArguments(log, tuple(require or ()), top, format, output))
