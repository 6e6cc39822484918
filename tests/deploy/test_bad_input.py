"""Every way in which push and run can be told wrong: one line with a remedy, its exit code, nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require_tool
from tests.deploy.conftest import Adb, push_folder
from tests.deploy.sshd import Sshd, free_port

REPO = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "pkg"
    (root / "bin").mkdir(parents=True)
    (root / "bin/tool").write_bytes(bytes(3 << 20))
    return root


def refused(code: int, *arguments: object, before: tuple[str, ...] = ()) -> str:
    """The one line that the command prints. `before`: a program that runs it, and its arguments."""
    done = subprocess.run(
        [*before, sys.executable, "-m", "hexnpu", *map(str, arguments)], cwd=REPO, stdin=subprocess.DEVNULL,
        capture_output=True,
    )  # fmt: skip
    line = done.stderr.decode()
    assert (done.returncode, done.stdout) == (code, b""), line
    assert line.startswith("hexnpu: ") and line.count("\n") == 1 and len(line) > 30
    return line


def push(code: int, target: str, package: Path, directory: object = "~/x") -> str:
    return refused(code, "push", "--target", target, "--install-dir", package, "--target-dir", directory)


@pytest.mark.parametrize("target", ["phone", "linux:", "adb:", "emu:x"])
def test_a_malformed_target(package: Path, target: str) -> None:
    assert "android[:serial]" in push(2, target, package)
    assert "android[:serial]" in refused(2, "run", "--target", target, "--", "true")


def test_no_adb_server(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(free_port()))
    assert "adb start-server" in push(10, "adb", package)
    assert "adb start-server" in refused(10, "run", "--target", "adb", "--", "true")
    monkeypatch.setenv("ADB_SERVER_SOCKET", "localfilesystem:/tmp/adb")
    assert "tcp:HOST:PORT" in push(10, "adb", package)


def test_no_device(adb: Adb, package: Path) -> None:
    assert "plug one in" in push(11, "adb", package)
    assert "check the serial" in push(11, "adb:X", package)


def test_several_devices(adb: Adb, package: Path, tmp_path: Path) -> None:
    serials = [adb.connect(tmp_path), adb.connect(tmp_path)]
    line = push(13, "adb", package)
    assert all(serial in line for serial in serials)


def test_an_unauthorized_device(adb: Adb, package: Path, tmp_path: Path) -> None:
    adb.connect(tmp_path, "--banner", "unauthorized")
    assert "allow USB debugging" in push(12, "adb", package)
    assert "allow USB debugging" in refused(12, "run", "--target", "adb", "--", "true")


def test_hosts(package: Path, home: Path) -> None:
    assert "check its name" in push(14, "linux:no-such-host.invalid", package)
    assert "sshd running" in push(15, f"linux:127.0.0.1:{free_port()}", package)


def test_authentication(sshd: Sshd, home: Path, package: Path) -> None:
    (home / ".ssh/id_ed25519").unlink()
    assert "authorized_keys" in push(16, sshd.target, package)
    (home / ".ssh/known_hosts").unlink()
    assert "--accept-new-host-key" in push(17, sshd.target, package)


@pytest.mark.parametrize("make", [False, True], ids=["missing", "empty"])
def test_the_package(tmp_path: Path, make: bool) -> None:
    if make:
        (tmp_path / "none").mkdir()
    assert "hexnpu build" in push(22, "linux:box", tmp_path / "none")
    assert "--install-dir" in refused(22, "run", "--source", tmp_path, "--", "true")
    assert "--install-dir" in refused(22, "push", "--source", tmp_path)


def test_several_local_packages(tmp_path: Path) -> None:
    for name in ("pkg-a", "pkg-b"):
        (tmp_path / name / "bin").mkdir(parents=True)
    assert "several packages" in refused(22, "run", "--source", tmp_path, "--", "true")


def test_flags(tmp_path: Path) -> None:
    told = refused(2, "run", "--target", "linux:box", "--log", tmp_path / "no/log", "--", "true")
    assert "--log" in told and "name a file" in told
    for command, *program in (("push",), ("run", "--", "true")):
        told = refused(2, command, "--target", "linux:box", "--source", tmp_path / "none", *program)
        assert "--source" in told and "is no folder" in told
    assert "--timeout" in refused(2, "run", "--timeout", "0", "--", "true")
    assert "NAME=VALUE" in refused(2, "run", "--target", "linux:box", "--env", "x", "--", "true")
    assert "--devices" in refused(2, "run", "--target", "linux:box", "-d", "0", "--", "true")


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("build", ["source", "build-dir", "install-dir", "target-dir", "preset", "toolchain-url", "toolchain-version"]),
        ("push", ["source", "install-dir", "target-dir"]),
        ("run", ["source", "install-dir", "target-dir", "log"]),
        ("doctor", ["target-dir"]),
    ],
)
def test_empty_values(command: str, flags: list[str]) -> None:
    """A folder named by nothing would be the one we are in."""
    program = ["--", "true"] if command == "run" else []
    for flag in flags:
        assert f"--{flag}': it is empty" in refused(2, command, f"--{flag}", "", *program)
    assert "android[:serial]" in refused(2, command, "--target", "", *program)


def test_run_where_nothing_was_pushed(transport: str | None, tmp_path: Path) -> None:
    target = ["--target", transport] if transport else []
    assert "push first" in refused(1, "run", *target, "--target-dir", tmp_path / "none", "--", "true")


def test_a_file_where_the_directory_should_be(transport: str | None, package: Path, tmp_path: Path) -> None:
    (tmp_path / "to").write_text("mine")
    (tmp_path / "to-nothing").symlink_to("nothing")
    target = ["--target", transport] if transport else []
    for directory in ("to", "to/below", "to-nothing", "to-nothing/below"):
        told = refused(1, "push", *target, "--install-dir", package, "--target-dir", tmp_path / directory)
        assert f"{tmp_path / directory.removesuffix('/below')} is not a folder: move it away" in told


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("mounting needs rights that are not there")
    yield place
    subprocess.run(["umount", place], check=True)


def test_no_space_and_read_only(transport: str | None, package: Path, mounted: Path) -> None:
    target = ["--target", transport] if transport else []
    command = ("push", *target, "--install-dir", package, "--target-dir", mounted / "to")
    assert "are free" in refused(20, *command)
    assert list(mounted.iterdir()) == []
    subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
    assert "not writable" in refused(21, *command)


def test_space_that_runs_out_on_the_way(transport: str | None, package: Path, mounted: Path) -> None:
    """`df` says nothing, so that only the writing fails."""
    from hexnpu.deploy.device import open_device
    from hexnpu.deploy.errors import NoSpace
    from hexnpu.deploy.survey import Survey
    from hexnpu.deploy.targets import parse_target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Survey, "require", lambda *_: None)
        with open_device(parse_target(transport)) as device, pytest.raises(NoSpace, match="remove files"):
            push_folder(device, package, str(mounted))
    assert [path.name for path in mounted.iterdir()] == [".hexnpu"]


def test_what_permissions_keep_from_us(package: Path, tmp_path: Path) -> None:
    """They bind root without its capabilities as anybody."""
    setpriv = require_tool("setpriv", "util-linux")
    as_a_user = () if os.geteuid() else (setpriv, "--inh-caps=-all", "--bounding-set=-all")
    locked = tmp_path / "locked"
    (locked / "x").mkdir(parents=True)
    locked.chmod(0)
    try:
        for code, says, command in (
            (1, "mend its permissions", ("push", "--install-dir", locked / "x")),
            (1, "mend its permissions", ("push", "--source", locked / "x")),
            (1, "mend its permissions", ("build", "--source", locked / "x")),
            (21, "mend its permissions", ("push", "--install-dir", package, "--target-dir", locked)),
            (21, "mend its permissions", ("push", "--install-dir", package, "--target-dir", locked / "x")),
            (1, "may be entered", ("run", "--target-dir", locked, "--", "true")),
            (1, "may be entered", ("run", "--target-dir", locked / "x", "--", "true")),
            (2, "folder that you may write", ("run", "--log", locked / "x", "--target-dir", tmp_path, "--", "true")),
        ):
            assert says in refused(code, *command, before=as_a_user)
    finally:
        locked.chmod(0o700)


def test_names_that_break_a_line(tmp_path: Path, adb: Adb, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or that steer a terminal: they are shown escaped."""
    assert "no\\npkg: build it" in push(22, "linux:box", tmp_path / "no\npkg")
    assert "a\\x1b[2Jb" in refused(2, "build", "--source", tmp_path / "a\x1b[2Jb")
    monkeypatch.setenv("ANDROID_SERIAL", "x\ny")
    assert "no device x\\ny" in refused(11, "run", "--target", "adb", "--", "true")


