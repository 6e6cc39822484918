"""What an interruption of a push leaves, wherever it comes, and that the next push goes on from it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hexnpu.deploy import commit
from hexnpu.deploy import push as push_module
from hexnpu.deploy.device import open_device
from hexnpu.deploy.errors import ConnectionLost, DeployError, DeviceNotReady
from hexnpu.deploy.push import Watcher
from hexnpu.deploy.targets import parse_target
from tests.deploy.conftest import Adb, push_folder
from tests.deploy.folders import Interrupts, Push, odd_package, state_of, tree, write
from tests.deploy.sshd import Sshd


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return odd_package(tmp_path / "pkg")


def _without_the_end(script: Callable[..., str]) -> Callable[..., str]:
    return lambda *arguments: script(*arguments).partition("mv -f .hexnpu/manifest.new")[0] + "exit 1\n"


def _only_begun(script: Callable[..., str]) -> Callable[..., str]:
    return lambda *arguments: "\n".join([*script(*arguments).split("\n")[:2], "exit 1\n"])


Stops = Callable[[Callable[..., str]], Callable[..., str]]


@pytest.fixture
def stopped(pushed: Push, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Stops], None]:
    """Pushes with a commit that stops there."""

    def run(root: Path, stops: Stops) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(push_module, "commit_script", stops(commit.commit_script))
            with pytest.raises(DeployError):
                pushed(root)

    return run


Stopped = Callable[[Path, Stops], None]


def _bring(root: Path, text: str) -> None:
    """Of one size and time whatever it says."""
    write(root / "data", text.encode())
    (root / "link").unlink(missing_ok=True)
    (root / "link").symlink_to(text)


def test_an_interrupted_push_goes_on(pushed: Push, tmp_path: Path) -> None:
    root = tmp_path / "pkg"
    for n in range(8):
        write(root / f"f{n}", os.urandom(1 << 20))
    write(root / "z", os.urandom(24 << 20))
    write(tmp_path / "to/z", b"former")
    with pytest.raises(KeyboardInterrupt):
        pushed(root, watcher=Interrupts(20 << 20))
    assert tree(tmp_path / "to") == {"z": (b"former", 0o644)}
    report = pushed(root)
    assert tree(tmp_path / "to") == tree(root)
    # z was under way: less than all of it travels again, and of the others at most what was in the pipes.
    assert report.sent[-1] == "z"
    assert report.sent_bytes < 32 << 20
    assert len(report.sent) < 9
    assert pushed(root).sent == ()


def test_a_changed_file_is_not_resumed(pushed: Push, tmp_path: Path) -> None:
    """The beginning that arrived is of other content."""
    root = tmp_path / "pkg"
    write(root / "z", os.urandom(16 << 20))
    with pytest.raises(KeyboardInterrupt):
        pushed(root, watcher=Interrupts(8 << 20))
    write(root / "z", os.urandom(17 << 20))
    assert pushed(root).sent_bytes == 17 << 20
    assert tree(tmp_path / "to") == tree(root)


def test_an_interruption_among_the_renames(
    pushed: Push, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All has arrived, some of it under its name; nothing travels again, and the next push knows what is its own."""
    script = commit.commit_script

    def stops(*arguments: object) -> str:
        lines = script(*arguments).split("\n")  # type: ignore[arg-type]
        first = next(n for n, line in enumerate(lines) if line.startswith("mv -f .hexnpu/incoming/"))
        return "\n".join([*lines[: first + 1], "echo stopped >&2", "exit 1"])

    with monkeypatch.context() as patch:
        patch.setattr(push_module, "commit_script", stops)
        with pytest.raises(DeployError, match="stopped"):
            pushed(package)
    assert tree(tmp_path / "to").items() <= tree(package).items()
    report = pushed(package)
    assert report.sent_bytes < 100
    assert tree(tmp_path / "to") == tree(package)


def test_removal_knows_an_unfinished_push(pushed: Push, stopped: Stopped, package: Path, tmp_path: Path) -> None:
    stopped(package, _without_the_end)
    (package / "empty").unlink()
    assert "empty" in pushed(package).removed
    assert tree(tmp_path / "to") == tree(package)


