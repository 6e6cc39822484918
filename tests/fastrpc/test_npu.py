"""Our own server on the NPU behind FastRPC, with the stand-in in the NPU's place: the same bytes, groups, deaths."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import hexnpu
from hexnpu import Graph, SessionLost, Type
from hexnpu.emulator_build import emulator_folder
from hexnpu.errors import HexnpuError, UsageError
from hexnpu.group import Group
from hexnpu.session import Session
from tests.models.tiny import Tiny
from tests.processes import HANG_S, Handles, children
from tests.test_group import ffn, weights

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `hexnpu emulate` sets."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(emulator_folder()))
    monkeypatch.setenv("HEXNPU_EMU_ARCH", "79")


def open_session(target: str = "npu", **options: Any) -> Session:
    session = hexnpu.open(target, n_threads=2, **options)
    assert isinstance(session, Session)
    return session


def layer(rows: int = 96) -> tuple[Graph, dict[str, np.ndarray[Any, Any]]]:
    """A norm, a quantized matmul, an activation."""
    w, rng = RNG.standard_normal((rows, 256)).astype(np.float32), np.random.default_rng(1)
    g = Graph()
    x = g.input("x", (256, 5))
    normed = g.rms_norm(x, eps=1e-5)
    quantized = gguf.quants.quantize(w, gguf.GGMLQuantizationType.Q8_0)
    g.output(g.silu(g.mul_mat(g.weight("w", (Type.Q8_0, (256, rows), quantized.tobytes())), normed)), "y")
    return g, {"x": rng.standard_normal((5, 256)).astype(np.float32)}


def domains(session: Session) -> list[int]:
    """The protection domains under a session's server: children of its children."""
    server = session.connection._server.process.pid  # type: ignore[attr-defined]
    return [domain for child in children(server) for domain in children(child)]


def test_the_same_bytes_as_without_fastrpc() -> None:
    graph, inputs = layer()
    with open_session() as npu, open_session("emu") as emu:
        assert np.array_equal(npu.run(graph, inputs)["y"], emu.run(graph, inputs)["y"])
        assert npu.device == emu.device


def test_a_group_of_two_sessions() -> None:
    w, x = weights(), RNG.standard_normal((3, 64)).astype(np.float32)
    results = []
    for target in ("npu", "emu"):
        group = hexnpu.open(target, devices=("HTP0:0", "HTP0:1"), n_threads=1, fence_timeout_s=HANG_S)
        assert isinstance(group, Group)
        with group:
            results.append(group.run(ffn(w, 2, 3), {"x": x}))
    for name in ("y0", "y1"):
        assert np.array_equal(results[0][name], results[1][name])


@pytest.mark.parametrize("npu", (1, 2, 3))
def test_every_npu(npu: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXNPU_EMU_NPUS", "4")
    graph, inputs = layer()
    with open_session(devices=(f"HTP{npu}:0",)) as session:
        assert np.all(np.isfinite(session.run(graph, inputs)["y"]))


@pytest.mark.parametrize("arch", ("nonsense", "60", "v79"))
def test_an_arch_that_is_none(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXNPU_EMU_ARCH", arch)
    with pytest.raises(UsageError, match=f"HEXNPU_EMU_ARCH={arch}: there are 73, 75"):
        hexnpu.open("npu")


def test_a_domain_that_dies_is_the_sessions_death_alone() -> None:
    graph, inputs = layer()
    with open_session() as lost, open_session() as other:
        lost.run(graph, inputs)
        (pid,) = domains(lost)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(SessionLost, match="lost its NPU"):
            lost.run(graph, inputs)
        other.run(graph, inputs)


def test_nothing_is_left_behind() -> None:
    graph, inputs = layer()
    with open_session() as session:
        session.run(graph, inputs)
        assert len(domains(session)) == 1
        domain = Handles(domains(session))
    assert domain.end()


def test_an_npu_that_is_not_there() -> None:
    says = r"libhtp-v79.so cannot be loaded on cdsp1 \(FastRPC error 0x72.*no such NPU \(see `hexnpu emulate --npus`\)$"
    with pytest.raises(HexnpuError, match=says):
        hexnpu.open("npu", devices=("HTP1:0",), n_threads=1)


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH")
    with pytest.raises(HexnpuError, match="hexnpu emulate"):
        open_session()


def test_generate_prints_the_same(tmp_path: Path) -> None:
    model = Tiny(weights=gguf.GGMLQuantizationType.Q4_0).write(tmp_path / "tiny.gguf")
    command = [sys.executable, "-m", "hexnpu"]
    generate = ["generate", str(model), "-p", "the thing", "-n", "12", "--strict"]
    through = [*command, "emulate", "--", *command, *generate, "--target", "npu"]
    texts = [
        subprocess.run(c, capture_output=True, stdin=subprocess.DEVNULL, check=True).stdout
        for c in ([*command, *generate], through)
    ]
    assert texts[0] == texts[1]
