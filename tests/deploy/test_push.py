"""Push over every transport: what arrives, what travels, what is refused."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from hexnpu.deploy import stream
from hexnpu.deploy import survey as survey_module
from hexnpu.deploy.device import Command, open_device
from hexnpu.deploy.errors import DeployError, NoSpace, TargetReadOnly
from hexnpu.deploy.local import LocalDevice, LocalProcess
from hexnpu.deploy.manifest import Manifest, executable_mode
from hexnpu.deploy.push import Watcher
from hexnpu.deploy.survey import Survey
from hexnpu.deploy.targets import parse_target
from hexnpu.errors import UsageError
from tests.conftest import require_tool
from tests.deploy.conftest import push_folder
from tests.deploy.folders import LONG_AGO, Push, odd_package, state_of, tree, write
from tests.deploy.sshd import Sshd


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return odd_package(tmp_path / "pkg")


def test_first_push_and_nothing_new(pushed: Push, package: Path, tmp_path: Path) -> None:
    report = pushed(package)
    assert tree(tmp_path / "to") == tree(package)
    assert len(report.sent) == 10
    assert state_of(tmp_path / "to") == {"lock", "manifest.json"}
    before = (tmp_path / "to/.hexnpu/manifest.json").stat().st_ino
    report = pushed(package)
    assert (report.sent, report.removed, report.unchanged) == ((), (), 10)
    assert (tmp_path / "to/.hexnpu/manifest.json").stat().st_ino == before


def test_only_changes_travel(pushed: Push, package: Path, tmp_path: Path) -> None:
    pushed(package)
    (tmp_path / "to/mine").write_text("nobody pushed this")
    (tmp_path / "to/lib/mine too").write_text("nor this")
    write(package / "bin/tool", b"\x7fELF TOOL", 0o755)  # same size, same time
    (package / "lib/-rf").unlink()
    (package / "lib/libx.so").unlink()
    (package / "lib/libx.so").symlink_to("-rf            ")
    write(package / "bin/new", b"new")
    os.utime(package / "big", (LONG_AGO + 5, LONG_AGO + 5))
    report = pushed(package)
    assert sorted(report.sent) == ["bin/new", "bin/tool", "lib/libx.so"]
    assert report.removed == ("lib/-rf",)
    expected = tree(package) | {"mine": (b"nobody pushed this", 0o644), "lib/mine too": (b"nor this", 0o644)}
    assert tree(tmp_path / "to") == expected


def test_a_mode_alone(pushed: Push, package: Path, tmp_path: Path) -> None:
    pushed(package)
    (package / "empty").chmod(0o755)
    assert pushed(package).sent == ()
    assert stat.S_IMODE((tmp_path / "to/empty").stat().st_mode) == 0o755
    assert json.loads((tmp_path / "to/.hexnpu/manifest.json").read_bytes())["files"]["empty"]["mode"] == 0o755


def test_folders_and_files_change_places(pushed: Push, package: Path, tmp_path: Path) -> None:
    pushed(package)
    for path in (package / "lib").iterdir():
        path.unlink()
    (package / "lib").rmdir()
    write(package / "lib", b"now a file")
    (package / "empty").unlink()
    write(package / "empty/inside", b"now a folder")
    pushed(package)
    assert tree(tmp_path / "to") == tree(package)


def test_damage_on_the_target_is_mended(pushed: Push, package: Path, tmp_path: Path) -> None:
    pushed(package)
    to = tmp_path / "to"
    (to / "bin/tool").unlink()
    (to / "bin/script").write_bytes(b"#!/bin/ls\n")
    (to / "lib/libx.so").unlink()
    report = pushed(package)
    assert sorted(report.sent) == ["bin/script", "bin/tool", "lib/libx.so"]
    assert tree(to) == tree(package)


def test_a_lost_manifest_sends_nothing_again(pushed: Push, package: Path, tmp_path: Path) -> None:
    """Files of the right size are compared by their sums on the target (all but a name that sha256sum escapes)."""
    pushed(package)
    (tmp_path / "to/.hexnpu/manifest.json").write_text("{broken")
    report = pushed(package)
    assert set(report.sent) <= {"lib/new\nline", "lib/libx.so", "bin/up"}
    assert pushed(package).sent == ()
    assert tree(tmp_path / "to") == tree(package)


def test_dry_run_changes_nothing(pushed: Push, package: Path, tmp_path: Path) -> None:
    report = pushed(package, dry_run=True)
    assert len(report.sent) == 10
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("size", [999, 1000, 1001])
def test_a_file_that_changes_meanwhile(pushed: Push, tmp_path: Path, size: int) -> None:
    """Also where its sum is known, so that no sum of what is sent is taken."""
    root = tmp_path / "pkg"
    write(root / "a", bytes(1000))
    pushed(root, f"{tmp_path}/elsewhere")

    class Changes(Watcher):
        def file(self, path: str) -> None:
            (root / path).write_bytes(bytes(size))

    with pytest.raises(DeployError, match="changed while"):
        pushed(root, watcher=Changes())
    assert tree(tmp_path / "to") == {}


def test_a_file_that_is_replaced_meanwhile(pushed: Push, tmp_path: Path) -> None:
    """By another one of its size and time."""
    root = tmp_path / "pkg"
    write(root / "a", b"1")
    pushed(root, f"{tmp_path}/elsewhere")
    write(tmp_path / "other", b"2")

    class Replaces(Watcher):
        def file(self, path: str) -> None:
            (tmp_path / "other").replace(root / path)

    with pytest.raises(DeployError, match="changed while"):
        pushed(root, watcher=Replaces())
    assert tree(tmp_path / "to") == {}


def test_odd_target_directories(pushed: Push, package: Path, tmp_path: Path) -> None:
    to = f"{tmp_path}/it's a $(dir); \\x/"
    pushed(package, to)
    assert tree(Path(to)) == tree(package)


@pytest.mark.parametrize(
    ("directory", "name"), [("~/test-N/x y", "test-N"), ("test-N/x y", "test-N"), ("~N/x y", "~N")]
)
def test_a_target_directory_in_the_home(transport: str | None, package: Path, directory: str, name: str) -> None:
    directory, name = (text.replace("N", f"hexnpu-{os.getpid()}") for text in (directory, name))
    with open_device(parse_target(transport)) as device:
        home = Path(device.shell('printf %s "$HOME"').stdout.decode())
        try:
            push_folder(device, package, directory)
            assert tree(home / name / "x y") == tree(package)
        finally:
            device.shell(f'rm -rf "$HOME/{name}"')


def test_a_file_where_the_directory_should_be(pushed: Push, package: Path, tmp_path: Path) -> None:
    (tmp_path / "to").write_text("a file")
    with pytest.raises(DeployError, match="not a folder"):
        pushed(package)
    assert (tmp_path / "to").read_text() == "a file"


def test_a_directory_below_a_pushed_one(pushed: Push, package: Path, tmp_path: Path) -> None:
    """What lies above it is not taken for its contents."""
    write(tmp_path / "to/.hexnpu/incoming/big", (package / "big").read_bytes())
    pushed(package)
    for below in ("x", "y/z"):
        assert len(pushed(package, f"{tmp_path}/to/{below}", dry_run=True).sent) == 10
        assert len(pushed(package, f"{tmp_path}/to/{below}").sent) == 10
        assert tree(tmp_path / "to" / below) == tree(package)
    assert pushed(package).sent == ()


def test_no_target_directory(package: Path) -> None:
    """It is not the root."""
    for target in (None, "windows:box"):
        with pytest.raises(UsageError, match="empty"):
            push_folder(NoDevice(parse_target(target)), package, "")


class NoDevice(LocalDevice):
    """Of any kind, and asked for nothing."""

    def open(self, command: Command) -> LocalProcess:
        raise AssertionError(command)


def test_nothing_new_is_one_question(transport: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(500):
        write(tmp_path / f"pkg/dir{n % 20}/file{n}", b"x")
    with open_device(parse_target(transport)) as device:
        push_folder(device, tmp_path / "pkg", f"{tmp_path}/to")
        questions = []
        opens = device.open
        monkeypatch.setattr(device, "open", lambda command: questions.append(command) or opens(command))
        assert push_folder(device, tmp_path / "pkg", f"{tmp_path}/to").unchanged == 500
        assert len(questions) == 1


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["ssh", "adb"], indirect=True)
def test_200_mb_in_500_files(pushed: Push, tmp_path: Path) -> None:
    root = tmp_path / "pkg"
    paths = [f"dir{n % 20}/file{n}" for n in range(500)]
    for path in paths:
        write(root / path, os.urandom(400_000))
    assert pushed(root).sent_bytes == 200_000_000
    assert pushed(root).sent == ()
    write(root / paths[7], os.urandom(400_000))
    assert pushed(root).sent == (paths[7],)
    assert all((tmp_path / "to" / path).read_bytes() == (root / path).read_bytes() for path in paths)


def test_many_files_with_long_names(pushed: Push, tmp_path: Path) -> None:
    """More than one command line of them."""
    root = tmp_path / "pkg"
    for n in range(1000):
        write(root / f"{n % 3}" / ("n" * 150 + str(n)), b"x", 0o644 if n % 2 else 0o755)
    pushed(root)
    assert tree(tmp_path / "to") == tree(root)
    assert pushed(root).unchanged == 1000


def test_thousands_of_files_at_the_top(pushed: Push, tmp_path: Path) -> None:
    """Their names are more than one command line takes."""
    root = tmp_path / "pkg"
    for n in range(3000):
        write(root / ("n" * 60 + str(n)), b"x")
    pushed(root)
    assert tree(tmp_path / "to") == tree(root)
    (root / ("n" * 60 + "7")).unlink()
    report = pushed(root)
    assert (report.sent, report.unchanged, len(report.removed)) == ((), 2999, 1)
    assert tree(tmp_path / "to") == tree(root)


def test_folders_of_a_former_push(pushed: Push, package: Path, tmp_path: Path) -> None:
    """Are removed if they are empty."""
    (package / "a/b/c").mkdir(parents=True)
    (package / "kept/inside").mkdir(parents=True)
    pushed(package)
    write(tmp_path / "to/kept/mine", b"mine")
    for folder in ("a/b/c", "a/b", "a", "kept/inside", "kept", "nothing in here"):
        (package / folder).rmdir()
    pushed(package)
    assert tree(tmp_path / "to") == tree(package) | {"kept": "folder", "kept/mine": (b"mine", 0o644)}
    # An empty folder makes room for a file.
    (package / "kept").mkdir()
    (package / "late").mkdir()
    pushed(package)
    (package / "late").rmdir()
    write(package / "late", b"a file")
    pushed(package)
    assert tree(tmp_path / "to") == tree(package) | {"kept/mine": (b"mine", 0o644)}


def _folder(to: Path, elsewhere: Path) -> None:
    (to / "bin/tool").unlink(missing_ok=True)
    write(to / "bin/tool/mine", b"mine")


def _empty_folder(to: Path, elsewhere: Path) -> None:
    (to / "bin/tool").unlink(missing_ok=True)
    (to / "bin/tool").mkdir(parents=True)


def _symlink(to: Path, elsewhere: Path) -> None:
    shutil.rmtree(to / "lib", ignore_errors=True)
    (to / "lib").symlink_to(elsewhere)


def _file(to: Path, elsewhere: Path) -> None:
    shutil.rmtree(to / "lib", ignore_errors=True)
    write(to / "lib", b"mine")


def _state_elsewhere(to: Path, elsewhere: Path) -> None:
    shutil.rmtree(to / ".hexnpu", ignore_errors=True)
    (to / ".hexnpu").symlink_to(elsewhere)


@pytest.mark.parametrize("before", [False, True], ids=["new", "pushed before"])
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_folder, "bin/tool/mine|bin/tool"), (_empty_folder, "bin/tool"), (_symlink, "lib"), (_file, "lib"),
        (_state_elsewhere, ".hexnpu"),
    ],
)  # fmt: skip
def test_what_is_in_the_way(
    pushed: Push, package: Path, tmp_path: Path, change: Callable[[Path, Path], None], name: str, before: bool
) -> None:
    """Is told before anything is changed, what else there would be to do included."""
    to, elsewhere = tmp_path / "to", tmp_path / "elsewhere"
    to.mkdir()
    elsewhere.mkdir()
    if before:
        pushed(package)
    write(package / "big", b"changed")
    (package / "empty").unlink()
    change(to, elsewhere)
    there = [to, *to.rglob("*")]
    with pytest.raises(DeployError, match=f"'({name})'.* away"):
        pushed(package)
    assert [to, *to.rglob("*")] == there
    assert tree(elsewhere) == {}
    assert not before or (to / "big").stat().st_size == 3 << 20


def test_a_removal_stays_inside(pushed: Push, package: Path, tmp_path: Path) -> None:
    """Where a folder became a symlink, the files behind it are not those that were pushed."""
    pushed(package)
    shutil.move(tmp_path / "to/lib", tmp_path / "elsewhere")
    (tmp_path / "to/lib").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/empty").mkdir()
    there = tree(tmp_path / "elsewhere")
    shutil.rmtree(package / "lib")
    (package / "bin/up").unlink()
    pushed(package)
    assert tree(tmp_path / "elsewhere") == there
    assert tree(tmp_path / "to") == tree(package) | {"lib": f"{tmp_path}/elsewhere"}


@pytest.mark.parametrize("program", ["find", "stat", "sha256sum"])
def test_a_program_that_is_missing_there(
    pushed: Push, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(survey_module, "_SCRIPT", f"PATH={_path_without(program, tmp_path)}{survey_module._SCRIPT}")
    with pytest.raises(DeployError, match=f"no {program} there.*install"):
        pushed(package)
    assert not (tmp_path / "to").exists()


def test_tar_is_missing_there(sshd: Sshd, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_RECEIVE", f"PATH={_path_without('tar', tmp_path)}{stream._RECEIVE}")
    with open_device(parse_target(sshd.target)) as device, pytest.raises(DeployError, match=r"has no tar.*install"):
        push_folder(device, package, f"{tmp_path}/to")
    assert tree(tmp_path / "to") == {}


@pytest.mark.parametrize("program", ["toybox", "busybox"])
def test_symlinks_that_lead_outside(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Every tar makes the folders of what comes after them."""
    receive = stream._RECEIVE.replace("exec tar $b", f"exec {require_tool(program, program)} tar")
    monkeypatch.setattr(stream, "_RECEIVE", receive)
    root = tmp_path / "pkg"
    for path in ("n/m/a", "x/f"):
        write(root / path, b"file")
    for path in ("a", "n/c", "x/y/n", "x/z/y/n"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to("/tmp")
    with open_device(parse_target(sshd.target)) as device:
        push_folder(device, root, f"{tmp_path}/to")
    assert tree(tmp_path / "to") == tree(root)


def _path_without(program: str, tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in {"find", "stat", "sha256sum", "tar", "cat", "df", "mkdir"} - {program}:
        (folder / name).symlink_to(shutil.which(name) or "none")
    return folder


def test_what_cannot_be_written_is_told_before_anything_is() -> None:
    state = Survey(True, None, 1000, Manifest(), Manifest())
    state.require("t", 1000)
    with pytest.raises(NoSpace, match="needs"):
        state.require("t", 1001)
    with pytest.raises(TargetReadOnly, match="/mnt"):
        Survey(True, "/mnt", None, Manifest(), Manifest()).require("t", 0)


def test_execute_bit_of_a_package_from_windows(tmp_path: Path) -> None:
    cases = {b"\x7fELF\x02": 0o755, b"#!/bin/sh\n": 0o755, b"text": 0o644, b"": 0o644}
    for data, mode in cases.items():
        (tmp_path / "f").write_bytes(data)
        assert executable_mode(tmp_path / "f") == mode


def test_a_package_with_something_odd(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open_device(parse_target(None)) as device, pytest.raises(DeployError, match="neither a file"):
        push_folder(device, tmp_path, f"{tmp_path}/to")


@pytest.mark.slow
def test_a_file_over_two_gib(sshd: Sshd, tmp_path: Path) -> None:
    root = tmp_path / "pkg"
    write(root / "model", b"head")
    with (root / "model").open("r+b") as file:
        file.seek((2 << 30) + 100)
        file.write(b"tail")
    with open_device(parse_target(sshd.target)) as device:
        push_folder(device, root, f"{tmp_path}/to")
        assert (tmp_path / "to/model").stat().st_size == (2 << 30) + 104
        with (tmp_path / "to/model").open("rb") as file:
            file.seek(2 << 30)
            assert file.read() == bytes(100) + b"tail"
        assert push_folder(device, root, f"{tmp_path}/to").unchanged == 1
