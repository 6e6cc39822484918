"""The two real servers: OpenSSH's sshd, and Debian's adb server with our TCP device behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hexnpu.deploy.device import Device, open_device
from hexnpu.deploy.push import Report, Watcher, push
from hexnpu.deploy.source import Source
from hexnpu.deploy.targets import parse_target
from tests.conftest import require_tool
from tests.deploy.sshd import Master, Sshd, free_port, make_key

REPO = Path(__file__).parents[2]


@dataclass
class Adb:
    """An adb server of our own. `connect` starts a device and gives its serial."""

    program: str
    home: Path
    port: int = field(default_factory=free_port)
    devices: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "ANDROID_ADB_SERVER_PORT": str(self.port)}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.program, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=True,
        )  # fmt: skip
        return done.stdout.decode()

    def connect(self, root: Path, *options: str) -> str:
        device = subprocess.Popen(
            [sys.executable, "-m", "tests.deploy.adb_device", root, *options], cwd=REPO, stdout=subprocess.PIPE
        )
        assert device.stdout
        serial = f"127.0.0.1:{int(device.stdout.readline())}"
        self.devices[serial] = device
        self.run("connect", serial)
        return serial

    def disconnect(self, serial: str) -> None:
        self.run("disconnect", serial)
        device = self.devices.pop(serial)
        device.kill()
        device.wait()
        assert device.stdout
        device.stdout.close()


def push_folder(
    device: Device, root: Path, to: str, *, dry_run: bool = False, watcher: Watcher | None = None
) -> Report:
    with Source(root) as source:
        return push(device, source, to, dry_run=dry_run, watcher=watcher or Watcher())


@pytest.fixture(scope="session")
def adb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    program = require_tool("adb", "adb")
    adb = Adb(program, tmp_path_factory.mktemp("adb-home"))
    adb.run("start-server")
    yield adb
    for serial in list(adb.devices):
        adb.disconnect(serial)
    adb.run("kill-server")


@pytest.fixture
def adb(adb_server: Adb, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adb]:
    """The server without devices; what a test connects is taken away after it."""
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(adb_server.port))
    monkeypatch.delenv("ANDROID_SERIAL", raising=False)
    monkeypatch.delenv("ADB_SERVER_SOCKET", raising=False)
    yield adb_server
    for serial in list(adb_server.devices):
        adb_server.disconnect(serial)


@pytest.fixture(scope="session")
def sshd_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    program = require_tool("sshd", "openssh-server")
    require_tool("ssh-keygen", "openssh-client")
    server = Sshd(tmp_path_factory.mktemp("sshd"), program)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without keys, and nothing of the caller's own."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HEXNPU_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def sshd(sshd_server: Sshd, home: Path) -> Sshd:
    """The server, with a key of `home` that it accepts and its host key in known_hosts."""
    public = make_key(home / ".ssh" / "id_ed25519")
    (sshd_server.folder / "authorized_keys").write_text(public)
    (home / ".ssh" / "known_hosts").write_text(sshd_server.known_hosts_line())
    return sshd_server


@pytest.fixture
def master(sshd: Sshd, home: Path) -> Iterator[Master]:
    require_tool("ssh", "openssh-client")
    master = Master(sshd, home)
    master.start()
    yield master
    master.stop()


@pytest.fixture(params=["local", "ssh", "ssh-master", "adb", "adb-without-shell-v2"])
def transport(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> str | None:
    """The --target of each way to a device; `~` there is a folder under tmp_path."""
    if request.param == "local":
        return None
    if request.param == "ssh":
        return str(request.getfixturevalue("sshd").target)
    if request.param == "ssh-master":
        return str(request.getfixturevalue("master").target)
    adb: Adb = request.getfixturevalue("adb")
    options = ["--no-shell-v2"] if "without" in request.param else []
    return f"android:{adb.connect(tmp_path, *options)}"


@pytest.fixture
def pushed(transport: str | None, tmp_path: Path) -> Callable[..., Report]:
    """Pushes a folder over this transport, to tmp_path/to unless told otherwise."""

    def run(root: Path, directory: str | None = None, watcher: Watcher | None = None, dry_run: bool = False) -> Report:
        with open_device(parse_target(transport)) as device:
            return push_folder(device, root, directory or f"{tmp_path}/to", dry_run=dry_run, watcher=watcher)

    return run
