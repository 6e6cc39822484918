"""Shapes, views and errors of the graph as the user writes it; values are checked in test_session.py."""

from __future__ import annotations

from collections.abc import Callable

import gguf
import numpy as np
import pytest

from hexnpu.errors import HexnpuError, UsageError
from hexnpu.graph import Graph, Tensor
from hexnpu.plan.base import ShapeError
from hexnpu.tensor import Type
from hexnpu.weights import WeightError, check_finite, describe_source, read_source


def a_graph() -> tuple[Graph, Tensor]:
    g = Graph()
    return g, g.input("x", (64, 6, 4))


VIEWS = {
    "reshape": (lambda g, x: g.reshape(x, (32, 2, 24)), (32, 2, 24, 1), (4, 128, 256, 6144), 0),
    "permute": (lambda g, x: g.permute(x, (0, 2, 1, 3)), (64, 4, 6, 1), (4, 1536, 256, 6144), 0),
    # ggml_permute: dimension i goes to axes[i], which is not the inverse for a cycle.
    "permute cycle": (lambda g, x: g.permute(x, (1, 2, 0, 3)), (4, 64, 6, 1), (1536, 4, 256, 6144), 0),
    "transpose": (lambda g, x: g.transpose(x), (6, 64, 4, 1), (256, 4, 1536, 6144), 0),
    "slice rows": (lambda g, x: g.slice(x, 1, 2, 5), (64, 3, 4, 1), (4, 256, 1536, 6144), 512),
    "slice of slice": (lambda g, x: g.slice(g.slice(x, 2, 1, 3), 0, 8, 24), (16, 6, 2, 1), (4, 256, 1536, 6144), 1568),
}


@pytest.mark.parametrize("make, ne, nb, offset", VIEWS.values(), ids=list(VIEWS))
def test_views_share_the_root_and_move_only_the_window(
    make: Callable[[Graph, Tensor], Tensor], ne: tuple[int, ...], nb: tuple[int, ...], offset: int
) -> None:
    g, x = a_graph()
    view = make(g, x)
    assert (view.ne, view.nb, view.offset) == (ne, nb, offset)
    assert view.root is x and not g.nodes


def test_a_view_of_a_numpy_array_is_what_numpy_says() -> None:
    g, x = a_graph()
    a = np.arange(64 * 6 * 4, dtype=np.float32).reshape(4, 6, 64)
    view = g.permute(g.slice(x, 1, 1, 4), (2, 0, 1, 3))
    mine = np.ndarray(view.ne[::-1], np.float32, a.data, view.offset, view.nb[::-1])
    assert np.array_equal(mine, a[:, 1:4, :].transpose(2, 0, 1)[None])


BAD = {
    "reshape count": (lambda g, x: g.reshape(x, (64, 5)), ShapeError, "320 elements"),
    "reshape strided": (lambda g, x: g.reshape(g.transpose(x), (64, 24)), ShapeError, "cont first"),
    "permute axes": (lambda g, x: g.permute(x, (0, 0, 1, 2)), ShapeError, "no order of"),
    "permute blocks": (lambda g, x: g.transpose(g.state("s", (64, 2), Type.Q8_0)), ShapeError, "Q8_0"),
    "slice outside": (lambda g, x: g.slice(x, 1, 2, 7), ShapeError, "2:7 of dimension 1"),
    "slice cuts block": (lambda g, x: g.slice(g.state("s", (64, 2), Type.Q8_0), 0, 0, 16), ShapeError, "block of 32"),
    "five dimensions": (lambda g, x: g.input("y", (1, 1, 1, 1, 1)), ShapeError, "four dimensions"),
    "negative": (lambda g, x: g.input("y", (-1,)), ShapeError, "no shape"),
    "too large": (lambda g, x: g.input("y", (1 << 16, 1 << 16)), ShapeError, "input y: f32[65536:65536:1:1] is too"),
    "odd blocks": (lambda g, x: g.state("s", (33,), Type.Q4_0), ShapeError, "33 elements"),
    "quantized input": (lambda g, x: g.input("y", (32,), Type.Q8_0), ShapeError, "input y"),
    "name twice": (lambda g, x: g.input("x", (3,)), UsageError, "named x already"),
    "name of another kind": (lambda g, x: g.state("x", (3,)), UsageError, "named x already"),
    "output twice": (lambda g, x: g.output(g.output(x, "o"), "o"), UsageError, "output o"),
    "state of another shape": (lambda g, x: (g.state("s", (3,)), g.state("s", (4,))), UsageError, "state s"),
    "shapes of an op": (lambda g, x: g.add(x, g.input("y", (5,))), ShapeError, "y f32[5:1:1:1]"),
    "unknown op": (lambda g, x: g.op("FROBNICATE", x), UsageError, "FROBNICATE"),
    "op without family": (lambda g, x: g.op("ARGMAX", x), UsageError, "ARGMAX"),
    "array as tensor": (lambda g, x: g.add(x, np.ones(3)), UsageError, "ndarray"),
    "another graph's": (lambda g, x: g.add(x, Graph().input("z", (64,))), UsageError, "z belongs to another"),
    "rope mode": (lambda g, x: g.rope(x, g.input("p", (4,), Type.I32), mode="spiral"), UsageError, "spiral"),
    "weight dtype": (lambda g, x: g.weight("w", np.ones(3)), UsageError, "float64"),
    "weight source": (lambda g, x: g.weight("w", [1, 2]), UsageError, "list"),
    "weight bytes": (lambda g, x: g.weight("w", (Type.Q8_0, (32,), b"x")), ShapeError, "takes 34"),
    "two sources": (
        lambda g, x: (g.weight("w", np.ones(3, np.float32)), g.weight("w", np.ones(3, np.float32))),
        UsageError,
        "another source",
    ),
}  # fmt: skip


