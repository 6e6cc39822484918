"""A small log as the benchmark's generator writes it, and what is read from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.profile_log import write
from hexnpu.profile.parse.reader import read_log
from hexnpu.profile.phases import Steps, find_steps
from hexnpu.profile.timeline import Timeline, build


@pytest.fixture(scope="session")
def sample_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """6000 lines: two devices, one prefill and a few decode steps, trace events."""
    path = tmp_path_factory.mktemp("logs") / "sample.log"
    write(path, 6000)
    return path


@pytest.fixture(scope="session")
def sample(sample_log: Path) -> tuple[Timeline, Steps]:
    line = build(read_log(str(sample_log)))
    return line, find_steps(line)
