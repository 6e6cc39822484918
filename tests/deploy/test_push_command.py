"""`hexnpu push` as users see it: the summary, the list of a dry run, the bar on a terminal only."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]


@pytest.fixture
def command(tmp_path: Path, home: Path) -> list[str]:
    (tmp_path / "pkg-x/bin").mkdir(parents=True)
    (tmp_path / "pkg-x/bin/tool").write_bytes(bytes(1 << 20))
    (tmp_path / "pkg-x/new\nline").write_text("x")
    return [sys.executable, "-m", "hexnpu", "push", "--source", str(tmp_path), "--target-dir", str(tmp_path / "to")]


def test_summary_and_dry_run(command: list[str], tmp_path: Path) -> None:
    dry = subprocess.run([*command, "--dry-run"], cwd=REPO, capture_output=True, check=True)
    assert dry.stdout.decode().splitlines() == ["send    bin/tool", "send    'new\\nline'"]
    assert b"would send 2 files (1.0 MiB)" in dry.stderr
    assert not (tmp_path / "to").exists()
    done = subprocess.run(command, cwd=REPO, capture_output=True, check=True)
    assert done.stdout == b""
    assert done.stderr.startswith(f"this machine:{tmp_path}/to: sent 2 files (1.0 MiB), removed 0".encode())
    assert done.stderr.count(b"\n") == 1
    (tmp_path / "pkg-x/new\nline").write_text("y")
    one = subprocess.run(command, cwd=REPO, capture_output=True, check=True)
    assert b": sent 1 file (0.0 MiB), removed 0, unchanged 1;" in one.stderr
    (tmp_path / "pkg-x/bin/tool").unlink()
    dry = subprocess.run([*command, "--dry-run"], cwd=REPO, capture_output=True, check=True)
    assert dry.stdout == b"remove  bin/tool\n"
    assert (tmp_path / "to/bin/tool").exists()


def test_a_bar_on_a_terminal(command: list[str]) -> None:
    here, there = pty.openpty()
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.DEVNULL, stderr=there)
    os.close(there)
    shown = b""
    try:
        while data := os.read(here, 65536):
            shown += data
    except OSError:  # how a terminal ends
        pass
    os.close(here)
    assert process.wait() == 0
    assert b"1.0 MB" in shown or b"MB/s" in shown or b"2/2" in shown
    assert b"sent 2 files" in shown


def test_a_newline_in_the_directory(command: list[str], tmp_path: Path) -> None:
    done = subprocess.run([*command, "--target-dir", str(tmp_path / "a\nb")], cwd=REPO, capture_output=True, check=True)
    assert done.stderr.startswith(f"this machine:'{tmp_path}/a\\nb': sent 2 files".encode())
    assert done.stderr.count(b"\n") == 1
    run = [sys.executable, "-m", "hexnpu", "run", "--target-dir", str(tmp_path / "none\nb"), "--", "true"]
    refused = subprocess.run(run, cwd=REPO, capture_output=True)
    assert refused.returncode == 1 and refused.stderr.count(b"\n") == 1
    assert refused.stderr.startswith(f"hexnpu: no folder '{tmp_path}/none\\nb' on this machine that may be".encode())
