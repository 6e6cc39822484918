"""`hexnpu ops`: what the NPU takes, by type."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def ops(
    everything: Annotated[bool, typer.Option("--all", help="Also the ops that have no kernel yet.")] = False,
) -> None:
    """List the ops with an NPU kernel and the types each takes; everything else runs in numpy."""
    from rich.console import Console
    from rich.table import Table

    from hexnpu.plan.base import Device
    from hexnpu.support import support

    table = Table("code", "op", "types", "kernels", box=None, header_style="bold", pad_edge=False)
    rows = list(support(Device()))
    for row in rows:
        if row.types or everything:
            types = " ".join(t.lower() for t in row.types) or "[dim]no kernel: numpy[/dim]"
            table.add_row(str(row.code), row.op, types, " ".join(row.kernels))
    # In a file or a pipe every op is one line, however long.
    Console(width=None if sys.stdout.isatty() else 1000).print(table)
    print(f"{sum(bool(r.types) for r in rows)} of {len(rows)} ops have an NPU kernel")
