"""UNARY_SILU, UNARY_GELU, UNARY_SIGMOID, SCALE against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hexnpu.plan import unary
from hexnpu.plan.base import Device, OpSpec, Refusal, ShapeError
from hexnpu.tensor import Desc, Type
from tests.ops.ggml_cpu import Ggml
from tests.ops.harness import Arg, View, check_op, nmse, reference_of
from tests.ops.rows_cases import COLUMNS, EMPTY, VIEWS, ieee_only, normal

BOUND = 1e-10
OPS: list[tuple[str, dict[str, Any]]] = [
    ("UNARY_SILU", {}), ("UNARY_GELU", {}), ("UNARY_SIGMOID", {}),
    ("SCALE", {"s": -1.7}), ("SCALE", {"s": 0.5, "b": 3.0}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "params"), OPS)
@pytest.mark.parametrize("n", COLUMNS)
def test_columns(n: int, op: str, params: dict[str, Any]) -> None:
    check_op(op, [Arg(normal((n, 3), scale=3))], params, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("ne", [(576, 1), (64, 3, 2, 2), (1536, 128), (20000,), (9001, 3), (4, 1000)])
@pytest.mark.parametrize(("op", "params"), OPS[:1] + OPS[-1:])
def test_rows(ne: tuple[int, ...], op: str, params: dict[str, Any]) -> None:
    check_op(op, [Arg(normal(ne))], params, bound=BOUND)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("view", VIEWS)
def test_views(view: View) -> None:
    ne = (100, 4, 3, 5)
    check_op("UNARY_GELU", [Arg(normal(ne), view=view)], bound=BOUND)
    check_op("SCALE", [Arg(normal(ne))], {"s": 2.0}, dst=Arg(np.zeros(ne[::-1]), view=view), bound=BOUND)


@pytest.mark.parametrize("ne", EMPTY)
def test_empty(ne: tuple[int, ...]) -> None:
    check_op("UNARY_SILU", [Arg(normal(ne))], bound=BOUND)


@ieee_only
@pytest.mark.parametrize(("op", "params"), OPS)
def test_special_values(op: str, params: dict[str, Any]) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 1e-30, 20.0, -20.0, 87.5, -87.5, 104.0, -104.0])
    check_op(op, [Arg(x)], params, bound=BOUND)


# A range at a time, so that small results are not hidden behind large ones; down to the end of the normal numbers.
RANGES = [(-9, -1), (-1, 0), (0, 1), (1, 90)]


@pytest.mark.parametrize(
    ("op", "low", "high"),
    [(op, *r) for op in ("UNARY_SILU", "UNARY_SIGMOID") for r in [(-80, -40), (-40, -9), *RANGES]]
    + [("UNARY_GELU", *r) for r in [(-9.8, -9), *RANGES]],
)
def test_relative_accuracy(op: str, low: float, high: float) -> None:
    check_op(op, [Arg(np.linspace(low, high, 1001))], bound=BOUND)


def test_parameters() -> None:
    with pytest.raises(ShapeError, match="SCALE takes s and b, not factor"):
        unary.pack("SCALE", {"factor": 1})
    with pytest.raises(ShapeError, match="s must be a number, not '2'"):
        unary.pack("SCALE", {"s": "2"})
    with pytest.raises(ShapeError, match="takes no parameters, not s"):
        unary.pack("UNARY_SILU", {"s": 1})
    with pytest.raises(ShapeError, match="takes one tensor, not 2"):
        unary.infer("UNARY_SILU", (Desc.contiguous(Type.F32, (4,)),) * 2, {})


def test_f16_is_refused() -> None:
    x = Desc.contiguous(Type.F16, (64,))
    with pytest.raises(Refusal, match="src0 is F16"):
        unary.plan(OpSpec("UNARY_SILU", (0,) * 16, (x,), (x,)), Device())


@pytest.mark.parametrize(
    ("op", "params", "theirs", "bound"),
    [
        ("UNARY_SILU", {}, ("ggml_silu",), 1e-12),
        ("UNARY_GELU", {}, ("ggml_gelu",), 1e-6),  # ggml looks it up in a table of halves
        ("UNARY_SIGMOID", {}, ("ggml_sigmoid",), 1e-12),
        ("SCALE", {"s": -1.7}, ("ggml_scale", -1.7), 1e-13),
        ("SCALE", {"s": 0.5, "b": 3.0}, ("ggml_scale_bias", 0.5, 3.0), 1e-13),
    ],
)
def test_the_reference_is_ggmls(op: str, params: dict[str, Any], theirs: tuple[Any, ...], bound: float) -> None:
    x = normal((100, 3), scale=3)
    with Ggml() as g:
        values = g.compute(g.op(theirs[0], g.tensor(x), *theirs[1:]), (1, 1, *x.shape))
    assert nmse(values, reference_of(op, [Arg(x)], params)[0]) < bound
