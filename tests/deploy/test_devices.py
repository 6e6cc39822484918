"""Every transport: what a device does with programs and files."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hexnpu.deploy.device import Command, Device, Upload, open_device
from hexnpu.deploy.errors import ConnectionLost, DeployError, NotStarted
from hexnpu.deploy.process import STDOUT
from hexnpu.deploy.targets import parse_target
from tests.processes import HANG_S, is_alive, wait_until


@pytest.fixture
def device(transport: str | None) -> Iterator[Device]:
    with open_device(parse_target(transport)) as opened:
        yield opened


HOSTILE = [
    "", " ", "a b", "$HOME", "`id`", "$(id)", ";id", "&& id", "| cat", "> x", "'", '"', "'\"'\\''", "\\", "\\n", "a\nb",
    "*", "?", "[a-z]", "{a,b}", "~", "~root", "#x", "!x", "%s%n", "-n", "--", "=x", "A=B", "\t", "\r\n", "é", "日本",
    "\x01", "\udcff",
]  # fmt: skip


def test_arguments_arrive_word_for_word(device: Device, tmp_path: Path) -> None:
    process = device.open(Command(("printf", "%s\\0", *HOSTILE), str(tmp_path)))
    code, out, err = process.communicate()
    assert (code, err) == (0, b"")
    assert out == b"".join(os.fsencode(word) + b"\0" for word in HOSTILE)


def test_environment_and_directory_arrive_word_for_word(device: Device, tmp_path: Path) -> None:
    folder = tmp_path / "it's a $dir"
    folder.mkdir()
    values = {f"V{n}": word for n, word in enumerate(HOSTILE)}
    process = device.open(Command(("sh", "-c", "pwd; env -0"), str(folder), values))
    code, out, _ = process.communicate()
    where, _, variables = out.partition(b"\n")
    assert (code, where) == (0, os.fsencode(folder))
    assert {os.fsencode(f"{name}={value}") for name, value in values.items()} <= set(variables.split(b"\0"))


@pytest.mark.parametrize("name", ["a=b", "it's", "-n"])
def test_a_program_with_an_odd_name(device: Device, tmp_path: Path, name: str) -> None:
    program = tmp_path / name
    program.write_text('#!/bin/sh\necho "$1"')
    program.chmod(0o755)
    code, out, _ = device.open(Command((f"./{name}", "x y"), str(tmp_path))).communicate()
    assert (code, out) == (0, b"x y\n")


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 1", 1), ("exit 77", 77), ("exit 255", 255), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)],
)
def test_exit_codes_come_back(device: Device, tmp_path: Path, script: str, code: int) -> None:
    assert device.open(Command(("sh", "-c", script), str(tmp_path))).communicate()[0] == code


def test_streams_stay_apart(device: Device, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    got = device.open(Command(("sh", "-c", "echo out; echo err >&2"), str(tmp_path))).communicate()
    if "without" in request.node.name:
        assert got == (0, b"out\nerr\n", b"")
    else:
        assert got == (0, b"out\n", b"err\n")


def test_merged_streams_keep_their_order(device: Device, tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done"
    code, out, err = device.open(Command(("sh", "-c", script), str(tmp_path), merge=True)).communicate()
    assert (code, err) == (0, b"")
    assert out.decode().split("\n")[:-1] == [f"{s} {i}" for i in range(1, 6) for s in ("out", "err")]


def test_output_comes_while_the_program_runs(device: Device, tmp_path: Path) -> None:
    """The program waits for a file that is made only after its first line has arrived."""
    script = "echo first; while [ ! -e go ]; do sleep 0.01; done; echo second"
    process = device.open(Command(("sh", "-c", script), str(tmp_path)))
    assert process.read(HANG_S) == (STDOUT, b"first\n")
    (tmp_path / "go").touch()
    assert process.read(HANG_S) == (STDOUT, b"second\n")
    assert process.exit_code() == 0


def test_much_output_on_both_streams(device: Device, tmp_path: Path) -> None:
    script = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero"
    code, out, err = device.open(Command(("sh", "-c", script), str(tmp_path))).communicate()
    assert (code, len(out) + len(err)) == (0, 9_000_000)


def test_input_is_forwarded(device: Device, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if "without" in request.node.name:
        pytest.skip("without shell v2 a program's input cannot be ended")
    data = bytes(range(256)) * 5000
    assert device.open(Command(("cat",), str(tmp_path))).communicate(data) == (0, data, b"")


def test_without_input_a_program_reads_its_end(device: Device, tmp_path: Path) -> None:
    assert device.open(Command(("cat",), str(tmp_path), has_input=False)).communicate(timeout_s=HANG_S) == (0, b"", b"")


def test_kill_ends_the_children_too(device: Device, tmp_path: Path) -> None:
    script = "sh -c 'echo $$ >> pids; exec sleep 1000' & echo $$ >> pids; wait"
    process = device.open(Command(("sh", "-c", f"({script}) & echo started; wait"), str(tmp_path)))
    assert process.read(HANG_S) == (STDOUT, b"started\n")
    pids = tmp_path / "pids"
    wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    process.kill()
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())
    process.close()


# How a program gets out of its process group, or loses its environment.
LEAVERS = {
    "timeout": "timeout 500 sh ./sleeper",
    "session": "setsid sh ./sleeper",
    "job control": "bash -c 'set -m; sh ./sleeper & wait'",
    "both": "timeout 500 setsid sh -c 'sh ./sleeper & wait'",
    "no environment": "env -i sh ./sleeper",
    "no environment, session": "setsid env -i sh ./sleeper",
}


@pytest.mark.parametrize("how", LEAVERS)
def test_kill_ends_what_left_the_group(device: Device, tmp_path: Path, how: str) -> None:
    (tmp_path / "sleeper").write_text("echo $$ > new; mv new pid; exec sleep 1000")
    script = f"{LEAVERS[how]} & while [ ! -e pid ]; do sleep 0.01; done; echo started; wait"
    process = device.open(Command(("sh", "-c", script), str(tmp_path)))
    assert process.read(HANG_S) == (STDOUT, b"started\n")
    process.kill()
    assert not is_alive(int((tmp_path / "pid").read_text()))
    process.close()


def test_kill_at_once(device: Device, tmp_path: Path) -> None:
    """Also before the target has said that the program runs."""
    process = device.open(Command(("sleep", "1000"), str(tmp_path)))
    process.kill()
    with contextlib.suppress(ConnectionLost):  # where the login shell was ended with it
        assert process.read(HANG_S) is None
    process.close()


@pytest.mark.slow
def test_kill_ends_what_ignores_term(device: Device, tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$ > pid; echo started; while :; do sleep 0.05; done"
    process = device.open(Command(("sh", "-c", script), str(tmp_path)))
    assert process.read(HANG_S) == (STDOUT, b"started\n")
    process.kill()
    assert not is_alive(int((tmp_path / "pid").read_text()))
    process.close()


def test_upload_and_pull(device: Device, tmp_path: Path) -> None:
    data = os.urandom(300_000)
    files = [
        Upload("a b/it's $x", len(data), 1_700_000_000, lambda: iter((data[:100_001], data[100_001:]))),
        Upload("empty", 0, 5, lambda: iter(())),
        Upload("deep/er/" + "n" * 200, 3, 6, lambda: iter((b"abc",))),
        Upload("link", 7, 7, lambda: iter((b"a b/\xff$x",)), symlink=True),
    ]
    counted: list[int] = []
    device.upload(f"{tmp_path}/to", files, counted.append)
    to = tmp_path / "to"
    assert (to / "a b/it's $x").read_bytes() == data
    assert (to / "a b/it's $x").stat().st_mtime == 1_700_000_000
    assert (to / "empty").read_bytes() == b""
    assert (to / "deep/er" / ("n" * 200)).read_bytes() == b"abc"
    assert os.readlink(os.fsencode(to / "link")) == b"a b/\xff$x"  # noqa: PTH115 - bytes
    assert sum(counted) == len(data) + 3
    device.pull(f"{tmp_path}/to/a b/it's $x", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    with pytest.raises(DeployError, match="nothing"):
        device.pull(f"{tmp_path}/nothing", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_tilde_is_the_home_there(device: Device, tmp_path: Path) -> None:
    home = device.shell('printf %s "$HOME"').stdout.decode()
    where = device.open(Command(("pwd",), "~")).communicate()[1].decode().strip()
    assert where == home


def test_a_program_is_looked_for_along_the_path_that_it_gets(device: Device, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tool").write_text("#!/bin/sh\necho it runs\n")
    (tmp_path / "bin/tool").chmod(0o755)
    command = Command(("tool",), str(tmp_path), {"PATH": "./bin:/bin"})
    assert device.open(command).communicate() == (0, b"it runs\n", b"")


@pytest.mark.parametrize("name", ["relative", "~relative"])
def test_a_relative_directory_starts_at_the_home(device: Device, tmp_path: Path, name: str) -> None:
    """Of a leading ~ only ~ and ~/ mean anything."""
    home = Path(device.shell('printf %s "$HOME"').stdout.decode())
    there = home / f"{name}-{tmp_path.name}"
    try:
        device.upload(there.name, [Upload("file", 1, 1, lambda: iter((b"x",)))], lambda _: None)
        assert (there / "file").read_bytes() == b"x"
        assert device.open(Command(("pwd",), there.name)).communicate() == (0, f"{there}\n".encode(), b"")
        device.pull(f"{there.name}/file", tmp_path / "back")
    finally:
        shutil.rmtree(there, ignore_errors=True)


def test_a_program_for_another_machine_is_no_script(device: Device, tmp_path: Path) -> None:
    """A shell would make of it what it can."""
    if any(file.name not in ("register", "status") for file in Path("/proc/sys/fs/binfmt_misc").glob("*")):
        pytest.skip("this machine runs programs for others")
    program = bytearray(Path("/bin/true").read_bytes() + b"\ntouch made\n")
    program[18:20] = (164).to_bytes(2, "little")
    (tmp_path / "it's $1").write_bytes(program)
    (tmp_path / "it's $1").chmod(0o755)
    with pytest.raises(NotStarted, match=r"is for hexagon, and .* is \w+: build|Exec format error") as error:
        device.open(Command(("./it's $1",), str(tmp_path))).exit_code()
    assert error.value.exit_code == 126
    assert not (tmp_path / "made").exists()


def test_a_directory_that_is_not_there(device: Device, tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="missing"):
        device.open(Command(("true",), f"{tmp_path}/missing")).exit_code()
