"""QuRT threads, VTCM, memory below 4 GiB and the runtime's thread pool: qurt_rules.c in every flavour."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hexnpu.native import Target, compile_program
from hexnpu.server_build import server_sources

HERE = Path(__file__).parent
FLAVOURS = ("release", "asan", "tsan")


def rules(case: str, flavour: str) -> subprocess.CompletedProcess[str]:
    sources = [HERE / "qurt_rules.c", *(s for s in server_sources() if s.parent.name != "server")]
    program = compile_program("qurt-rules", sources, Target(flavour))
    return subprocess.run([program, case], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(
    "case", ["mutex", "barrier", "thread_exit", "futex", "vtcm", "heap", "clocks", "pool", "forgotten_transfer"]
)
def test_rule(case: str, flavour: str) -> None:
    result = rules(case, flavour)
    assert result.returncode == 0, f"{case}: {result.stdout}{result.stderr}"


@pytest.mark.parametrize("case", ["overrun_vtcm", "overrun_heap"])
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_an_overrun_is_a_crash(case: str, flavour: str) -> None:
    result = rules(case, flavour)
    assert result.returncode not in (0, 3), f"{case} went on"


def test_the_thread_sanitizer_sees_a_race_between_jobs() -> None:
    result = rules("seeded_race", "tsan")
    assert result.returncode != 0
    assert "data race" in result.stderr and "qurt_rules.c" in result.stderr
