"""The compiler of FastRPC interface files: FILE.idl -> FILE.h, and for each interface NAME_stub.c and NAME_skel.c."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hexnpu.errors import UsageError
from hexnpu.idl.header import write_header
from hexnpu.idl.parser import Parser
from hexnpu.idl.preprocess import OWN_FILES, Preprocessor
from hexnpu.idl.skel import write_skel
from hexnpu.idl.stub import write_stub


def compile_idl(path: Path, folders: Sequence[Path] = ()) -> dict[str, str]:
    """The files that an interface file makes, by name. Included files are looked for in `folders`."""
    if path.name in OWN_FILES:
        raise UsageError(f"{path.name} only serves to be included; compile the file of your interface")
    source = Preprocessor(folders)
    source.read(path)
    try:
        unit = Parser(source.tokens, path, tuple(source.included)).parse()
    except RecursionError:
        raise UsageError(
            f"{path}: brackets inside brackets without end; name the parts with typedef or const"
        ) from None
    files = {f"{unit.name}.h": write_header(unit)}
    for interface in unit.interfaces:
        files[f"{interface.c}_stub.c"] = write_stub(unit, interface)
        files[f"{interface.c}_skel.c"] = write_skel(unit, interface)
    return files
