"""How SSH connections are made: configuration, jump hosts, host keys, the agent; and what is said when they are not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

from hexnpu.deploy.device import Command, Upload, open_device
from hexnpu.deploy.errors import AuthFailed, ConnectionLost, DeployError, HostKeyRefused, HostNotFound, PortRefused
from hexnpu.deploy.process import STDOUT
from hexnpu.deploy.targets import parse_target
from tests.conftest import require_tool
from tests.deploy.sshd import Sshd, free_port, make_key
from tests.processes import HANG_S, children, wait_until


def connects(target: str, accept: bool = False) -> bool:
    with open_device(parse_target(target), accept_new_host_key=accept) as device:
        return device.open(Command(("true",))).exit_code() == 0


@pytest.fixture
def jump(tmp_path: Path, sshd: Sshd) -> Iterator[Sshd]:
    """A second server that takes the same key, with another host key."""
    server = Sshd(tmp_path / "jump", sshd.program)
    server.start()
    (server.folder / "authorized_keys").write_text((sshd.folder / "authorized_keys").read_text())
    yield server
    server.stop()


def configure(home: Path, text: str) -> None:
    (home / ".ssh/config").write_text(text)


def test_host_names_of_the_configuration(sshd: Sshd, home: Path) -> None:
    (home / ".ssh/id_ed25519").rename(home / ".ssh/other")
    configure(
        home,
        f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n  IdentityFile ~/.ssh/other\n"
        "  IdentitiesOnly yes\n",
    )
    assert connects("linux:box")


def test_a_host_of_an_included_file(sshd: Sshd, home: Path) -> None:
    configure(home, "Include hosts/*.conf\n")
    (home / ".ssh/hosts").mkdir()
    (home / ".ssh/hosts/lab.conf").write_text(f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n")
    assert connects("linux:box")


def test_what_the_target_says_comes_first(sshd: Sshd, home: Path) -> None:
    configure(home, "Host 127.0.0.1\n  Port 1\n  User nobody\n")
    assert connects(sshd.target)


def test_proxy_command(sshd: Sshd, home: Path) -> None:
    configure(
        home,
        f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n"
        '  ProxyCommand python3 -c \'import socket,os,threading as t;s=socket.create_connection(("%h",%p));'
        't.Thread(target=lambda:[s.sendall(d) for d in iter(lambda:os.read(0,9999),b"")],daemon=True).start();'
        '[os.write(1,d) for d in iter(lambda:s.recv(9999),b"")]\' 2>/dev/null\n',
    )
    assert connects("linux:box")


def logins(server: Sshd) -> int:
    return server.log.count("Accepted publickey")


def test_proxy_jump(sshd: Sshd, jump: Sshd, home: Path) -> None:
    """The target is reached from the jump host, whose own key is checked too."""
    configure(
        home,
        f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  ProxyJump hop\n"
        f"Host hop\n  HostName 127.0.0.1\n  Port {jump.port}\n",
    )
    with pytest.raises(HostKeyRefused, match=str(jump.port)):
        connects("linux:box")
    with (home / ".ssh/known_hosts").open("a") as file:
        file.write(jump.known_hosts_line())
    assert connects("linux:box")
    assert logins(jump) == 1


def test_two_jumps_in_one_line(sshd: Sshd, jump: Sshd, home: Path) -> None:
    with (home / ".ssh/known_hosts").open("a") as file:
        file.write(jump.known_hosts_line())
    hops = f"{jump.user}@localhost:{jump.port},{sshd.user}@localhost:{sshd.port}"
    configure(home, f"Host 127.0.0.1\n  ProxyJump {hops}\n")
    with (home / ".ssh/known_hosts").open("a") as file:
        file.write(jump.known_hosts_line().replace("127.0.0.1", "localhost"))
        file.write(sshd.known_hosts_line().replace("127.0.0.1", "localhost"))
    before = logins(sshd)
    assert connects(sshd.target)
    assert (logins(jump), logins(sshd)) == (1, before + 2)


def test_jumps_in_a_circle(sshd: Sshd, home: Path) -> None:
    configure(home, "Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n")
    with pytest.raises(DeployError, match="circle"):
        connects("linux:a")


def test_a_jump_host_that_cannot_reach_the_target(sshd: Sshd, home: Path) -> None:
    port = free_port()
    configure(home, f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  ProxyJump 127.0.0.1:{sshd.port}\n")
    with pytest.raises(PortRefused, match=f"{port} cannot be reached from its jump host"):
        connects("linux:box")


def test_an_unknown_host_key(sshd: Sshd, home: Path) -> None:
    known = home / ".ssh/known_hosts"
    known.unlink()
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", sshd.folder / "host_key.pub"], stdout=subprocess.PIPE, check=True
    ).stdout.decode().split()[1]  # fmt: skip
    with pytest.raises(HostKeyRefused) as error:
        connects(sshd.target)
    assert fingerprint in str(error.value)
    command = f"hexnpu run --target {sshd.target} --target-dir . --accept-new-host-key -- true"
    assert str(error.value).endswith(command)
    assert not known.exists()
    # Before anything is pushed too.
    subprocess.run([sys.executable, "-m", *command.split()], check=True)
    assert known.read_text() == sshd.known_hosts_line()
    known.write_text("# kept")
    assert connects(sshd.target, accept=True)
    assert known.read_text() == f"# kept\n{sshd.known_hosts_line()}"
    assert connects(sshd.target)


def test_a_changed_host_key_is_always_refused(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    kind, key, _ = make_key(tmp_path / "other").split()
    line = f"[127.0.0.1]:{sshd.port} {kind} {key}\n"
    (home / ".ssh/known_hosts").write_text(line)
    for accept in (False, True):
        with pytest.raises(HostKeyRefused, match="has changed") as error:
            connects(sshd.target, accept)
        assert "ssh-keygen -R" in str(error.value)
    assert (home / ".ssh/known_hosts").read_text() == line


def test_hashed_known_hosts(sshd: Sshd, home: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", home / ".ssh/known_hosts"], check=True, stderr=subprocess.DEVNULL)
    assert "127.0.0.1" not in (home / ".ssh/known_hosts").read_text()
    assert connects(sshd.target)


def test_the_agent(sshd: Sshd, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("ssh-agent", "openssh-client")
    address = home / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", address], stdout=subprocess.DEVNULL)
    try:
        wait_until(address.exists, agent)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(address))
        subprocess.run(["ssh-add", "-q", home / ".ssh/id_ed25519"], check=True)
        (home / ".ssh/id_ed25519").unlink()
        assert connects(sshd.target)
    finally:
        agent.terminate()
        agent.wait()


def test_no_key_is_accepted(sshd: Sshd, home: Path) -> None:
    (home / ".ssh/id_ed25519").unlink()
    with pytest.raises(AuthFailed, match="authorized_keys"):
        connects(sshd.target)
    make_key(home / ".ssh/id_ed25519")
    with pytest.raises(AuthFailed, match="authorized_keys"):
        connects(sshd.target)


def test_a_key_with_a_passphrase(sshd: Sshd, home: Path) -> None:
    key = home / ".ssh/id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret words", "-f", key], check=True, stdout=subprocess.DEVNULL)
    with pytest.raises(AuthFailed, match="ssh-add") as error:
        connects(sshd.target)
    assert "secret" not in str(error.value)


def test_a_key_file_that_is_none(sshd: Sshd, home: Path) -> None:
    (home / ".ssh/id_rsa").write_text("not a key")
    (home / ".ssh/id_ed25519").unlink()
    with pytest.raises(AuthFailed):
        connects(sshd.target)


def test_a_wrong_host(home: Path) -> None:
    with pytest.raises(HostNotFound, match="check"):
        connects("linux:no-such-host.invalid")


def test_a_refused_port(home: Path) -> None:
    with pytest.raises(PortRefused, match="refused"):
        connects(f"linux:127.0.0.1:{free_port()}")


def test_a_port_that_speaks_something_else(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            sock, _ = server.accept()
            with sock:
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 200)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(PortRefused, match="SSH"):
            connects(f"linux:127.0.0.1:{server.getsockname()[1]}")
        thread.join()


def test_a_broken_configuration(home: Path) -> None:
    configure(home, "Host x\n  Port no\n")
    with pytest.raises(DeployError, match="config"):
        connects("linux:x")
    configure(home, "\0\x01\x02\n")
    with pytest.raises(DeployError, match="config"):
        connects("linux:x")


def test_a_login_that_prints_and_a_shell_that_is_none(
    sshd: Sshd, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forced command stands for a login script: noise before our line is dropped, and no line is an error."""
    keys = sshd.folder / "authorized_keys"
    public = keys.read_text()
    keys.write_text(f'command="echo noise; eval \\"$SSH_ORIGINAL_COMMAND\\"" {public}')
    with open_device(parse_target(sshd.target)) as device:
        assert device.open(Command(("echo", "a  b"))).communicate() == (0, b"a  b\n", b"")
    keys.write_text(f'command="echo this account is closed; false" {public}')
    with open_device(parse_target(sshd.target)) as device, pytest.raises(DeployError, match="account is closed"):
        device.open(Command(("true",))).exit_code()
    assert os.environ["HOME"] == str(home)


