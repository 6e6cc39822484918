"""The ELF reader against programs that zig links, and against readelf's view of this machine's own."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.deploy.checks import State
from hexnpu.deploy.doctor_there import TargetDoctor
from hexnpu.deploy.elf import Elf, Read, read_elf
from hexnpu.deploy.local import LocalDevice
from hexnpu.deploy.targets import parse_target
from tests.conftest import require_tool


def reader(data: bytes) -> Read:
    return lambda offset, size: data[offset : offset + size]


def test_this_python() -> None:
    """Against the loader's own words."""
    program = Path(sys.executable).resolve()
    file = read_elf(reader(program.read_bytes()))
    assert file and file.bits == 64
    assert file.interpreter and Path(file.interpreter).exists()
    ldd = subprocess.run([file.interpreter, "--list", program], capture_output=True, text=True, check=True).stdout
    assert file.needed and set(file.needed) <= set(re.findall(r"^\s*(\S+) =>", ldd, re.M))


@pytest.mark.skipif(not shutil.which("readelf"), reason="needs binutils")
def test_against_readelf() -> None:
    library = next(Path("/lib").rglob("libcrypto.so*"))
    file = read_elf(reader(library.read_bytes()))
    words = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert file and list(file.needed) == re.findall(r"NEEDED.*\[(.*)\]", words)


CASES = [
    ("aarch64-linux-gnu", "aarch64", 64, ("libx.so", "libc.so.6"), ("$ORIGIN/../lib", "/opt/lib")),
    ("arm-linux-gnueabihf", "arm", 32, ("libx.so", "libc.so.6"), ("$ORIGIN/../lib", "/opt/lib")),
    ("aarch64-linux-musl", "aarch64", 64, (), ()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "machine", "bits", "needed", "run_path"), CASES)
def test_linked_by_zig(
    tmp_path: Path, target: str, machine: str, bits: int, needed: tuple[str, ...], run_path: tuple[str, ...]
) -> None:
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    (tmp_path / "x.c").write_text("int x(void) { return 3; }")
    (tmp_path / "m.c").write_text("int x(void); int main(void) { return x(); }")
    sources = ["m.c", "x.c"] if not needed else ["m.c", "libx.so", "-Wl,-rpath,$ORIGIN/../lib:/opt/lib"]
    if needed:
        subprocess.run([*zig, "-shared", "-Wl,-soname,libx.so", "x.c", "-o", "libx.so"], cwd=tmp_path, check=True)
    subprocess.run([*zig, *sources, "-o", "m"], cwd=tmp_path, check=True)
    file = read_elf(reader((tmp_path / "m").read_bytes()))
    assert file and (file.machine, file.bits) == (machine, bits)
    assert set(file.needed) == set(needed) and file.run_path == run_path


@pytest.mark.parametrize("tags", ["enable", "disable"])
def test_the_file_that_the_loader_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: str) -> None:
    """DT_RUNPATH comes after LD_LIBRARY_PATH, DT_RPATH before it: what doctor says is what ld.so does."""
    cc = require_tool("gcc", "gcc")
    for folder in ("pkg/bin", "pkg/lib", "other"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "x.c").write_text("int x(void) { return 3; }")
    (tmp_path / "m.c").write_text("int x(void); int main(void) { return x(); }")
    link = ["-Wl,-rpath,$ORIGIN/../../other", f"-Wl,--{tags}-new-dtags"]
    for folder in ("pkg/lib", "other"):
        library = ["-shared", "-Wl,-soname,libx.so", "x.c", "-o", f"{folder}/libx.so"]
        subprocess.run([cc, *library], cwd=tmp_path, check=True)
    subprocess.run([cc, "m.c", "other/libx.so", *link, "-o", "pkg/bin/m"], cwd=tmp_path, check=True)
    environment = {"LD_LIBRARY_PATH": "./lib", "LD_TRACE_LOADED_OBJECTS": "1"}
    traced = subprocess.run(["bin/m"], cwd=tmp_path / "pkg", env=environment, stdout=subprocess.PIPE, check=True)
    theirs = re.search(r"libx\.so => (\S+)", traced.stdout.decode())
    assert theirs

    device = LocalDevice(parse_target("linux:here"))
    doctor = TargetDoctor(lambda: device, str(tmp_path / "pkg"))
    assert [finding.state for finding in (*doctor.reach(), *doctor.package())] == [State.OK] * 2
    file = read_elf(reader((tmp_path / "pkg/bin/m").read_bytes()))
    assert file and (file.rpath != (), file.run_path != ()) == (tags == "disable", tags == "enable")
    ours = doctor._taken("libx.so", file, str(tmp_path / "pkg/bin"))
    monkeypatch.chdir(tmp_path / "pkg")
    assert ours and Path(ours).samefile(theirs[1])


def test_not_elf() -> None:
    assert read_elf(reader(b"")) is None
    assert read_elf(reader(b"#!/bin/sh\n" * 9)) is None


def test_broken_files_are_errors_and_never_worse() -> None:
    """Any damage to the first kilobytes gives a result or a ValueError."""
    data = Path(sys.executable).resolve().read_bytes()[: 1 << 20]
    rng = random.Random(1)
    for _ in range(2000):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            broken[rng.randrange(4, rng.choice((64, 2048)))] = rng.randrange(256)
        try:
            result = read_elf(reader(bytes(broken[: rng.choice((rng.randrange(4, 300), len(broken)))])))
        except ValueError:
            continue
        assert result is None or isinstance(result, Elf)
