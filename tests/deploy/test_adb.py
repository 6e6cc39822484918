"""Which device is meant, and what is said when none can be reached. A real adb server throughout."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import pytest

from hexnpu.deploy.adb_server import attached, choose, device_features, server_address
from hexnpu.deploy.device import Command, open_device
from hexnpu.deploy.errors import DeployError, DeviceNotReady, NoAdbServer, NoDevice, SeveralDevices
from hexnpu.deploy.targets import parse_target
from tests.deploy.conftest import Adb
from tests.deploy.sshd import free_port


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(free_port()))
    with pytest.raises(NoAdbServer, match="adb start-server"):
        open_device(parse_target("adb"))


def test_a_port_that_is_none() -> None:
    with pytest.raises(NoAdbServer, match="no port"):
        server_address({"ANDROID_ADB_SERVER_PORT": "x"})
    assert server_address({}) == ("127.0.0.1", 5037)


@pytest.mark.parametrize(
    ("socket", "address"),
    [
        ("tcp:6000", ("127.0.0.1", 6000)),
        ("tcp:box:6000", ("box", 6000)),
        ("tcp:127.0.0.1:1", ("127.0.0.1", 1)),
        ("tcp:[::1]:6000", ("::1", 6000)),
        ("", ("there", 7000)),
        ("tcp:", None),
        ("tcp:box", None),
        ("tcp:0", None),
        ("tcp:65536", None),
        ("tcp:a:b:6000", None),
        ("6000", None),
        ("localfilesystem:/tmp/adb", None),
    ],
)
def test_the_server_socket(socket: str, address: tuple[str, int] | None) -> None:
    """It comes before the other two, as one sees of adb with all three set."""
    environment = {
        "ADB_SERVER_SOCKET": socket, "ANDROID_ADB_SERVER_ADDRESS": "there", "ANDROID_ADB_SERVER_PORT": "7000",
    }  # fmt: skip
    if address:
        assert server_address(environment) == address
        return
    with pytest.raises(NoAdbServer, match="ADB_SERVER_SOCKET is"):
        server_address(environment)


def test_a_server_by_its_socket(adb: Adb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:localhost:{adb.port}")
    assert attached() == []


def test_devices_and_what_they_can(adb: Adb, tmp_path: Path) -> None:
    new, old = adb.connect(tmp_path), adb.connect(tmp_path, "--no-shell-v2")
    assert sorted(attached()) == sorted([(new, "device"), (old, "device")])
    assert "shell_v2" in device_features(new)
    assert "shell_v2" not in device_features(old)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n", b"FAIL0005wrong", b"OKAYzzzz"])
def test_what_listens_is_no_adb_server(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.getsockname()[1]))

        def serve() -> None:
            # The first connection only asks whether anybody listens.
            for _ in range(2):
                sock, _ = server.accept()
                with sock, contextlib.suppress(OSError):
                    sock.recv(100)
                    sock.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(NoAdbServer, match="adb kill-server") as error:
            attached()
        assert "\n" not in str(error.value)
        thread.join()


def test_no_device(adb: Adb) -> None:
    with pytest.raises(NoDevice, match="USB debugging"):
        open_device(parse_target("adb"))
    with pytest.raises(NoDevice, match="attached: none"):
        open_device(parse_target("adb:R5CT1"))


def test_one_device_needs_no_serial(adb: Adb, tmp_path: Path) -> None:
    serial = adb.connect(tmp_path)
    with open_device(parse_target("adb")) as device:
        assert device.name == f"android:{serial}"
        assert device.open(Command(("echo", "x"))).communicate() == (0, b"x\n", b"")


def test_several_devices(adb: Adb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serials = [adb.connect(tmp_path), adb.connect(tmp_path)]
    with pytest.raises(SeveralDevices) as error:
        open_device(parse_target("adb"))
    assert all(f"{serial} (device)" in str(error.value) for serial in serials)
    assert "--target android:SERIAL" in str(error.value)
    assert open_device(parse_target(f"android:{serials[1]}")).name == f"android:{serials[1]}"
    monkeypatch.setenv("ANDROID_SERIAL", serials[0])
    assert open_device(parse_target("android")).name == f"android:{serials[0]}"


def test_an_unauthorized_device(adb: Adb, tmp_path: Path) -> None:
    serial = adb.connect(tmp_path, "--banner", "unauthorized")
    assert attached() == [(serial, "unauthorized")]
    for target in ("android", f"android:{serial}"):
        with pytest.raises(DeviceNotReady, match=f"device {serial} is unauthorized: allow USB debugging"):
            open_device(parse_target(target))


@pytest.mark.parametrize(
    ("state", "remedy"), [("unauthorized", "USB debugging"), ("offline", "replug"), ("recovery", "reboot")]
)
def test_states(state: str, remedy: str) -> None:
    with pytest.raises(DeviceNotReady, match=remedy):
        choose([("A", state)], "A")
    with pytest.raises(DeviceNotReady, match=remedy):
        choose([("A", state)], None)
    assert choose([("A", state), ("B", "device")], None) == "B"


def test_a_command_that_is_too_long(adb: Adb, tmp_path: Path) -> None:
    adb.connect(tmp_path)
    with open_device(parse_target("adb")) as device, pytest.raises(DeployError, match="65535"):
        device.open(Command(("true", "x" * 70_000)))


def test_a_path_that_is_too_long(adb: Adb, tmp_path: Path) -> None:
    from hexnpu.deploy.device import Upload

    adb.connect(tmp_path)
    long = "/".join(["n" * 200] * 6)
    with open_device(parse_target("adb")) as device, pytest.raises(DeployError, match="shorter"):
        device.upload(str(tmp_path), [Upload(long, 0, 0, lambda: iter(()))], lambda n: None)


def test_a_failed_upload_says_why(adb: Adb, tmp_path: Path) -> None:
    from hexnpu.deploy.device import Upload

    adb.connect(tmp_path)
    (tmp_path / "file").touch()
    data = bytes(65536)
    with open_device(parse_target("adb")) as device:
        with pytest.raises(DeployError, match="File exists"):
            device.upload(f"{tmp_path}/file", [Upload("x", 100 << 16, 0, lambda: iter([data] * 100))], lambda n: None)
        device.upload(f"{tmp_path}/to", [Upload("x", 1, 0, lambda: iter((b"1",)))], lambda n: None)
    assert (tmp_path / "to/x").read_bytes() == b"1"
