"""The commands of docs/profile.md whose log is in the repository print what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hexnpu import cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "profile.md").read_text()
SHOWN = re.findall(r"^    \$ hexnpu (.*tests/profile/golden.*)\n((?:    .*\n|\n(?=    ))*)", PAGE, re.MULTILINE)


def test_there_are_commands() -> None:
    assert len(SHOWN) == 3 and PAGE.splitlines()[2].startswith("    $ hexnpu profile ")


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_command_prints_what_is_shown(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "110")
    with pytest.raises(SystemExit):
        cli.main(shlex.split(command))
    printed = capsys.readouterr()
    lines = [line.rstrip() for line in (printed.out + printed.err).rstrip("\n").splitlines()]
    assert lines == [line[4:].rstrip() for line in output.rstrip("\n").splitlines()]
