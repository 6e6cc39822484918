"""ADD, SUB, MUL, DIV against float64: shapes, broadcasts, views, threads, special values, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hexnpu.plan import binary
from hexnpu.plan.base import Device, OpSpec, Refusal, ShapeError
from hexnpu.tensor import Desc, Type
from tests.ops.ggml_cpu import Ggml
from tests.ops.harness import Arg, Config, View, check_op, nmse, plan_of, reference_of, run_op
from tests.ops.rows_cases import COLUMNS, EMPTY, VIEWS, FalsePlan, as_f32, ieee_only

BOUND = {Type.F32: 1e-10, Type.F16: 1e-6}
OPS = ["ADD", "SUB", "MUL", "DIV"]


def values(ne: tuple[int, ...], seed: int = 1) -> npt.NDArray[Any]:
    """Random numbers away from 0, so that quotients are tame."""
    rng = np.random.default_rng([seed, *ne])
    return rng.uniform(0.5, 2.0, ne[::-1]) * rng.choice([-1.0, 1.0], ne[::-1])


def check(op: str, ne: tuple[int, ...], ne1: tuple[int, ...] | None = None, type: Type = Type.F32, **kw: Any) -> None:
    check_op(op, [Arg(values(ne), type), Arg(values(ne1 or ne, 2), type)], bound=BOUND[type], **kw)


@pytest.mark.parametrize("type", BOUND)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("n", COLUMNS)
def test_columns(n: int, op: str, type: Type) -> None:
    check(op, (n, 3), type=type)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("ne", [(64,), (576, 2), (33, 5), (64, 3, 2, 2), (1000, 65), (2048, 130), (20000,), (9001, 3)])
def test_rows(ne: tuple[int, ...]) -> None:
    check("ADD", ne)
    check("MUL", ne, type=Type.F16)


# Each dimension of src1: the same, one, or a part that repeats.
@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("op", ["SUB", "DIV"])
@pytest.mark.parametrize(
    ("ne", "ne1"),
    [
        ((96, 5, 4, 3), (96, 1, 1, 1)), ((96, 5, 4, 3), (1, 1, 1, 1)), ((96, 5, 4, 3), (1, 5, 4, 3)),
        ((96, 5, 4, 3), (96, 5, 1, 1)), ((96, 5, 4, 3), (96, 1, 4, 1)), ((96, 5, 4, 3), (96, 1, 1, 3)),
        ((96, 5, 4, 3), (96, 5, 4, 1)), ((96, 5, 4, 3), (96, 5, 1, 3)), ((96, 6, 4, 2), (96, 3, 2, 1)),
        ((96, 6, 4, 2), (32, 2, 4, 1)), ((33, 4, 2, 1), (11, 4, 1, 1)), ((70, 1, 1, 1), (35, 1, 1, 1)),
        ((65, 1, 7, 1), (65, 1, 1, 1)), ((65, 1, 7, 1), (1, 1, 7, 1)), ((5000, 2, 1, 1), (1, 2, 1, 1)),
        ((30000, 3, 1, 1), (1, 1, 1, 1)),
        ((9000, 2, 1, 1), (9000, 1, 1, 1)), ((576, 40, 1, 1), (576, 1, 1, 1)), ((64, 9, 33, 1), (64, 1, 33, 1)),
    ],
)  # fmt: skip
def test_broadcast(ne: tuple[int, ...], ne1: tuple[int, ...], op: str) -> None:
    check(op, ne, ne1)
    check(op, ne, ne1, type=Type.F16)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("view1", [View(), VIEWS[1], VIEWS[2]])
@pytest.mark.parametrize("view0", VIEWS)
def test_views(view0: View, view1: View) -> None:
    ne = (100, 4, 3, 5)
    check_op("SUB", [Arg(values(ne), view=view0), Arg(values(ne, 2), view=view1)], bound=1e-10)
    check_op("SUB", [Arg(values(ne), view=view0), Arg(values((100, 4, 1, 5), 2), view=view1)], bound=1e-10)


def test_planes_as_far_apart_as_those_of_a_longer_tensor() -> None:
    """src1 repeats within a plane although its planes lie where those of src0's shape would."""
    part = Arg(values((96, 2, 4), 2), view=View(pad=(0, 4 * 96 * 4, 0)))
    check_op("SUB", [Arg(values((96, 6, 4))), part], bound=1e-10)


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("view", VIEWS)
def test_strided_destination(view: View) -> None:
    ne = (100, 4, 3, 5)
    src = [Arg(values(ne)), Arg(values((100, 1, 3, 1), 2))]
    check_op("MUL", src, dst=Arg(np.zeros(ne[::-1]), view=view), bound=1e-10)


@pytest.mark.parametrize("ne", EMPTY)
def test_empty(ne: tuple[int, ...]) -> None:
    check("ADD", ne)


def test_odd_pattern_of_f16_rows() -> None:
    check_op("ADD", [Arg(values((33, 5)), Type.F16, View(pad=(2, 0, 0), offset=2)), Arg(values((33, 1)), Type.F16)],
             bound=1e-6)  # fmt: skip


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.5, 1e-42, 3e38, 1e-30])


