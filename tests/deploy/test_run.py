"""`hexnpu run` as a program, over every transport: codes, streams, log, input, and every way that it can end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hexnpu.deploy import posix
from hexnpu.deploy import run as run_module
from hexnpu.deploy.device import Command, open_device
from hexnpu.deploy.errors import TimedOut
from hexnpu.deploy.local import LocalDevice, LocalProcess
from hexnpu.deploy.process import STDOUT, Process
from hexnpu.deploy.run import NotEnded, has_input, run
from hexnpu.deploy.targets import parse_target
from tests.deploy.conftest import Adb
from tests.deploy.sshd import Sshd, descendants_named, free_port
from tests.processes import HANG_S, children, is_alive, wait_until

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

    def start(
        self, script: str, *flags: str, stdin: int = subprocess.DEVNULL, **options: Any
    ) -> subprocess.Popen[bytes]:
        command = [
            *HEXNPU, "run", *self._where, "--target-dir", str(self._folder), *flags,
            "--", "sh", "-c", script,
        ]  # fmt: skip
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen(command, cwd=REPO, stdin=stdin, **options)
        self._started.append(process)
        return process

    def finish(self, script: str, *flags: str, **options: Any) -> tuple[int, bytes, bytes]:
        process = self.start(script, *flags, **options)
        out, err = process.communicate(timeout=HANG_S)
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
    assert process.wait(HANG_S) == 3
    process.stdin.close()


SLEEPER = (
    "sh -c 'echo $$ > pid2; exec sleep 1000' & echo $$ > pid1; "
    "while [ ! -s pid2 ]; do sleep 0.01; done; echo started; wait"
)


def started_sleeper(runs: Runs, tmp_path: Path, *flags: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    process = runs.start(SLEEPER, *flags)
    assert process.stdout and process.stdout.readline() == b"started\n"
    return process, [int((tmp_path / "to" / name).read_text()) for name in ("pid1", "pid2")]


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
    assert all(map(is_alive, pids))
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == code
    assert not any(map(is_alive, pids))
    assert b"Traceback" not in err


def test_timeout(transport: str | None, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins once the program and its child are known to run."""
    with open_device(parse_target(transport)) as device, (tmp_path / "out").open("wb") as out:
        opened = device.open

        def open_and_wait(command: Command) -> Process:
            monkeypatch.setattr(device, "open", opened)
            process = opened(command)
            assert process.read(HANG_S) == (STDOUT, b"started\n")
            return process

        monkeypatch.setattr(device, "open", open_and_wait)
        with pytest.raises(TimedOut, match=r"sleep 1000.*--timeout") as error:
            run(device, Command(("sh", "-c", SLEEPER), str(tmp_path)), stdout=out, stderr=out, timeout_s=0.001)
    assert error.value.exit_code == 124 and "\n" not in str(error.value)
    assert not any(is_alive(int((tmp_path / name).read_text())) for name in ("pid1", "pid2"))


def test_a_reader_that_goes_away(runs: Runs, tmp_path: Path) -> None:
    process = runs.start("echo $$ > pid; echo first; while :; do echo more; done")
    assert process.stdout and process.stdout.readline() == b"first\n"
    process.stdout.close()
    process.wait(HANG_S)
    assert process.returncode != 0
    assert not is_alive(int((tmp_path / "to/pid").read_text()))


def test_a_pipe_into_profile(runs: Runs, tmp_path: Path) -> None:
    line = (
        "ggml-hex: HTP0 profile-op MUL_MAT|blk.0.q.weight x a -> Qcur-0|64:64 x 64:1 -> 64:1|q4_0 x f32 -> f32"
        "|18:36 x 4:256 -> 4:256|hvx-tiled vtcm 9|usec 1 cycles 9 start 1 mhz 9.0"
    )
    (tmp_path / "to/log").write_text(line + "\n")
    producer = runs.start("cat log")
    profile = subprocess.run(
        [*HEXNPU, "profile", "-"], cwd=REPO, stdin=producer.stdout, capture_output=True, timeout=HANG_S, env=CALLERS,
    )  # fmt: skip
    assert producer.wait(HANG_S) == 0
    assert profile.returncode == 0 and b"MUL_MAT" in profile.stdout


