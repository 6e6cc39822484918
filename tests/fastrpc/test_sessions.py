"""Sessions of the stand-in: several at once, crashes and hangs of DSP code, and what is left when they end."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from hexnpu.emulator_build import emulator_folder, pd_program
from tests.conftest import require_tool
from tests.fastrpc.programs import dsp_library, host_program, run_host
from tests.processes import HANG_S, Handles, children

CASES = (
    "own_globals", "parallel", "killed", "killed_anywhere", "numbers", "session_close", "notifications", "no_leaks",
    "forks",
)  # fmt: skip


def run(case: str, flavour: str = "release", **environment: str) -> subprocess.CompletedProcess[str]:
    return run_host(
        "session_cases", case, flavour=flavour, libraries=[dsp_library("calc_skel")], environment=environment
    )


@pytest.mark.parametrize("case", CASES)
def test_session(case: str) -> None:
    result = run(case)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("flavour", ("release", pytest.param("tsan", marks=pytest.mark.slow)))
@pytest.mark.parametrize("case", ("two_sessions", "four_sessions", "killed", "crash"))
def test_several_sessions_and_threads(case: str, flavour: str) -> None:
    result = run(case, flavour)
    assert result.returncode == 0, result.stderr
    assert "ThreadSanitizer" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("case", ("two_sessions", "crash", "no_leaks"))
def test_the_library_under_asan(case: str) -> None:
    result = run(case, "asan", ASAN_OPTIONS="detect_leaks=0")
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("flavour", ("asan", "tsan"))
def test_a_protection_domain_under_sanitizers(flavour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setenv("CC", require_tool("clang-19", "clang-19"))  # zig's TSan wants programs that may lie anywhere
        program = pd_program(flavour)
    variables = {"HEXNPU_EMU_PD": str(program), "ASAN_OPTIONS": "detect_leaks=0"}
    for name, case in (("calc_cases", "sizes"), ("calc_cases", "mapped"), ("session_cases", "two_sessions")):
        result = run_host(name, case, libraries=[dsp_library("calc_skel")], environment=variables)
        assert result.returncode == 0, result.stderr
        assert "Sanitizer" not in result.stderr


@pytest.mark.parametrize(
    ("case", "how"),
    [
        ("crash", "was killed by signal 11 (SIGSEGV) in method 12"),
        ("aborts", "was killed by signal 6 (SIGABRT) in method 13"),
        ("exits", "ended with status 3 in method 14"),
        ("ends_the_thread", "was killed by signal 6 (SIGABRT) in method 18"),
        ("crash_of_one", "was killed by signal 11 (SIGSEGV) in method 12"),
    ],
)
def test_a_fault_is_an_error_code_and_a_line(case: str, how: str) -> None:
    result = run(case)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if "fastrpc" in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"fastrpc error: session 0 of cdsp {how} of libcalc_skel.so")


def test_attributes_are_what_the_environment_says() -> None:
    default = run("attributes").stdout
    assert default == "1 1 0 4 800000 1 79 1 1 cdsp=3/0/1 \n"
    other = run("attributes", HEXNPU_EMU_ARCH="81", HEXNPU_EMU_HVX="6", HEXNPU_EMU_HMX="0", HEXNPU_EMU_VTCM="4",
                HEXNPU_EMU_NPUS="2").stdout  # fmt: skip
    assert other == "1 1 0 6 400000 1 81 0 0 cdsp=3/0/1 cdsp1=4/1/1 \n"


def test_a_second_npu() -> None:
    assert run("second_npu").returncode != 0
    result = run("second_npu", HEXNPU_EMU_NPUS="2")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("how", (signal.SIGKILL, signal.SIGTERM))
def test_a_client_that_dies_leaves_nothing(how: signal.Signals) -> None:
    variables = {"LD_LIBRARY_PATH": str(emulator_folder()), "ADSP_LIBRARY_PATH": str(dsp_library("calc_skel").parent)}
    command = [host_program("session_cases"), "waits"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | variables) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        assert len(children(process.pid)) == 2
        domains = Handles(children(process.pid))
        process.send_signal(how)
        process.wait(HANG_S)
    assert domains.end()
