"""What an interrupted push leaves never blocks the next one, and does not stay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hexnpu.deploy.device import open_device
from hexnpu.deploy.targets import parse_target
from tests.conftest import require_tool
from tests.deploy.conftest import push_folder
from tests.deploy.folders import Interrupts, Push, state_of, tree, write

CLEAN = {"lock", "manifest.json"}
REPO = Path(__file__).parents[2]


def push_here(root: Path, to: Path) -> None:
    with open_device(parse_target(None)) as device:
        push_folder(device, root, str(to))


def _file(own: Path, elsewhere: Path) -> None:
    own.write_bytes(b"left")


def _folder(own: Path, elsewhere: Path) -> None:
    write(own / "below/it", b"left")


def _symlink(own: Path, elsewhere: Path) -> None:
    own.symlink_to(elsewhere / "victim")


def _symlink_to_a_folder(own: Path, elsewhere: Path) -> None:
    own.symlink_to(elsewhere)


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


@pytest.mark.parametrize("nothing_new", [False, True])
@pytest.mark.parametrize("make", [_file, _folder, _symlink, _symlink_to_a_folder])
@pytest.mark.parametrize("name", ["next.new", "next.json", "manifest.new", "commit.sh", "manifest.json", "lock", "x/y"])
def test_what_no_push_made(tmp_path: Path, name: str, make: Callable[[Path, Path], None], nothing_new: bool) -> None:
    """In place of push's own files, and beside them: it blocks nothing, leads nowhere and does not stay."""
    root, elsewhere = tmp_path / "pkg", tmp_path / "elsewhere"
    write(root / "a", b"a")
    write(elsewhere / "victim", b"mine")
    push_here(root, tmp_path / "to")
    if not nothing_new:
        write(root / "a", b"other")
    own = tmp_path / "to/.hexnpu" / name
    own.parent.mkdir(exist_ok=True)
    own.unlink(missing_ok=True)
    make(own, elsewhere)
    push_here(root, tmp_path / "to")
    assert tree(tmp_path / "to") == tree(root)
    assert tree(elsewhere) == {"victim": (b"mine", 0o644)}
    assert state_of(tmp_path / "to") == CLEAN
    assert not any(path.is_dir() or path.is_symlink() for path in (tmp_path / "to/.hexnpu").iterdir())


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
