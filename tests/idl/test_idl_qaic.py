"""Our stubs call skels of the published compiler and the other way round, and put the same bytes on the wire.

Needs `qaic` on the PATH; nothing in CI builds it. It takes half a minute with Debian's ghc and libghc-syb-dev:

    git clone https://github.com/qualcomm/QAIC && cd QAIC/src && ghc -O0 file2hs/file2hs.hs -o f2h
    for n in Stub Skel CStub Env Allocator Wstring Slim; do
        ./f2h Language.SO.$n source < Language/SO/$n.c > Language/SO/$n.hs
    done
    printf '%s = "x"\\n' gitcommit ghcVersion cabalVersion platform >> Compiler/Version.hs
    ghc -O0 -threaded Qidlc.hs -o ~/bin/qaic
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import require_tool
from tests.idl import driver
from tests.idl.generated import HERE, SANITIZERS, include_flags, read_unit, run, seen, write_files

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("qaic"), reason="qaic is not installed")]


def for_qaic(text: str) -> str:
    """every.idl without what that compiler refuses: macros as sizes, arrays of arrays, types of modules, handles."""
    text = text.split("// The old kind")[0] + "#endif\n"
    text = re.sub(r"    long (arrays|handles|only_handle)\(.*?\);\n", "", text, flags=re.DOTALL)
    text = text.replace("#define SIDES 2\n", "").replace("[SIDES][3]", "[6]").replace("[SIDES][SIDES]", "[4]")
    text = re.sub(r"module parts \{\n(.*?)\n\};\n", r"\1\n", text, flags=re.DOTALL)
    return text.replace("parts::", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qaic")
    path = folder / "every.idl"
    path.write_text(for_qaic((HERE / "every.idl").read_text()))
    for name in ("ours", "theirs"):
        (folder / name).mkdir()
    unit = write_files(path, folder / "ours")
    bases = include_flags(folder)[-1].removeprefix("-I")
    run(["qaic", "-I", bases, "-o", str(folder / "theirs"), str(path)])
    interface = unit.interfaces[0]
    (folder / "caller.c").write_text(driver.caller(unit, interface))
    (folder / "callee.c").write_text(driver.implementation(unit, interface))
    (folder / "names.h").write_text(driver.names(interface))
    (folder / "debug.c").write_text("void HAP_debug_runtime(void);\nvoid HAP_debug_runtime(void) {}\n")
    return folder


def output(folder: Path, stub: str, skel: str) -> str:
    compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    objects = []
    sources = ((f"{stub}/every_stub.c", stub), ("caller.c", stub), (f"{skel}/every_skel.c", skel), ("callee.c", skel))
    for number, (source, headers) in enumerate((*sources, ("debug.c", "ours"))):
        names = ["-include", str(folder / "names.h")] if number in (2, 3) else []
        objects.append(str(folder / f"{number}.o"))
        # Sanitizers watch our code only; theirs breaks rules of C that do not matter here.
        flags = ["-g"] if source.startswith("theirs") else SANITIZERS
        run([compiler, "-std=gnu11", "-w", *flags, *names, *include_flags(folder / headers), "-c", str(folder / source),
             "-o", objects[-1]])  # fmt: skip
    run([compiler, *SANITIZERS, *objects, "-o", str(folder / "program")])
    return run([str(folder / "program"), "7", "60"])


def test_each_side_understands_the_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Padding in their records is whatever malloc left there; with zeros the bytes can be compared.
    monkeypatch.setitem(os.environ, "ASAN_OPTIONS", "max_malloc_fill_size=100000000:malloc_fill_byte=0")
    ours = output(folder, "ours", "ours")
    for stub, skel in (("ours", "theirs"), ("theirs", "ours")):
        text = output(folder, stub, skel)
        for what in ("in", "out"):
            assert seen(text, "caller", what) == seen(text, "callee", what)
        assert text == ours, f"{stub} stub and {skel} skel print something else, the wire's bytes included"


def test_types_are_theirs(folder: Path) -> None:
    """Prototypes are equal word for word, but for where qaic puts its annotations and the stars."""

    def prototypes(name: str) -> dict[str, str]:
        text = (folder / name / "every.h").read_text()
        found = re.findall(
            r"(?:__QAIC_HEADER\((\w+)\)|(?<=[ ])(every_\w+))\((.*?)\)(?: __QAIC_HEADER_ATTRIBUTE)?;", text
        )
        return {a or b: re.sub(r"\s*\*\s*", " *", parameters) for a, b, parameters in found}

    unit = read_unit(folder / "every.idl")
    ours = prototypes("ours")
    assert len(ours) == len(unit.interfaces[0].methods)
    assert ours == prototypes("theirs")
