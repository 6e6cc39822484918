"""SOFTMAX against float64: scale, masks, ALiBi, sinks, rows that are masked throughout."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hexnpu.plan import softmax
from hexnpu.plan.base import Device, OpSpec, Refusal, ShapeError
from hexnpu.tensor import Desc, Type
from tests.ops.ggml_cpu import Ggml
from tests.ops.harness import Arg, View, check_op, nmse, plan_of, reference_of
from tests.ops.rows_cases import COLUMNS, EMPTY, VIEWS, ieee_only, normal

BOUND = 1e-10


def causal(ne: tuple[int, ...]) -> npt.NDArray[Any]:
    """A mask with 0, -inf and some numbers between; the last row of each plane is -inf throughout."""
    mask = np.where(np.random.default_rng(ne).random(ne[::-1]) < 0.4, -np.inf, np.round(normal(ne), 2))
    mask[..., -1, :] = -np.inf
    return mask


@pytest.mark.parametrize("n", COLUMNS)
def test_columns(n: int) -> None:
    check_op("SOFTMAX", [Arg(normal((n, 3), scale=4))], {"scale": 0.7}, bound=BOUND)
    for type in (Type.F16, Type.F32):
        check_op("SOFTMAX", [Arg(normal((n, 5))), Arg(causal((n, 5)), type)], {"scale": 2.0}, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("ne", [(100, 1), (64, 7, 9), (33, 5, 3, 2), (1024, 128), (20000, 2), (5, 400)])
def test_rows(ne: tuple[int, ...]) -> None:
    check_op("SOFTMAX", [Arg(normal(ne, scale=3))], bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("max_bias", [0.0, 8.0])
@pytest.mark.parametrize("type", [Type.F16, Type.F32])
@pytest.mark.parametrize("rows", [(4, 1, 1), (6, 1, 1), (4, 6, 1), (4, 3, 1), (4, 1, 2), (8, 6, 2)])
def test_masks(rows: tuple[int, ...], type: Type, max_bias: float, sinks: bool) -> None:
    src = [Arg(normal((70, 4, 6, 2), scale=2)), Arg(causal((70, *rows)), type), Arg(normal((6,), 3)) if sinks else None]
    check_op("SOFTMAX", src, {"scale": 0.125, "max_bias": max_bias}, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize(
    "ne", [(70, 1, 6, 2), (70, 1, 6, 1), (70, 3, 1, 2), (70, 1, 1, 1), (1, 2, 3, 1), (33, 1, 40, 1)]
)
def test_sinks(ne: tuple[int, ...]) -> None:
    x, sinks = Arg(normal(ne, scale=3)), Arg(normal(ne[2:3], 3, scale=4))
    check_op("SOFTMAX", [x, None, sinks], bound=BOUND)
    check_op("SOFTMAX", [x, Arg(causal((ne[0], ne[1] + 3, 1, 1)), Type.F16), sinks], bound=BOUND)


@pytest.mark.parametrize("heads", [1, 2, 7, 8, 12, 33])
def test_alibi(heads: int) -> None:
    mask = -np.abs(np.subtract.outer(np.arange(5), np.arange(40))).astype(np.float64)
    src = [Arg(normal((40, 5, heads, 1))), Arg(mask, Type.F16)]
    check_op("SOFTMAX", src, {"max_bias": 8.0}, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("view", VIEWS)
def test_views(view: View) -> None:
    ne = (100, 4, 3, 5)
    mask = Arg(causal((100, 4, 3, 1)), Type.F16, View(pad=(2, 0, 6)))
    check_op("SOFTMAX", [Arg(normal(ne), view=view), mask], bound=BOUND)
    check_op("SOFTMAX", [Arg(normal(ne))], dst=Arg(np.zeros(ne[::-1]), view=view), bound=BOUND)


@pytest.mark.parametrize("ne", EMPTY)
def test_empty(ne: tuple[int, ...]) -> None:
    check_op("SOFTMAX", [Arg(normal(ne))], bound=BOUND)


@ieee_only
def test_special_values_stay_in_their_row() -> None:
    x = normal((70, 8))
    x[0], x[1, 5], x[2, 69], x[3, :60] = -np.inf, np.nan, np.inf, -np.inf
    x[4], x[5], x[6, 3], x[7] = 3e38, -3e38, 3e38, 1e-42
    check_op("SOFTMAX", [Arg(x)], bound=BOUND)
    check_op("SOFTMAX", [Arg(x[:, None, None, :].copy()), None, Arg(np.array([-np.inf]))], bound=BOUND)


def test_wide_scores() -> None:
    check_op("SOFTMAX", [Arg(normal((300, 4), scale=60))], bound=BOUND)


def test_decode_plans_are_small() -> None:
    plan = plan_of("SOFTMAX", [Arg(np.zeros((1, 512)))])
    assert (plan.n_threads, plan.block) == (1, 1)
    assert plan.vtcm_bytes <= 2 * (512 * 4 + 256)


def test_refusals() -> None:
    long = Desc.contiguous(Type.F32, (1 << 21,))
    with pytest.raises(Refusal, match="VTCM"):
        softmax.plan(OpSpec("SOFTMAX", (0,) * 16, (long,), (long,)), Device(vtcm_bytes=8 << 20))


X = Desc.contiguous(Type.F32, (64, 4, 6))


@pytest.mark.parametrize(
    ("mask", "sinks", "params", "text"),
    [
        ((63, 4), None, {}, "columns and rows"), ((64, 3), None, {}, "columns and rows"),
        ((64, 4, 4), None, {}, "does not repeat"), (None, (5,), {}, "sinks"),
        (None, None, {"max_bias": 8.0}, "needs a mask"),
    ],
)  # fmt: skip
def test_shapes(mask: Any, sinks: Any, params: dict[str, Any], text: str) -> None:
    descs = [X, *(None if ne is None else Desc.contiguous(Type.F32, ne) for ne in (mask, sinks))]
    with pytest.raises(ShapeError, match=text):
        softmax.infer("SOFTMAX", descs, params)


@pytest.mark.parametrize("type", [Type.F16, Type.F32])
@pytest.mark.parametrize("max_bias", [0.0, 8.0])
@pytest.mark.parametrize("with_sinks", [False, True])
def test_the_reference_is_ggmls(with_sinks: bool, max_bias: float, type: Type) -> None:
    x, mask, sinks = normal((70, 4, 6, 2), scale=2), causal((70, 8, 3, 1)), normal((6,), 3)
    params = {"scale": 0.125, "max_bias": max_bias}
    with Ggml() as g:
        result = g.op("ggml_soft_max_ext", g.tensor(x), g.tensor(mask, type), 0.125, max_bias)
        if with_sinks:
            g.call("ggml_soft_max_add_sinks", result, g.tensor(sinks))
        theirs = g.compute(result, x.shape)
    src = [Arg(x), Arg(mask, type), Arg(sinks) if with_sinks else None]
    assert nmse(theirs, reference_of("SOFTMAX", src, params)[0]) < 1e-12
