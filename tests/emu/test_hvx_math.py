"""The kernels' float mathematics (hvx-math.h) against float64, on every arch, and its build for real Hexagons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hexnpu import native
from tests.emu.lane_program import LaneProgram

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered", "ignore:overflow encountered")

ULP = 2.0**-23
Function = Callable[[np.ndarray], np.ndarray]

INCLUDE = """\
#include "hvx-math.h"
#include "hvx-sincos.h"
static inline HVX_Vector sin_of(HVX_Vector x) { return hvx_sincos_sf(x).sin; }
static inline HVX_Vector cos_of(HVX_Vector x) { return hvx_sincos_sf(x).cos; }
"""
UNARY = (
    *(f"hvx_{name}_sf" for name in ("exp", "log", "recip", "recip_normal", "rsqrt", "rsqrt_normal", "sqrt", "sigmoid")),
    *(f"hvx_{name}_sf" for name in ("silu", "tanh", "gelu", "gelu_quick", "reduce_sum", "reduce_max", "abs", "neg")),
    "hvx_sf_to_w_rne", "hvx_w_to_sf", "sin_of", "cos_of",
)  # fmt: skip
FUNCTIONS = {
    **{name: "V:V" for name in UNARY},
    **{f"hvx_{op}_sf": "V:VV" for op in ("add", "sub", "mul", "max", "min", "div")},
    **{f"hvx_{op}_hf": "V:VV" for op in ("add", "sub", "mul", "max", "min")},
    "hvx_fma_sf": "V:VVV", "hvx_fma_hf_sf": "W:WVV", "hvx_hf_to_sf": "W:V", "hvx_sf_to_hf": "V:VV",
    "hvx_reduce_sum_sf_scalar": "f:V", "hvx_reduce_max_sf_scalar": "f:V",
}  # fmt: skip


@pytest.fixture(scope="module", params=native.ARCHS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LaneProgram:
    folder = tmp_path_factory.mktemp("hvx_math")
    return LaneProgram("hvx_math", FUNCTIONS, folder, native.Target(arch=request.param), INCLUDE)


def ieee(program: LaneProgram) -> bool:
    return program.target.arch >= 79


def unary(program: LaneProgram, name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The float32 arguments (padded to whole vectors) and the results, both as float64."""
    x = np.resize(x.astype(np.float32), -(-x.size // 32) * 32)
    return x.astype(np.float64), program.run(name, x).view(np.float32).ravel().astype(np.float64)


def uniform(low: float, high: float, seed: int, n: int = 32 * 1500) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, n)


def powers(low: float, high: float, seed: int) -> np.ndarray:
    """Of both signs, evenly spread over the exponents from 2^low to 2^high."""
    sizes = np.exp2(uniform(low, high, seed))
    return sizes * np.where(np.arange(sizes.size) % 2, -1, 1)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def gelu(x: np.ndarray) -> np.ndarray:
    return np.asarray(x * sigmoid(2 * np.sqrt(2 / np.pi) * x * (1 + 0.044715 * x * x)))


# Name, arguments, float64 function, bound from v79 on and before it (relative), absolute error allowed beside it.
ACCURACY: list[tuple[str, np.ndarray, Function, float, float, float]] = [
    ("hvx_exp_sf", uniform(-87.3, 88.7, 1), np.exp, 1.0 * ULP, 1e-6, 0),
    ("hvx_exp_sf", uniform(-1, 1, 2), np.exp, 1.0 * ULP, 5e-7, 0),
    ("hvx_log_sf", np.abs(powers(-125, 127, 3)), np.log, 2 * ULP, 1e-6, 4e-7),
    ("hvx_log_sf", uniform(0.5, 2, 4), np.log, 0, 0, 4e-7),
    ("hvx_recip_sf", powers(-126, 126, 5), lambda x: 1 / x, 1.5 * ULP, 1e-6, 2e-38),
    ("hvx_recip_normal_sf", powers(-100, 100, 6), lambda x: 1 / x, 1.5 * ULP, 1e-6, 0),
    ("hvx_rsqrt_sf", np.abs(powers(-126, 128, 7)), lambda x: 1 / np.sqrt(x), 1.5 * ULP, 1e-6, 0),
    ("hvx_rsqrt_normal_sf", np.abs(powers(-126, 128, 8)), lambda x: 1 / np.sqrt(x), 1.5 * ULP, 1e-6, 0),
    ("hvx_sqrt_sf", np.abs(powers(-126, 128, 9)), np.sqrt, 1.5 * ULP, 1e-6, 0),
    ("hvx_sigmoid_sf", uniform(-80, 80, 10), sigmoid, 2.5 * ULP, 1.5e-6, 0),
    ("hvx_silu_sf", uniform(-80, 80, 11), lambda x: x * sigmoid(x), 3 * ULP, 1.5e-6, 0),
    ("hvx_tanh_sf", uniform(-12, 12, 12), np.tanh, 2.5 * ULP, 1e-6, 0),
    ("hvx_tanh_sf", powers(-100, 3, 13), np.tanh, 2.5 * ULP, 1e-6, 0),
    ("hvx_gelu_sf", uniform(-2, 30, 14), gelu, 6 * ULP, 2e-6, 0),
    ("hvx_gelu_sf", uniform(-30, 0, 15), gelu, 0, 0, 2e-7),
    ("hvx_gelu_quick_sf", uniform(-20, 20, 16), lambda x: x * sigmoid(1.702 * x), 3e-6, 5e-6, 0),
    ("sin_of", uniform(-100, 100, 17), np.sin, 0, 0, 1.5e-7),
    ("cos_of", uniform(-100, 100, 18), np.cos, 0, 0, 1.5e-7),
    ("sin_of", uniform(-65000, 65000, 19), np.sin, 0, 0, 1.5e-7),
    ("cos_of", uniform(-65000, 65000, 20), np.cos, 0, 0, 1.5e-7),
]


@pytest.mark.parametrize("case", range(len(ACCURACY)), ids=[f"{i}-{case[0]}" for i, case in enumerate(ACCURACY)])
def test_accuracy(program: LaneProgram, case: int) -> None:
    name, arguments, function, from_79, before, absolute = ACCURACY[case]
    x, y = unary(program, name, arguments)
    want = function(x)
    allowed = (from_79 if ieee(program) else before) * np.abs(want) + absolute
    if name in ("sin_of", "cos_of") and not ieee(program):
        pytest.skip("before v79 the kernels take sines one at a time")
    worst = int(np.argmax(np.abs(y - want) - allowed))
    assert abs(y[worst] - want[worst]) <= allowed[worst], (x[worst], y[worst], want[worst])
    if name.endswith("_sf") or ieee(program):
        assert np.sum((y - want) ** 2) <= 1e-10 * np.sum(want**2)


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 89.0, -88.0], np.float32)
inf, nan = np.inf, np.nan
# What the functions make of SPECIAL on every arch; None where it is not promised before v79.
SPECIAL_RESULTS: dict[str, list[float | None]] = {
    "hvx_exp_sf": [1, 1, inf, 0, nan, 1, 1, inf, 0, inf, 0],
    "hvx_log_sf": [-inf, -inf, inf, nan, nan, -inf, -inf, 88.596847, nan, 4.4886364, nan],
    "hvx_recip_sf": [inf, -inf, 0, -0.0, nan, inf, -inf, 0, -0.0, 1 / 89, -1 / 88],
    "hvx_rsqrt_sf": [inf, inf, 0, nan, nan, inf, inf, 5.7735027e-20, nan, 0.10599979, nan],
    "hvx_sqrt_sf": [0, -0.0, inf, nan, nan, 0, -0.0, 1.7320508e19, nan, 9.4339811, nan],
    "hvx_sigmoid_sf": [0.5, 0.5, 1, 0, nan, 0.5, 0.5, 1, 0, 1, 0],
    "hvx_silu_sf": [0, -0.0, None, None, nan, 5e-41, -5e-41, 3e38, -0.0, 89, -0.0],
    "hvx_tanh_sf": [0, -0.0, 1, -1, nan, 1e-40, -1e-40, 1, -1, 1, -1],
    "hvx_gelu_sf": [0, -0.0, None, None, nan, 5e-41, -5e-41, 3e38, -0.0, 89, -0.0],
}


