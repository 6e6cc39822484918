"""Files over adbd's sync service: several connections, zstd, and what is said when it fails."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import adbutils
import pytest

from hexnpu.deploy.adb_sync import SyncUpload
from hexnpu.deploy.device import Device, Upload, open_device
from hexnpu.deploy.errors import ConnectionLost, DeployError
from hexnpu.deploy.targets import parse_target
from tests.deploy.conftest import Adb, push_folder

LONG_AGO = 1_600_000_000
TEXT = b"the same line again and again\n" * 40_000


@pytest.fixture(params=["plain", "zstd"])
def device(request: pytest.FixtureRequest, adb: Adb, tmp_path: Path) -> Iterator[Device]:
    serial = adb.connect(tmp_path, *(["--zstd"] if request.param == "zstd" else []))
    with open_device(parse_target(f"adb:{serial}")) as device:
        yield device


def upload(path: str, data: bytes, piece: int = 100_000) -> Upload:
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    return Upload(path, len(data), LONG_AGO, lambda: iter(pieces))


def nothing(n_bytes: int) -> None: ...


def test_contents_sizes_and_times_arrive(device: Device, tmp_path: Path) -> None:
    noise = os.urandom(1_000_000)
    files = {"empty": b"", "one": b"1", "text": TEXT, "noise": noise, "edge": noise[: 1 << 16], "edge+1": noise[:65537]}
    files |= {f"many/{n}": bytes([n]) * n for n in range(200)}
    counted: list[int] = []
    device.upload(f"{tmp_path}/to", [upload(name, data) for name, data in files.items()], counted.append)
    for name, data in files.items():
        path = tmp_path / "to" / name
        assert path.read_bytes() == data, name
        assert path.stat().st_mtime == LONG_AGO
    assert sum(counted) == sum(map(len, files.values()))


def test_chunks_stay_below_64_kib() -> None:
    ours, theirs = socket.socketpair()
    lengths: list[int] = []

    def adbd() -> None:
        with theirs, theirs.makefile("rb") as stream:
            while len(head := stream.read(8)) == 8:
                kind, length = struct.unpack("<4sI", head)
                if kind == b"DONE":
                    theirs.sendall(struct.pack("<4sI", b"OKAY", 0))
                    continue
                stream.read(length)
                if kind == b"DATA":
                    lengths.append(length)

    reader = threading.Thread(target=adbd)
    reader.start()
    data = os.urandom(300_000)
    SyncUpload("a device", "/to", lambda: ours, [upload("file", data, len(data))], nothing, False).run()
    reader.join()
    assert sum(lengths) == len(data) and max(lengths) < 64 << 10


def test_symlinks(device: Device, tmp_path: Path) -> None:
    device.upload(f"{tmp_path}/to", [Upload("link", 6, 0, lambda: iter((b"target",)), symlink=True)], nothing)
    assert (tmp_path / "to/link").readlink() == Path("target")


def test_a_failure_of_one_file_ends_all(device: Device, tmp_path: Path) -> None:
    """Also where the other connections are in the middle of files that never end."""
    (tmp_path / "to").mkdir()
    (tmp_path / "to/file").touch()

    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 16)

    files = [Upload("a", 1 << 50, 0, endless), Upload("b", 1 << 50, 0, endless), upload("file/x", TEXT)]
    with pytest.raises(DeployError, match=r"file/x|File exists|Not a directory"):
        device.upload(f"{tmp_path}/to", files, nothing)


def test_an_error_of_the_source_is_passed_on(device: Device, tmp_path: Path) -> None:
    def changes() -> Iterator[bytes]:
        yield b"some"
        raise DeployError("x changed while it was pushed")

    def files() -> Iterator[Upload]:
        yield upload("fine", TEXT)
        yield Upload("x", 8, 0, changes)

    with pytest.raises(DeployError, match="changed while"):
        device.upload(f"{tmp_path}/to", files(), nothing)

    def fails() -> Iterator[Upload]:
        yield upload("fine", TEXT)
        raise DeployError("no more")

    with pytest.raises(DeployError, match="no more"):
        device.upload(f"{tmp_path}/to", fails(), nothing)


def test_the_device_goes_away(adb: Adb, tmp_path: Path) -> None:
    serial = adb.connect(tmp_path)
    begun = threading.Event()

    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 16)
            begun.set()

    with open_device(parse_target(f"adb:{serial}")) as device:
        killer = threading.Thread(target=lambda: (begun.wait(), adb.disconnect(serial)))
        killer.start()
        with pytest.raises(ConnectionLost, match="check adb devices"):
            device.upload(f"{tmp_path}/to", [Upload("a", 1 << 50, 0, endless)], nothing)
        killer.join()


def test_a_device_takes_the_same_from_adb_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What proves the device: a real client that compresses. Debian's does not yet; adbutils brings one that does."""
    program = Path(adbutils.__file__).parent / "binaries/adb"
    if not program.exists():
        pytest.skip("this system's wheel of adbutils has no adb")
    adb = Adb(str(program), tmp_path)
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(adb.port))
    package = tmp_path / "pkg"
    (package / "lib").mkdir(parents=True)
    (package / "lib/libx.so").write_bytes(TEXT + os.urandom(300_000))
    (package / "tool").write_bytes(b"\x7fELF" + TEXT)
    adb.run("start-server")
    try:
        serial = adb.connect(tmp_path, "--zstd")
        push = ("-s", serial, "push", "-z")
        adb.run(*push, "zstd", str(package), f"{tmp_path}/theirs")
        # It does speak SND2, which our device takes with zstd only.
        with pytest.raises(subprocess.CalledProcessError) as error:
            adb.run(*push, "lz4", str(package / "tool"), f"{tmp_path}/theirs")
        assert b"'SND2' with flags 0x2" in error.value.output
        with open_device(parse_target(f"adb:{serial}")) as device:
            push_folder(device, package, f"{tmp_path}/ours")
        for name in ("lib/libx.so", "tool"):
            contents = {(tmp_path / who / name).read_bytes() for who in ("pkg", "ours", "theirs")}
            assert len(contents) == 1, name
        adb.disconnect(serial)
    finally:
        adb.run("kill-server")
