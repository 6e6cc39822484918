"""GLU_SWIGLU, GLU_SWIGLU_OAI, GLU_GEGLU against float64: two inputs, one split in halves, halves swapped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hexnpu.plan import glu
from hexnpu.plan.base import ShapeError
from hexnpu.tensor import Desc, Type
from tests.ops.ggml_cpu import Ggml
from tests.ops.harness import Arg, View, check_op, nmse, plan_of, reference_of, run_op
from tests.ops.rows_cases import COLUMNS, EMPTY, VIEWS, FalsePlan, ieee_only, normal

BOUND = 1e-10
OPS: list[tuple[str, dict[str, Any]]] = [
    ("GLU_SWIGLU", {}), ("GLU_GEGLU", {}), ("GLU_SWIGLU_OAI", {"alpha": 1.702, "limit": 7.0}),
]  # fmt: skip
FORMS = ["two", "split", "swapped"]


def check(op: str, params: dict[str, Any], ne: tuple[int, ...], form: str, view: View | None = None) -> None:
    view = view or View()
    if form == "two":
        src = [Arg(normal(ne, scale=4), view=view), Arg(normal(ne, 2, scale=6))]
    else:
        src = [Arg(normal((2 * ne[0], *ne[1:]), scale=4), view=view)]
        params = params | {"swapped": form == "swapped"}
    check_op(op, src, params, bound=BOUND)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("op", "params"), OPS)
@pytest.mark.parametrize("n", COLUMNS)
def test_columns(n: int, op: str, params: dict[str, Any], form: str) -> None:
    check(op, params, (n, 3), form)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ne", [(1536, 1), (1536, 65), (64, 3, 2, 2), (9001, 3), (20000,)])
def test_rows(ne: tuple[int, ...], form: str) -> None:
    check("GLU_SWIGLU", {}, ne, form)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("view", VIEWS)
def test_views(view: View, form: str) -> None:
    check("GLU_GEGLU", {}, (100, 4, 3, 5), form, view)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ne", EMPTY)
def test_empty(ne: tuple[int, ...], form: str) -> None:
    check("GLU_SWIGLU", {}, ne, form)


@ieee_only
@pytest.mark.parametrize(("op", "params"), OPS)
def test_special_values(op: str, params: dict[str, Any]) -> None:
    # Down to -80: further down silu and gelu are below the normal numbers, where the kernels give 0.
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-42, 1.0, -2.0, 7.0, -7.0, 8.0, -8.0, 90.0, -80.0])
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    check_op(op, [Arg(a), Arg(b)], params, bound=BOUND)


def test_oai_limits() -> None:
    params = {"alpha": 0.7, "limit": 1.5}
    check_op("GLU_SWIGLU_OAI", [Arg(normal((300, 4), scale=3)), Arg(normal((300, 4), 2, scale=3))], params, bound=BOUND)


def test_shapes_and_parameters() -> None:
    a, b = Desc.contiguous(Type.F32, (64, 3)), Desc.contiguous(Type.F32, (64, 4))
    with pytest.raises(ShapeError, match="must have the same shape and type"):
        glu.infer("GLU_SWIGLU", (a, b), {})
    with pytest.raises(ShapeError, match="33 columns cannot be split"):
        glu.infer("GLU_SWIGLU", (Desc.contiguous(Type.F32, (33, 3)),), {})
    with pytest.raises(ShapeError, match="takes swapped, not limit"):
        glu.pack("GLU_SWIGLU", {"limit": 3})


def test_a_false_plan_is_refused() -> None:
    src = [Arg(normal((1200, 9)))]
    outcome = run_op("GLU_SWIGLU", src, planned=FalsePlan(plan_of("GLU_SWIGLU", src), {3: 64}))
    assert outcome.error is not None and not outcome.strayed


# ggml looks GELU up in a table of halves.
@pytest.mark.parametrize(("op", "name", "bound"), [("GLU_SWIGLU", "swiglu", 1e-12), ("GLU_GEGLU", "geglu", 1e-6)])
@pytest.mark.parametrize("form", FORMS)
def test_the_reference_is_ggmls(form: str, op: str, name: str, bound: float) -> None:
    a, b = normal((100, 3), scale=3), normal((100, 3), 2)
    suffix = {"two": "_split", "split": "", "swapped": "_swapped"}[form]
    with Ggml() as g:
        theirs = g.op(f"ggml_{name}{suffix}", g.tensor(a), *([g.tensor(b)] if form == "two" else []))
        shape = (1, 1, 3, 100 if form == "two" else 50)
        values = g.compute(theirs, shape)
    src = [Arg(a), Arg(b)] if form == "two" else [Arg(a)]
    assert nmse(values, reference_of(op, src, {"swapped": form == "swapped"})[0]) < bound


def test_the_oai_reference_is_ggmls() -> None:
    a, b = normal((100, 3), scale=5), normal((100, 3), 2, scale=5)
    with Ggml() as g:
        values = g.compute(g.op("ggml_swiglu_oai", g.tensor(a), g.tensor(b), 1.702, 7.0), (1, 1, *a.shape))
    assert nmse(values, reference_of("GLU_SWIGLU_OAI", [Arg(a), Arg(b)], {"alpha": 1.702, "limit": 7.0})[0]) < 1e-12