@pytest.mark.parametrize("name", list(SPECIAL_RESULTS))
def test_special_values(program: LaneProgram, name: str) -> None:
    y = program.run(name, np.resize(SPECIAL, 32)).view(np.float32).ravel()
    for x, got, want in zip(SPECIAL, y[: SPECIAL.size], SPECIAL_RESULTS[name], strict=True):
        if want is None or np.isnan(want):
            assert want is None or np.isnan(got), (x, got)
        elif np.isinf(want) or want == 0:
            assert got == want and (want != 0 or x != 0 or np.signbit(got) == np.signbit(want)), (x, got, want)
        else:
            assert abs(got - want) <= abs(want) * 1e-6 + 1e-44, (x, got, want)
    if ieee(program) and None in SPECIAL_RESULTS[name]:
        assert y[2] == np.inf and np.isnan(y[3])  # -inf * 0


@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_arithmetic(program: LaneProgram, op: str) -> None:
    a, b = powers(-40, 40, 30).astype(np.float32), (powers(-40, 40, 31) + 1).astype(np.float32)
    near = np.concatenate([a[:3200] * np.float32(1.0000019), b[3200:]])
    x, y = a.astype(np.float64), near.astype(np.float64)
    want = {"add": x + y, "sub": x - y, "mul": x * y}[op]
    got = program.run(f"hvx_{op}_sf", a, near).view(np.float32).ravel()
    if ieee(program):
        assert (got == want.astype(np.float32)).all()
    scale = np.abs(want) if op == "mul" else np.maximum.reduce([np.abs(x), np.abs(y), np.abs(want)])
    assert (np.abs(got - want) <= 1.5 * ULP * scale).all()
    acc = program.run("hvx_fma_sf", near, a, a).view(np.float32).ravel().astype(np.float64)
    assert (np.abs(acc - (y + x * x)) <= 3 * ULP * np.maximum.reduce([np.abs(y), x * x, np.abs(y + x * x)])).all()


