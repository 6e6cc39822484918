"""`hexnpu run` as a program, over every transport: codes, streams, log, input, and every way that it can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.conftest import Adb
from tests.deploy.sshd import Sshd

REPO = Path(__file__).parents[2]
# With the caller's own home: `hexnpu profile` keeps its compiled scanner there.
CALLERS = dict(os.environ)
SLOW = pytest.mark.slow
HEXNPU = (sys.executable, "-m", "hexnpu")


class Runs:
    """Starts `hexnpu run`; what is left running at the end is ended."""

    def __init__(self, target: str | None, folder: Path) -> None:
        self._where = ["--target", target] if target else []
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, script: str, *flags: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        command = [
            *HEXNPU, "run", *self._where, "--target-dir", str(self._folder), *flags,
            "--", "sh", "-c", script,
        ]  # fmt: skip
        process = subprocess.Popen(command, cwd=REPO, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._started.append(process)
        return process

    def finish(self, script: str, *flags: str) -> tuple[int, bytes, bytes]:
        process = self.start(script, *flags)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream and not stream.closed:
                    stream.close()


@pytest.fixture
def runs(transport: str | None, tmp_path: Path) -> Iterator[Runs]:
    folder = tmp_path / "to"
    folder.mkdir()
    started = Runs(transport, folder)
    yield started
    started.end()


def merged(transport: str | None) -> bool:
    return transport is not None and transport.startswith("android")


def test_streams_code_and_log(runs: Runs, transport: str | None, tmp_path: Path) -> None:
    code, out, err = runs.finish("echo out; echo err >&2; exit 7", "--log", str(tmp_path / "log"))
    assert code == 7
    assert (out, err) == ((b"out\nerr\n", b"") if merged(transport) else (b"out\n", b"err\n"))
    assert sorted((tmp_path / "log").read_bytes().splitlines()) == [b"err", b"out"]


def test_directory_environment_and_core_limit(runs: Runs, tmp_path: Path) -> None:
    variables = "$LD_LIBRARY_PATH $ADSP_LIBRARY_PATH $GGML_HEXAGON_DEVICES"
    code, out, _ = runs.finish(f"pwd; echo {variables}; ulimit -Hc; ulimit -c")
    folder, paths, hard, soft = out.decode().splitlines()
    assert (code, folder, paths) == (0, str(tmp_path / "to"), "./lib ./lib HTP0")
    assert soft == hard


@pytest.mark.parametrize(("number", "code"), [("TERM", 143), ("SEGV", 139)])
def test_death_by_a_signal(runs: Runs, number: str, code: int) -> None:
    assert runs.finish(f"kill -{number} $$")[0] == code


def test_input_is_forwarded_while_it_runs(runs: Runs) -> None:
    process = runs.start("while read -r line; do echo got $line; [ $line = b ] && exit 3; done", stdin=subprocess.PIPE)
    assert process.stdin and process.stdout
    for word in (b"a", b"b"):
        process.stdin.write(word + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"got " + word + b"\n"
    assert process.wait(20) == 3
    process.stdin.close()


SLEEPER = (
    "sh -c 'echo $$ > pid2; exec sleep 1000' & echo $$ > pid1; "
    "while [ ! -s pid2 ]; do sleep 0.01; done; echo started; wait"
)


def started_sleeper(runs: Runs, tmp_path: Path, *flags: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    process = runs.start(SLEEPER, *flags)
    assert process.stdout and process.stdout.readline() == b"started\n"
    return process, [int((tmp_path / "to" / name).read_text()) for name in ("pid1", "pid2")]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=SLOW),
        pytest.param(signal.SIGHUP, 129, marks=SLOW),
    ],
)
def test_ctrl_c_ends_the_program_first(runs: Runs, tmp_path: Path, number: int, code: int) -> None:
    process, pids = started_sleeper(runs, tmp_path)
    assert all(map(alive, pids))
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert not any(map(alive, pids))
    assert b"Traceback" not in err


@pytest.mark.slow
def test_timeout(runs: Runs, tmp_path: Path) -> None:
    process, pids = started_sleeper(runs, tmp_path, "--timeout", "3")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 124
    assert err.count(b"\n") == 1 and b"sleep 1000" in err and b"--timeout" in err
    assert not any(map(alive, pids))


def test_a_reader_that_goes_away(runs: Runs, tmp_path: Path) -> None:
    process = runs.start("echo $$ > pid; echo first; while :; do echo more; done")
    assert process.stdout and process.stdout.readline() == b"first\n"
    process.stdout.close()
    process.wait(30)
    assert process.returncode != 0
    assert not alive(int((tmp_path / "to/pid").read_text()))


def test_a_pipe_into_profile(runs: Runs, tmp_path: Path) -> None:
    line = (
        "ggml-hex: HTP0 profile-op MUL_MAT|blk.0.q.weight x a -> Qcur-0|64:64 x 64:1 -> 64:1|q4_0 x f32 -> f32"
        "|18:36 x 4:256 -> 4:256|hvx-tiled vtcm 9|usec 1 cycles 9 start 1 mhz 9.0"
    )
    (tmp_path / "to/log").write_text(line + "\n")
    producer = runs.start("cat log")
    profile = subprocess.run(
        [*HEXNPU, "profile", "-"], cwd=REPO, stdin=producer.stdout, capture_output=True, timeout=60, env=CALLERS,
    )  # fmt: skip
    assert producer.wait(30) == 0
    assert profile.returncode == 0 and b"MUL_MAT" in profile.stdout


@pytest.mark.parametrize("command", [["true"], ["sh", "-c", "exit 9"]])
def test_the_printed_command_is_what_runs(tmp_path: Path, command: list[str]) -> None:
    done = subprocess.run(
        [*HEXNPU, "run", "--target", "linux:box", "--target-dir", tmp_path, "--print", "--", *command],
        cwd=REPO, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    direct = subprocess.run(command)
    assert subprocess.run(["sh", "-c", done.stdout], stdout=subprocess.PIPE).returncode == direct.returncode


def test_server_killed_while_it_runs(sshd: Sshd, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    folder.mkdir()
    runs = Runs(sshd.target, folder)
    process, pids = started_sleeper(runs, tmp_path)
    sshd.kill_connections()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 18
    assert err.count(b"\n") == 1 and b"was lost while it ran sh -c" in err
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_device_unplugged_while_it_runs(adb: Adb, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    serial = adb.connect(tmp_path)
    runs = Runs(f"android:{serial}", tmp_path / "to")
    process, pids = started_sleeper(runs, tmp_path)
    adb.devices[serial].kill()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 18
    assert err.count(b"\n") == 1 and b"was lost while it ran sh -c" in err
    for pid in pids:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
