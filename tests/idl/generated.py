"""Compiles interface files and what comes of them, for the tests."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hexnpu.idl import compile_idl
from hexnpu.idl.model import Unit
from hexnpu.idl.parser import Parser
from hexnpu.idl.preprocess import Preprocessor
from hexnpu.native import kernels_dir
from tests.conftest import require_tool
from tests.idl import driver

HERE = Path(__file__).parent
WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")
SANITIZERS = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def include_flags(folder: Path) -> list[str]:
    return [f"-I{folder}", f"-I{HERE}", f"-I{kernels_dir() / 'platform/hexagon/sdk'}"]


def read_unit(path: Path, folders: tuple[Path, ...] = ()) -> Unit:
    source = Preprocessor(folders)
    source.read(path)
    return Parser(source.tokens, path, tuple(source.included)).parse()


def write_files(path: Path, folder: Path, folders: tuple[Path, ...] = ()) -> Unit:
    for name, text in compile_idl(path, folders).items():
        (folder / name).write_text(text)
    return read_unit(path, folders)


def every_idl(folder: Path) -> Path:
    """every.idl with its methods a second time, with an index beyond 31."""
    text = (HERE / "every.idl").read_text()
    first, rest = text.split("    AEEResult nothing();", 1)
    methods, last = rest.split("};\n\n// The old kind", 1)
    methods = "    AEEResult nothing();" + methods
    fill = "".join(f"    long fill_{i}();\n" for i in range(15))
    again = re.sub(r"^    (\w+) (\w+)\(", r"    \1 \2_again(", methods, flags=re.MULTILINE)
    path = folder / "every.idl"
    path.write_text(first + methods + fill + again + "};\n\n// The old kind" + last)
    return path


def build(unit: Unit, name: str, folder: Path) -> Path:
    """A program of caller, stub, transport, skel and implementation of one interface, with sanitizers."""
    compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    interface = next(i for i in unit.interfaces if i.c == name)
    (folder / f"{name}_caller.c").write_text(driver.caller(unit, interface))
    (folder / f"{name}_callee.c").write_text(driver.implementation(unit, interface))
    names = folder / f"{name}_names.h"
    names.write_text(driver.names(interface))
    objects = []
    for part in ("stub", "caller", "skel", "callee"):
        side = ["-include", str(names)] if part in ("skel", "callee") else []
        objects.append(str(folder / f"{name}_{part}.o"))
        source = folder / f"{name}_{part}.c"
        run([compiler, *WARNINGS, *SANITIZERS, *include_flags(folder), *side, "-c", str(source), "-o", objects[-1]])
    program = folder / name
    run([compiler, *SANITIZERS, *objects, "-o", str(program)])
    return program


def run(command: list[str]) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, (
        f"{' '.join(command)}: exit {result.returncode}\n{result.stdout[-2000:]}{result.stderr}"
    )
    return result.stdout


def seen(output: str, side: str, what: str) -> list[str]:
    """What one side printed of one direction: parameter and hash."""
    return [line.split(" ", 2)[2] for line in output.splitlines() if line.startswith(f"{side} {what} ")]
