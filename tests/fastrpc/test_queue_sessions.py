"""Queues between host programs and a DSP library, over the stand-in: queue_host.c, queue_many.c, queue_echo_skel.c."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from hexnpu.emulator_build import emulator_folder
from tests.fastrpc.programs import dsp_library, host_program, run_host
from tests.processes import Handles, children

CASES = [
    *(("queue_host", case) for case in ("echo", "buffers", "callbacks", "codes", "crash", "abort", "early_wakeup")),
    *(("queue_many", case) for case in ("two_sessions", "four_sessions", "again")),
]
RACES = [
    *(("queue_host", case) for case in ("callbacks", "crash")),
    *(("queue_many", case) for case in ("two_sessions", "four_sessions")),
]


@pytest.mark.parametrize(("program", "case"), CASES)
def test_queue(program: str, case: str) -> None:
    result = run_host(program, case, libraries=[dsp_library("queue_echo_skel")])
    assert result.returncode == 0, result.stdout + result.stderr


def test_one_queue_to_two_npus() -> None:
    libraries = [dsp_library("queue_echo_skel")]
    result = run_host("queue_many", "multi", libraries=libraries, environment={"HEXNPU_EMU_NPUS": "2"})
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("program", "case"), RACES)
def test_queue_under_the_thread_sanitizer(program: str, case: str) -> None:
    result = run_host(program, case, flavour="tsan", libraries=[dsp_library("queue_echo_skel")])
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_refusal_says_why() -> None:
    """One line each, of those that a caller can do something about."""
    result = run_host("queue_host", "codes", libraries=[dsp_library("queue_echo_skel")])
    lines = [line for line in result.stderr.splitlines() if "dspqueue" in line]
    for words in (
        "770 is no domain", "flags 0x1 (none are known)", "16777217", "the DSP imports them", "longer than the queue",
        "there is no queue", "has been imported already", "still open on the DSP", "is no open queue",
    ):  # fmt: skip
        assert any(words in line for line in lines), f"{words!r} is in none of {lines}"


def test_packets_are_counted(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    counters.write_bytes(bytes(4096))
    environment = {"HEXNPU_EMU_SUMMARY": str(counters)}
    libraries = [dsp_library("queue_echo_skel")]
    result = run_host("queue_many", "two_sessions", libraries=libraries, environment=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    packets = int.from_bytes(counters.read_bytes()[16:24], "little")
    assert packets == 2 * 2 * (2500 + 2)  # both sessions, there and back


def test_a_client_that_dies_leaves_nothing() -> None:
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(emulator_folder()),
        "ADSP_LIBRARY_PATH": str(dsp_library("queue_echo_skel").parent),
    }
    command = [str(host_program("queue_host")), "client_that_dies"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as client:
        assert client.stdout and client.stdout.readline() == b"ready\n"
        assert len(children(client.pid)) == 1
        domain = Handles(children(client.pid))
        client.send_signal(signal.SIGKILL)
    assert domain.end(), "htp-pd outlives its client"
