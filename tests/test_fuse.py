"""Which neighbours become one op, and which must not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hexnpu.fuse import Fusion, fuse
from hexnpu.graph import Graph, Tensor
from hexnpu.tensor import Type

K = 64


def weight(g: Graph, name: str, *shape: int) -> Tensor:
    return g.weight(name, np.ones(shape, np.float32))


def graph() -> tuple[Graph, Tensor]:
    g = Graph()
    return g, g.input("x", (K, 3))


def norm_mul(g: Graph, x: Tensor) -> None:
    g.output(g.mul(g.rms_norm(x), weight(g, "w", K)), "y")


def norm_mul_swapped(g: Graph, x: Tensor) -> None:
    g.output(g.mul(g.input("w", (K, 3)), g.rms_norm(x)), "y")


def norm_mul_repeats_the_norm(g: Graph, x: Tensor) -> None:
    g.output(g.mul(g.input("w", (K, 6)), g.rms_norm(x)), "y")


def norm_mul_two_readers(g: Graph, x: Tensor) -> None:
    normed = g.rms_norm(x)
    g.output(g.add(g.mul(normed, weight(g, "w", K)), normed), "y")


def norm_mul_output(g: Graph, x: Tensor) -> None:
    normed = g.output(g.rms_norm(x), "n")
    g.output(g.mul(normed, weight(g, "w", K)), "y")


def norm_mul_view_is_output(g: Graph, x: Tensor) -> None:
    normed = g.rms_norm(x)
    g.output(g.reshape(normed, (3 * K,)), "n")
    g.output(g.mul(normed, weight(g, "w", K)), "y")


def norm_mul_by_itself(g: Graph, x: Tensor) -> None:
    normed = g.rms_norm(x)
    g.output(g.mul(normed, normed), "y")


def norm_of_state(g: Graph, x: Tensor) -> None:
    state = g.state("s", (K, 3))
    normed = g.rms_norm(state)
    g.set_rows(state, x, g.input("i", (3,), Type.I32))
    g.output(g.mul(normed, weight(g, "w", K)), "y")


def norm_mul_column(g: Graph, x: Tensor) -> None:
    g.output(g.mul(g.rms_norm(x), weight(g, "w", 3, 1)), "y")


def mm_bias(g: Graph, x: Tensor) -> None:
    g.output(g.add(g.mul_mat(weight(g, "w", 8, K), x), weight(g, "b", 8)), "y")


def mm_residual_first(g: Graph, x: Tensor) -> None:
    g.output(g.add(x, g.mul_mat(weight(g, "w", K, K), x)), "y")


def mm_two_of_one_sum(g: Graph, x: Tensor) -> None:
    a = g.mul_mat(weight(g, "w", K, K), x)
    b = g.mul_mat(weight(g, "v", K, K), g.input("z", (K, 3)))
    g.output(g.add(a, b), "y")


def mm_bias_of_one_element(g: Graph, x: Tensor) -> None:
    g.output(g.add(g.mul_mat(weight(g, "w", 8, K), x), weight(g, "b", 1)), "y")


def qkv(g: Graph, x: Tensor) -> None:
    for name, n in (("q", 64), ("k", 16), ("v", 16)):
        g.output(g.mul_mat(weight(g, f"w{name}", n, K), x), name)


def six(g: Graph, x: Tensor) -> None:
    for i in range(6):
        g.output(g.mul_mat(weight(g, f"w{i}", 8, K), x), f"y{i}")


def mixed_types(g: Graph, x: Tensor) -> None:
    g.output(g.mul_mat(weight(g, "a", 8, K), x), "a_")
    g.output(g.mul_mat(g.weight("b", np.ones((8, K), np.float16)), x), "b_")


def dynamic_weights(g: Graph, x: Tensor) -> None:
    for name in "ab":
        g.output(g.mul_mat(g.input(name, (K, 8)), x), f"{name}_")


def gate_up(g: Graph, x: Tensor) -> None:
    normed = g.mul(g.rms_norm(x), weight(g, "n", K))
    act = g.swiglu(g.mul_mat(weight(g, "gate", 96, K), normed), g.mul_mat(weight(g, "up", 96, K), normed))
    g.output(g.add(g.mul_mat(weight(g, "down", K, 96), act), x), "y")


def dead(g: Graph, x: Tensor) -> None:
    g.mul(g.rms_norm(x), weight(g, "w", K))
    g.output(g.silu(x), "y")


NM, MA = "RMS_NORM+MUL", "MUL_MAT+ADD"
CASES: list[tuple[Callable[[Graph, Tensor], None], list[str], str]] = [
    (norm_mul, [NM], ""),
    (norm_mul_swapped, [NM], ""),
    (norm_mul_repeats_the_norm, ["RMS_NORM", "MUL"], ""),
    (norm_mul_two_readers, ["RMS_NORM", "MUL", "ADD"], "another reader"),
    (norm_mul_output, ["RMS_NORM", "MUL"], "output"),
    (norm_mul_view_is_output, ["RMS_NORM", "MUL"], "output"),
    (norm_mul_by_itself, ["RMS_NORM", "MUL"], ""),
    (norm_of_state, ["RMS_NORM", "SET_ROWS", "MUL"], "state"),
    (norm_mul_column, ["RMS_NORM", "MUL"], "does not fit"),
    (mm_bias, [MA], ""),
    (mm_residual_first, [MA], ""),
    (mm_two_of_one_sum, ["MUL_MAT", MA], ""),
    (mm_bias_of_one_element, ["MUL_MAT", "ADD"], "does not fit"),
    (qkv, ["MUL_MAT+MUL_MAT+MUL_MAT"], ""),
    (six, ["MUL_MAT+MUL_MAT+MUL_MAT+MUL_MAT", "MUL_MAT+MUL_MAT"], ""),
    (mixed_types, ["MUL_MAT", "MUL_MAT"], ""),
    (dynamic_weights, ["MUL_MAT", "MUL_MAT"], ""),
    (gate_up, [NM, "MUL_MAT+MUL_MAT", "GLU_SWIGLU", MA], ""),
    (dead, ["UNARY_SILU"], ""),
]  # fmt: skip


@pytest.mark.parametrize("build, names, reason", CASES, ids=[c[0].__name__ for c in CASES])
def test_fusions(build: Callable[[Graph, Tensor], None], names: list[str], reason: str) -> None:
    g, x = graph()
    build(g, x)
    nodes, apart = fuse(g, lambda node: None)
    assert [n.name for n in nodes] == names
    assert [reason in line for line in apart] == ([True] if reason else [])


def test_operands_of_fused_ops() -> None:
    g, x = graph()
    gate_up(g, x)
    norm, nx, _, down = fuse(g, lambda node: None)[0]
    assert (norm.op, [t and t.name for t in norm.src]) == ("RMS_NORM_MUL", ["x", "n"])
    assert (nx.op, [t and t.name for t in nx.src][1:]) == ("MUL_MAT_NX", ["gate", "up"])
    assert [t.ne[0] for t in nx.dst] == [96, 96]
    assert (down.op, [t and t.name for t in down.src][::2]) == ("MUL_MAT_ADD", ["down", "x"])
    assert norm.params == g.nodes[0].params


MASKS = [
    (0, ["RMS_NORM", "MUL", "MUL_MAT", "MUL_MAT", "GLU_SWIGLU", "MUL_MAT", "ADD"]),
    (Fusion.RMS_NORM_MUL, [NM, "MUL_MAT", "MUL_MAT", "GLU_SWIGLU", "MUL_MAT", "ADD"]),
    (Fusion.MUL_MAT_ADD, ["RMS_NORM", "MUL", "MUL_MAT", "MUL_MAT", "GLU_SWIGLU", MA]),
    (Fusion.MUL_MAT_NX, ["RMS_NORM", "MUL", "MUL_MAT+MUL_MAT", "GLU_SWIGLU", "MUL_MAT", "ADD"]),
]


@pytest.mark.parametrize("mask, names", MASKS)
def test_the_mask_chooses(mask: int, names: list[str]) -> None:
    g, x = graph()
    gate_up(g, x)
    assert [n.name for n in fuse(g, lambda node: None, mask)[0]] == names


def test_a_plan_that_does_not_fit_keeps_the_parts_and_says_why() -> None:
    g, x = graph()
    gate_up(g, x)
    nodes, apart = fuse(g, lambda node: "needs 9 bytes of VTCM" if node.op == "MUL_MAT_NX" else None)
    assert [n.name for n in nodes] == [NM, "MUL_MAT", "MUL_MAT", "GLU_SWIGLU", MA]
    assert len(apart) == 1 and "needs 9 bytes of VTCM" in apart[0] and "MUL_MAT+MUL_MAT" in apart[0]


def test_every_result_is_made_before_it_is_read() -> None:
    g, x = graph()
    for layer in range(4):
        normed = g.mul(g.rms_norm(x), weight(g, f"n{layer}", K))
        q = g.mul_mat(weight(g, f"q{layer}", K, K), normed)
        k = g.mul_mat(weight(g, f"k{layer}", K, K), normed)
        x = g.add(g.mul_mat(weight(g, f"o{layer}", K, K), g.mul(q, k)), x)
    g.output(x, "y")
    made = {id(t) for t in g.inputs.values()} | {id(t) for t in g.weights.values()}
    for node in fuse(g, lambda node: None)[0]:
        assert all(t is None or id(t.root) in made for t in node.src)
        made |= {id(t) for t in node.dst}
