"""A file that comes from a target, over every transport: it is whole under its name, or it is not there."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hexnpu.deploy.device import Device, open_device
from hexnpu.deploy.errors import ConnectionLost, DeployError
from hexnpu.deploy.manifest import CHUNK
from hexnpu.deploy.process import start_thread
from hexnpu.deploy.targets import parse_target
from tests.processes import wait_until


@pytest.fixture
def device(transport: str | None) -> Iterator[Device]:
    with open_device(parse_target(transport)) as opened:
        yield opened


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def test_a_big_file_comes_whole(device: Device, tmp_path: Path, here: Path) -> None:
    data = os.urandom(20 << 20)
    (tmp_path / "big").write_bytes(data)
    (here / "back").write_bytes(b"of a former pull")
    device.pull(f"{tmp_path}/big", here / "back")
    assert (here / "back").read_bytes() == data
    assert [path.name for path in here.iterdir()] == ["back"]


def test_an_empty_file_comes(device: Device, tmp_path: Path, here: Path) -> None:
    (tmp_path / "empty").touch()
    device.pull(f"{tmp_path}/empty", here / "back")
    assert (here / "back").read_bytes() == b""


def test_what_is_not_there(device: Device, tmp_path: Path, here: Path) -> None:
    (here / "back").write_bytes(b"of a former pull")
    with pytest.raises(DeployError, match="nothing"):
        device.pull(f"{tmp_path}/nothing", here / "back")
    assert [path.read_bytes() for path in here.iterdir()] == [b"of a former pull"]


@pytest.fixture
def lose(transport: str | None, request: pytest.FixtureRequest) -> Callable[[], None]:
    """Ends the connection, as a crash on its other side would."""
    if transport is None:
        pytest.skip("there is no connection to this machine")
    if transport.startswith("android:"):
        adb = request.getfixturevalue("adb")
        return lambda: adb.disconnect(transport.removeprefix("android:"))
    return request.getfixturevalue("sshd").kill_connections  # type: ignore[no-any-return]


def test_a_connection_that_is_lost_half_way(
    device: Device, lose: Callable[[], None], tmp_path: Path, here: Path
) -> None:
    pipe, over = tmp_path / "pipe", threading.Event()
    os.mkfifo(pipe)
    (here / "back").write_bytes(b"")

    def feed() -> None:
        with pipe.open("wb", buffering=0) as out:
            out.write(os.urandom(1 << 20))
            wait_until(lambda: any(path.stat().st_size for path in here.iterdir()))
            lose()
            over.wait()

    feeder = start_thread(feed)
    try:
        with pytest.raises(ConnectionLost) as error:
            device.pull(str(pipe), here / "back")
    finally:
        over.set()
    feeder.join()
    assert error.value.exit_code == 18
    assert [(path.name, path.read_bytes()) for path in here.iterdir()] == [("back", b"")]


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("missing/back", "No such file"),
        ("file/back", "Not a directory"),
        ("folder", "it is a folder"),
        # Where not even root makes files.
        ("/sys/back", "Permission denied|Read-only|not permitted"),
    ],
)
def test_a_place_where_nothing_can_be_written(device: Device, tmp_path: Path, here: Path, to: str, why: str) -> None:
    (tmp_path / "small").write_bytes(b"small")
    (here / "file").touch()
    (here / "folder").mkdir()
    with pytest.raises(DeployError, match=f"{to} cannot be written .*({why}).*: ") as error:
        device.pull(f"{tmp_path}/small", here / to)
    assert type(error.value) is DeployError
    assert sorted(path.name for path in here.rglob("*")) == ["file", "folder"]


@contextlib.contextmanager
def files_end_at(n_bytes: int) -> Iterator[None]:
    """No file that this process writes can grow further: for it, the disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("size", "space"), [(3 << 20, 1 << 20), (CHUNK + 10, CHUNK + 9)], ids=["on the way", "at the end"]
)
def test_no_space_here(device: Device, tmp_path: Path, here: Path, size: int, space: int) -> None:
    (tmp_path / "big").write_bytes(bytes(size))
    with files_end_at(space), pytest.raises(DeployError, match=r"back cannot be written .*too large") as error:
        device.pull(f"{tmp_path}/big", here / "back")
    assert type(error.value) is DeployError
    assert not [*here.iterdir()]
    device.pull(f"{tmp_path}/big", here / "back")
    assert (here / "back").stat().st_size == size


def is_named(word: bytes) -> bool:
    """Whether a program has it among its arguments."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in file.read_bytes().split(b"\0"):
                return True
    return False


def test_a_failure_here_ends_the_copy_there(device: Device, tmp_path: Path, here: Path) -> None:
    """It would wait for ever to be read on."""
    endless = tmp_path / "endless"
    endless.symlink_to("/dev/zero")
    with files_end_at(1 << 20), pytest.raises(DeployError, match="cannot be written"):
        device.pull(str(endless), here / "back")
    wait_until(lambda: not is_named(bytes(endless)))
