"""The harness sees what it is there to see: wrong values, stray writes, NaN in the wrong place, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hexnpu.plan import family
from hexnpu.tensor import Type
from tests.ops import harness
from tests.ops.harness import Arg, Config, View, check_op, desc_of, nmse, plan_of, run_op, spec_of

A = np.random.default_rng(5).standard_normal((2, 3, 4, 64))
ADD = [Arg(A), Arg(2 * A)]
Reference = Callable[..., tuple[np.ndarray[Any, Any], ...]]


def test_a_right_op_passes() -> None:
    check_op("ADD", ADD, bound=1e-10)


def one_element_off(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    y[1, 2, 3, 5] += 1
    return y


def nan_instead(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    y[0, 0, 0, 0] = np.nan
    return y


WRONG = {
    "value": (one_element_off, r"NMSE of dst0 is .*\n?worst at \[1, 2, 3, 5\]"),
    "nan": (nan_instead, "NMSE of dst0 is inf"),
    "shape": (lambda y: y[0], r"has shape \(3, 4, 64\)"),
}


@pytest.mark.parametrize("change, text", WRONG.values(), ids=list(WRONG))
def test_a_result_unlike_the_reference_fails(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], text: str
) -> None:
    module = family("ADD")
    real: Reference = module.reference
    monkeypatch.setattr(module, "reference", lambda *a: (change(real(*a)[0]),))
    with pytest.raises(AssertionError, match=text):
        check_op("ADD", ADD, bound=1e-6)


def test_exact_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    idx = np.array([1, 0], np.int32)
    check_op("GET_ROWS", [Arg(A[0, 0]), Arg(idx, Type.I32)], exact=True)
    module = family("GET_ROWS")
    real: Reference = module.reference
    monkeypatch.setattr(module, "reference", lambda *a: (real(*a)[0] * (1 + 1e-6),))
    with pytest.raises(AssertionError, match="128 of 128 elements of dst0 are wrong"):
        check_op("GET_ROWS", [Arg(A[0, 0]), Arg(idx, Type.I32)], exact=True)


def test_a_stray_write_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # The op is right; the harness is told that nothing may be written.
    real = harness._rows_at
    monkeypatch.setattr(
        harness, "_rows_at", lambda m, *a: np.zeros(real(m, *a).shape, bool) if m.dtype == bool else real(m, *a)
    )
    with pytest.raises(AssertionError, match=r"wrote where it must not: .*of dst0 f32"):
        check_op("ADD", ADD, bound=1e-10)


def test_a_refusal_fails_unless_it_may() -> None:
    wide = [Arg(np.zeros((1, 700_000))), None, None]
    small, large = Config("lazy", 2, 1), Config("lazy", 8, 1)
    with pytest.raises(AssertionError, match="SOFTMAX is refused with Config"):
        check_op("SOFTMAX", wide, {"scale": 1.0}, bound=1e-10, configs=[small])
    with pytest.raises(AssertionError, match="refused in every configuration"):
        check_op("SOFTMAX", wide, {"scale": 1.0}, bound=1e-10, configs=[small], may_refuse=True)
    check_op("SOFTMAX", wide, {"scale": 1.0}, bound=1e-10, configs=[small, large], may_refuse=True)


def test_an_error_of_the_device_is_an_outcome() -> None:
    outcome = run_op("GET_ROWS", [Arg(A[0, 0]), Arg(np.array([9], np.int32), Type.I32)])
    assert outcome.error is not None and "INVAL_PARAMS" in outcome.error and not outcome.strayed


VIEWS = [
    (View(), (4, 256, 1024, 3072)),
    (View(order=(0, 2, 1, 3)), (4, 768, 256, 3072)),
    (View(pad=(64, 0, 0)), (4, 320, 1280, 3840)),
    (View(order=(0, 3, 2, 1), pad=(0, 4, 0)), (4, 1548, 516, 256)),
]


@pytest.mark.parametrize("view, nb", VIEWS)
def test_views(view: View, nb: tuple[int, ...]) -> None:
    arg = Arg(A, view=view)
    assert desc_of(arg).nb == nb
    check_op("ADD", [arg, Arg(A)], bound=1e-10)


def test_what_is_planned_can_be_shown() -> None:
    src = [Arg(A[0, 0, :, :], Type.Q8_0, weight=True), Arg(A[0, 0])]
    spec = spec_of("MUL_MAT", src)
    assert spec.src[0] is not None and spec.src[0].type == Type.TILE_Q8_0 and spec.dst[0].ne == (4, 4, 1, 1)
    assert plan_of("MUL_MAT", src).kernel_name.startswith("hvx-tiled")


def test_nmse() -> None:
    a = np.array([1.0, np.nan, np.inf])
    assert nmse(a, a) == 0 and nmse(a, -a) == np.inf and nmse(np.array([1.1]), np.array([1.0])) == pytest.approx(0.01)