@pytest.mark.parametrize(("what", "named"), [("push", "the push to ~/x"), ("script", "a script of ours for this")])
def test_a_connection_that_is_lost_while_a_script_of_ours_runs(sshd: Sshd, what: str, named: str) -> None:
    """Messages do not show the script."""

    def chunks() -> Iterator[bytes]:
        yield b"x"
        sshd.kill_connections()
        yield bytes(9)

    with open_device(parse_target(sshd.target)) as device, pytest.raises(ConnectionLost) as error:
        if what == "push":
            device.upload("~/x", [Upload("file", 10, 0, chunks)], lambda _: None)
        else:
            device.checked_shell("that", "true")  # the last of the server's processes comes with the first program
            servers = " ".join(map(str, sshd.connections()))
            device.checked_shell("this", f"echo one\nkill -KILL {servers}\nsleep 9")
    assert f"was lost while it ran {named}: check" in str(error.value)


def test_a_connection_that_is_lost_while_output_is_taken(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read is acknowledged over the connection: paramiko then ends its `recv` by an EOFError."""
    recv, lost = paramiko.Channel.recv, threading.Event()

    def recv_until_lost(channel: paramiko.Channel, n_bytes: int) -> bytes:
        if lost.is_set():
            raise EOFError
        return recv(channel, n_bytes)

    monkeypatch.setattr(paramiko.Channel, "recv", recv_until_lost)
    with open_device(parse_target(sshd.target)) as device:
        process = device.open(Command(("cat",)))
        process.write(b"first")
        assert process.read(HANG_S) == (STDOUT, b"first")
        lost.set()
        process.write(b"second")
        sshd.kill_connections()
        with pytest.raises(ConnectionLost, match="while it ran cat"):
            while process.read(HANG_S):
                pass


@pytest.mark.parametrize("kib", [180, 300])
@pytest.mark.parametrize("transport", ["ssh", "ssh-master"], indirect=True)
def test_a_command_line_that_is_too_long(transport: str, kib: int) -> None:
    """The connection outlives it, which with a master is the user's own."""
    with open_device(parse_target(transport)) as device:
        with pytest.raises(DeployError, match=rf"command line has {kib}\d{{3}} bytes") as error:
            device.open(Command(("echo", *["x" * 999] * kib))).exit_code()
        assert "x" * 9 not in str(error.value)
        assert device.open(Command(("true",))).exit_code() == 0


def test_a_server_that_allows_few_sessions(sshd: Sshd, home: Path, tmp_path: Path) -> None:
    server = Sshd(tmp_path / "strict", sshd.program)
    server.start("MaxSessions 1\n")
    try:
        (server.folder / "authorized_keys").write_text((sshd.folder / "authorized_keys").read_text())
        (home / ".ssh/known_hosts").write_text(server.known_hosts_line())
        with open_device(parse_target(server.target)) as device:
            first = device.open(Command(("cat",)))
            with pytest.raises(DeployError, match="2; raise MaxSessions in its sshd_config") as error:
                device.open(Command(("true",)))
            assert "ChannelException" not in str(error.value)
            first.close_stdin()
            assert first.exit_code() == 0
            first.close()
            for _ in range(40):
                assert device.shell("true").code == 0
    finally:
        server.stop()


@pytest.mark.parametrize("how", ["killed", "stopped", "too many keys"])
def test_a_connection_that_is_lost_during_the_login(
    sshd: Sshd, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The keys are not at fault."""
    login = paramiko.Transport.auth_publickey

    def interrupted(transport: paramiko.Transport, *words: Any) -> list[str]:
        if how == "killed":
            server.kill_connections()
        else:
            assert server.process
            for child in children(server.process.pid):
                for pid in (*children(child), child):
                    os.kill(pid, signal.SIGSTOP)
        return login(transport, *words)

    server = Sshd(tmp_path / "strict", sshd.program)
    server.start("MaxAuthTries 1\n")
    try:
        (home / ".ssh/known_hosts").write_text(server.known_hosts_line())
        (server.folder / "authorized_keys").touch()
        monkeypatch.setattr("hexnpu.deploy.ssh_connect._AUTH_S", 0.3 if how == "stopped" else 20)
        if how != "too many keys":
            monkeypatch.setattr(paramiko.Transport, "auth_publickey", interrupted)
        with pytest.raises(ConnectionLost, match=r"was lost during the login .*: repeat") as error:
            connects(server.target)
        assert "accepted no key" not in str(error.value) and "MaxAuthTries" in str(error.value)
    finally:
        server.stop()


@pytest.mark.parametrize("error", [EOFError(), paramiko.SSHException(), TimeoutError()])
def test_an_error_without_words_is_named(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    with open_device(parse_target(sshd.target)) as device, monkeypatch.context() as patch:
        patch.setattr(paramiko.Transport, "open_session", fail)
        with pytest.raises(ConnectionLost, match=rf"did not start a program \({type(error).__name__}\): check"):
            device.open(Command(("true",)))
    monkeypatch.setattr(paramiko.SSHClient, "connect", fail)
    with pytest.raises(PortRefused, match=rf"\({type(error).__name__}\)"):
        connects(sshd.target)
