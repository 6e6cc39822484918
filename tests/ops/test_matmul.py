"""MUL_MAT, MUL_MAT_NX, MUL_MAT_ADD against float64, and against the exact formula on quantized activations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import gguf
import numpy as np
import pytest

import hexnpu
from hexnpu.batch import BatchBuilder, Placed
from hexnpu.plan import matmul, op_table
from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, Region, ShapeError
from hexnpu.tensor import Desc, Type, row_bytes
from hexnpu.wire import TENSOR_WEIGHT
from tests.ops.harness import (
    Arg,
    Config,
    Outcome,
    View,
    check_op,
    nmse,
    plan_of,
    reference_of,
    rows_of,
    run_op,
    session_for,
    spec_of,
    values_of,
)

QUANTIZED = (Type.Q4_0, Type.Q4_1, Type.Q8_0)
BOUNDS = {Type.Q4_0: 5e-4, Type.Q4_1: 5e-4, Type.Q8_0: 5e-4, Type.F16: 1e-6, Type.F32: 1e-10}
TYPES = tuple(BOUNDS)
COLUMNS = (1, 2, 4, 5, 31, 32, 33, 65)


def numbers(*shape: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, *shape]).standard_normal(shape, dtype=np.float32)


def weight(type: Type, *shape: int, seed: int = 2) -> Arg:
    return Arg(numbers(*shape, seed=seed), type, weight=True)


def floats(outcome: Outcome, i: int = 0) -> np.ndarray[Any, Any]:
    assert outcome.error is None, outcome.error
    assert not outcome.strayed, outcome.strayed
    return values_of(outcome.dst[i], Type.F32)


@pytest.mark.parametrize("m", COLUMNS)
@pytest.mark.parametrize("type", TYPES, ids=lambda t: t.name)
def test_columns(type: Type, m: int) -> None:
    check_op("MUL_MAT", [weight(type, 96, 128), Arg(numbers(m, 128))], bound=BOUNDS[type])


@pytest.mark.parametrize(("k", "n"), [(32, 1), (96, 31), (128, 33), (160, 100), (576, 192), (1536, 64)])
@pytest.mark.parametrize("type", TYPES, ids=lambda t: t.name)
def test_rows_and_k(type: Type, k: int, n: int) -> None:
    for m in (1, 5):
        check_op("MUL_MAT", [weight(type, n, k), Arg(numbers(m, k))], bound=BOUNDS[type])


@pytest.mark.parametrize("k", [1, 31, 33, 65, 100, 127])
@pytest.mark.parametrize("type", [Type.F16, Type.F32], ids=lambda t: t.name)
def test_any_k_of_flat_weights(type: Type, k: int) -> None:
    check_op("MUL_MAT", [Arg(numbers(13, k), type), Arg(numbers(6, k))], bound=BOUNDS[type])


def quantize_activations(x: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """int8 blocks of 32 along the last axis and their scales: amax / 127, nearest."""
    blocks = x.reshape(*x.shape[:-1], -1, 32)
    d = np.abs(blocks).max(axis=-1, keepdims=True) * np.float32(1 / 127)
    q = np.rint(blocks * (np.float32(1) / d))
    return q, d


def test_activations_are_quantized_as_gguf_does() -> None:
    x = numbers(64, 576)
    q, _ = quantize_activations(x)
    rows = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0).reshape(64, -1, 34)
    assert np.mean(q == rows[..., 2:].view(np.int8)) > 0.9999


@pytest.mark.parametrize("m", [1, 7])
@pytest.mark.parametrize("type", QUANTIZED, ids=lambda t: t.name)
def test_the_integers_are_exact(type: Type, m: int) -> None:
    """With activations quantized beforehand only float rounding is left: a wrong sum, zero point or minimum shows."""
    w, x = weight(type, 100, 1536), numbers(m, 1536)
    q, d = quantize_activations(x)
    exact = (q * d.astype(np.float64)).reshape(m, -1) @ values_of(rows_of(w), type)[0, 0].T
    got = floats(run_op("MUL_MAT", [w, Arg(x)]))[0, 0]
    assert nmse(got, exact) < 1e-11


@pytest.mark.parametrize("type", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize(
    ("outer_w", "outer_x"), [((1, 2), (1, 6)), ((1, 1), (2, 3)), ((2, 1), (4, 3))], ids=["gqa", "one", "both"]
)
def test_matrices_of_w_serve_several_planes_of_x(
    type: Type, outer_w: tuple[int, int], outer_x: tuple[int, int]
) -> None:
    w, x = weight(type, *outer_w, 40, 64), Arg(numbers(*outer_x, 3, 64))
    check_op("MUL_MAT", [w, x], bound=BOUNDS[type])


@pytest.mark.parametrize("type", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize(
    "view", [View(pad=(64, 0, 0)), View(order=(0, 2, 1, 3)), View(order=(0, 3, 2, 1), pad=(4, 8, 0)), View(offset=4)],
    ids=["rows apart", "heads inside", "turned", "off a line"],
)  # fmt: skip
def test_views_of_x(type: Type, view: View) -> None:
    check_op("MUL_MAT", [weight(type, 40, 64), Arg(numbers(2, 3, 5, 64), view=view)], bound=BOUNDS[type])


@pytest.mark.parametrize("type", [Type.F16, Type.F32], ids=lambda t: t.name)
@pytest.mark.parametrize("view", [View(pad=(12, 0, 0)), View(order=(0, 2, 1, 3))], ids=["rows apart", "heads inside"])
def test_views_of_flat_weights(type: Type, view: View) -> None:
    check_op("MUL_MAT", [Arg(numbers(1, 2, 35, 80), type, view), Arg(numbers(1, 4, 9, 80))], bound=BOUNDS[type])


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
def test_empty(n: int, m: int) -> None:
    for type in (Type.Q4_1, Type.F32) if n else (Type.F32,):  # gguf cannot quantize nothing
        check_op("MUL_MAT", [weight(type, n, 64), Arg(numbers(m, 64))], bound=0.0)


@pytest.mark.parametrize("type", [Type.Q4_1, Type.Q8_0, Type.F32], ids=lambda t: t.name)
@pytest.mark.parametrize("ns", [(192,), (64, 33), (192, 64, 64), (1, 31, 100, 32)])
def test_several_weights_of_one_activation(type: Type, ns: tuple[int, ...]) -> None:
    for m in (1, 6):
        weights = [weight(type, n, 160, seed=n) for n in ns]
        check_op("MUL_MAT_NX", [Arg(numbers(m, 160)), *weights], bound=BOUNDS[type])


@pytest.mark.parametrize("type", [Type.Q4_0, Type.Q4_1, Type.F16], ids=lambda t: t.name)
@pytest.mark.parametrize("m", [1, 5, 70])
@pytest.mark.parametrize("rows", ["bias", "full", "spread"])
def test_addend(type: Type, m: int, rows: str) -> None:
    addend = numbers(1 if rows == "bias" else m, 75, seed=3)
    view = View(pad=(12, 0, 0)) if rows == "spread" else View()
    check_op("MUL_MAT_ADD", [weight(type, 75, 96), Arg(numbers(m, 96)), Arg(addend, view=view)], bound=BOUNDS[type])


@pytest.mark.parametrize("m", [1, 40])
def test_the_result_may_lie_over_the_activation(m: int) -> None:
    """X is read whole before its place is written, by all threads, whether they share activations or not."""
    w, x = weight(Type.Q4_1, 1024, 1024), Arg(numbers(m, 1024))
    config = Config("random:5", 8, 4)
    apart = run_op("MUL_MAT", [w, x], config=config).dst[0]
    spec = spec_of("MUL_MAT", [w, x])
    assert spec.src[0] is not None and spec.src[1] is not None
    session = session_for(config)
    buffer = session.alloc(spec.src[0].span_bytes + spec.dst[0].span_bytes)
    place = Placed(spec.dst[0], buffer, spec.src[0].span_bytes)
    for _ in range(20):
        buffer.view[: place.offset] = matmul.repack(Desc.contiguous(Type.Q4_1, (1024, 1024)), rows_of(w).reshape(-1))
        buffer.view[place.offset :] = rows_of(x).reshape(-1)
        buffer.flush(0, buffer.bytes)
        builder = BatchBuilder(session.max_map_bytes)
        plan = plan_of("MUL_MAT", [w, x], config=config)
        weights = Placed(spec.src[0], buffer, 0, TENSOR_WEIGHT)
        builder.add(op_table()["MUL_MAT"][0], spec.params, plan.pack(), [weights, place], [place], "MUL_MAT")
        session.submit(builder.finish())
        buffer.fetch(0, buffer.bytes)
        assert np.array_equal(buffer.view[place.offset :], apart.reshape(-1))


def test_addend_of_planes() -> None:
    w, x = weight(Type.Q8_0, 2, 40, 64), Arg(numbers(2, 3, 64))
    check_op("MUL_MAT_ADD", [w, x, Arg(numbers(2, 3, 40, seed=5))], bound=5e-4)
    check_op("MUL_MAT_ADD", [w, x, Arg(numbers(1, 40, seed=5))], bound=5e-4)


@pytest.mark.parametrize("type", [Type.Q4_1, Type.F32], ids=lambda t: t.name)
def test_more_columns_than_vtcm_holds(type: Type) -> None:
    src = [weight(type, 40, 1536), Arg(numbers(1100, 1536))]
    small = Config("random:3", 2, 3)
    assert plan_of("MUL_MAT", src, config=small).args[0] < 1100
    check_op("MUL_MAT", src, bound=BOUNDS[type], configs=(small,))
    check_op("MUL_MAT_ADD", [*src, Arg(numbers(1100, 40, seed=3))], bound=BOUNDS[type], configs=(small,))


@pytest.mark.parametrize("type", [Type.Q4_1, Type.F32], ids=lambda t: t.name)
@pytest.mark.parametrize("view", [View(pad=(128, 64, 32)), View(order=(0, 2, 1, 3))], ids=["apart", "heads inside"])
def test_views_of_the_result_and_the_addend(type: Type, view: View) -> None:
    src, shape = [weight(type, 40, 64), Arg(numbers(2, 3, 5, 64))], (2, 3, 5, 40)
    check_op("MUL_MAT", src, bound=BOUNDS[type], dst=Arg(np.zeros(shape), view=view))
    check_op("MUL_MAT_ADD", [*src, Arg(numbers(*shape, seed=3), view=view)], bound=BOUNDS[type])


def test_long_k_comes_in_segments() -> None:
    src = [weight(Type.Q4_0, 33, 9056), Arg(numbers(3, 9056))]
    check_op("MUL_MAT", src, bound=5e-4)


# Sections: sums that a cut of K does not change


@pytest.mark.parametrize("m", [1, 7])
@pytest.mark.parametrize(("k", "section"), [(96, 32), (576, 64), (1536, 128), (480, 160), (100 * 32, 512), (64, 128)])
@pytest.mark.parametrize("type", QUANTIZED, ids=lambda t: t.name)
def test_a_sum_in_sections(type: Type, k: int, section: int, m: int) -> None:
    w, x, params = weight(type, 70, k), numbers(m, k), {"section": section}
    check_op("MUL_MAT", [w, Arg(x)], params, bound=BOUNDS[type])
    check_op("MUL_MAT_ADD", [w, Arg(x), Arg(numbers(m, 70, seed=3))], params, bound=BOUNDS[type])
    pair = floats(run_op("MUL_MAT", [w, Arg(x)], {**params, "pair": True}))[0]
    assert np.array_equal(np.float32(pair[0] + pair[1]), floats(run_op("MUL_MAT", [w, Arg(x)], params))[0, 0])
    if Config().arch >= 79 and k > section:
        assert np.count_nonzero(pair[1]) > pair[1].size / 8
        assert (np.abs(pair[1]) <= np.abs(pair[0]).max() * 2.0**-22).all()


@pytest.mark.parametrize("cuts", [(640,), (512, 1024), (256, 384, 1408)], ids=len)
@pytest.mark.parametrize("type", QUANTIZED, ids=lambda t: t.name)
def test_parts_of_a_sum_make_the_same_float(type: Type, cuts: tuple[int, ...]) -> None:
    """Cut between sections, the pairs of the parts sum to the float that one NPU gives; plain sums mostly do not."""
    if Config().arch < 79:
        pytest.skip("qfloat has no exact differences")
    x, borders = numbers(5, 1536), (0, *cuts, 1536)
    blocks = rows_of(weight(type, 256, 1536)).reshape(256, -1)

    def run(first: int, end: int, **params: Any) -> np.ndarray[Any, Any]:
        part = blocks[:, row_bytes(type, first) : row_bytes(type, end)]
        return floats(run_op("MUL_MAT", [Arg(part, type, weight=True), Arg(x[:, first:end])], params))[0]

    whole = run(0, 1536, section=128)[0]
    parts = [run(a, b, section=128, pair=True).sum(0) for a, b in pairwise(borders)]
    assert np.mean(np.float32(sum(parts)) == whole) > 0.999
    plain = [run(a, b)[0] for a, b in pairwise(borders)]
    assert np.mean(np.float32(sum(plain)) == run(0, 1536)[0]) < 0.8


@pytest.mark.parametrize("bad", [np.inf, np.nan, 3e38])
def test_infinity_and_nan_in_sections(bad: float) -> None:
    """Also where the sum overflows, which leaves no number in what it lacks."""
    w, x = weight(Type.Q8_0, 40, 256), numbers(3, 256)
    x[1, 40:80] = bad
    got = floats(run_op("MUL_MAT", [w, Arg(x)], {"section": 32}))[0, 0]
    assert np.isfinite(bad) or not np.isfinite(got[1]).any()
    assert np.isinf(got[1]).any() or np.isnan(bad) or Config().arch < 79
    assert np.isfinite(got[[0, 2]]).all()


def test_sections_that_make_no_sense() -> None:
    w, flat = Desc.contiguous(Type.Q4_1, (64, 32)), Desc.contiguous(Type.F32, (64, 32))
    for params, says in (
        ({"section": 33}, "whole tiles"), ({"section": -32}, "whole tiles"), ({"pair": True}, "with sections"),
        ({"sections": 32}, "takes section"),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match=says):
            matmul.infer("MUL_MAT", [w, x(64, 3)], params)
    with pytest.raises(ShapeError, match="of one matrix"):
        matmul.infer("MUL_MAT", [w, Desc.contiguous(Type.F32, (64, 3, 2))], {"section": 32, "pair": True})
    pair, result = matmul.pack("MUL_MAT", {"section": 32, "pair": True}), Desc.contiguous(Type.F32, (32, 3, 2))
    with pytest.raises(Refusal, match="a pair is what MUL_MAT gives of one quantized weight"):
        matmul.plan(OpSpec("MUL_MAT", pair, (flat, x(64, 3)), (result,)), Device())


def test_pairs_are_not_fused() -> None:
    """Neither with a product of the same activation nor with what is added; sections are, with the same sections."""
    raw = rows_of(weight(Type.Q4_1, 40, 256)).reshape(-1)
    source = (Type.Q4_1, (256, 40), raw)

    def run(fusion: int) -> tuple[dict[str, np.ndarray[Any, Any]], int]:
        g = hexnpu.Graph()
        x, w = g.input("x", (256, 3)), g.weight("w", source)
        pairs = [g.mul_mat(w, x, section=64, pair=True) for _ in range(2)]
        g.output(g.add(pairs[0], g.input("add", (40, 3, 2))), "sum")
        g.output(pairs[1], "pair")
        for i, section in enumerate((0, 32, 32, 64)):
            g.output(g.mul_mat(w, x, section=section), f"y{i}")
        with hexnpu.open("emu", fusion=fusion, strict=True) as session:
            result = session.run(g, {"x": numbers(3, 256), "add": numbers(2, 3, 40)})
            return {k: np.array(v) for k, v in result.items()}, session.stats.npu_ops

    (apart, n_apart), (fused, n_fused) = run(0), run(1)
    assert n_apart == n_fused + 1 == 7
    for name, values in apart.items():
        assert np.array_equal(values, fused[name]), name


def test_the_device_refuses_sections_that_make_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    src, params = [weight(Type.Q4_1, 70, 96), Arg(numbers(9, 96))], {"section": 32, "pair": True}
    good = plan_of("MUL_MAT", src, params)
    small = [replace(r, bytes=r.bytes - 128 * (i == 3)) for i, r in enumerate(good.regions)]
    outcome = run_op("MUL_MAT", src, params, planned=replace(good, regions=small))
    assert outcome.error is not None and "VTCM region 3" in outcome.error and not outcome.strayed
    for words in ((33, 0), (-1, 1), (0, 1), (32, 2)):
        with monkeypatch.context() as patch:
            patch.setattr(matmul, "pack", lambda op, params, words=words: (*words, *(0,) * 14))
            outcome = run_op("MUL_MAT", src, params, planned=good)
        assert outcome.error is not None and "params: sections of" in outcome.error and not outcome.strayed
    flat = [Arg(numbers(70, 96)), Arg(numbers(9, 96))]
    outcome = run_op("MUL_MAT", flat, params, planned=plan_of("MUL_MAT", flat))
    assert outcome.error is not None and "tiled weights" in outcome.error


@pytest.mark.slow
@pytest.mark.parametrize("type", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("m", COLUMNS)
def test_shapes_of_a_model(type: Type, m: int) -> None:
    for k, n in ((576, 576), (576, 1536), (1536, 576)):
        check_op("MUL_MAT", [weight(type, n, k), Arg(numbers(m, k))], bound=BOUNDS[type])


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("type", TYPES, ids=lambda t: t.name)
def test_infinity_and_nan_reach_every_result_of_their_column_and_no_other(type: Type, bad: float) -> None:
    w, x = weight(type, 40, 96), numbers(6, 96)
    x[4, 40] = bad
    got = floats(run_op("MUL_MAT", [w, Arg(x)]))[0, 0]
    assert not np.isfinite(got[4]).any()
    others = [0, 1, 2, 3, 5]
    assert nmse(got[others], reference_of("MUL_MAT", [w, Arg(x)])[0][0, 0, others]) < BOUNDS[type]


@pytest.mark.parametrize("type", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("magnitude", [0.0, 1e-42, 1e-33, 1e-20, 1e30, 1e36])
def test_magnitudes(type: Type, magnitude: float) -> None:
    """Activations below 2^-100 count as zero in quantized products; everything else keeps its relative accuracy."""
    w = Arg(numbers(40, 96) * np.float32(1e-3), type, weight=True)
    x = (np.clip(numbers(3, 96), -1, 1) * np.float32(magnitude)).astype(np.float32)
    got, want = floats(run_op("MUL_MAT", [w, Arg(x)])), reference_of("MUL_MAT", [w, Arg(x)])[0]
    if magnitude < 2.0**-100:
        assert np.abs(got - want).max() <= 96 * 2.0**-100
    else:
        assert nmse(got / magnitude, want / magnitude) < BOUNDS[type]


def test_what_does_not_fit_is_refused_with_numbers() -> None:
    with pytest.raises(Refusal, match=r"tile_q8_0\[65536:32:1:1\] needs \d+ bytes of VTCM .* the session has 2097152"):
        matmul.plan(spec("MUL_MAT", Desc.contiguous(Type.TILE_Q8_0, (65536, 32)), x(65536, 1)), Device(79, 4, 2 << 20))
    with pytest.raises(Refusal, match="Q4_0 weights that are not repacked"):
        matmul.plan(spec("MUL_MAT", Desc.contiguous(Type.Q4_0, (64, 32)), x(64, 1)), Device())
    with pytest.raises(Refusal, match="the activation is F16"):
        matmul.plan(spec("MUL_MAT", Desc.contiguous(Type.F32, (64, 32)), replace(x(64, 1), type=Type.F16)), Device())


def spec(op: str, *src: Desc) -> OpSpec:
    return OpSpec(op, (0,) * 16, src, matmul.infer(op, src, {}))


def x(k: int, m: int) -> Desc:
    return Desc.contiguous(Type.F32, (k, m))


def test_shapes_that_do_not_match() -> None:
    w = Desc.contiguous(Type.Q4_1, (64, 32))
    with pytest.raises(ShapeError, match=r"has K = 64, the activation f32.96:3:1:1. has 96"):
        matmul.infer("MUL_MAT", [w, x(96, 3)], {})
    with pytest.raises(ShapeError, match="dimension 2 of the activation"):
        matmul.infer("MUL_MAT", [Desc.contiguous(Type.F32, (64, 8, 2)), Desc.contiguous(Type.F32, (64, 8, 3))], {})
    with pytest.raises(ShapeError, match="neither the result's shape"):
        matmul.infer("MUL_MAT_ADD", [w, x(64, 3), x(32, 2)], {})
    with pytest.raises(ShapeError, match="takes 2 to 5 tensors"):
        matmul.infer("MUL_MAT_NX", [x(64, 3)], {})


def test_every_model_shape_has_a_plan_in_every_vtcm() -> None:
    for type, (k, n) in ((t, s) for t in matmul.TILE_TYPES for s in ((576, 49152), (14336, 4096), (4096, 128256))):
        for m, mib, threads in ((1, 2, 4), (512, 2, 3), (512, 8, 4)):
            device = Device(79, threads, mib << 20)
            plan = matmul.plan(spec("MUL_MAT", Desc.contiguous(type, (k, n)), x(k, m)), device)
            assert plan.vtcm_bytes <= device.vtcm_bytes


@pytest.mark.parametrize("type", [Type.Q4_1, Type.F32], ids=lambda t: t.name)
def test_the_device_refuses_a_plan_that_would_overrun(type: Type) -> None:
    src = [weight(type, 70, 96), Arg(numbers(9, 96)), Arg(numbers(9, 70))]
    good = plan_of("MUL_MAT_ADD", src)

    def refused(**change: Any) -> None:
        args = list(good.args)
        for name, at in (("chunk", 0), ("block_cols", 1), ("segment", 2), ("depth", 3)):
            args[at] = change.pop(name, args[at])
        regions = [Region(change.pop(f"region{i}", r.bytes), r.per_thread) for i, r in enumerate(good.regions)]
        plan = replace(good, args=args, regions=regions, **change)
        outcome = run_op("MUL_MAT_ADD", src, planned=plan)
        assert outcome.error is not None and "kernel_params" in outcome.error, (change, outcome.error)
        assert not outcome.strayed

    for value in (0, 3, 7):
        refused(kernel=value)
    for value in (0, good.block + 1, 1 << 19, 0x7FFFFFFF):
        refused(block=value)
    for value in (0, -1, 10, 1 << 19, 0x7FFFFFFF):
        refused(chunk=value)
        refused(block_cols=value)
    for value in (0, -128, 96, 1 << 19, 0x7FFFFF80):
        refused(segment=value)
    for value in (0, -1, good.args[3] + 1, 9, 1 << 30):
        refused(depth=value)
    for i, region in enumerate(good.regions):
        refused(**{f"region{i}": region.bytes - 128})


def test_threads_follow_the_rows() -> None:

    few: Plan = matmul.plan(spec("MUL_MAT", Desc.contiguous(Type.TILE_Q4_0, (64, 33)), x(64, 9)), Device(79, 4))
    assert few.n_threads == 2
    assert (
        matmul.plan(spec("MUL_MAT", Desc.contiguous(Type.TILE_Q4_0, (64, 0)), x(64, 9)), Device(79, 4)).n_threads == 1
    )