@ieee_only
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_special_values(op: str) -> None:
    a, b = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL))
    keep = ~np.isfinite(a) | ~np.isfinite(b) | (np.maximum(np.abs(a), np.abs(b)) < 1e38)  # overflow is tested below
    check_op(op, [Arg(a[keep]), Arg(b[keep])], bound=1e-10)


@ieee_only
def test_division_by_zero_and_infinity() -> None:
    finite = SPECIAL[(SPECIAL == 0) | (np.abs(SPECIAL) > 1e-20) | np.isnan(SPECIAL)]
    a, b = (x.ravel() for x in np.meshgrid(finite, finite))
    keep = ~((np.abs(b) > 1e38) & np.isfinite(b)) & ~((np.abs(b) < 1e-20) & (b != 0) & (np.abs(a) > 1e15))
    check_op("DIV", [Arg(a[keep]), Arg(b[keep])], bound=1e-10)


@ieee_only
def test_overflow_gives_infinity() -> None:
    big = Arg(np.array([3e38, -3e38, 3e38, 1e-30]))
    product = as_f32(run_op("MUL", [big, Arg(np.array([10.0, 10.0, -10.0, 1e-30]))]))
    assert product.ravel().tolist() == [np.inf, -np.inf, -np.inf, 0.0]
    assert as_f32(run_op("ADD", [big, big])).ravel().tolist()[:3] == [np.inf, -np.inf, np.inf]


@ieee_only
def test_nan_stays_in_its_element() -> None:
    a = values((100, 3))
    a[1, 7] = np.nan
    check_op("ADD", [Arg(a), Arg(values((100, 1), 2))], bound=1e-10)


def test_decode_plans_are_small() -> None:
    x = Arg(np.zeros((1, 576)))
    plan = plan_of("ADD", [x, x])
    assert (plan.n_threads, plan.block) == (1, 1)
    assert plan.vtcm_bytes <= 3 * (576 * 4 + 256)


def test_prefill_uses_all_threads() -> None:
    x = Arg(np.zeros((512, 1536)))
    assert plan_of("ADD", [x, x]).n_threads == Config().n_threads


def test_long_rows_are_cut_within_a_small_vtcm() -> None:
    x = Desc.contiguous(Type.F32, (1 << 20,))
    spec = OpSpec("ADD", (0,) * 16, (x, x), (x,))
    assert binary.plan(spec, Device(vtcm_bytes=1 << 18)).vtcm_bytes <= 1 << 18


@pytest.mark.parametrize(
    ("descs", "text"),
    [
        ((Desc.contiguous(Type.F32, (64,)), Desc.contiguous(Type.F16, (64,))), "one type"),
        ((Desc.contiguous(Type.Q8_0, (64,)), Desc.contiguous(Type.F32, (64,))), "Q8_0"),
        ((Desc(Type.F32, (64, 1, 1, 1), (8, 512, 512, 512)), Desc.contiguous(Type.F32, (64,))), "8 bytes apart"),
        ((Desc.contiguous(Type.F32, (1 << 22,)), Desc.contiguous(Type.F32, (2,))), "VTCM"),
    ],
)
def test_refusals(descs: tuple[Desc, Desc], text: str) -> None:
    spec = OpSpec("ADD", (0,) * 16, descs, binary.infer("ADD", descs, {}))
    with pytest.raises(Refusal, match=text):
        binary.plan(spec, Device())


def test_shapes_that_do_not_repeat() -> None:
    with pytest.raises(ShapeError, match="does not repeat into 64:3:1:1 in dimension 1"):
        binary.infer("ADD", (Desc.contiguous(Type.F32, (64, 3)), Desc.contiguous(Type.F32, (64, 2))), {})


# Words of a plan that the device must not believe: index in kernel_params, value.
@pytest.mark.parametrize(
    ("word", "value"),
    [(3, 0), (3, -1), (3, 1 << 20), (4, 0), (4, 8), (5, 0), (5, 5), (17, 128), (16, 0), (21, 256)],
)
def test_a_false_plan_is_refused(word: int, value: int) -> None:
    src = [Arg(values((600, 9))), Arg(values((600, 9), 2))]
    outcome = run_op("ADD", src, planned=FalsePlan(plan_of("ADD", src), {word: value}))
    assert outcome.error is not None
    assert not outcome.strayed


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("ne1", [(6, 4, 3, 2), (6, 1, 3, 1), (1, 1, 1, 1), (3, 2, 1, 2)])
def test_the_reference_is_ggmls(ne1: tuple[int, ...], op: str) -> None:
    a, b = values((6, 4, 3, 2)), values(ne1, 2)
    with Ggml() as g:
        theirs = g.compute(g.op(f"ggml_{op.lower()}", g.tensor(a), g.tensor(b)), a.shape)
    assert nmse(theirs, reference_of(op, [Arg(a), Arg(b)])[0]) < 1e-13
