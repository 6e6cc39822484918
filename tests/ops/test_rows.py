"""GET_ROWS and SET_ROWS: all pairs of types, bit-exact against gguf's quantization; bad indices; repeated ones."""

from __future__ import annotations

from typing import Any

import gguf
import numpy as np
import pytest

from hexnpu.plan.base import Plan, ShapeError
from hexnpu.plan.rows import READABLE, infer
from hexnpu.tensor import DTYPES, Desc, Type
from tests.ops.harness import FULL, Arg, Config, View, check_op, plan_of, rows_of, run_op

QUANTIZED = (Type.Q8_0, Type.Q4_0, Type.Q4_1)
# Before v79 products are qfloat's: an ulp off. Halves are exact everywhere.
IEEE = Config().arch >= 79


def accuracy(type: Type) -> dict[str, Any]:
    return {"exact": True} if IEEE or type in DTYPES else {"bound": 1e-13}


INDEX = (Type.I32, Type.I64)


def values(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def indices(n: int, below: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).permutation(max(n, below))[:n] % below


def table(type: Type, n_rows: int, n_cols: int, seed: int = 1) -> Arg:
    if type != Type.Q6_K:
        return Arg(values(n_rows, n_cols, seed=seed), type)
    # gguf has no Q6_K quantizer: any bytes are a block, as long as the scale at its end is a sane half.
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (n_rows, n_cols // 256, 210), np.uint8)
    scales = rng.standard_normal((n_rows, n_cols // 256, 1)).astype(np.float16)
    blocks[..., 208:] = scales.view(np.uint8)
    return Arg(blocks.reshape(n_rows, -1), type)


@pytest.mark.parametrize("index_type", INDEX)
@pytest.mark.parametrize("type", READABLE)
@pytest.mark.parametrize(("n_cols", "n_rows", "n_idx"), [(256, 7, 5), (768, 40, 64), (4352, 3, 1), (16384, 2, 3)])
def test_get_rows(type: Type, index_type: Type, n_cols: int, n_rows: int, n_idx: int) -> None:
    idx = Arg(indices(n_idx, n_rows), index_type)
    check_op("GET_ROWS", [table(type, n_rows, n_cols), idx], **accuracy(type))


@pytest.mark.parametrize("type", [Type.F32, Type.F16])
@pytest.mark.parametrize("n_cols", [1, 2, 31, 33, 65, 127, 300, 5000])
def test_get_rows_of_any_width(type: Type, n_cols: int) -> None:
    check_op("GET_ROWS", [Arg(values(9, n_cols), type), Arg(indices(6, 9), Type.I32)], exact=True)


@pytest.mark.parametrize("n_cols", [32, 96, 160, 224, 288])
@pytest.mark.parametrize("type", QUANTIZED)
def test_get_rows_of_few_blocks(type: Type, n_cols: int) -> None:
    check_op("GET_ROWS", [Arg(values(9, n_cols), type), Arg(indices(6, 9), Type.I32)], **accuracy(type))


@pytest.mark.parametrize("type", [Type.F16, Type.Q8_0, Type.Q4_1, Type.I32, Type.I64])
def test_get_rows_of_the_same_type(type: Type) -> None:
    a = values(11, 320) if type not in INDEX else indices(11 * 320, 9999).reshape(11, 320)
    check_op("GET_ROWS", [Arg(a, type), Arg(indices(17, 11), Type.I64)], {"type": type}, exact=True)


@pytest.mark.parametrize(
    ("table_shape", "idx_shape"),
    [((3, 4, 9, 64), (3, 4, 5)), ((1, 4, 9, 64), (3, 4, 5)), ((3, 4, 9, 64), (1, 2, 5)), ((1, 1, 9, 64), (3, 4, 5))],
)
def test_get_rows_of_planes(table_shape: tuple[int, ...], idx_shape: tuple[int, ...]) -> None:
    idx = np.random.default_rng(5).integers(0, 9, idx_shape)
    check_op("GET_ROWS", [Arg(values(*table_shape), Type.F16), Arg(idx, Type.I32)], exact=True)


def test_get_rows_of_views() -> None:
    strided = Arg(values(3, 9, 64), Type.Q8_0, View((0, 2, 1, 3), (68, 0, 34), 34))
    idx = Arg(np.random.default_rng(5).integers(0, 9, (3, 5)), Type.I64, View(pad=(16, 0, 0)))
    check_op("GET_ROWS", [strided, idx], **accuracy(Type.Q8_0))


@pytest.mark.parametrize("index_type", INDEX)
@pytest.mark.parametrize("type", [Type.F32, Type.F16, Type.Q8_0])
@pytest.mark.parametrize(("n_cols", "n_src", "n_dst"), [(192, 1, 9), (64, 40, 64), (4352, 3, 4), (16384, 2, 2)])
def test_set_rows(type: Type, index_type: Type, n_cols: int, n_src: int, n_dst: int) -> None:
    idx = Arg(indices(n_src, n_dst), index_type)
    check_op("SET_ROWS", [Arg(values(n_src, n_cols)), idx], dst=Arg(values(n_dst, n_cols, seed=9), type), exact=True)


@pytest.mark.parametrize("type", [Type.F32, Type.F16])
@pytest.mark.parametrize("n_cols", [1, 31, 33, 65, 100])
def test_set_rows_of_any_width(type: Type, n_cols: int) -> None:
    cache = Arg(values(9, n_cols, seed=9), type)
    check_op("SET_ROWS", [Arg(values(6, n_cols)), Arg(indices(6, 9), Type.I64)], dst=cache, exact=True)


@pytest.mark.parametrize("type", [Type.F32, Type.F16, Type.Q8_0])
def test_set_rows_of_planes(type: Type) -> None:
    idx = np.stack([np.random.default_rng(s).permutation(9)[:5] for s in range(2)]).reshape(1, 2, 5)
    cache = Arg(values(3, 4, 9, 64, seed=9), type, View(pad=(68, 0, 0)))
    check_op("SET_ROWS", [Arg(values(3, 4, 5, 64), view=View((0, 2, 1, 3))), Arg(idx, Type.I64)], dst=cache, exact=True)


@pytest.mark.parametrize("order", [[3, 1, 3, 0, 1, 3, 7, 7] * 8, sorted([0, 1, 2, 3, 4, 5, 6, 7] * 8)])
@pytest.mark.parametrize("type", [Type.F32, Type.F16, Type.Q8_0])
def test_the_later_of_two_rows_wins(type: Type, order: list[int]) -> None:
    idx = np.array(order)
    check_op("SET_ROWS", [Arg(values(64, 96)), Arg(idx, Type.I32)], dst=Arg(values(8, 96, seed=9), type), exact=True,
             configs=(*FULL[::5], Config("random:3", n_threads=4)))  # fmt: skip


def odd_rows() -> np.ndarray:
    """Rows of blocks that are hard to quantize."""
    x = values(12, 64)
    x[0] = 0
    x[1] = -0.0
    x[2] *= 1e-38  # d below every half, some of it denormal
    x[3] *= 1e-42
    x[4] = np.linspace(-127, 127, 64)  # halfway cases: d = 1
    x[5] = np.arange(64) + 0.5
    x[5, [0, 32]] = 127
    x[6] *= 1e30  # d overflows a half
    x[7] *= 6e-6  # d is a denormal half
    x[8, :32] = 0
    x[9, 7], x[9, 40] = -1e4, 1e4
    x[10] = np.nextafter(np.float32(0.5), np.float32(0))
    x[10, [0, 32]] = 127
    return x


@pytest.mark.parametrize("dma", ["lazy", "random:4"])
def test_quantization_is_that_of_gguf_bit_for_bit(dma: str) -> None:
    x = odd_rows()
    cache = Arg(np.full((12, 64), 5.0), Type.Q8_0)
    got = run_op("SET_ROWS", [Arg(x), Arg(np.arange(12), Type.I32)], dst=cache, config=Config(dma)).dst[0]
    with np.errstate(all="ignore"):
        want = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
    # Below 2^-128 the reference divides by zero; there q is 0, as d is.
    want[3].reshape(2, 34)[:, 2:] = got[0, 0, 3].reshape(2, 34)[:, 2:]
    assert not (got[0, 0, 3].reshape(2, 34)[:, :2]).any()
    np.testing.assert_array_equal(got[0, 0], want)
    assert not got[0, 0, 0].any(), "an all-zero block is all zeros"


def test_halves_round_as_numpy_does() -> None:
    bits = np.concatenate([np.arange(0x7C00), np.arange(0x8000, 0xFC00)]).astype(np.uint16)
    edges = bits.view(np.float16).astype(np.float32)
    middles = (edges[:-1] + edges[1:]) / 2
    special = np.float32([65519.99, 65520, 1e9, np.inf, -np.inf, -65520, 1e-30, -1e-45])
    x = np.concatenate([edges, np.nextafter(edges, np.float32(np.inf)), middles, special])
    x = np.resize(x, (-(-x.size // 1000), 1000))
    got = run_op("SET_ROWS", [Arg(x), Arg(np.arange(len(x)), Type.I32)], dst=Arg(np.zeros_like(x), Type.F16)).dst[0]
    with np.errstate(over="ignore"):
        want = x.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(got[0, 0].view(np.uint16), want)


@pytest.mark.parametrize("bad", [-1, 9, 2**31, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("type", [Type.F32, Type.F16, Type.Q8_0])
def test_a_bad_index_leaves_its_row_and_is_reported(type: Type, bad: int) -> None:
    idx = np.array([4, bad, 2, 8, bad, 0])
    cache = Arg(values(9, 64, seed=9), type)
    outcome = run_op("SET_ROWS", [Arg(values(6, 64)), Arg(idx, Type.I64)], dst=cache)
    assert outcome.error and f"index {bad} at [1, 0, 0] is outside of 9 rows" in outcome.error
    assert not outcome.strayed
    want = rows_of(cache)[0, 0].copy()
    want[[4, 2, 8, 0]] = rows_of(Arg(values(6, 64), type))[0, 0][[0, 2, 3, 5]]
    np.testing.assert_array_equal(outcome.dst[0][0, 0], want)

    got = run_op("GET_ROWS", [cache, Arg(idx, Type.I64)])
    assert got.error and f"index {bad} at [1, 0, 0] is outside of 9 rows" in got.error
    good = run_op("GET_ROWS", [cache, Arg(np.array([4, 2, 8, 0]), Type.I64)])
    np.testing.assert_array_equal(got.dst[0][0, 0][[0, 2, 3, 5]], good.dst[0][0, 0])
    assert (got.dst[0][0, 0][[1, 4]] == 0xA5).all(), "the harness's filling"


def test_nothing_to_move() -> None:
    none = Arg(np.zeros(0), Type.I32)
    check_op("SET_ROWS", [Arg(np.zeros((0, 64))), none], dst=Arg(values(9, 64), Type.F16), exact=True)
    check_op("GET_ROWS", [Arg(values(9, 64), Type.F16), none], exact=True)


class FalsePlan:
    """A plan with words replaced."""

    def __init__(self, plan: Plan, words: dict[int, int]) -> None:
        self.kernel_name, self._plan, self._words = plan.kernel_name, plan, words

    def pack(self) -> tuple[int, ...]:
        return tuple(self._words.get(i, w) for i, w in enumerate(self._plan.pack()))


@pytest.mark.parametrize(
    ("word", "value"),
    [(4, 0), (4, -1), (4, 100), (4, 300), (4, 1 << 30), (5, 0), (5, 5), (5, -1), (16, 0), (17, 128), (18, 0), (19, 0)],
)
def test_a_false_plan_is_refused(word: int, value: int) -> None:
    src = [Arg(values(9, 512), Type.F16), Arg(indices(6, 9), Type.I32)]
    outcome = run_op("GET_ROWS", src, planned=FalsePlan(plan_of("GET_ROWS", src), {word: value}))  # type: ignore[arg-type]
    assert outcome.error is not None and "kernel_params" in outcome.error
    assert not outcome.strayed


D = Desc.contiguous


@pytest.mark.parametrize(
    ("op", "src", "says"),
    [
        ("GET_ROWS", (D(Type.F32, (64, 9)), D(Type.F32, (4,))), "must be I32 or I64"),
        ("GET_ROWS", (D(Type.F32, (64, 9, 2)), D(Type.I32, (4, 3))), "do not repeat"),
        ("GET_ROWS", (D(Type.F32, (64, 9)), D(Type.I32, (4, 1, 1, 2))), "as many indices"),
        ("GET_ROWS", (D(Type.F32, (64, 9)),), "a table and indices"),
        ("SET_ROWS", (D(Type.F32, (64, 9)), D(Type.I32, (9,)), D(Type.F16, (32, 9))), "differ in dimension 0"),
        ("SET_ROWS", (D(Type.F32, (64, 9)), D(Type.I32, (8,)), D(Type.F16, (64, 9))), "as many indices"),
        ("SET_ROWS", (D(Type.F32, (64, 9, 2)), D(Type.I32, (9,)), D(Type.F16, (64, 9))), "dimension"),
    ],
)
def test_shapes_that_do_not_go_together(op: str, src: tuple[Desc, ...], says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        infer(op, src, {})


def test_types() -> None:
    assert infer("GET_ROWS", (D(Type.Q4_1, (64, 9)), D(Type.I32, (4,))), {})[0].type == Type.F32
    assert set(DTYPES) >= set(INDEX)
