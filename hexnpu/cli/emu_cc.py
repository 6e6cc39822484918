"""`hexnpu emu-cc`: hexagon-clang for the emulator. Its arguments are a compiler's and pass by typer."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def emu_cc(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="What hexagon-clang takes; --sdk-root prints a Hexagon SDK's folder.")
    ] = None,
) -> None:
    """Compile DSP sources, or link a DSP library, for the emulator: a stand-in for hexagon-clang."""
    from hexnpu.emucc.command import run

    sys.exit(run(arguments or []))