def test_division(program: LaneProgram) -> None:
    a, b = powers(-60, 60, 32).astype(np.float32), powers(-60, 60, 33).astype(np.float32)
    want = a.astype(np.float64) / b.astype(np.float64)
    got = program.run("hvx_div_sf", a, b).view(np.float32).ravel()
    assert (np.abs(got - want) <= (1.5 * ULP if ieee(program) else 1e-6) * np.abs(want)).all()
    if not ieee(program):
        return
    s, t = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    keep = (np.abs(t) > 1e-38) | (t == 0)  # a subnormal divisor counts as 0
    s, t = (np.resize(v[keep], -(-keep.sum() // 32) * 32) for v in (s, t))
    with np.errstate(all="ignore"):
        want32 = s / t
    got = program.run("hvx_div_sf", s, t).view(np.float32).ravel()
    with np.errstate(all="ignore"):
        close = np.abs(got - want32) <= np.abs(want32) * 2e-7 + 2e-45
    assert (close | (got == want32) | (np.isnan(got) & np.isnan(want32))).all()
    large = np.full(32, 3e38, np.float32)
    assert np.allclose(program.run("hvx_div_sf", large, large).view(np.float32), 1, rtol=3e-7)


def test_rounding_to_integers(program: LaneProgram) -> None:
    halves = np.arange(-4096, 4096) / 2
    x = np.concatenate(
        [halves, uniform(-300, 300, 34), uniform(-4e6, 4e6, 35), np.nextafter(halves, 0), powers(-30, 2, 36)]
    )
    x = np.resize(x.astype(np.float32), -(-x.size // 32) * 32)
    assert (program.run("hvx_sf_to_w_rne", x).view(np.int32).ravel() == np.rint(x.astype(np.float64))).all()
    n = np.random.default_rng(37).integers(-(2**31), 2**31, 3200).astype(np.int32)
    assert (program.run("hvx_w_to_sf", n).view(np.float32).ravel() == n.astype(np.float32)).all()


def test_half_conversions(program: LaneProgram) -> None:
    h = np.arange(2**16, dtype=np.uint16)
    x = h.view(np.float16)
    got = program.run("hvx_hf_to_sf", h).view(np.float32).ravel()
    finite = np.isfinite(x)
    want = x.astype(np.float32)
    assert (np.abs(got - want)[finite] <= (0 if ieee(program) else 1.5 * ULP * np.abs(want[finite]) + 2.0**-37)).all()
    if ieee(program):
        assert np.array_equal(got, want, equal_nan=True)
    f = np.concatenate([powers(-30, 20, 38), [65519.99, 65520, -65520, 65504, inf, -inf, nan, 1e30, -1e30, 0.0, 6e-8]])
    f = np.resize(f.astype(np.float32), -(-f.size // 64) * 64).reshape(-1, 2, 32)
    with np.errstate(all="ignore"):
        wanted = f.reshape(-1).astype(np.float16)
    lo, hi = (np.ascontiguousarray(f[:, k]) for k in (0, 1))
    halves = program.run("hvx_sf_to_hf", lo, hi).view(np.float16).ravel()
    if ieee(program):
        assert np.array_equal(halves, wanted, equal_nan=True)
        return
    special = ~np.isfinite(wanted)
    assert np.array_equal(halves[special], wanted[special], equal_nan=True)
    apart = np.abs(halves[~special].view(np.int16).astype(int) - wanted[~special].view(np.int16).astype(int))
    assert apart.max() <= 1 and (apart != 0).mean() < 1e-3  # only where the last bit of qfloat decides a tie


@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_half_arithmetic(program: LaneProgram, op: str) -> None:
    a, b = powers(-6, 6, 39).astype(np.float16), (powers(-6, 6, 40) + 1).astype(np.float16)
    a, b = (v[: v.size // 64 * 64] for v in (a, b))
    x, y = a.astype(np.float64), b.astype(np.float64)
    want = {"add": x + y, "sub": x - y, "mul": x * y}[op]
    got = program.run(f"hvx_{op}_hf", a, b).view(np.float16).ravel()
    if ieee(program):
        assert (got == want.astype(np.float16)).all()
    assert (np.abs(got - want) <= 2.0**-11 * np.abs(want) * 1.01 + 2.0**-18).all()
    acc = np.zeros((a.size // 64, 64), np.float32) + np.float32(0.5)
    sums = program.run("hvx_fma_hf_sf", acc, a, b).view(np.float32)
    products = (x * y).reshape(-1, 32, 2).transpose(0, 2, 1).reshape(-1, 64) + 0.5
    assert (np.abs(sums - products) <= 2 * ULP * (np.abs(products) + 1)).all()


def test_reductions(program: LaneProgram) -> None:
    x = uniform(-3, 5, 41).astype(np.float32)
    rows = x.reshape(-1, 32).astype(np.float64)
    sums = program.run("hvx_reduce_sum_sf", x).view(np.float32)
    assert (sums == sums[:, :1]).all()
    assert (np.abs(sums[:, 0] - rows.sum(1)) <= 6 * ULP * np.abs(rows).sum(1)).all()
    largest = program.run("hvx_reduce_max_sf", x).view(np.float32)
    assert (largest == rows.max(1, keepdims=True)).all()
    assert (program.run("hvx_reduce_sum_sf_scalar", x).view(np.float32)[:, 0] == sums[:, 0]).all()
    assert (program.run("hvx_reduce_max_sf_scalar", x).view(np.float32)[:, 0] == largest[:, 0]).all()


@pytest.mark.parametrize("arch", native.ARCHS)
def test_builds_for_hexagon(arch: int, tmp_path: Path) -> None:
    """Every function, without a warning, from SDK names alone."""
    lines = [INCLUDE, "void all(HVX_Vector *o, HVX_VectorPair w, HVX_Vector a, HVX_Vector b) {"]
    for index, (name, signature) in enumerate(FUNCTIONS.items()):
        result, operands = signature.split(":")
        call = f"{name}({', '.join('w' if k == 'W' else 'ab'[i % 2] for i, k in enumerate(operands))})"
        call = {"W": f"Q6_V_lo_W({call})", "f": f"hvx_splat_sf({call})", "V": call}[result]
        lines.append(f"    o[{index}] = {call};")
    source = tmp_path / "hvx_math_all.c"
    source.write_text("\n".join([*lines, "}", ""]))
    target = native.Target(hexagon=True, arch=arch)
    extra = [f"-I{native.kernels_dir() / 'kernels'}"]
    (built,) = native.compile_objects([source], target, extra, label="hvx-math")
    assert built.stat().st_size > 0
