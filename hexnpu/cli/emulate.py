"""`hexnpu emulate`: a host program for the NPU, run on this machine over the stand-in of libcdsprpc.so."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def emulate(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- PROGRAM ARGS...", help="The host program and its arguments.")
    ] = None,
    arch: Annotated[
        str | None, typer.Option(metavar="v73|v75|v79|v81", help="The NPU's architecture.", show_default="v79")
    ] = None,
    hvx: Annotated[int | None, typer.Option(min=1, max=16, help="Vector contexts.", show_default="4")] = None,
    hmx: Annotated[int | None, typer.Option(min=0, max=4, help="Matrix units.", show_default="1")] = None,
    vtcm: Annotated[
        int | None, typer.Option(min=1, max=64, metavar="MB", help="Vector memory.", show_default="8")
    ] = None,
    npus: Annotated[int | None, typer.Option(min=1, max=4, help="NPUs: cdsp, cdsp1 ...", show_default="1")] = None,
) -> None:
    """Run a host program that opens libcdsprpc.so; its exit code, and a summary on stderr at the end."""
    from hexnpu.emulate import Machine, run_emulated
    from hexnpu.native import parse_arch

    if not command:
        print(context.get_help())
        sys.exit(2)
    machine = Machine(None if arch is None else parse_arch(arch), hvx, hmx, vtcm, npus)
    code, counters = run_emulated(command, machine)
    print(f"hexnpu emulate: {counters}", file=sys.stderr)
    sys.exit(code)
