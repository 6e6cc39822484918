"""Translated instructions do what the real ones do: against qemu-hexagon, and as calls of the platform."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_tool

HERE = Path(__file__).parent
EMU_CC = (sys.executable, "-m", "hexnpu.emucc")

EFFECTS = """
pcycles 1122334455667788
packets 1122334455667788
upcycle 1122334455667788
utimer 99aabbccddeeff00
halves ddeeff00 99aabbcc
upmucnt0 1000
upmucnt1 1001
upmucnt2 1002
upmucnt3 1003
upmucnt4 1006
upmucnt5 1007
upmucnt6 1008
upmucnt7 1009
dmstart 1
dmlink 1 2
dmresume 2
dma 17 18 -19
settings 0 0
ordered 100000080 80 100000005
cleaninva 42
order 42
zeroed 0
bias 1000
bias_low 2000
clear
swap
mac d8000000 65535 d8000800 65535 form 1
mac d8000000 2047 d8000800 1023 form 0
mac d8000000 2047 d8000800 2047 form 2
store d8001000 0 form 0
store d8001000 4 form 6
store d8001000 4 form 1
convert 2 0
store_converted d8001000 0
bits 3fc00000 1.5 2.5 text -2
"""


def output_of(program: Path) -> str:
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(("arch", "language"), [("v73", "c"), ("v81", "c++")])
def test_effects(arch: str, language: str, tmp_path: Path) -> None:
    program = tmp_path / "effects"
    source = tmp_path / ("effects.cpp" if language == "c++" else "effects.c")
    source.write_text((HERE / "effects.c").read_text())
    # The C compiler links the C++ program as well, which uses no C++ library.
    object_file = tmp_path / "effects.o"
    subprocess.run([*EMU_CC, f"-m{arch}", "-mhmx", "-O2", "-Wall", "-c", source, "-o", object_file], check=True)
    subprocess.run([*EMU_CC, object_file, "-o", program], check=True)
    assert output_of(program).split("\n") == EFFECTS.lstrip("\n").split("\n")


def test_same_results_as_qemu(tmp_path: Path) -> None:
    clang, qemu = require_tool("clang-19", "clang-19 lld-19"), require_tool("qemu-hexagon", "qemu-user")
    hexagon, host = tmp_path / "hexagon", tmp_path / "host"
    source = HERE / "instructions.c"
    subprocess.run(
        [
            clang, "--target=hexagon-unknown-none-elf", "-mcpu=hexagonv68", "-mhvx=v68", "-mhvx-length=128b", "-O1",
            "-ffreestanding", "-nostdlib", "-static", "-fuse-ld=lld", "-w", source, "-o", hexagon,
        ],
        check=True,
    )  # fmt: skip
    real = subprocess.run([qemu, "-cpu", "v67", hexagon], check=True, capture_output=True, text=True).stdout
    assert len(real.splitlines()) == 173
    subprocess.run([*EMU_CC, "-mv73", "-mhvx", "-O1", "-DTRANSLATED", source, "-o", host], check=True)
    assert output_of(host).splitlines() == real.splitlines()
