"""A real OpenSSH server on a loopback port, with throw-away keys and a home folder of its own for the client."""

from __future__ import annotations

import contextlib
import getpass
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import children, wait_until

_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AcceptEnv none
PrintMotd no
Subsystem sftp internal-sftp
LogLevel VERBOSE
# What the caller's own shell does at its start (~/.bashrc) is none of our business.
SetEnv HOME={folder}
"""


_reserved: list[socket.socket] = []


def free_port() -> int:
    """A port where nobody listens, and that nobody else is given as long as this process lives.

    It is bound here. A server that sets SO_REUSEADDR, as sshd and adb do, can listen on it all the same.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    _reserved.append(reserved)
    return int(reserved.getsockname()[1])


def make_key(file: Path) -> str:
    """A new ed25519 key without passphrase; its public line."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", file], check=True)
    return file.with_suffix(".pub").read_text()


@dataclass
class Sshd:
    """`folder` holds its keys and log. `target` is what --target takes."""

    folder: Path
    program: str
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def user(self) -> str:
        return getpass.getuser()

    @property
    def target(self) -> str:
        return f"linux:{self.user}@127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def known_hosts_line(self) -> str:
        kind, key, _ = (self.folder / "host_key.pub").read_text().split()
        return f"[127.0.0.1]:{self.port} {kind} {key}\n"

    def start(self, more_config: str = "") -> None:
        if not (self.folder / "host_key").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            make_key(self.folder / "host_key")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where root's sshd locks its helpers in
        config = self.folder / "sshd_config"
        config.write_text(_CONFIG.format(port=self.port, folder=self.folder) + more_config)
        self.process = subprocess.Popen(
            [self.program, "-D", "-f", config, "-E", self.folder / "log"], start_new_session=True
        )
        wait_until(self._listens, self.process)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def connections(self) -> list[int]:
        """The server processes behind open connections: one each for root, two for others."""
        assert self.process
        found = ([*descendants_named(child, "sshd"), child] for child in children(self.process.pid))
        return list(itertools.chain.from_iterable(found))

    def kill_connections(self) -> None:
        """As a crash would."""
        for pid in self.connections():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        if self.process:
            self.kill_connections()
            self.process.terminate()
            self.process.wait()


@dataclass
class Master:
    """A connection that OpenSSH keeps open to a server; `name` is its host in ~/.ssh/config."""

    server: Sshd
    home: Path
    name: str = "mastered"
    process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> str:
        return f"linux:{self.name}"

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    def start(self) -> None:
        # The path of a socket has to be short.
        self.folder = Path(tempfile.mkdtemp(prefix="hx"))
        config = self.home / ".ssh/config"
        config.write_text(
            f"Host {self.name}\n  HostName 127.0.0.1\n  Port {self.server.port}\n  ControlPath {self.folder}/s\n"
            f"  IdentityFile {self.home}/.ssh/id_ed25519\n  UserKnownHostsFile {self.home}/.ssh/known_hosts\n"
        )
        self.process = subprocess.Popen(["ssh", "-q", "-F", config, "-M", "-N", self.name], stdin=subprocess.DEVNULL)
        wait_until(self.socket.exists, self.process)

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait()
            shutil.rmtree(self.folder)


def descendants_named(pid: int, name: str) -> list[int]:
    found: list[int] = []
    for child in children(pid):
        found += descendants_named(child, name)
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{child}/comm").read_text().strip() == name:
                found.append(child)
    return found
