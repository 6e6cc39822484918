"""`hexnpu devices`: what programs could be pushed to."""

from __future__ import annotations

import sys

WIDE = 1000


def devices() -> None:
    """List ADB devices and the SSH hosts of ~/.ssh/config, with model, SoC and Hexagon arch where they tell."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hexnpu.deploy.inventory import inventory
    from hexnpu.errors import one_line

    table = Table("target", "model", "SoC", "Hexagon", "state", box=None, header_style="bold", pad_edge=False)
    for found in inventory():
        arch = f"v{found.arch}" if found.arch else ""
        cells = (found.target, found.model, found.soc, arch, found.state)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    # A pipe has no width to fit into.
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)
