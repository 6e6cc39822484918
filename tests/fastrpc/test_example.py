"""The README's example of a host program and its DSP library, command by command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import require_tool

ROOT = Path(__file__).parents[2]


def test_readme_shows_what_the_commands_print(tmp_path: Path) -> None:
    require_tool("cc", "gcc")
    section = (ROOT / "README.md").read_text().partition("### Somebody else's NPU code")[2].partition("\n### ")[0]
    shown = [line[4:] for line in section.splitlines() if line.startswith("    ")]
    commands = [line[2:] for line in shown if line.startswith("$ ")]
    assert re.match(r"hexnpu idl ", commands[0]) and len(commands) == 5
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-ec", "\n".join(commands)], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [line for line in shown if not line.startswith("$ ")]
    assert "1 session, 1 call, 0 queue packets, 0 B mapped, 0 faults" in result.stderr
    head = (ROOT / "docs/fastrpc.md").read_text().split("\n\n")[1]
    assert [line[4:] for line in head.splitlines()] == commands
