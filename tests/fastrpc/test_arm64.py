"""An arm64 host program under qemu-aarch64, over a protection domain of this machine: the two ends share no layout but
shared.h's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.emulator_build import FASTRPC, PROGRAM, client_sources, emulator_folder
from hexnpu.native import kernels_dir
from tests.conftest import require_tool
from tests.fastrpc.programs import HERE, dsp_library
from tests.processes import HANG_S

CASES = ("sum", "sizes", "by_reference", "mapped", "two_handles", "full", "async")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """calc_cases.c with the stand-in's sources in it: what is static needs no arm64 C library here."""
    path = tmp_path_factory.mktemp("arm64") / "calc_cases"
    include = [f"-I{kernels_dir() / 'platform/hexagon/sdk'}", f"-I{kernels_dir() / FASTRPC}", f"-I{HERE}"]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-static", "-std=gnu11", "-O1"]
    sources = [HERE / "calc_cases.c", *client_sources()]
    subprocess.run([*command, "-fno-sanitize=undefined", *include, *map(str, sources), "-o", str(path)], check=True)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_arm64_program(program: Path, case: str) -> None:
    qemu = require_tool("qemu-aarch64", "qemu-user")
    variables = {
        "HEXNPU_EMU_PD": str(emulator_folder() / PROGRAM),
        "ADSP_LIBRARY_PATH": str(dsp_library("calc_skel").parent),
    }
    result = subprocess.run(
        [qemu, program, case], env=os.environ | variables, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert result.returncode == 0, result.stderr