@pytest.mark.parametrize("make, kind, text", BAD.values(), ids=list(BAD))
def test_bad_input_is_one_clear_line(
    make: Callable[[Graph, Tensor], object], kind: type[HexnpuError], text: str
) -> None:
    g, x = a_graph()
    with pytest.raises(kind) as caught:
        make(g, x)
    assert text in str(caught.value) and "\n" not in str(caught.value)


def test_the_same_weight_and_state_are_one_tensor() -> None:
    g = Graph()
    a = np.ones((2, 3), np.float32)
    assert g.weight("w", a) is g.weight("w", a)
    assert g.weight("w", a).ne == (3, 2, 1, 1)
    assert g.state("s", (8, 2), Type.F16) is g.state("s", (8, 2), Type.F16)


def test_cont_is_free_where_it_can_be() -> None:
    g, x = a_graph()
    assert g.cont(x) is x


def test_gguf_reader_tensors_are_sources(tmp_path: object) -> None:
    path = f"{tmp_path}/w.gguf"
    writer = gguf.GGUFWriter(path, "test")
    values = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    writer.add_tensor("f", values)
    quantized = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("q", quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensors = {t.name: t for t in gguf.GGUFReader(path).tensors}
    assert describe_source("q", tensors["q"]) == (Type.Q8_0, (64, 4))
    assert describe_source("f", tensors["f"]) == (Type.F32, (64, 4))
    assert np.array_equal(read_source(tensors["q"]), quantized.reshape(-1))


NAN_SCALES = [(Type.Q4_0, 0), (Type.Q4_1, 2), (Type.Q8_0, 0), (Type.Q4_K, 2), (Type.Q6_K, 208), (Type.IQ4_NL, 0)]


@pytest.mark.parametrize("type, at", NAN_SCALES)
@pytest.mark.parametrize("half", [0x7E00, 0x7C00, 0xFC00, 0xFFFF])
def test_a_scale_that_is_no_number_is_refused_by_name(type: Type, at: int, half: int) -> None:
    from hexnpu.tensor import BLOCKS

    raw = np.zeros(3 * BLOCKS[type][1], np.uint8)
    check_finite("w", type, raw)
    raw[BLOCKS[type][1] + at :][:2] = np.frombuffer(np.uint16(half).tobytes(), np.uint8)
    with pytest.raises(WeightError, match=r"weight blk\.0\.w: 1 scales"):
        check_finite("blk.0.w", type, raw)


def test_nan_elements_are_refused_and_infinities_are_not() -> None:
    check_finite("w", Type.F32, np.array([np.inf, 1], np.float32).view(np.uint8))
    with pytest.raises(WeightError, match="weight w: 1 elements"):
        check_finite("w", Type.F16, np.array([np.nan, 1], np.float16).view(np.uint8))
