"""Graphs in a real session on the emulator: values, sharing, fallback, errors, and how a session ends."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import hexnpu
from hexnpu import DeviceError, Fusion, Graph, HexnpuError, Session, SessionLost, Tensor, Type, UsageError, wire
from hexnpu.compiled import StrictError
from hexnpu.profile.parse.reader import read_log
from hexnpu.server_build import server_program
from hexnpu.transport import child, connect
from hexnpu.weights import WeightError
from tests.processes import HANG_S, children, is_alive

RNG = np.random.default_rng(11)


def values(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with hexnpu.open() as s:
        yield s


def ffn(weights: dict[str, Any], n: int = 3) -> Graph:
    g = Graph()
    x = g.input("x", (64, n))
    normed = g.mul(g.rms_norm(x, eps=1e-6), g.weight("norm", weights["norm"]))
    gate, up = (g.mul_mat(g.weight(k, weights[k]), normed) for k in ("gate", "up"))
    g.output(g.add(g.mul_mat(g.weight("down", weights["down"]), g.swiglu(gate, up)), x), "y")
    return g


def ffn_weights() -> dict[str, Any]:
    return {"norm": values(64), "gate": values(96, 64), "up": values(96, 64), "down": values(64, 96)}


def ffn_in_numpy(w: dict[str, Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    w = {k: v.astype(np.float64) for k, v in w.items()}
    normed = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * w["norm"]
    gate, up = normed @ w["gate"].T, normed @ w["up"].T
    return np.asarray((gate / (1 + np.exp(-gate)) * up) @ w["down"].T + x)


# Values


@pytest.mark.parametrize("n", [1, 5])
def test_a_fused_graph_computes_what_numpy_does(session: Session, n: int) -> None:
    w, x = ffn_weights(), values(n, 64)
    graph = ffn(w, n)
    y = session.run(graph, {"x": x if n > 1 else x[0]})["y"].reshape(n, 64)
    want = ffn_in_numpy(w, x)
    assert np.sum((y - want) ** 2) / np.sum(want**2) < 1e-9
    assert [op.node.name for op in session.compile(graph).ops] == [
        "RMS_NORM+MUL", "MUL_MAT+MUL_MAT", "GLU_SWIGLU", "MUL_MAT+ADD",
    ]  # fmt: skip
    assert session.compile(graph).n_batches == 1


def test_fused_and_apart_are_the_same_bits() -> None:
    w, x = ffn_weights(), values(3, 64)
    results = []
    for mask in (Fusion.ALL, 0):
        with hexnpu.open(fusion=mask) as s:
            results.append(s.run(ffn(w), {"x": x})["y"])
    assert np.array_equal(*results)


def test_a_second_run_sees_only_its_own_inputs(session: Session) -> None:
    w = ffn_weights()
    graph = ffn(w)
    xs = [values(3, 64) for _ in range(3)]
    first = [session.run(graph, {"x": x})["y"] for x in xs]
    again = [session.run(graph, {"x": x})["y"] for x in xs]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], first[1])


OUTPUTS: dict[str, Callable[[Graph, Tensor, Any], tuple[Tensor, Any]]] = {
    "input": lambda g, x, a: (x, a),
    "view of an input": lambda g, x, a: (g.slice(x, 1, 1, 3), a[1:3]),
    "transposed result": lambda g, x, a: (g.transpose(g.scale(x, 2.0)), 2 * a.T),
    "view of a result": lambda g, x, a: (g.slice(g.scale(x, 2.0), 1, 2, 3), 2 * a[2]),
    "weight": lambda g, x, a: (g.weight("w", a), a),
}


@pytest.mark.parametrize("make", OUTPUTS.values(), ids=list(OUTPUTS))
def test_outputs_may_be_views(session: Session, make: Callable[[Graph, Tensor, Any], tuple[Tensor, Any]]) -> None:
    g, a = Graph(), values(4, 64)
    out, want = make(g, g.input("x", (64, 4)), a)
    g.output(out, "y")
    assert np.array_equal(session.run(g, {"x": a})["y"], want)


def test_a_result_is_a_copy(session: Session) -> None:
    g = Graph()
    g.output(g.scale(g.input("x", (4,)), 1.0), "y")
    first = session.run(g, {"x": np.zeros(4, np.float32)})["y"]
    session.run(g, {"x": np.ones(4, np.float32)})
    assert not first.any()


def test_a_graph_that_grew_is_compiled_again(session: Session) -> None:
    g = Graph()
    y = g.output(g.scale(g.input("x", (4,)), 2.0), "y")
    x = values(4)
    session.run(g, {"x": x})
    g.output(g.scale(y, 2.0), "z")
    assert np.array_equal(session.run(g, {"x": x})["z"], 4 * x)


def test_an_empty_tensor_is_no_work(session: Session) -> None:
    g = Graph()
    x = g.scale(g.input("x", (64, 0)), 2.0)
    g.output(g.scale(x, 2.0), "y")
    g.output(g.mul_mat(g.transpose(x), g.transpose(g.scale(x, 3.0))), "z")  # a sum over nothing
    result = session.run(g, {"x": np.zeros((0, 64), np.float32)})
    assert result["y"].shape == (0, 64)
    assert result["z"].shape == (64, 64) and not result["z"].any()


# Bad input


BAD_INPUTS: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({}, "input 'x' is missing"),
    "unknown": ({"x": values(3, 64), "z": values(1)}, "no input 'z'; its inputs are x"),
    "misspelt": ({"X": values(3, 64)}, "no input 'X'"),
    "dtype": ({"x": np.zeros((3, 64))}, "float64, the graph wants float32"),
    "shape": ({"x": values(64, 3)}, r"shape \(64, 3\), the graph wants \(3, 64\)"),
    "list": ({"x": [1.0]}, "float64"),
}


@pytest.mark.parametrize("inputs, text", BAD_INPUTS.values(), ids=list(BAD_INPUTS))
def test_bad_inputs(session: Session, inputs: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        session.run(ffn(ffn_weights()), inputs)


OPENS: list[tuple[dict[str, Any], str]] = [
    ({"target": "phone"}, "unknown target 'phone'; use emu"),
    ({"target": "qemu"}, "not there yet"),
    ({"target": "tcp:nowhere"}, "unknown target"),
    ({"target": "unix:/nonexistent"}, "no device server answers at unix:/nonexistent"),
    ({"target": "tcp:127.0.0.1:1"}, "no device server answers at tcp:127.0.0.1:1"),
    ({"devices": ("GPU",)}, "'GPU' is no device"),
    ({"devices": "HTP0:0"}, "a session has a list of one device"),
    ({"n_threads": 11}, "1 to 10 HVX threads, not 11"),
    ({"n_threads": 0}, "1 to 10 HVX threads, not 0"),
    ({"vtcm_mib": 3}, "vtcm_mib is 3"),
    ({"max_map_bytes": -5}, "bytes, not -5"),
    ({"max_map_bytes": 1 << 40}, "bytes, not 1099511627776"),
    ({"arch": 68}, "arch is 68; it must be one of v73, v75, v79, v81"),
    ({"flavour": "debug"}, "no flavour 'debug'"),
    ({"target": "unix:/x", "arch": 75}, "arch and flavour are the emulator's"),
]


@pytest.mark.parametrize("options, text", OPENS, ids=[str(o) for o, _ in OPENS])
def test_bad_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(HexnpuError, match=text):
        hexnpu.open(**options)


@pytest.mark.parametrize("arch", [75, "75", "v75"])
def test_an_arch_as_people_write_it(arch: int | str) -> None:
    with hexnpu.open(arch=arch) as session:
        assert session.device.arch == 75


def test_a_weight_with_nan_is_refused_by_name(session: Session) -> None:
    w = ffn_weights()
    w["up"][3, 5] = np.nan
    with pytest.raises(WeightError, match="weight up: 1 elements are NaN"):
        session.run(ffn(w), {"x": values(3, 64)})


# Weights and memory are shared and given back


def n_buffers(s: Session) -> int:
    return s.connection.stats()["n_buffers"]


def test_graphs_share_weights_and_give_them_back() -> None:
    with hexnpu.open() as s:
        w = ffn_weights()
        graphs = [ffn(w, n) for n in (1, 2, 4)]
        s.compile(graphs[2])
        weight_bytes = s.connection.stats()["buffer_bytes"]
        s.compile(graphs[1]), s.compile(graphs[0])
        assert s.connection.stats()["buffer_bytes"] - weight_bytes < 8192, "inputs and outputs only"
        placed = [next(iter(s.compile(g)._weights.values())).placed for g in graphs]
        assert placed[0] is placed[1] is placed[2]
        s.compile(ffn(ffn_weights()))  # the same names, other sources
        del placed
        while graphs:
            s.forget(graphs.pop())
        gc.collect()
        assert n_buffers(s) == 0


def test_replays_leave_nothing_behind(session: Session) -> None:
    graph, x = ffn(ffn_weights()), values(3, 64)
    session.run(graph, {"x": x})
    gc.collect()
    before, buffers = len(gc.get_objects()), n_buffers(session)
    for _ in range(50):
        session.run(graph, {"x": x})
    assert len(gc.get_objects()) - before < 20 and n_buffers(session) == buffers


def test_memory_is_counted() -> None:
    with hexnpu.open() as s:
        g = ffn(ffn_weights())
        kv(g, 2)
        compiled = s.compile(g)
        assert s.memory.state_bytes == 64 * 8 * 2 and s.memory.compute_bytes == compiled.compute_bytes > 0
        assert s.memory.weight_bytes >= 4 * (64 + 3 * 64 * 96)


def test_the_compute_buffer_is_reused() -> None:
    with hexnpu.open() as s:
        w = ffn_weights()
        first, second = s.compile(ffn(w, 9)), s.compile(ffn(w, 2))
        assert first.compute_bytes > second.compute_bytes > 0
        assert first.steps[0].buffers[-2:][0] in second.steps[0].buffers  # type: ignore[union-attr]


# States


def kv(g: Graph, n: int) -> Tensor:
    state = g.state("cache", (64, 8), Type.F16)
    return g.set_rows(state, g.input("rows", (64, n)), g.input("at", (n,), Type.I64))


def test_a_state_lives_over_runs_and_graphs_until_cleared() -> None:
    with hexnpu.open() as s:
        a, b = values(2, 64), values(1, 64)
        write, read = Graph(), Graph()
        kv(write, 2)
        read.output(read.cpy(kv(read, 1), Type.F32), "y")
        s.run(write, {"rows": a, "at": np.array([5, 1])})
        y = s.run(read, {"rows": b, "at": np.array([0])})["y"]
        want = np.zeros((8, 64), np.float32)
        want[[5, 1]], want[0] = a.astype(np.float16), b.astype(np.float16)
        assert np.array_equal(y, want)
        whole = Graph()
        whole.output(whole.state("cache", (64, 8), Type.F16), "y")
        assert np.array_equal(s.run(whole, {})["y"], want.astype(np.float16))
        s.clear_states()
        assert not s.run(read, {"rows": 0 * b, "at": np.array([0])})["y"].any()
        other = Graph()
        other.output(other.state("cache", (64, 9), Type.F16), "y")
        with pytest.raises(UsageError, match="state cache is f16"):
            s.compile(other)


# Fallback


def strided(g: Graph) -> None:
    """An op on rows whose elements lie apart, which the row kernels refuse, between two that they take."""
    x = g.scale(g.input("x", (8, 6)), 2.0)
    y = g.silu(g.transpose(x))
    g.output(g.scale(y, 3.0), "y")


def test_what_the_npu_cannot_take_is_computed_here_and_counted() -> None:
    with hexnpu.open() as s:
        g, x = Graph(), values(6, 8)
        strided(g)
        y = s.run(g, {"x": x})["y"]
        double = 2 * x.astype(np.float64).T
        assert np.allclose(y, 3 * double / (1 + np.exp(-double)), rtol=1e-5)
        assert (s.stats.npu_ops, s.stats.fallback_ops, s.stats.last_run_batches) == (2, 1, 2)
        assert re.match(r"1 x UNARY_SILU: .*contiguous", s.stats.fallback_reasons[0])


def test_rows_written_in_numpy_leave_the_other_rows_alone() -> None:
    # Q4_0 is a type that the NPU does not quantize to.
    with hexnpu.open() as s:
        g, rows = Graph(), values(2, 64)
        state = g.set_rows(g.state("s", (64, 5), Type.Q4_0), g.input("rows", (64, 2)), g.input("at", (2,), Type.I32))
        g.output(state, "y")
        first = s.run(g, {"rows": rows, "at": np.array([1, 3], np.int32)})["y"]
        second = s.run(g, {"rows": 2 * rows, "at": np.array([0, 3], np.int32)})["y"]
        assert s.stats.fallback_ops == 2 and first.shape == (5, 36)
        want = gguf.quants.quantize(rows, gguf.GGMLQuantizationType.Q4_0)
        assert np.array_equal(first[[1, 3]], want) and not first[[0, 2, 4]].any()
        assert np.array_equal(second[[1, 2, 4]], first[[1, 2, 4]]) and not np.array_equal(second[3], first[3])


def test_a_quantized_output_comes_as_its_blocks(session: Session) -> None:
    g = Graph()
    blocks = gguf.quants.quantize(values(6, 64), gguf.GGMLQuantizationType.Q8_0)
    table = g.weight("t", (Type.Q8_0, (64, 6), blocks.tobytes()))
    g.output(g.get_rows(table, g.input("i", (2,), Type.I32), Type.Q8_0), "y")
    y = session.run(g, {"i": np.array([4, 1], np.int32)})["y"]
    assert np.array_equal(y, blocks[[4, 1]])


def test_an_index_outside_names_the_op_and_the_session_goes_on(session: Session) -> None:
    g, table = Graph(), values(6, 64)
    g.output(g.get_rows(g.weight("t", table), g.input("i", (2,), Type.I32), name="looked_up"), "y")
    with pytest.raises(DeviceError, match=r"HTP0:0 batch \d+: op 0 \(GET_ROWS -> looked_up\): INVAL_PARAMS: .*6"):
        session.run(g, {"i": np.array([0, 6], np.int32)})
    assert np.array_equal(session.run(g, {"i": np.array([0, 5], np.int32)})["y"], table[[0, 5]])


def test_strict_makes_it_an_error() -> None:
    with hexnpu.open(strict=True) as s:
        g = Graph()
        strided(g)
        with pytest.raises(StrictError, match=r"UNARY_SILU -> unary_silu_1 of .*cannot run on the NPU"):
            s.run(g, {"x": values(6, 8)})


# Batches


def chain(n: int, bytes_each: int) -> tuple[Graph, dict[str, Any]]:
    g = Graph()
    x = g.input("x", (64,))
    weights = {f"w{i}": values(bytes_each // 256, 64) for i in range(n)}
    for name, w in weights.items():
        x = g.slice(g.mul_mat(g.weight(name, w), x), 0, 0, 64)
    g.output(x, "y")
    return g, weights


def test_more_weights_than_the_window_maps_take_several_batches() -> None:
    window = 16 << 20
    connection = connect(None)
    with Session(connection, "HTP0:0", 2, max_map_bytes=window) as s:
        g, weights = chain(12, 3 << 20)
        x = values(64)
        compiled = s.compile(g)
        for step in compiled.steps:
            assert sum(b.bytes for b in step.buffers) <= window and len(step.buffers) <= 16  # type: ignore[union-attr]
        assert compiled.n_batches >= 3
        y = compiled.run({"x": x})["y"]
        for w in weights.values():
            x = (w @ x)[:64]
        assert np.allclose(y, x, rtol=1e-3)
        with pytest.raises(HexnpuError, match="needs more memory at a time"):
            s.compile(chain(1, 17 << 20)[0])


# Transports


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_a_server_on_a_socket(kind: str, tmp_path: Path, session: Session) -> None:
    where = "tcp:127.0.0.1:0" if kind == "tcp" else f"unix:{tmp_path}/s"
    with subprocess.Popen([server_program(), "--listen", where], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            target = f"tcp:127.0.0.1:{said.split()[-1]}" if kind == "tcp" else where
            w, x = ffn_weights(), values(3, 64)
            with hexnpu.open(target, n_threads=2) as s:
                assert s.connection.hello.can_share == (kind == "unix")
                y = s.run(ffn(w), {"x": x})["y"]
                g = Graph()
                strided(g)
                assert np.array_equal(s.run(g, {"x": x[:, :48].reshape(18, 8)[:6]})["y"],
                                      session.run(g, {"x": x[:, :48].reshape(18, 8)[:6]})["y"])  # fmt: skip
            assert np.array_equal(y, session.run(ffn(w), {"x": x})["y"])
        finally:
            server.terminate()


def test_a_file_of_the_device_is_loaded_there(session: Session, tmp_path: Path) -> None:
    data = values(100)
    (tmp_path / "w.bin").write_bytes(b"head" + data.tobytes())
    buffer = session.alloc(4096)
    buffer.load(256, str(tmp_path / "w.bin"), 4, 400)
    assert buffer.view[256:656].tobytes() == data.tobytes()
    with pytest.raises(HexnpuError, match="only 396 of 400 bytes from 8 could be read"):
        buffer.load(0, str(tmp_path / "w.bin"), 8, 400)


# The end of a session


def server_of(s: Session) -> int:
    server = s.connection._server
    assert isinstance(server, child.Child)
    return server.process.pid


def test_a_killed_server_is_named_and_nothing_hangs() -> None:
    s = hexnpu.open()
    graph, x = ffn(ffn_weights()), values(3, 64)
    s.run(graph, {"x": x})
    pid = server_of(s)
    os.kill(pid, signal.SIGSTOP)
    caught: list[BaseException] = []

    def run() -> None:
        try:
            s.run(graph, {"x": x})
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    os.kill(pid, signal.SIGKILL)
    thread.join(HANG_S)
    assert not thread.is_alive()
    assert isinstance(caught[0], SessionLost)
    text = str(caught[0])
    assert "killed by SIGKILL" in text and "RMS_NORM+MUL" in text and "batch 2" in text and "\n" not in text
    with pytest.raises(SessionLost, match="open a new session"):
        s.run(graph, {"x": x})
    s.close()


def test_a_crash_in_the_session_process_leaves_the_client_alive() -> None:
    with hexnpu.open() as s, hexnpu.open() as other:
        graph, x = ffn(ffn_weights()), values(3, 64)
        y = s.run(graph, {"x": x})["y"]
        (process,) = children(server_of(s))
        os.kill(process, signal.SIGSEGV)
        with pytest.raises(SessionLost, match=r"killed by signal 11 \(SIGSEGV\) between batches.*batch 2"):
            s.run(graph, {"x": x})
        assert np.array_equal(other.run(graph, {"x": x})["y"], y)


def test_a_silent_server_is_given_up() -> None:
    s = hexnpu.open()
    pid = server_of(s)
    s.connection._sock.settimeout(0.2)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(SessionLost, match="no answer"):
        s.connection.stats()
    assert not is_alive(pid)


def test_an_interrupted_request_ends_the_session() -> None:
    # The answer that is still on its way must not be taken for that of the next request.
    s = hexnpu.open()
    pid = server_of(s)

    class Interrupting:
        def sendall(self, data: bytes) -> None:
            raise KeyboardInterrupt

    s.connection._sock = Interrupting()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        s.connection.stats()
    assert not is_alive(pid)
    with pytest.raises(SessionLost, match="a request was interrupted; open a new session"):
        s.connection.stats()


@pytest.mark.parametrize("how", ["close", "forgotten"])
def test_no_process_and_no_descriptor_is_left(how: str) -> None:
    def count() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    gc.collect()
    before = count()
    s = hexnpu.open()
    s.run(ffn(ffn_weights()), {"x": values(3, 64)})
    pid = server_of(s)
    processes = [pid, *children(pid)]
    if how == "close":
        s.close()
        s.close()
    del s
    gc.collect()
    assert count() == before and not any(map(is_alive, processes))


def test_a_closed_session_says_so() -> None:
    s = hexnpu.open()
    s.close()
    with pytest.raises(SessionLost, match="closed"):
        s.run(ffn(ffn_weights()), {"x": values(3, 64)})


def test_a_program_that_is_no_server_is_a_clear_error() -> None:
    with pytest.raises(SessionLost, match=r"x is lost: .*exited with status 3; in flight: hello; its last words: ouch"):
        child.start(["/bin/sh", "-c", "echo ouch >&2; exit 3"], "x")
    with pytest.raises(SessionLost, match="no frame"):
        child.start(["/bin/sh", "-c", "printf %0200d 7; read x"], "x")
    with pytest.raises(HexnpuError, match="cannot start the device server /nonexistent"):
        child.start(["/nonexistent"], "x")


# Profile


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_profile_lines_have_the_form_of_device_logs(session: Session, mode: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    graph, x = ffn(ffn_weights()), values(3, 64)
    with session.profile(mode, log):
        session.run(graph, {"x": x})
        session.run(graph, {"x": x})
    session.run(graph, {"x": x})
    banner, *lines = log.read_text().splitlines()
    assert re.fullmatch(rf"\d+\.\d\d\.\d{{3}}\.\d{{3}} D ggml-hex: Profiling mode {mode} : pmu-evt \[ .*\]", banner)
    ops = [line for line in lines if " profile-op " in line and "OPBATCH" not in line]
    stamp = r"\d+\.\d\d\.\d{3}\.\d{3} D ggml-hex: HTP0:0 "
    assert all(re.match(stamp, line) for line in lines)
    assert len(ops) == 8 and sum("OPBATCH|----|n-ops 4|evt-cnt " in line for line in lines) == 2
    down = (
        stamp + r"profile-op MUL_MAT\+ADD\|down x glu_swiglu_\d+ x x -> add_\d+\|96:64 x 96:3 x 64:3 -> 64:3\|"
        r"f32 x f32 x f32 -> f32\|4:384 x 4:384 x 4:256 -> 4:256\|\S+ vtcm \d+\|"
        r"usec \d+ cycles \d+ start \d+ mhz \d+\.\d"
    )
    assert re.fullmatch(down + (r" pmu \[[1-9]\d*,[1-9]\d*(,0){6}\]" if mode == 2 else ""), ops[3])
    events = [line for line in lines if " trace-evt " in line]
    assert bool(events) == (mode == 3)
    form = stamp + r"trace-evt [A-Z0-9_]+: thread \d+ info \d+ (start|stop) \d+"
    assert all(re.fullmatch(form, line) for line in events)
    assert sum(" start " in e for e in events) == sum(" stop " in e for e in events)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_the_profiler_reads_what_we_write(session: Session, mode: int, tmp_path: Path) -> None:
    graph, x = ffn(ffn_weights()), values(3, 64)
    with session.profile(mode, tmp_path / "log"):
        for _ in range(3):
            session.run(graph, {"x": x})
    log = read_log(str(tmp_path / "log"))
    assert not log.unreadable and log.devices == ["HTP0:0"] and log.mode == mode
    assert log.pmu_events == [wire.PMU_DMA_TRANSFERS, wire.PMU_DMA_BYTES]
    assert (len(log.ops), len(log.batches)) == (12, 3)
    assert (len(log.events) > 0) == (mode == 3)
    names = [log.texts[i].op for i in log.ops.text[:4]]
    assert names == ["RMS_NORM+MUL", "MUL_MAT+MUL_MAT", "GLU_SWIGLU", "MUL_MAT+ADD"]


def test_no_such_profile_mode(session: Session) -> None:
    with pytest.raises(UsageError, match="no profile mode 7"):
        session.profile(7)


def test_the_example_of_the_docs_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "docs" / "offload.md").read_text()
    example = text.partition("\n\n")[2].partition("\nIt prints")[0]
    exec(textwrap.dedent(example), {})
    said = capsys.readouterr().out
    assert said.startswith(re.findall(r"It prints `(.*?)\.\.\.", text)[0])
