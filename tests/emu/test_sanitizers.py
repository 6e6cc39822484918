"""Seeded bugs in vector memory accesses must be caught: races by the tsan flavour, bad addresses by the asan one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hexnpu.native import Target, compile_program, kernels_dir

HERE = Path(__file__).parent


def run(source: str, flavour: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = compile_program(Path(source).stem, [HERE / source], Target(flavour), [f"-I{kernels_dir()}"])
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def test_race_between_vector_accesses_is_reported() -> None:
    result = run("seeded_race.c", "tsan")
    assert result.returncode != 0
    assert "WARNING: ThreadSanitizer: data race" in result.stderr


def test_ordered_vector_accesses_are_not_a_race() -> None:
    result = run("seeded_race.c", "tsan", "ordered")
    assert (result.returncode, result.stderr) == (0, "")


FAULTS = {
    "overrun-store": "AddressSanitizer: heap-buffer-overflow",
    "overrun-load": "AddressSanitizer: heap-buffer-overflow",
    "overrun-storeu": "AddressSanitizer: heap-buffer-overflow",
    "overrun-loadu": "AddressSanitizer: heap-buffer-overflow",
    "overrun-predicated": "AddressSanitizer: heap-buffer-overflow",
    "misaligned-load": "misaligned address",
    "misaligned-store": "misaligned address",
    "use-after-free": "AddressSanitizer: heap-use-after-free",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_vector_access_is_reported(fault: str) -> None:
    result = run("seeded_faults.c", "asan", fault)
    assert result.returncode != 0
    assert FAULTS[fault] in result.stderr


def test_good_vector_accesses_are_silent() -> None:
    result = run("seeded_faults.c", "asan", "none")
    assert (result.returncode, result.stderr) == (0, "")