@pytest.mark.parametrize("command", [["true"], ["sh", "-c", "exit 9"]])
def test_the_printed_command_is_what_runs(tmp_path: Path, command: list[str]) -> None:
    done = subprocess.run(
        [*HEXNPU, "run", "--target", "linux:box", "--target-dir", tmp_path, "--print", "--", *command],
        cwd=REPO, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    direct = subprocess.run(command)
    assert subprocess.run(["sh", "-c", done.stdout], stdout=subprocess.PIPE).returncode == direct.returncode


def end_orphans(pids: list[int]) -> None:
    """What a lost connection leaves running, if it does."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_server_killed_while_it_runs(sshd: Sshd, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    folder.mkdir()
    runs = Runs(sshd.target, folder)
    process, pids = started_sleeper(runs, tmp_path)
    sshd.kill_connections()
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 18
    assert err.count(b"\n") == 1 and b"was lost while it ran sh -c" in err
    end_orphans(pids)


def test_device_unplugged_while_it_runs(adb: Adb, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    serial = adb.connect(tmp_path)
    runs = Runs(f"android:{serial}", tmp_path / "to")
    process, pids = started_sleeper(runs, tmp_path)
    adb.devices[serial].kill()
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 18
    assert err.count(b"\n") == 1 and b"was lost while it ran sh -c" in err
    end_orphans(pids)


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Iterator[Runs]:
    """Runs on this machine, for what is the same on all."""
    (tmp_path / "to").mkdir()
    started = Runs(None, tmp_path / "to")
    yield started
    started.end()


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "0", "-1"])
def test_a_time_out_that_is_none(here: Runs, seconds: str) -> None:
    code, out, err = here.finish("echo ran", f"--timeout={seconds}")
    assert (code, out) == (2, b"")
    assert err.count(b"\n") == 1 and b"--timeout" in err


def test_a_time_out_at_once(runs: Runs, tmp_path: Path) -> None:
    code, _, err = runs.finish("echo $$ > pid; exec sleep 1000", "--timeout", "0.001")
    assert code == 124 and err.count(b"\n") == 1
    pid = tmp_path / "to/pid"
    assert not (pid.exists() and pid.read_text() and is_alive(int(pid.read_text())))


def test_the_end_of_no_input(runs: Runs, tmp_path: Path) -> None:
    """Also where a device cannot tell a program of an end."""
    assert runs.finish("cat; echo over") == (0, b"over\n", b"")
    empty = tmp_path / "empty"
    empty.touch()
    with empty.open() as stdin:
        assert runs.finish("cat; echo over", stdin=stdin.fileno()) == (0, b"over\n", b"")
    assert runs.finish("cat; echo over", preexec_fn=lambda: os.close(0)) == (0, b"over\n", b"")


def test_what_is_input(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x")
    with Path(os.devnull).open("rb") as null, file.open("rb", buffering=0) as stream:
        assert (has_input(null), has_input(stream)) == (False, True)  # type: ignore[arg-type]
        stream.read()
        assert not has_input(stream)  # type: ignore[arg-type]
    assert not has_input(null)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        os.close(writing)
        assert has_input(pipe)


def test_a_second_ctrl_c_while_the_first_one_ends_it(here: Runs, tmp_path: Path) -> None:
    process = here.start("trap 'echo > asked' TERM; echo $$ > pid; echo started; while :; do sleep 0.01; done")
    assert process.stdout and process.stdout.readline() == b"started\n"
    process.send_signal(signal.SIGINT)
    wait_until((tmp_path / "to/asked").exists, process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, err) == (130, b"")
    assert not is_alive(int((tmp_path / "to/pid").read_text()))


def test_ctrl_c_between_the_start_and_our_knowing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with (tmp_path / "out").open("wb") as out, pytest.raises(KeyboardInterrupt):
        run(LocalDevice(), Command(("sleep", "1000"), str(tmp_path)), stdout=out, stderr=out)
    assert started[0].poll() is not None


def test_ctrl_c_while_a_time_out_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill = LocalProcess.kill

    def interrupted(process: LocalProcess) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        kill(process)

    monkeypatch.setattr(LocalProcess, "kill", interrupted)
    with (tmp_path / "out").open("wb") as out, pytest.raises((TimedOut, KeyboardInterrupt)) as error:
        run(LocalDevice(), Command(("sleep", "1000"), str(tmp_path)), stdout=out, stderr=out, timeout_s=0.001)
    assert error.type is TimedOut


@pytest.mark.parametrize("known", [True, False], ids=["running", "starting"])
@pytest.mark.parametrize("transport", ["ssh", "ssh-master", "adb", "adb-without-shell-v2"], indirect=True)
def test_a_connection_that_hangs(
    transport: str, known: bool, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody has seen end is not said to have ended."""
    for module in (posix, run_module):
        monkeypatch.setattr(module, "ANSWER_S", 0.5)
    program = Command(("sh", "-c", "echo started; while [ ! -e over ]; do sleep 0.05; done"), str(tmp_path))
    with open_device(parse_target(transport)) as device, (tmp_path / "out").open("wb") as out:
        opened, stopped = device.open, []

        def open_and_stop(command: Command) -> Process:
            process = opened(command)
            if known:
                assert process.read(HANG_S)
            stopped.extend(_server_pids(request, transport))
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            device.open = opened  # type: ignore[method-assign]
            return process

        monkeypatch.setattr(device, "open", open_and_stop)
        try:
            with pytest.raises(NotEnded, match=r"could not be ended on .*does not answer") as error:
                run(device, program, stdout=out, stderr=out, timeout_s=0.001)
        finally:
            (tmp_path / "over").touch()
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
    assert error.value.exit_code == 124 and "\n" not in str(error.value)


def _server_pids(request: pytest.FixtureRequest, transport: str) -> list[int]:
    if transport.startswith("android"):
        return [device.pid for device in request.getfixturevalue("adb").devices.values()]
    server = request.getfixturevalue("sshd").process
    return [pid for child in children(server.pid) for pid in (child, *descendants_named(child, "sshd"))]


def _limited_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))


