"""A small log as the benchmark's generator writes it, what is read from it, and the commands as a user runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.profile_log import write
from hexnpu import cli
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


class Result:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """hexnpu with these arguments."""

    def call(*arguments: object) -> Result:
        code = 0
        try:
            cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code or 0  # type: ignore[assignment]
        shown = capsys.readouterr()
        return Result(code, shown.out, shown.err)

    return call