def test_windows_where_none_is(package: Path) -> None:
    push(2, "wos", package)
    assert "windows:[user@]host" in refused(2, "run", "--target", "wos", "--target-dir", "x", "--", "true")


def test_a_windows_host_has_no_such_folder(package: Path) -> None:
    for folder in ("/x", "C:x", "\\\\server\\share"):
        command = ("run", "--target", "windows:box", "--target-dir", folder, "--print", "--", "true")
        assert "name its drive" in refused(2, *command)


def test_a_flag_of_the_program() -> None:
    assert "what is for the program goes behind --" in refused(2, "run", "ls", "-la")
    assert "behind --" not in refused(2, "run", "--nonsense", "--", "ls", "-la")


def test_a_package_under_another_word(tmp_path: Path) -> None:
    """What is there for such a target is named, with the way to take it."""
    for name in ("pkg-android", "pkg-android-dbg", "pkg-linux", "pkg-x"):
        (tmp_path / name / "bin").mkdir(parents=True)
    told = refused(22, "push", "--target", "adb", "--source", tmp_path)
    assert f"no package folder {tmp_path}/pkg-adb: there is pkg-android, pkg-android-dbg, pkg-x;" in told
    assert f"(--target android, --target android --debug, --install-dir {tmp_path}/pkg-android)" in told
    told = refused(22, "push", "--target", "windows:box", "--source", tmp_path)
    assert f"there is pkg-x; take one (--install-dir {tmp_path}/pkg-x), or build it" in told
    assert f"(hexnpu build --target windows --source {tmp_path})" in told
    (tmp_path / "y").mkdir()
    told = refused(22, "push", "--target", "lnx:box", "--debug", "--source", tmp_path / "y")
    assert f"build it (hexnpu build --target lnx --source {tmp_path}/y --debug), or name it" in told
