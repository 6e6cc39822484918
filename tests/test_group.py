"""Graphs over the ranks of a group: values, fusion, what is shared and what is not, profile, errors."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hexnpu
from hexnpu import Fusion, Graph, GroupGraph, GroupLost, ShapeError, Tensor, Type, UsageError
from hexnpu.group import Group
from hexnpu.profile.parse.reader import read_log
from hexnpu.server_build import server_program
from tests.processes import HANG_S

RNG = np.random.default_rng(5)
DEVICES = ("HTP0:0", "HTP1:0", "HTP2:0", "HTP3:0")


def values(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


def open_group(n_ranks: int = 2, **options: Any) -> Group:
    group = hexnpu.open(devices=DEVICES[:n_ranks], n_threads=1, fence_timeout_s=HANG_S, **options)
    assert isinstance(group, Group)
    return group


@pytest.fixture(scope="module")
def group() -> Iterator[Group]:
    with open_group() as g:
        yield g


def ffn(w: dict[str, Any], n_ranks: int, n: int) -> GroupGraph:
    """A gated FFN with residual, its columns split over the ranks."""
    g = GroupGraph(n_ranks)
    xs = [graph.input("x", (64, n)) for graph in g.ranks]
    parts = []
    bounds = np.linspace(0, 96, n_ranks + 1).astype(int)
    for graph, x, first, end in zip(g.ranks, xs, bounds, bounds[1:], strict=False):
        normed = graph.mul(graph.rms_norm(x, eps=1e-6), graph.weight("norm", w["norm"]))
        gate, up = (
            graph.mul_mat(graph.weight(k, np.ascontiguousarray(w[k][first:end])), normed) for k in ("gate", "up")
        )
        down = graph.weight("down", np.ascontiguousarray(w["down"][:, first:end]))
        parts.append(graph.mul_mat(down, graph.swiglu(gate, up)))
    for rank, (graph, total, x) in enumerate(zip(g.ranks, g.allreduce(parts), xs, strict=True)):
        graph.output(graph.add(total, x, name="out"), f"y{rank}")
    return g


def weights() -> dict[str, Any]:
    return {"norm": values(64), "gate": values(96, 64), "up": values(96, 64), "down": values(64, 96)}


def ffn_in_numpy(w: dict[str, Any], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    w = {k: v.astype(np.float64) for k, v in w.items()}
    normed = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * w["norm"]
    gate, up = normed @ w["gate"].T, normed @ w["up"].T
    return np.asarray((gate / (1 + np.exp(-gate)) * up) @ w["down"].T + x)


@pytest.mark.parametrize("n_ranks", [2, 3, 4])
def test_a_split_ffn_computes_what_numpy_does(n_ranks: int) -> None:
    w, x = weights(), values(5, 64)
    with open_group(n_ranks, strict=True) as group:
        g = ffn(w, n_ranks, 5)
        y = group.run(g, {"x": x})
        again = group.run(g, {"x": x})
        names = [[op.node.name for op in c.ops] for c in group.compile(g).ranks]
    want = ffn_in_numpy(w, x)
    assert np.sum((y["y0"] - want) ** 2) / np.sum(want**2) < 1e-9
    assert all(np.array_equal(a, y["y0"]) for a in (*y.values(), *again.values()))
    assert names == [["RMS_NORM+MUL", "MUL_MAT+MUL_MAT", "GLU_SWIGLU", "MUL_MAT", "ALLREDUCE+ADD"]] * n_ranks


def test_fused_and_apart_are_the_same_bits() -> None:
    w, x = weights(), values(5, 64)
    results = []
    for mask in (Fusion.ALL, Fusion.RMS_NORM_MUL):
        with open_group(fusion=mask) as group:
            g = ffn(w, 2, 5)
            results.append(group.run(g, {"x": x})["y1"])
            names = [op.node.name for op in group.compile(g).ranks[1].ops]
            assert ("ALLREDUCE+ADD" in names) == (mask == Fusion.ALL)
    assert np.array_equal(*results)


def no_fusion(g: GroupGraph, group: Group) -> list[str]:
    compiled = group.compile(g)
    assert not any(op.node.op == "ALLREDUCE_ADD" for c in compiled.ranks for op in c.ops)
    return [reason for reason in compiled.apart if "ALLREDUCE" in reason]


def sums(g: GroupGraph, n: int = 64) -> tuple[list[Tensor], list[Tensor]]:
    xs = [graph.input(f"x{r}", (n,)) for r, graph in enumerate(g.ranks)]
    return xs, g.allreduce([graph.scale(x, 1.0) for graph, x in zip(g.ranks, xs, strict=True)])


def test_a_sum_with_a_second_reader_on_one_rank_is_fused_on_none(group: Group) -> None:
    g = GroupGraph(2)
    xs, totals = sums(g)
    for r, graph in enumerate(g.ranks):
        graph.output(graph.add(totals[r], xs[r]), f"y{r}")
    g.ranks[1].output(totals[1], "sum")
    assert "has another reader or is an output" in no_fusion(g, group)[0]
    a, b = values(64), values(64)
    y = group.run(g, {"x0": a, "x1": b})
    assert np.array_equal(y["sum"], a + b)
    assert np.array_equal(y["y0"], a + b + a) and np.array_equal(y["y1"], a + b + b)


def test_a_residual_that_only_one_rank_adds_is_not_fused(group: Group) -> None:
    g = GroupGraph(2)
    xs, totals = sums(g)
    g.ranks[0].output(g.ranks[0].add(totals[0], xs[0]), "y")
    g.ranks[1].output(g.ranks[1].scale(totals[1], 3.0), "z")
    assert no_fusion(g, group)
    a, b = values(64), values(64)
    y = group.run(g, {"x0": a, "x1": b})
    assert np.array_equal(y["y"], a + b + a) and np.array_equal(y["z"], (a + b) * np.float32(3))


def test_a_sum_for_one_rank(group: Group) -> None:
    g = GroupGraph(2)
    parts = [graph.scale(graph.input(f"x{r}", (100,)), 2.0) for r, graph in enumerate(g.ranks)]
    (total,) = g.allreduce(parts, to=[1])
    g.ranks[1].output(total, "y")
    a, b = values(100), values(100)
    assert np.array_equal(group.run(g, {"x0": a, "x1": b})["y"], 2 * a + 2 * b)


def test_a_sum_that_no_output_reads_still_takes_part(group: Group) -> None:
    g = GroupGraph(2)
    _, totals = sums(g)
    g.ranks[0].output(totals[0], "y")
    a, b = values(64), values(64)
    for _ in range(3):
        assert np.array_equal(group.run(g, {"x0": a, "x1": b})["y"], a + b)


@pytest.mark.parametrize("type", [Type.F32, Type.F16])
@pytest.mark.parametrize("n_ranks", [2, 4])
def test_handing_over_round_the_ranks(n_ranks: int, type: Type) -> None:
    g = GroupGraph(n_ranks)
    x = g.ranks[0].cpy(g.ranks[0].input("x", (96, 7)), type)
    for step in range(1, 2 * n_ranks + 1):
        rank = step % n_ranks
        x = g.hand_over(x, rank)
        x = g.ranks[rank].add(x, x)
    g.ranks[0].output(x, "y")
    with open_group(n_ranks, env={"HEXNPU_EMU_SKEW": "11"}) as group:
        for _ in range(10):
            a = values(7, 96)
            want = (a.astype(np.float16) if type == Type.F16 else a) * 4**n_ranks
            assert np.array_equal(group.run(g, {"x": a})["y"], want)


def test_strided_tensors_are_handed_over_dense(group: Group) -> None:
    g = GroupGraph(2)
    x = g.ranks[0].scale(g.ranks[0].input("x", (64, 6)), 2.0)
    g.ranks[1].output(g.hand_over(g.ranks[0].slice(x, 0, 16, 48), 1), "y")
    a = values(6, 64)
    assert np.array_equal(group.run(g, {"x": a})["y"], 2 * a[:, 16:48])


def test_an_op_in_numpy_between_the_ranks() -> None:
    """A step that one rank computes on the host: the others wait, and nobody mixes up the batches."""
    g = GroupGraph(2)
    xs = [graph.input(f"x{r}", (64, 3)) for r, graph in enumerate(g.ranks)]
    total = g.allreduce([graph.scale(x, 1.0) for graph, x in zip(g.ranks, xs, strict=True)])
    odd = g.ranks[1].cont(g.ranks[1].transpose(total[1]))  # elements of a row are apart: not for the NPU
    parts = [total[0], g.ranks[1].cont(g.ranks[1].transpose(odd))]
    for r, y in enumerate(g.allreduce(parts)):
        g.ranks[r].output(y, f"y{r}")
    with open_group() as group:
        a, b = values(3, 64), values(3, 64)
        y = group.run(g, {"x0": a, "x1": b})
        assert group.stats.fallback_ops > 0
        assert all(np.array_equal(y[f"y{r}"], 2 * (a + b)) for r in range(2))


# Memory


def test_weights_are_on_their_rank_only(group: Group) -> None:
    g = GroupGraph(2)
    w = [values(512, 64), values(32, 64)]
    for r, graph in enumerate(g.ranks):
        graph.output(graph.mul_mat(graph.weight("w", w[r]), graph.input(f"x{r}", (64,))), f"y{r}")
    x = values(64)
    group.run(g, {"x0": x, "x1": x})
    first, second = (s.memory.weight_bytes for s in group.sessions)
    assert first - second >= (512 - 32) * 64 * 4 and group.memory.weight_bytes == first + second


def test_virtual_sessions_share_the_vtcm_of_their_npu() -> None:
    with hexnpu.open(devices=["HTP0:0", "HTP0:1", "HTP1:0"], n_threads=1) as group:
        assert isinstance(group, Group)
        assert [s.device.vtcm_bytes >> 20 for s in group.sessions] == [4, 4, 8]
        assert [s.name for s in group.sessions] == ["HTP0:0", "HTP0:1", "HTP1:0"]


def test_more_weights_than_one_session_maps_at_a_time() -> None:
    """Over one session they are mapped and unmapped in turn, batch by batch; over two all of them stay mapped."""
    limit, n = 3 << 20, 16
    w = [values(256, 256) / 16 for _ in range(n)]  # 256 KiB each
    x = values(2, 256)
    want = x.astype(np.float64)
    for matrix in w:
        want = want @ matrix.T.astype(np.float64)

    single = Graph()
    y = single.input("x", (256, 2))
    for i, matrix in enumerate(w):
        y = single.mul_mat(single.weight(f"w{i}", matrix), y)
    single.output(y, "y")
    with hexnpu.open(n_threads=1, max_map_bytes=limit) as session:
        got = session.run(single, {"x": x})["y"]
        assert session.memory.weight_bytes > limit and session.compile(single).n_batches > 1
        assert session.connection.stats(session.number)["mapped_bytes"] <= limit

    double = GroupGraph(2)
    y = double.ranks[0].input("x", (256, 2))
    for i, matrix in enumerate(w):
        if i == n // 2:
            y = double.hand_over(y, 1)
        graph = double.ranks[i // (n // 2)]
        y = graph.mul_mat(graph.weight(f"w{i}", matrix), y)
    double.ranks[1].output(y, "y")
    with open_group(max_map_bytes=limit) as group:
        for _ in range(2):
            again = group.run(double, {"x": x})["y"]
        assert [c.n_batches for c in group.compile(double).ranks] == [1, 1]
        for s in group.sessions:
            assert group.connection.stats(s.number)["mapped_bytes"] <= limit
            assert s.memory.weight_bytes < limit
    assert np.array_equal(got, again)
    assert np.sum((got - want) ** 2) / np.sum(want**2) < 1e-9


# Profile


def test_a_profile_has_the_lines_of_every_device(tmp_path: Path) -> None:
    w, x = weights(), values(5, 64)
    path = tmp_path / "group.log"
    with open_group(env={"HEXNPU_EMU_SKEW": "2"}) as group:
        g = ffn(w, 2, 5)
        with group.profile(3, path):
            for _ in range(3):
                group.run(g, {"x": x})
    log = read_log(path)
    text = path.read_text()
    assert not log.unreadable and sorted(log.devices) == ["HTP0:0", "HTP1:0"] and log.mode == 3
    for device in log.devices:
        mine = [line for line in text.splitlines() if f"ggml-hex: {device} " in line]
        assert sum("|n-ops 5|" in line for line in mine) == 3
        assert sum("profile-op ALLREDUCE+ADD|" in line for line in mine) == 3
        starts = [line for line in mine if "trace-evt FENCE: thread 0" in line and " start " in line]
        assert len(starts) == 3 * 2, "an entry and an exit barrier each"
    assert text.count("Profiling mode") == 1


def test_a_profile_counts_what_the_barriers_cost(tmp_path: Path) -> None:
    path = tmp_path / "group.log"
    with open_group() as group, group.profile(2, path):
        group.run(ffn(weights(), 2, 5), {"x": values(5, 64)})
    lines = [line for line in path.read_text().splitlines() if "profile-op " in line and "OPBATCH" not in line]
    waited = {line.split("|")[0].split()[-1]: int(line.split(" pmu [")[1].split(",")[2]) for line in lines}
    assert waited.pop("ALLREDUCE+ADD") > 0 and not any(waited.values())


# Mistakes


def test_mistakes(group: Group) -> None:
    g = GroupGraph(2)
    xs = [graph.input(f"x{r}", (8,)) for r, graph in enumerate(g.ranks)]
    with pytest.raises(UsageError, match="a group of 5 ranks"):
        GroupGraph(5)
    with pytest.raises(ShapeError, match="over 2 ranks has 1 tensors"):
        g.allreduce(xs[:1])
    with pytest.raises(UsageError, match="is not of rank 0's graph"):
        g.allreduce(xs[::-1])
    with pytest.raises(ShapeError, match="inputs differ"):
        g.allreduce([xs[0], g.ranks[1].input("y", (9,))])
    with pytest.raises(UsageError, match="is a weight"):
        g.allreduce([xs[0], g.ranks[1].weight("w", values(8))])
    with pytest.raises(UsageError, match="to rank 0"):
        g.hand_over(xs[0], 0)
    with pytest.raises(UsageError, match="belongs to no graph"):
        g.hand_over(Graph().input("x", (8,)), 1)
    with pytest.raises(UsageError, match="for 3 ranks, the group has 2"):
        group.run(GroupGraph(3), {})
    with pytest.raises(UsageError, match="no input 'z'"):
        group.run(g, {"x0": values(8), "x1": values(8), "z": values(8)})
    with pytest.raises(UsageError, match="'x1' is missing"):
        group.run(g, {"x0": values(8)})
    for devices in (["HTP0:0"] * 2, [f"HTP{i}:0" for i in range(5)]):
        with pytest.raises(UsageError, match="2 to 4 different devices"):
            hexnpu.open(devices=devices)
    with pytest.raises(UsageError, match="fence_timeout_s"):
        hexnpu.open(devices=DEVICES[:2], fence_timeout_s=0.0)


# Other lines to the server


def test_a_group_on_a_server_that_shares_no_memory() -> None:
    """Over TCP fences, too, are written by message; while ranks work the replies come in any order."""
    command = [server_program(), "--listen", "tcp:127.0.0.1:0"]
    w, x = weights(), values(5, 64)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        target = f"tcp:127.0.0.1:{server.stdout.readline().split()[-1]}"
        try:
            group = hexnpu.open(target, DEVICES[:2], n_threads=1, fence_timeout_s=HANG_S)
            assert isinstance(group, Group)
            with group:
                g = ffn(w, 2, 5)
                y = [group.run(g, {"x": x}) for _ in range(3)]
                assert all(np.array_equal(a, y[0]["y0"]) for run in y for a in run.values())
                odd = GroupGraph(2)
                table = values(4, 8)
                parts = [
                    r.get_rows(r.weight("table", table), r.input(f"rows{i}", (2,), Type.I32))
                    for i, r in enumerate(odd.ranks)
                ]
                odd.ranks[0].output(odd.allreduce(parts)[0], "y")
                with pytest.raises(GroupLost, match=r"rank 1 \(HTP1:0\): .*GET_ROWS"):
                    group.run(odd, {"rows0": np.array([0, 1], np.int32), "rows1": np.array([0, 4], np.int32)})
            with hexnpu.open(target, n_threads=1) as session:  # the server has outlived the group
                assert session.memory.weight_bytes == 0
        finally:
            server.terminate()
    want = ffn_in_numpy(w, x)
    assert np.sum((y[0]["y0"] - want) ** 2) / np.sum(want**2) < 1e-9
