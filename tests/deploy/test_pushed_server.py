"""A session on a pushed server, over real SSH and ADB: same results, no shared memory, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hexnpu
from hexnpu.cache import cache_dir
from hexnpu.emulator_build import emulator_folder
from hexnpu.errors import HexnpuError, SessionLost
from hexnpu.npu_library import npu_library
from hexnpu.server_build import server_program
from tests.deploy.conftest import Adb
from tests.processes import children

CACHE = str(cache_dir())  # before a test gets a home folder of its own


@pytest.fixture(params=["ssh", "adb"])
def target(request: pytest.FixtureRequest, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A target whose package folder is tmp_path/pkg, with this machine's server in it."""
    monkeypatch.setenv("HEXNPU_CACHE", CACHE)
    folder = tmp_path / "pkg" / "bin"
    folder.mkdir(parents=True)
    (folder / "htp-server").symlink_to(server_program())
    monkeypatch.setenv("HEXNPU_TARGET_DIR", str(folder.parent))
    if request.param == "ssh":
        return str(request.getfixturevalue("sshd").target)
    adb: Adb = request.getfixturevalue("adb")
    return f"android:{adb.connect(tmp_path)}"


def graph() -> tuple[hexnpu.Graph, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    g = hexnpu.Graph()
    w = g.weight("w", rng.standard_normal((700, 512)).astype(np.float32))  # more than one packet of any transport
    g.output(g.silu(g.mul_mat(w, g.input("x", (512, 9)))), "y")
    return g, {"x": rng.standard_normal((9, 512)).astype(np.float32)}


def test_the_same_bits_as_the_emulator(target: str) -> None:
    g, inputs = graph()
    with hexnpu.open(strict=True) as here, hexnpu.open(target, strict=True) as there:
        assert here.connection.hello.can_share and not there.connection.hello.can_share
        assert there.connection.name.startswith(target)
        for _ in range(3):
            assert here.run(g, inputs)["y"].tobytes() == there.run(g, inputs)["y"].tobytes()


def test_the_npu_is_taken_where_there_is_one(target: str, tmp_path: Path) -> None:
    """What a vendor's package has in lib/, and the stand-in for what the device has."""
    (tmp_path / "pkg" / "lib").mkdir()
    for file in (npu_library(), *emulator_folder().iterdir()):
        (tmp_path / "pkg" / "lib" / file.name).symlink_to(file)
    g, inputs = graph()
    with hexnpu.open(strict=True) as here, hexnpu.open(target, strict=True) as there:
        assert (here.connection.hello.flavour, there.connection.hello.flavour) == ("release", "hexagon")
        assert here.run(g, inputs)["y"].tobytes() == there.run(g, inputs)["y"].tobytes()


def test_no_server_there(target: str, tmp_path: Path) -> None:
    (tmp_path / "pkg" / "bin" / "htp-server").unlink()
    with pytest.raises(HexnpuError) as error:
        hexnpu.open(target)
    text = str(error.value)
    assert "the server ./bin/htp-server did not start" in text and f"hexnpu build --target {target} --push" in text
    assert "\n" not in text


def test_a_program_that_is_no_such_server(target: str, tmp_path: Path) -> None:
    server = tmp_path / "pkg" / "bin" / "htp-server"
    server.unlink()
    server.write_text("#!/bin/sh\nhead -c 64 /dev/zero\ncat\n")
    server.chmod(0o755)
    with pytest.raises(SessionLost, match="something that is no frame"):
        hexnpu.open(target)


@pytest.mark.parametrize(
    ("program", "says", "push"),
    [
        (b"#!/bin/sh\nkill -ILL $$\n", "; its processor lacks instructions", False),
        (b"\x7fELF\2\1\1" + bytes(9) + b"\2\0\xa4\0" + bytes(44), "is for hexagon, and ", False),
        (b"#!/bin/sh\nexit 3\n", "exited with status 3; push it", True),
    ],
)
def test_a_server_that_does_not_start(target: str, tmp_path: Path, program: bytes, says: str, push: bool) -> None:
    """Only where it helps is one told to push it."""
    server = tmp_path / "pkg" / "bin" / "htp-server"
    server.unlink()
    server.write_bytes(program)
    server.chmod(0o755)
    with pytest.raises(HexnpuError) as error:
        hexnpu.open(target)
    assert says in str(error.value) and ("push it" in str(error.value)) == push


def test_an_old_adb_device_is_refused(adb: Adb, tmp_path: Path) -> None:
    target = f"android:{adb.connect(tmp_path, '--no-shell-v2')}"
    with pytest.raises(HexnpuError, match="has no shell v2"):
        hexnpu.open(target)


def test_nothing_pushed(target: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEXNPU_TARGET_DIR", str(tmp_path / "none"))
    with pytest.raises(HexnpuError, match="did not start"):
        hexnpu.open(target)


def processes() -> list[int]:
    """Of the servers of this user's package: those that were started, and those of their sessions."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0] == b"./bin/htp-server" and (entry / "cwd").readlink() == Path(os.environ["HEXNPU_TARGET_DIR"]):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_server_that_is_killed_is_a_lost_session(target: str) -> None:
    g, inputs = graph()
    with hexnpu.open(target) as session:
        session.run(g, inputs)
        (pid,) = [pid for pid in processes() if children(pid)]
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(SessionLost, match="server was killed by signal 9"):
            session.run(g, inputs)


def test_closing_ends_the_server(target: str) -> None:
    with hexnpu.open(target):
        assert len(processes()) == 2  # the server, and its one session
    assert processes() == []


def test_out_of_reach_is_one_line_with_its_own_code(home: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "hexnpu", "smoke", "--target", "linux:me@127.0.0.1:1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 15 and len(result.stderr.splitlines()) == 1
    assert "refused the connection" in result.stderr
