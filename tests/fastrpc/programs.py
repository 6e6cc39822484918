"""Host programs and DSP libraries of these tests: built from C once, run over the stand-in."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hexnpu.cache import cache_dir
from hexnpu.emulator_build import FASTRPC, PROGRAM, client_sources, emulator_folder
from hexnpu.native import Target, compile_program, kernels_dir
from tests.processes import HANG_S

HERE = Path(__file__).resolve().parent


@functools.cache
def dsp_library(source: str, *flags: str, name: str | None = None) -> Path:
    """lib<source>.so in a folder of its own, by `hexnpu emu-cc`."""
    path = HERE / f"{source}.c"
    headers = sorted([*HERE.glob("*.h"), *(kernels_dir() / "platform").rglob("*.h")])
    compiler = sorted((HERE.parents[1] / "hexnpu/emucc").glob("*.py"))
    digest = hashlib.sha256(repr((flags, name)).encode())
    for part in (path, *headers, *compiler):
        digest.update(part.read_bytes())
    folder = cache_dir() / "tests" / f"{source}-{digest.hexdigest()[:16]}"
    library = folder / (name or f"lib{source}.so")
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / f".{os.getpid()}.so"
        command = [sys.executable, "-m", "hexnpu.emucc", "-shared", "-O1", "-g", f"-Wl,-soname,{library.name}", *flags]
        subprocess.run([*command, str(path), "-o", str(made)], check=True)
        made.rename(library)
    return library


@functools.cache
def host_program(name: str, flavour: str = "release") -> Path:
    """A host program with the public headers only, linked against the stand-in by its soname.

    The tsan flavour has the stand-in's sources in the program: there must be one ThreadSanitizer, and zig gives each
    library its own.
    """
    if flavour == "tsan":
        include = [f"-I{HERE}", f"-I{kernels_dir() / FASTRPC}"]
        return compile_program(name, [HERE / f"{name}.c", *client_sources()], Target(flavour, plain=True), include)
    link = [f"-L{emulator_folder(flavour, 'release')}", "-lcdsprpc"]
    return compile_program(name, [HERE / f"{name}.c"], Target(flavour, plain=True), [f"-I{HERE}"], link)


def run_host(
    name: str,
    *arguments: str,
    flavour: str = "release",
    libraries: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a host program with the stand-in first in the loader's path."""
    folder = emulator_folder("release" if flavour == "tsan" else flavour, "release")
    variables = {
        "LD_LIBRARY_PATH": str(folder),
        "HEXNPU_EMU_PD": str(folder / PROGRAM),
        "ADSP_LIBRARY_PATH": ";".join(str(library.parent) for library in libraries),
        **(environment or {}),
    }
    return subprocess.run(
        [host_program(name, flavour), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env=os.environ | variables,
    )
