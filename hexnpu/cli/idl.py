"""`hexnpu idl`: stub and skel of a FastRPC interface."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer


def idl(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The interface file, NAME.idl.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the files; made if it is missing.")
    ] = Path(),
    include: Annotated[
        list[Path] | None, typer.Option("-I", "--include", help="A folder of included files, repeatable.")
    ] = None,
) -> None:
    """Write NAME.h, NAME_stub.c (the caller's side) and NAME_skel.c (the DSP's side) of an interface."""
    from hexnpu.errors import UsageError
    from hexnpu.idl import compile_idl

    files = compile_idl(file, include or ())
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output, prefix=".idl-") as scratch:  # all of them, or none
            for name, text in files.items():
                (Path(scratch) / name).write_text(text, encoding="utf-8")
            for name in files:
                (Path(scratch) / name).replace(output / name)
    except OSError as error:
        raise UsageError(f"cannot write into {output}: {error.strerror}; give another folder with -o") from None
    for name in files:
        print(output / name)
