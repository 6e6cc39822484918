"""RMS_NORM and RMS_NORM_MUL against float64."""

from __future__ import annotations

import numpy as np
import pytest

from hexnpu.plan import norm
from hexnpu.plan.base import Device, OpSpec, Refusal, ShapeError
from hexnpu.tensor import Desc, Type
from tests.ops.ggml_cpu import Ggml
from tests.ops.harness import Arg, View, check_op, nmse, plan_of, reference_of
from tests.ops.rows_cases import COLUMNS, VIEWS, ieee_only, normal

BOUND = 1e-10
EPS = {"eps": 1e-5}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("n", COLUMNS)
def test_columns(n: int, scale: float) -> None:
    x = Arg(normal((n, 3), scale=scale))
    check_op("RMS_NORM", [x], EPS, bound=BOUND)
    check_op("RMS_NORM_MUL", [x, Arg(normal((n,), 2))], EPS, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("ne", [(576, 1), (576, 2), (1536, 128), (64, 9, 33), (64, 3, 2, 2), (20000, 3), (33, 1000)])
def test_rows(ne: tuple[int, ...]) -> None:
    check_op("RMS_NORM", [Arg(normal(ne))], EPS, bound=BOUND)
    check_op("RMS_NORM_MUL", [Arg(normal(ne)), Arg(normal(ne[:1], 2))], EPS, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("rows", [(1, 1, 1), (6, 1, 1), (1, 4, 1), (1, 1, 2), (6, 4, 2), (6, 1, 2), (3, 2, 1)])
@pytest.mark.parametrize("view", [View(), View(pad=(4, 12, 0)), View(order=(0, 2, 1, 3))])
def test_weights(rows: tuple[int, ...], view: View) -> None:
    src = [Arg(normal((64, 6, 4, 2))), Arg(normal((64, *rows), 2), view=view)]
    check_op("RMS_NORM_MUL", src, EPS, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("view", VIEWS)
def test_views(view: View) -> None:
    ne = (100, 4, 3, 5)
    src = [Arg(normal(ne), view=view), Arg(normal((100,), 2))]
    check_op("RMS_NORM_MUL", src, EPS, bound=BOUND)
    check_op("RMS_NORM", [Arg(normal(ne))], EPS, dst=Arg(np.zeros(ne[::-1]), view=view), bound=BOUND)


@pytest.mark.parametrize("ne", [(3, 0), (3, 2, 0, 4), (3, 2, 4, 0), (0, 3)])
def test_empty(ne: tuple[int, ...]) -> None:
    check_op("RMS_NORM", [Arg(normal(ne))], EPS, bound=BOUND)


@ieee_only
def test_special_values_stay_in_their_row() -> None:
    x = normal((70, 6))
    x[1, 3], x[2, 69], x[3, 0], x[4] = np.nan, np.inf, -np.inf, 0.0
    x[5] = 1e-42
    check_op("RMS_NORM", [Arg(x)], EPS, bound=BOUND)
    check_op("RMS_NORM_MUL", [Arg(x), Arg(normal((70,), 2))], EPS, bound=BOUND)


@ieee_only
def test_zero_eps() -> None:
    x = normal((70, 2))
    x[1] = 0
    check_op("RMS_NORM", [Arg(x)], {"eps": 0.0}, bound=BOUND)


def test_decode_plans_are_small() -> None:
    x = Arg(np.zeros((1, 576)))
    plan = plan_of("RMS_NORM_MUL", [x, x], EPS)
    assert (plan.n_threads, plan.block) == (1, 1)
    assert plan.vtcm_bytes <= 3 * (576 * 4 + 256)


def test_refusals() -> None:
    long = Desc.contiguous(Type.F32, (1 << 20,))
    with pytest.raises(Refusal, match="VTCM"):
        norm.plan(OpSpec("RMS_NORM", (0,) * 16, (long,), (long,)), Device(vtcm_bytes=8 << 20))
    x, one = Desc.contiguous(Type.F32, (64, 3)), Desc.contiguous(Type.F32, (1,))
    with pytest.raises(Refusal, match="a weight of 1 columns for rows of 64"):
        norm.plan(OpSpec("RMS_NORM_MUL", (0,) * 16, (x, one), (x,)), Device())


def test_shapes_and_parameters() -> None:
    x = Desc.contiguous(Type.F32, (64, 3))
    with pytest.raises(ShapeError, match="does not repeat"):
        norm.infer("RMS_NORM_MUL", (x, Desc.contiguous(Type.F32, (64, 2))), EPS)
    with pytest.raises(ShapeError, match="takes 2 tensors, not 1"):
        norm.infer("RMS_NORM_MUL", (x,), EPS)
    with pytest.raises(ShapeError, match="takes eps, not nothing"):
        norm.pack("RMS_NORM", {})


def test_the_reference_is_ggmls() -> None:
    x, w = normal((100, 6, 2)), normal((100, 3, 1), 2)
    with Ggml() as g:
        norm_of = g.op("ggml_rms_norm", g.tensor(x), 1e-5)
        theirs = g.compute(g.op("ggml_mul", norm_of, g.tensor(w)), (1, *x.shape))
    assert nmse(theirs, reference_of("RMS_NORM_MUL", [Arg(x), Arg(w)], EPS)[0]) < 1e-12
