"""What an interrupted push leaves never blocks the next one, and does not stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_tool
from tests.deploy.folders import Interrupts, Push, state_of, tree, write

CLEAN = {"lock", "manifest.json"}
REPO = Path(__file__).parents[2]


@pytest.mark.parametrize("wanted", ["a", "a/f", "a/f/g"])
@pytest.mark.parametrize(
    "left",
    [
        ["incoming/a"], ["incoming/a/f"], ["incoming/a/f/g/h"], ["rest/a"], ["rest/a/f"], ["rest/a", "incoming/a/f"],
        ["rest/a/f", "incoming/a"], ["incoming/a/f", "rest/a/f"], ["incoming"], ["rest"], ["incoming", "rest/a/f"],
        ["next.new", "manifest.new", "commit.sh"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_of_another_kind(pushed: Push, tmp_path: Path, left: list[str], wanted: str) -> None:
    for path in left:
        write(tmp_path / "to/.hexnpu" / path, b"left")
    write(tmp_path / "pkg" / wanted, b"left over")
    pushed(tmp_path / "pkg")
    assert tree(tmp_path / "to") == tree(tmp_path / "pkg")
    assert state_of(tmp_path / "to") == CLEAN


def test_a_symlink_on_its_way_leads_nowhere(pushed: Push, tmp_path: Path) -> None:
    write(tmp_path / "victim", b"mine")
    (tmp_path / "elsewhere").mkdir()
    incoming = tmp_path / "to/.hexnpu/incoming"
    incoming.mkdir(parents=True)
    (incoming / "a").symlink_to(tmp_path / "victim")
    (incoming / "d").symlink_to(tmp_path / "elsewhere")
    write(tmp_path / "pkg/a", b"mine and more")
    write(tmp_path / "pkg/d/f", b"f")
    pushed(tmp_path / "pkg")
    assert tree(tmp_path / "to") == tree(tmp_path / "pkg")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert tree(tmp_path / "elsewhere") == {}


def test_a_package_put_back(pushed: Push, tmp_path: Path) -> None:
    root = tmp_path / "pkg"
    write(root / "a", b"a")
    pushed(root)
    write(root / "a", os.urandom(8 << 20))
    write(root / "b", os.urandom(8 << 20))
    with pytest.raises(KeyboardInterrupt):
        pushed(root, watcher=Interrupts(9 << 20))
    assert state_of(tmp_path / "to") > CLEAN
    write(root / "a", b"a")
    (root / "b").unlink()
    assert pushed(root).sent == ()
    assert state_of(tmp_path / "to") == CLEAN
    assert tree(tmp_path / "to") == tree(root)


@pytest.mark.parametrize(
    "left",
    [{"incoming/m": b"beginning"}, {"incoming/m": b"begin", "rest/m": b"ning"}, {"incoming/m": b"others"}],
    ids=["goes on", "has a rest", "starts anew"],
)
def test_a_read_only_file_on_its_way(tmp_path: Path, left: dict[str, bytes]) -> None:
    """A commit that was interrupted has set modes, which bind all but root (and root without its capabilities)."""
    for path, data in left.items():
        write(tmp_path / "to/.hexnpu" / path, data, 0o444)
    write(tmp_path / "pkg/m", b"beginning and end", 0o444)
    setpriv = require_tool("setpriv", "util-linux")
    as_a_user = [] if os.geteuid() else [setpriv, "--inh-caps=-all", "--bounding-set=-all"]
    push = [sys.executable, "-m", "hexnpu", "push", "--install-dir", tmp_path / "pkg", "--target-dir", tmp_path / "to"]
    subprocess.run([*as_a_user, *push], cwd=REPO, check=True)
    assert tree(tmp_path / "to") == tree(tmp_path / "pkg")
    assert state_of(tmp_path / "to") == CLEAN
