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
    arch: Annotated[str, typer.Option(metavar="v73|v75|v79|v81", help="The NPU's architecture.")] = "v79",
    hvx: Annotated[int, typer.Option(min=1, max=16, help="Vector contexts.")] = 4,
    hmx: Annotated[int, typer.Option(min=0, max=4, help="Matrix units.")] = 1,
    vtcm: Annotated[int, typer.Option(min=1, max=64, metavar="MB", help="Vector memory.")] = 8,
    npus: Annotated[int, typer.Option(min=1, max=4, help="NPUs: cdsp, cdsp1 ...")] = 1,
) -> None:
    """Run a host program that opens libcdsprpc.so; its exit code, and a summary on stderr at the end."""
    from hexnpu.emulate import Machine, run_emulated

    if not command:
        print(context.get_help())
        sys.exit(2)
    machine = Machine(_arch(arch), hvx, hmx, vtcm, npus)
    code, counters = run_emulated(command, machine)
    print(f"hexnpu emulate: {counters}", file=sys.stderr)
    sys.exit(code)


def _arch(text: str) -> int:
    from hexnpu.errors import UsageError
    from hexnpu.native import ARCHS

    number = text.removeprefix("v")
    if number not in map(str, ARCHS):
        raise UsageError(f"--arch {text}: there are {', '.join(f'v{arch}' for arch in ARCHS)}")
    return int(number)
