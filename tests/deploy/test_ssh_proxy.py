"""ProxyCommand: what it says and how it ends is told; nothing of it stays behind, and it cannot stop the connection."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.deploy.device import Command, open_device
from hexnpu.deploy.errors import HostKeyRefused, PortRefused
from hexnpu.deploy.targets import parse_target
from tests.deploy.sshd import Sshd
from tests.processes import HANG_S, is_alive

REPO = Path(__file__).parents[2]

# Says as much as a pipe never holds, before and while it carries the connection.
_RELAY = """
import os, socket, sys, threading
def say():
    sys.stderr.write("looking for a way\\n" * 20_000)
    sys.stderr.flush()
say()
open(sys.argv[2], "w").write(str(os.getpid()))
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
threading.Thread(target=say, daemon=True).start()
def up():
    while data := os.read(0, 9999):
        sock.sendall(data)
threading.Thread(target=up, daemon=True).start()
while data := sock.recv(9999):
    os.write(1, data)
"""


def through(home: Path, command: str) -> int | None:
    (home / ".ssh/config").write_text(f"Host box\n ProxyCommand {command}\n")
    with open_device(parse_target("linux:box")) as device:
        return device.open(Command(("true",))).exit_code()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false --token hunter2", "its ProxyCommand ended with exit code 1, before an SSH server answered"),
        ("true", "ended with exit code 0"),
        ("sh -c 'echo a; echo first >&2; echo no way >&2; echo >&2; exit 3'", "ended with exit code 3, before an SSH"),
        ("sh -c 'echo a; echo first >&2; echo no way >&2; echo >&2; exit 3'", "says: no way"),
        ("sh -c 'kill -9 $$'", "ended with signal 9"),
        ("no-such-program", "no-such-program: not found"),
        ("sh -c 'head -c 300000 /dev/zero >&2; printf \"\\\\n\\\\033[1mbad\\\\a\" >&2; exit 4'", "says: [1mbad"),
        ("yes HTTP/1.1", "does not speak SSH"),
    ],
)
def test_one_that_fails(home: Path, command: str, said: str) -> None:
    with pytest.raises(PortRefused) as error:
        through(home, command)
    text = str(error.value)
    assert said in text and text.isprintable() and "hunter2" not in text and "server's log" not in text


@pytest.fixture
def relay(sshd: Sshd, home: Path, tmp_path: Path) -> str:
    (tmp_path / "relay.py").write_text(_RELAY)
    (home / ".ssh/known_hosts").write_text(sshd.known_hosts_line().replace(f"[127.0.0.1]:{sshd.port}", "box"))
    return shlex.join(map(str, [sys.executable, tmp_path / "relay.py", sshd.port, tmp_path / "pid"]))


def test_one_that_talks_much(relay: str, home: Path, tmp_path: Path) -> None:
    assert through(home, relay) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    # The host key is checked, whatever carries the connection.
    (home / ".ssh/known_hosts").unlink()
    with pytest.raises(HostKeyRefused, match="box is unknown"):
        through(home, relay)


def test_ctrl_c_is_not_for_it(relay: str, home: Path, tmp_path: Path) -> None:
    """A terminal sends it to all that we started. The program there is ended through the connection."""
    assert through(home, relay) == 0
    script = "echo $$ > there; echo started; exec sleep 1000"
    command = [sys.executable, "-m", "hexnpu", "run", "--target", "linux:box", "--target-dir", tmp_path]
    process = subprocess.Popen(
        [*command, "--", "sh", "-c", script], cwd=REPO, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert process.stdout and process.stdout.readline() == b"started\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (130, b"")
    assert not is_alive(int((tmp_path / "there").read_text()))


def test_no_shell_to_start_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(PortRefused, match="does not start: No such file"):
        through(home, "true")
