"""HAP, QuRT and the compute resource manager for code that is not ours: the *_rules.c programs in every flavour."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hexnpu.native import Target, compile_program, kernels_dir
from tests.processes import HANG_S

HERE = Path(__file__).parent
FLAVOURS = ("release", "asan", "tsan")
SETTINGS = {
    "HEXNPU_EMU_ARCH": "79",
    "HEXNPU_EMU_VTCM": "4",
    "ASAN_OPTIONS": "detect_stack_use_after_return=0",  # which moves locals from the stack to above 4 GiB
    "TSAN_OPTIONS": "report_thread_leaks=0",  # QuRT threads need not be joined
}

QURT_CASES = (
    "threads", "nobody_joins", "semaphores", "short_lived_semaphores", "signals", "conditions", "counters",
)  # fmt: skip
HAP_CASES = ("buffers", "power", "low", "low_threads")
CRM_CASES = (
    "parts", "cached", "asked_and_later", "asked_and_at_once", "not_asked", "crowd", "hmx", "alone", "older_calls",
)  # fmt: skip


def rules(program: str, case: str, flavour: str, **settings: str) -> subprocess.CompletedProcess[str]:
    sources = [HERE / f"{program}.c", *sorted((kernels_dir() / "platform/emu").glob("*.c"))]
    path = compile_program(program.replace("_", "-"), sources, Target(flavour))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEXNPU_EMU_")}
    environment |= SETTINGS | settings
    return subprocess.run([path, case], capture_output=True, text=True, check=False, env=environment, timeout=HANG_S)


def passes(program: str, case: str, flavour: str, **settings: str) -> str:
    result = rules(program, case, flavour, **settings)
    assert (result.returncode, result.stdout) == (0, ""), f"{case}: {result.stdout}{result.stderr}"
    return result.stderr


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("case", QURT_CASES)
def test_qurt(case: str, flavour: str) -> None:
    passes("qurt_sync_rules", case, flavour)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_processor_is_what_the_environment_says(flavour: str) -> None:
    passes("qurt_sync_rules", "processor", flavour, HEXNPU_EMU_HVX="2", HEXNPU_EMU_ARCH="75")


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("case", HAP_CASES)
def test_hap(case: str, flavour: str) -> None:
    passes("hap_rules", case, flavour)


def test_v73_has_no_requests_of_later_parts() -> None:
    passes("hap_rules", "power_v73", "release", HEXNPU_EMU_ARCH="73")


def test_an_arch_that_nobody_has_counts_as_the_built_one() -> None:
    passes("hap_rules", "power", "release", HEXNPU_EMU_ARCH="10")


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("case", CRM_CASES)
def test_compute_resources(case: str, flavour: str) -> None:
    passes("crm_rules", case, flavour)


def test_without_a_matrix_unit_none_is_given() -> None:
    passes("crm_rules", "no_hmx", "release", HEXNPU_EMU_HMX="0")


def test_each_context_has_a_matrix_unit_of_its_own() -> None:
    passes("crm_rules", "two_units", "release", HEXNPU_EMU_HMX="2")


def test_vtcm_that_was_given_back_is_seen_by_asan() -> None:
    result = rules("crm_rules", "overrun_part", "asan")
    assert result.returncode != 0 and "use-after-poison" in result.stderr


FARF_LINES = [
    r"htp high hap_rules\.c:\d+: always 1",
    r"htp low hap_rules\.c:\d+: low, ends with line ends",
    r"htp error hap_rules\.c:\d+: error text",
    r"htp high hap_rules\.c:\d+: runtime high",
    r"htp low hap_rules\.c:\d+: runtime low",
    r"htp fatal y\.c:9: plain %s",
]


def test_log_lines_go_to_stderr_or_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "log"
    assert passes("hap_rules", "farf", "release", HEXNPU_EMU_FARF=str(file)) == ""
    for text in (file.read_text(), passes("hap_rules", "farf", "release")):
        lines = text.splitlines()
        assert len(lines) == len(FARF_LINES)
        assert all(re.fullmatch(p, line) for p, line in zip(FARF_LINES, lines, strict=True)), lines
    passes("hap_rules", "farf", "release", HEXNPU_EMU_FARF=str(file))
    assert len(file.read_text().splitlines()) == 2 * len(FARF_LINES), "the file is appended to"


def test_a_log_file_that_cannot_be_written_is_said() -> None:
    text = passes("hap_rules", "farf", "release", HEXNPU_EMU_FARF="/no/such/folder/log")
    assert text.startswith("htp error farf.c: HEXNPU_EMU_FARF=/no/such/folder/log: No such file")
    assert len(text.splitlines()) == 1 + len(FARF_LINES)


@pytest.mark.parametrize("flavour", ("release", "tsan"))
def test_log_lines_of_threads_do_not_mix(tmp_path: Path, flavour: str) -> None:
    file = tmp_path / "log"
    passes("hap_rules", "farf_threads", flavour, HEXNPU_EMU_FARF=str(file))
    lines = [line.split(": ")[1] for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(letter * 200 for letter in "abcd" for _ in range(300))
