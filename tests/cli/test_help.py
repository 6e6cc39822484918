"""What `--help` says that is easy to get wrong: arguments in one style, defaults and ranges as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("generate", ("{MODEL}", "2: with PMU counters")),
        ("plan", ("{MODEL}",)),
        ("profile", ("{LOG}", "default: (25, or 40 bubbles, in a table", "and no report", "beside the report")),
        ("compare", ("{A} {B}", "default: (40 in a table, else all)")),
        ("audit", ("{LOG}", "default: (40 in a table, else all)")),
        ("trace", ("{LOG}",)),
        ("idl", ("{FILE}",)),
        ("emu-cc", ("v60 to v81 (default v79)",)),
    ],
)
def test_help(command: str, words: tuple[str, ...]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "hexnpu", command, "--help"], capture_output=True, text=True,
        env=os.environ | {"COLUMNS": "160"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert [word for word in words if word not in result.stdout] == []


def test_version() -> None:
    command = [sys.executable, "-m", "hexnpu", "--version"]
    assert subprocess.check_output(command, text=True) == f"hexnpu {version('hexnpu')}\n"