@pytest.mark.parametrize("more", [[], [_only_begun], [_without_the_end]], ids=["once", "begun again", "twice"])
def test_a_package_put_back_after_an_interrupted_commit(
    pushed: Push, stopped: Stopped, tmp_path: Path, more: list[Stops]
) -> None:
    """The manifest tells of what was there before it."""
    root = tmp_path / "pkg"
    _bring(root, "v1")
    pushed(root)
    for n, stops in enumerate([_without_the_end, *more]):
        _bring(root, f"v{2 + n}")
        stopped(root, stops)
    _bring(root, "v1")
    pushed(root)
    assert tree(tmp_path / "to") == tree(root)
    assert pushed(root).sent == ()


@pytest.mark.parametrize("second", [None, "v1", "version2"], ids=["removed", "kept", "changed"])
@pytest.mark.parametrize("stops", [_only_begun, _without_the_end])
def test_two_interrupted_commits(
    pushed: Push, stopped: Stopped, tmp_path: Path, second: str | None, stops: Stops
) -> None:
    """The second does not make push forget what the first one brought."""
    root = tmp_path / "pkg"
    write(root / "other", b"1")
    pushed(root)
    _bring(root / "new\nfolder", "v1")
    stopped(root, _without_the_end)
    write(root / "other", b"22")
    shutil.rmtree(root / "new\nfolder")
    if second is not None:
        _bring(root / "new\nfolder", second)
    stopped(root, stops)
    shutil.rmtree(root / "new\nfolder", ignore_errors=True)
    pushed(root)
    assert tree(tmp_path / "to") == tree(root)
    assert state_of(tmp_path / "to") == {"lock", "manifest.json"}


def test_what_an_interrupted_commit_did_not_replace_is_not_its_own(
    pushed: Push, stopped: Stopped, tmp_path: Path
) -> None:
    root, to = tmp_path / "pkg", tmp_path / "to"
    write(root / "other", b"1")
    pushed(root)
    _bring(to, "mine")
    _bring(root, "them")
    stopped(root, _only_begun)
    (root / "data").unlink()
    (root / "link").unlink()
    assert pushed(root).removed == ()
    assert tree(to) == tree(root) | {"data": (b"mine", 0o644), "link": "mine"}


def test_in_the_way_of_the_package_after_an_interrupted_commit(pushed: Push, stopped: Stopped, tmp_path: Path) -> None:
    """A file that it did not replace is somebody's; one that it brought makes room for a folder."""
    root, to = tmp_path / "pkg", tmp_path / "to"
    write(to / "data", b"mine")
    write(root / "data", b"them")
    stopped(root, _only_begun)
    (root / "data").unlink()
    write(root / "data/f", b"f")
    with pytest.raises(DeployError, match=r"'data'.* away"):
        pushed(root)
    assert tree(to) == {"data": (b"mine", 0o644)}
    write(to / "data", b"them")
    pushed(root)
    assert tree(to) == tree(root)


def test_server_killed_in_the_middle(sshd: Sshd, tmp_path: Path) -> None:
    root = tmp_path / "pkg"
    write(root / "z", os.urandom(32 << 20))

    class Kills(Watcher):
        def bytes(self, n_bytes: int) -> None:
            sshd.kill_connections()

    with open_device(parse_target(sshd.target)) as device, pytest.raises(ConnectionLost):
        push_folder(device, root, f"{tmp_path}/to", watcher=Kills())
    assert tree(tmp_path / "to") == {}
    with open_device(parse_target(sshd.target)) as device:
        push_folder(device, root, f"{tmp_path}/to")
    assert tree(tmp_path / "to") == tree(root)


def test_device_unplugged_in_the_middle(adb: Adb, tmp_path: Path) -> None:
    root = tmp_path / "pkg"
    write(root / "a", os.urandom(1 << 20))
    write(root / "z", os.urandom(16 << 20))
    serial = adb.connect(tmp_path)

    class Unplugs(Watcher):
        def file(self, path: str) -> None:
            if path == "z":
                adb.devices[serial].kill()

    with open_device(parse_target(f"adb:{serial}")) as device, pytest.raises((ConnectionLost, DeviceNotReady)):
        push_folder(device, root, f"{tmp_path}/to", watcher=Unplugs())
    assert tree(tmp_path / "to") == {}
    with open_device(parse_target(f"adb:{adb.connect(tmp_path)}")) as device:
        push_folder(device, root, f"{tmp_path}/to")
    assert tree(tmp_path / "to") == tree(root)