@pytest.mark.parametrize(
    ("to", "limit", "said"),
    [
        ("/dev/full", None, b"No space left"),
        ("{folder}/small", _limited_files, b"File too large"),
    ],
)
@pytest.mark.parametrize("flag", ["--log", "> "])
def test_an_output_that_cannot_be_written(
    here: Runs, tmp_path: Path, to: str, limit: Callable[[], None] | None, said: bytes, flag: str
) -> None:
    file = to.format(folder=tmp_path)
    options: dict[str, Any] = {"preexec_fn": limit}
    with open(file, "ab") as stdout:  # noqa: PTH123
        if flag == "> ":
            options["stdout"] = stdout
        code, _, err = here.finish(
            "echo lines; exec sleep 1000", *(["--log", file] if flag == "--log" else []), **options
        )
    assert code == 1 and err.count(b"\n") == 1 and said in err
    assert (file.encode() if flag == "--log" else b"the output") in err


def test_a_log_is_kept_where_there_is_no_connection(here: Runs, tmp_path: Path, home: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier run, and longer than the next one")
    runs = Runs(f"linux:127.0.0.1:{free_port()}", tmp_path)
    assert runs.finish("echo new", "--log", str(log))[0] == 15
    assert log.read_text().startswith("of an earlier run")
    assert here.finish("echo new", "--log", str(log))[0] == 0
    assert log.read_text() == "new\n"


def test_a_pipe_that_does_not_block(here: Runs) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFL, os.O_NONBLOCK)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = here.start("head -c 3000000 /dev/zero", stdout=writing, env=environment)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert len(pipe.read()) == 3_000_000
    assert process.wait(HANG_S) == 0


def test_ctrl_c_while_modules_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*HEXNPU, "run", "--", "true"], cwd=REPO, env=environment, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_relative_package_folder(tmp_path: Path, home: Path) -> None:
    """It starts here, and a relative --target-dir at the home."""
    for folder in (tmp_path / "pkg-x/bin", home / "pkg-x/bin"):
        folder.mkdir(parents=True)
    for flag, expected in (("--install-dir", tmp_path / "pkg-x"), ("--target-dir", home / "pkg-x")):
        command = [*HEXNPU, "run", flag, "pkg-x", "--", "pwd"]
        assert subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE).stdout == f"{expected}\n".encode()


@pytest.mark.parametrize(
    ("tool", "script", "words"),
    [
        ("llama-cli", None, ["no llama-cli in ", "push a llama.cpp package", "--source"]),
        ("htp-server", None, ["no htp-server in ", "push this project's package"]),
        ("llama-cli", "exit 127", []),
        ("no-such-tool", None, []),
    ],
)
@pytest.mark.parametrize("transport", ["ssh", "ssh-master", "adb", "adb-without-shell-v2"], indirect=True)
def test_a_tool_that_the_package_has_not(
    transport: str, tmp_path: Path, tool: str, script: str | None, words: list[str]
) -> None:
    """(On this machine it is an error of its own.)"""
    folder = tmp_path / "to"
    (folder / "bin").mkdir(parents=True)
    if script:
        (folder / "bin" / tool).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / tool).chmod(0o755)
    command = [*HEXNPU, "run", "--target", transport, "--target-dir", "~/to" if merged(transport) else str(folder)]
    done = subprocess.run([*command, "--", tool], cwd=REPO, stdin=subprocess.DEVNULL, capture_output=True)
    told = [line for line in done.stderr.decode().splitlines() if line.startswith("hexnpu: ")]
    assert done.returncode == 127 and len(told) == bool(words)
    assert all(word in told[0] for word in words)


@pytest.mark.parametrize(
    ("program", "text", "code", "says"),
    [
        ("none", None, 127, "neither in the package nor in PATH"),
        ("llama-cli", None, 127, "bin/llama-cli on this machine: build the package (hexnpu build), or name"),
        ("./file", "#!/no/such/interpreter", 127, "see its permissions"),
        ("./file", "no program", 126, "built for this machine"),
        ("/", None, 126, "see its permissions"),
    ],
)
def test_what_cannot_be_started_here(tmp_path: Path, program: str, text: str | None, code: int, says: str) -> None:
    """The exit codes are those of a shell."""
    if text:
        (tmp_path / "file").write_text(text)
        (tmp_path / "file").chmod(0o755)
    done = subprocess.run(
        [*HEXNPU, "run", "--target-dir", tmp_path, "--", program], cwd=REPO, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1 and says in done.stderr


def test_hardly_anything_is_loaded_before_ctrl_c_is_silent() -> None:
    script = "import sys; before = set(sys.modules); import hexnpu.__main__; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-S", "-c", script], cwd=REPO, stdout=subprocess.PIPE, check=True)
    assert done.stdout.decode().split() == ["__future__", "hexnpu", "hexnpu.__main__"]
