"""`hexnpu emulate`: streams, exit codes and signals are the program's own; a summary at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hexnpu.emulate import Machine, run_emulated
from tests.fastrpc.programs import dsp_library, host_program
from tests.processes import HANG_S

EMULATE = [sys.executable, "-m", "hexnpu", "emulate"]


def variables() -> dict[str, str]:
    return os.environ | {"ADSP_LIBRARY_PATH": str(dsp_library("calc_skel").parent)}


def emulate(*arguments: str | Path, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*EMULATE, *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
        env=variables() | environment,
    )


def test_a_program_and_what_it_did() -> None:
    result = emulate("--", host_program("calc_cases"), "mapped")
    assert result.returncode == 0, result.stderr
    summary = "hexnpu emulate: 6 sessions, 18 calls, 0 queue packets, 72.0 KiB mapped, 0 faults\n"
    assert result.stderr.endswith(summary)


def test_a_fault_is_counted() -> None:
    result = emulate("--", host_program("session_cases"), "crash")
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[-1].endswith(" 1 fault")


def test_the_machine_is_as_asked() -> None:
    flags = ["--arch", "v75", "--hvx", "2", "--hmx", "0", "--vtcm", "4", "--npus", "2"]
    result = emulate(*flags, "--", host_program("session_cases"), "attributes")
    assert result.stdout == "1 1 0 2 400000 1 75 0 0 cdsp=3/0/1 cdsp1=4/1/1 \n"


def test_the_environment_says_what_no_flag_does() -> None:
    asked = {"ARCH": "75", "HVX": "2", "HMX": "0", "VTCM": "4", "NPUS": "2"}
    environment = {f"HEXNPU_EMU_{name}": value for name, value in asked.items()}
    program = ("--", host_program("session_cases"), "attributes")
    result = emulate(*program, **environment)
    assert result.stdout == "1 1 0 2 400000 1 75 0 0 cdsp=3/0/1 cdsp1=4/1/1 \n"
    result = emulate("--arch", "81", "--npus", "1", *program, **environment)
    assert result.stdout == "1 1 0 2 400000 1 81 0 0 cdsp=3/0/1 \n"


def test_an_environment_that_is_wrong_is_said() -> None:
    result = emulate("--", host_program("calc_cases"), "sum", HEXNPU_EMU_VTCM="abc", HEXNPU_EMU_NPUS="99")
    assert result.returncode == 0
    assert "HEXNPU_EMU_VTCM=abc is no number from 0 to 64" in result.stderr
    assert "HEXNPU_EMU_NPUS=99 is no number from 1 to 4" in result.stderr


def test_a_program_of_ours_knows_that_the_npu_is_emulated() -> None:
    script = ("--", "sh", "-c", "echo $HEXNPU_EMU_ARCH")
    assert emulate(*script, HEXNPU_EMU_ARCH="").stdout == "79\n"


def test_streams_and_exit_code() -> None:
    result = emulate("--", "sh", "-c", "cat; echo err >&2; exit 7", text="through\n")
    assert (result.returncode, result.stdout) == (7, "through\n")
    assert result.stderr.startswith("err\n")
    assert emulate("--", "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV


def test_signals_reach_the_program() -> None:
    script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    with subprocess.Popen(
        [*EMULATE, "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True, env=variables()
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "caught\n"
        assert process.wait(HANG_S) == 5


def test_a_signal_before_the_program_is_known_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Early(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("hexnpu.emulate.subprocess.Popen", Early)
    code, _ = run_emulated(["sleep", "1000"], Machine())
    assert code == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--", "no-such-program"], 127, "there is no program no-such-program"),
        (["--", str(Path(__file__))], 126, "is not executable"),
        (["--arch", "v68", "--", "true"], 2, "--arch is v68; it must be one of v73, v75, v79, v81"),
        (["--npus", "9", "--", "true"], 2, "--npus"),
        ([], 2, ""),
    ],
)
def test_wrong_usage(arguments: list[str], code: int, says: str) -> None:
    result = emulate(*arguments)
    assert result.returncode == code
    assert says in result.stderr
    assert "Traceback" not in result.stderr
