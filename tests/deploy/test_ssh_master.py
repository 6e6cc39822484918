"""A master connection of the real OpenSSH: taken where it answers, and what is said when it goes away.

Everything else about it is in the tests that run over every transport.
"""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from hexnpu.deploy.device import Command, open_device
from hexnpu.deploy.errors import ConnectionLost, DeployError
from hexnpu.deploy.ssh_master import MasterDevice
from hexnpu.deploy.targets import parse_target
from tests.deploy.sshd import Master, Sshd
from tests.processes import HANG_S


def echoes(target: str) -> type:
    with open_device(parse_target(target)) as device:
        assert device.open(Command(("echo", "x"))).communicate() == (0, b"x\n", b"")
        return type(device)


def test_it_is_used_without_a_login(master: Master, sshd: Sshd) -> None:
    logins = sshd.log.count("Accepted publickey")
    (sshd.folder / "authorized_keys").write_text("")
    assert echoes(master.target) is MasterDevice
    assert sshd.log.count("Accepted publickey") == logins


def test_a_stale_one_is_passed_over(master: Master) -> None:
    assert master.process
    os.kill(master.process.pid, signal.SIGKILL)
    master.process.wait()
    assert master.socket.exists()
    assert echoes(master.target) is not MasterDevice


def test_another_users_socket_is_not_trusted(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", getpass.getuser())
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert echoes(master.target) is not MasterDevice


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x08\0\0\0\x01\0\0\0\x03"])
def test_what_listens_is_no_master(master: Master, answer: bytes) -> None:
    master.socket.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(master.socket))
        server.listen()

        def serve() -> None:
            sock, _ = server.accept()
            with sock:
                sock.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert echoes(master.target) is not MasterDevice
        thread.join()


def test_it_goes_away_between_commands(master: Master) -> None:
    with open_device(parse_target(master.target)) as device:
        master.stop()
        with pytest.raises(ConnectionLost, match="master connection"):
            device.open(Command(("true",)))
    master.process = None


def test_it_goes_away_while_a_program_runs(master: Master) -> None:
    with open_device(parse_target(master.target)) as device:
        process = device.open(Command(("sh", "-c", "echo started; exec cat")))  # which ends with its input
        assert process.read(HANG_S) == (1, b"started\n")
        master.stop()
        with pytest.raises(ConnectionLost, match="while it ran"):
            process.exit_code()
        process.close()
    master.process = None


def test_a_server_that_opens_no_more_sessions(master: Master) -> None:
    """MaxSessions of sshd is 10 unless set."""
    with open_device(parse_target(master.target)) as device:
        running = []
        with pytest.raises(DeployError, match="opened no session") as error:
            for _ in range(20):
                running.append(device.open(Command(("cat",))))
        assert "\n" not in str(error.value)
        for process in running:
            process.close_stdin()
            assert process.exit_code() == 0
            process.close()


def test_no_paramiko_is_loaded(master: Master) -> None:
    """Its import takes longer than the whole session."""
    script = (
        "import sys; from hexnpu.deploy.device import *; from hexnpu.deploy.targets import parse_target\n"
        f"with open_device(parse_target({master.target!r})) as device: assert device.shell('exit 3').code == 3\n"
        "sys.exit('paramiko' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
