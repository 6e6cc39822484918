"""ROPE against float64 on the same float32 angles."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, ShapeError
from hexnpu.plan.rope import angles, infer, pack, plan, ramp
from hexnpu.tensor import Desc, Type
from tests.ops.ggml_cpu import Ggml
from tests.ops.harness import Arg, Config, View, check_op, nmse, plan_of, reference_of, run_op
from tests.ops.rows_cases import FalsePlan
from tests.ops.test_rows_pipe import changed, false_words

BOUND = 1e-10
DENSE = View()


def rope(
    ne: tuple[int, int, int, int], params: dict[str, Any], *, start: int = 0, factors: bool = False,
    view: View = DENSE,
) -> None:  # fmt: skip
    rng = np.random.default_rng(sum(ne) + start)
    x = rng.standard_normal(ne[::-1])
    positions = start + np.arange(ne[2])
    src = [Arg(x, view=view), Arg(positions, Type.I32)]
    if factors:
        src.append(Arg(rng.uniform(0.5, 8, params["n_dims"] // 2)))
    check_op("ROPE", src, params, bound=BOUND)


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize("head", [64, 72, 80, 96, 128, 256])
@pytest.mark.parametrize("tokens", [1, 5])
def test_head_sizes(head: int, mode: int, tokens: int) -> None:
    rope((head, 3, tokens, 1), {"n_dims": head, "mode": mode}, start=100)


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize(("head", "n_dims"), [(64, 32), (64, 2), (32, 32), (33, 30), (80, 32), (100, 62), (96, 64),
                                             (128, 66), (7, 6), (256, 130), (2, 2)])  # fmt: skip
def test_partial(head: int, n_dims: int, mode: int) -> None:
    rope((head, 5, 3, 2), {"n_dims": n_dims, "mode": mode}, start=7)


@pytest.mark.parametrize("ne", [(64, 1, 1, 1), (64, 9, 1, 1), (64, 9, 33, 1), (64, 3, 2, 4), (64, 64, 40, 1),
                                (512, 2, 65, 1), (64, 0, 3, 1), (64, 3, 0, 1)])  # fmt: skip
def test_shapes(ne: tuple[int, int, int, int]) -> None:
    rope(ne, {"n_dims": ne[0], "mode": 2})
    rope(ne, {"n_dims": ne[0], "mode": 0})


@pytest.mark.parametrize("start", [0, 8192, 131072, 1 << 20, (1 << 24) - 8, -3, (1 << 31) - 8])
@pytest.mark.parametrize("base", [10000.0, 500000.0, 1000000.0])
def test_positions(start: int, base: float) -> None:
    rope((64, 2, 4, 1), {"n_dims": 64, "mode": 2, "freq_base": base}, start=start)


@pytest.mark.parametrize(
    "params",
    [
        {"freq_scale": 0.25},
        {"freq_scale": 0.25, "ext_factor": 1.0, "n_ctx_orig": 4096},
        {"freq_scale": 0.0625, "ext_factor": 0.7, "attn_factor": 1.3, "n_ctx_orig": 2048, "beta_fast": 16.0,
         "beta_slow": 2.0},
        {"attn_factor": 0.5},
    ],
)  # fmt: skip
@pytest.mark.parametrize("factors", [False, True])
def test_scaling(params: dict[str, Any], factors: bool) -> None:
    rope((128, 4, 3, 1), {"n_dims": 128, "mode": 0, "freq_base": 500000.0, **params}, start=8189, factors=factors)


@pytest.mark.parametrize("view", [View(pad=(16, 0, 0)), View(order=(0, 2, 1, 3)), View(pad=(4, 64, 12), offset=4)])
def test_views(view: View) -> None:
    rope((80, 4, 6, 2), {"n_dims": 80, "mode": 2}, view=view)
    rope((80, 4, 6, 2), {"n_dims": 40, "mode": 0}, view=view)


@pytest.mark.skipif(Config().arch < 79, reason="qfloat has neither infinity nor NaN")
def test_special_values_stay_in_their_pair() -> None:
    x = np.random.default_rng(1).standard_normal((1, 2, 1, 80))
    x[0, 0, 0, 3], x[0, 1, 0, 41], x[0, 1, 0, 79], x[0, 0, 0, 70] = np.inf, np.nan, -np.inf, 1e-42
    for mode in (0, 2):
        check_op("ROPE", [Arg(x), Arg(np.array([0, 3]), Type.I32)], {"n_dims": 64, "mode": mode}, bound=BOUND)


def test_angles_are_ggmls() -> None:
    """The float32 angles lie within float32 accuracy of the formula, YaRN's ramp where the paper puts it."""
    x, pos = Desc.contiguous(Type.F32, (128, 1, 2)), Desc.contiguous(Type.I32, (2,))
    spec = OpSpec("ROPE", pack("ROPE", {"n_dims": 128, "freq_base": 10000.0}), (x, pos), (x,))
    want = np.array([[1.0], [8192.0]]) * 10000.0 ** (-np.arange(64) / 64)
    np.testing.assert_allclose(angles(spec, np.array([1, 8192]), None), want, rtol=2e-5)
    yarn = {"n_dims": 128, "freq_base": 10000.0, "freq_scale": 0.0625, "ext_factor": 1.0, "n_ctx_orig": 4096}
    spec = OpSpec("ROPE", pack("ROPE", yarn), (x, pos), (x,))
    assert ramp(spec) == (20.0, 46.0)
    got = angles(spec, np.array([1, 8192]), None)
    np.testing.assert_allclose(got[:, :20], want[:, :20], rtol=2e-5)
    np.testing.assert_allclose(got[:, 47:], want[:, 47:] / 16, rtol=2e-5)


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize("n_dims", [64, 40])
@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize(
    "scaling",
    [
        {},
        {"freq_base": 500000.0, "freq_scale": 0.125},
        {"freq_scale": 0.0625, "ext_factor": 0.7, "attn_factor": 1.3, "n_ctx_orig": 4096, "beta_fast": 16.0},
    ],
)
def test_reference_is_ggmls(mode: int, n_dims: int, factors: bool, scaling: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    x, positions = rng.standard_normal((2, 5, 3, 64)), np.array([0, 1, 77, 4096, 100000])
    factor = rng.uniform(0.5, 8, n_dims // 2) if factors else None
    params = {"n_dims": n_dims, "mode": mode, **scaling}
    in_order = {
        "n_dims": 0, "mode": 0, "n_ctx_orig": 0, "freq_base": 10000.0, "freq_scale": 1.0, "ext_factor": 0.0,
        "attn_factor": 1.0, "beta_fast": 32.0, "beta_slow": 1.0, **params,
    }  # fmt: skip
    with Ggml() as g:
        tensors = g.tensor(x), g.tensor(positions, Type.I32), None if factor is None else g.tensor(factor)
        theirs = g.compute(g.op("ggml_rope_ext", *tensors, *in_order.values()), x.shape)
    src = [Arg(x), Arg(positions, Type.I32), *([] if factor is None else [Arg(factor)])]
    # An angle of YaRN may differ by an ulp, which is 1e-2 at 100000 turns' end.
    assert nmse(theirs, reference_of("ROPE", src, params)[0]) < (1e-6 if "ext_factor" in scaling else 1e-11)


def test_what_does_not_fit_is_said() -> None:
    x, pos = Desc.contiguous(Type.F32, (64, 4, 8)), Desc.contiguous(Type.I32, (8,))
    with pytest.raises(ShapeError, match="n_dims is 65"):
        infer("ROPE", (x, pos), {"n_dims": 65})
    with pytest.raises(ShapeError, match=r"must be i32\[8\]"):
        infer("ROPE", (x, Desc.contiguous(Type.I32, (7,))), {"n_dims": 64})
    with pytest.raises(ShapeError, match="frequency factors"):
        infer("ROPE", (x, pos, Desc.contiguous(Type.F32, (31,))), {"n_dims": 64})
    with pytest.raises(ShapeError, match="no parameter freq"):
        pack("ROPE", {"n_dims": 64, "freq": 1})
    with pytest.raises(Refusal, match="rope mode 8"):
        plan(OpSpec("ROPE", pack("ROPE", {"n_dims": 64, "mode": 8}), (x, pos), (x,)), Device())
    half = Desc.contiguous(Type.F16, (64, 4, 8))
    with pytest.raises(Refusal, match="x is F16"):
        plan(OpSpec("ROPE", pack("ROPE", {"n_dims": 64}), (half, pos), (half,)), Device())


@pytest.mark.parametrize(("n_dims", "n_positions", "field"), [(66, 8, "n_dims"), (-2, 8, "n_dims"), (3, 8, "n_dims"),
                                                              (64, 7, "src1")])  # fmt: skip
def test_the_device_checks_too(n_dims: int, n_positions: int, field: str) -> None:
    x = np.zeros((8, 4, 64))
    desc, positions = Desc.contiguous(Type.F32, (64, 4, 8)), Desc.contiguous(Type.I32, (8,))
    spec = OpSpec("ROPE", pack("ROPE", {"n_dims": 64}), (desc, positions), (desc,))
    src = [Arg(x), Arg(np.arange(n_positions), Type.I32)]
    config = Config(n_threads=1)
    outcome = run_op("ROPE", src, {"n_dims": n_dims}, planned=plan(spec, config.device), config=config, dst=Arg(x))
    assert outcome.error is not None and field in outcome.error


def test_lies_are_refused_or_harmless() -> None:
    """Whatever plan, parameters and shapes say, the device answers, writes nothing outside dst, and goes on."""
    rng = random.Random(1)
    honest, params = [(64, 4, 8), (8,), (32,)], {"n_dims": 64}
    dst = np.zeros((1, 8, 4, 64))
    n_refused = 0
    for _ in range(100):
        ne = [changed(s, rng) if rng.random() < 0.3 else s for s in honest]
        src = [Arg(np.ones(ne[0][::-1])), Arg(np.full(ne[1], rng.randrange(1 << 31)), Type.I32), Arg(np.ones(ne[2]))]
        false = {"n_dims": rng.choice([64, 64, 0, 63, 66, -4, 1 << 30]), "mode": rng.choice([0, 2, 2, 8, -1])}
        outcome = run_op("ROPE", src, false, dst=Arg(dst), planned=FalsePlan(_plan(params), false_words(rng)))
        assert not outcome.strayed, outcome.strayed
        n_refused += outcome.error is not None
    assert 20 < n_refused < 100
    assert run_op("ROPE", [Arg(np.ones((8, 4, 64))), Arg(np.arange(8), Type.I32)], params).error is None


def _plan(params: dict[str, Any]) -> Plan:
    return plan_of("ROPE", [Arg(np.ones((8, 4, 64))), Arg(np.arange(8), Type.I32)], params)
