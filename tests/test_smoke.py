"""`hexnpu smoke`: it covers every kernel, passes on what is right, and sees what is wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hexnpu
from hexnpu import smoke
from hexnpu.cli import main
from hexnpu.native import ARCHS, compile_program
from hexnpu.plan.base import Device
from hexnpu.server_build import server_sources
from hexnpu.session import Session
from hexnpu.transport import child, connection

WRONG = Path(__file__).with_name("wrong_matmul.c")


@pytest.mark.parametrize("arch", ARCHS)
def test_no_kernel_is_forgotten(arch: int) -> None:
    assert smoke.uncovered(Device(arch)) == []


def test_the_emulator_passes_every_case_and_column() -> None:
    with hexnpu.open(fusion=0, strict=True) as session:
        report = smoke.run(session)
    assert [o for o in report.outcomes if o.error] == []
    assert {o.columns for o in report.outcomes} == {1, 2, 4, 5, 31, 32, 33}
    kernels = {o.kernel for o in report.outcomes}
    assert {"hvx-tiled-q4_0", "hvx-flat-f16", "rope-neox", "fa-hvx-q8_0", "cpy-dma-f16", "softmax-sinks"} <= kernels
    assert "" not in kernels
    assert report.seconds < 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y: y, ""),
        (lambda y: y * 1.001, "NMSE 1e-06, at most 1e-09"),
        (lambda y: np.where(np.arange(y.size).reshape(y.shape) == 7, y + 1e-3, y), "element (0, 0, 0, 7) is"),
        (lambda y: np.where(np.arange(y.size).reshape(y.shape) == 7, np.nan, y), "NMSE inf"),
        (lambda y: y[..., :-1], "shape"),
    ],
)
def test_judge(change: object, words: str) -> None:
    want = np.random.default_rng(1).standard_normal((1, 1, 99, 101))
    error = smoke._judge(change(want), want, 1e-9)  # type: ignore[operator]
    assert words in error and bool(words) == bool(error)


@pytest.mark.parametrize(("second", "n"), [(0.0, 0), (1.0, 7)])
def test_runs_that_differ_are_seen(second: float, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0

    def run(self: Session, graph: hexnpu.Graph, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        nonlocal runs
        runs += 1
        outputs = self.compile(graph).run(inputs)
        return {k: v + np.float32(second * 1e-7 * (runs % 2)) for k, v in outputs.items()}

    with hexnpu.open(fusion=0, strict=True) as session:
        monkeypatch.setattr(Session, "run", run)
        monkeypatch.setattr(smoke, "cases", lambda device: [("SCALE", hexnpu.Type.F32, smoke.CASES["SCALE"][0])])
        failures = smoke.run(session).failures
    assert [o.error for o in failures] == ["the second run gave other bytes"] * n


def hexnpu_smoke(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hexnpu", "smoke", *flags], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_command() -> None:
    result = hexnpu_smoke()
    assert result.returncode == 0, result.stderr
    assert "checks passed on emu (v79, release, 10 threads), each twice with the same bits" in result.stdout


@pytest.mark.slow
def test_a_wrong_kernel_is_caught(tmp_path: Path) -> None:
    """A server with one kernel that is wrong in one element, for one count of columns."""
    sources = [WRONG if s.name == "matmul-ops.c" else s for s in server_sources()]
    program = compile_program("htp-server-wrong", sources)
    with Session(child.start([str(program), "--stdio"], "wrong"), "HTP0:0", 2, strict=True, fusion=0) as session:
        report = smoke.run(session)
    assert {(o.op, o.columns) for o in report.failures} == {(op, 5) for op in ("MUL_MAT", "MUL_MAT_NX", "MUL_MAT_ADD")}
    assert {o.type for o in report.failures} == {"F32", "F16", "Q4_0", "Q4_1", "Q8_0"}

    path = tmp_path / "socket"
    server = subprocess.Popen([program, "--listen", f"unix:{path}"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout and server.stdout.readline()
        result = hexnpu_smoke("--target", f"unix:{path}")
    finally:
        server.terminate()
        server.wait()
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["op", "type", "columns", "kernel", "what", "is", "wrong"]
    assert lines[1].split()[:4] == ["MUL_MAT", "f32", "5", "hvx-flat-f32"]
    assert "15 of" in lines[-1] and "checks failed on unix:" in lines[-1]


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """A socket that takes connections and says nothing."""
    path = tmp_path / "silent"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield path


def test_a_server_that_never_answers(
    silent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "HELLO_TIMEOUT_S", 0.2)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(SystemExit) as done:
        main(["smoke", "--target", f"unix:{silent}"])
    assert done.value.code == 1
    line, _, error = capsys.readouterr().err.rpartition("\r\x1b[2K")
    assert line == f"\r\x1b[2Kwaiting for the server: unix:{silent}"
    assert error.startswith(f"hexnpu: unix:{silent} is lost: no answer for 0") and error.count("\n") == 1


def test_a_server_that_stops_answering(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("hexnpu.cli.smoke.ANSWER_TIMEOUT_S", 0.2)

    def run(session: Session, progress: object) -> smoke.Report:
        server = session.connection._server
        assert isinstance(server, child.Child)
        os.kill(server.process.pid, signal.SIGSTOP)
        return real(session)

    real = smoke.run
    monkeypatch.setattr(smoke, "run", run)
    with pytest.raises(SystemExit) as done:
        main(["smoke"])
    table, last = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    assert done.value.code == 1 and last.startswith("1 of 1 checks failed on emu")
    assert " is lost: no answer for 0 s; in flight: " in table


def test_an_empty_target_is_none() -> None:
    result = hexnpu_smoke("--target", "")
    assert result.returncode == 2 and "unknown target ''" in result.stderr
