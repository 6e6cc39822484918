"""The dspqueue API in one process that has both ends: queue_rules.c and queue_threads.c in every flavour, and more."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from hexnpu.native import Target, compile_program, kernels_dir
from tests.processes import HANG_S

HERE = Path(__file__).parent
FASTRPC = kernels_dir() / "platform/fastrpc"
PARTS = ("bell", "ring", "queue", "queue-buffers", "queue-read", "queue-write")
QUEUE = [FASTRPC / "queue" / f"{part}.c" for part in PARTS]
FLAVOURS = ("release", "asan", "tsan")
RULES = (
    "messages", "peek", "full", "stuck", "bad_parameters", "closed_handle", "reopened", "many_queues", "buffers",
    "references", "time_outs", "early_wakeup", "damage",
)  # fmt: skip
THREADS = ("wake_ups", "callbacks", "close_in_between", "closing", "death", "churn")


def run(name: str, flavour: str, *arguments: str, sources: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    program = compile_program(
        name, [HERE / f"{name}.c", HERE / "queue_fake.c", *QUEUE, *sources], Target(flavour), [f"-I{FASTRPC}"]
    )
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=HANG_S)


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("case", RULES)
def test_rule(case: str, flavour: str) -> None:
    result = run("queue_rules", flavour, case)
    assert result.returncode == 0, f"{case}: {result.stdout}{result.stderr}"


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("case", THREADS)
def test_waiting(case: str, flavour: str) -> None:
    result = run("queue_threads", flavour, case)
    assert result.returncode == 0, f"{case}: {result.stdout}{result.stderr}"


@pytest.mark.parametrize(("sessions", "readers"), [(1, 1), (2, 1), (2, 3), (4, 2)])
@pytest.mark.parametrize("flavour", ("release", "tsan"))
def test_ten_thousand_messages(sessions: int, readers: int, flavour: str) -> None:
    """Random sizes, several threads on each end, over one to four sessions at once."""
    result = run("queue_stress", flavour, str(sessions), str(readers))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("flavour", ("release", "asan"))
def test_a_peer_that_writes_anything(seed: int, flavour: str) -> None:
    result = run("queue_fuzz", flavour, str(seed), "100000")
    assert result.returncode == 0, result.stdout + result.stderr
