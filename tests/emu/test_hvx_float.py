"""The float intrinsics of the emulator against float64 (IEEE results) and exact rationals (qfloat)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hexnpu import native
from tests.emu import qfloat_model as qf
from tests.emu.lane_program import LaneProgram

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")  # signalling NaN among the lanes

ARCHS = native.ARCHS
IEEE_QFLOAT = (79, 81)
LEGACY_QFLOAT = (73, 75)

SF_SPECIAL = [
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x3F800001,
    0x3F7FFFFF, 0x33800000, 0x34000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000,
    0x7F000000, 0x4B000000, 0x4B800001, 0x4F000000, 0xCF000000, 0x4EFFFFFF, 0x477FE000, 0x477FEFFF, 0x477FF000,
    0x477FFFFF, 0x33000000, 0x33000001, 0x38800000, 0x387FC000, 0x3F000000, 0x3FC00000, 0x40200000, 0xC0200000,
]  # fmt: skip
HF_SPECIAL = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3C01, 0x3BFF, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00,
    0x7E00, 0xFE00, 0x7800, 0x3800, 0xB800, 0x3E00, 0x4100, 0xC100, 0x5BF8, 0x5C00, 0x6400, 0x57F8, 0x5800, 0xD808,
    0x77FF, 0x7801,
]  # fmt: skip

V = {
    "sf": [f"Q6_Vsf_v{op}_VsfVsf" for op in ("add", "sub", "mpy", "max", "min", "fmax", "fmin")],
    "hf": [f"Q6_Vhf_v{op}_VhfVhf" for op in ("add", "sub", "mpy", "max", "min", "fmax", "fmin")],
    "wide": [f"Q6_Wsf_v{op}_V{t}V{t}" for op in ("add", "sub", "mpy") for t in ("hf", "bf")],
    "unary": ["Q6_Vsf_vfneg_Vsf", "Q6_Vsf_vabs_Vsf", "Q6_Vhf_vfneg_Vhf", "Q6_Vhf_vabs_Vhf"],
    "gt": [f"Q6_Q_vcmp_gt_V{t}V{t}" for t in ("sf", "hf", "bf")],
    "q32": [f"Q6_Vqf32_v{op}_{k}" for op in ("add", "sub") for k in ("VsfVsf", "Vqf32Vsf", "Vqf32Vqf32")],
    "q16": [f"Q6_Vqf16_v{op}_{k}" for op in ("add", "sub", "mpy") for k in ("VhfVhf", "Vqf16Vhf", "Vqf16Vqf16")],
    "q32mpy": ["Q6_Vqf32_vmpy_VsfVsf", "Q6_Vqf32_vmpy_Vqf32Vqf32"],
    "qwide": [f"Q6_Wqf32_vmpy_{k}" for k in ("VhfVhf", "Vqf16Vhf", "Vqf16Vqf16")],
}
FUNCTIONS: dict[str, str] = {
    **{name: "V:VV" for group in ("sf", "hf", "q32", "q16", "q32mpy") for name in V[group]},
    **{name: "W:VV" for group in ("wide", "qwide") for name in V[group]},
    **{name: "V:V" for name in V["unary"]},
    **{name: "Q:VV" for name in V["gt"]},
    **{
        f"Q6_Q_vcmp_gt{how}_QV{t}V{t}": "Q:QVV" for t in ("sf", "hf", "bf") for how in ("and", "or", "xacc")
    },
    "Q6_Vhf_vmpyacc_VhfVhfVhf": "V:VVV", "Q6_Wsf_vmpyacc_WsfVhfVhf": "W:WVV", "Q6_Wsf_vmpyacc_WsfVbfVbf": "W:WVV",
    "Q6_Vsf_vdmpy_VhfVhf": "V:VV", "Q6_Vsf_vdmpyacc_VsfVhfVhf": "V:VVV",
    "Q6_Wsf_vcvt_Vhf": "W:V", "Q6_Vhf_vcvt_VsfVsf": "V:VV", "Q6_Vbf_vcvt_VsfVsf": "V:VV",
    "Q6_Vsf_equals_Vw": "V:V", "Q6_Vw_equals_Vsf": "V:V", "Q6_Vhf_equals_Vh": "V:V", "Q6_Vh_equals_Vhf": "V:V",
    "Q6_Vhf_vcvt_Vh": "V:V", "Q6_Vhf_vcvt_Vuh": "V:V", "Q6_Vh_vcvt_Vhf": "V:V", "Q6_Vuh_vcvt_Vhf": "V:V",
    "Q6_Vb_vcvt_VhfVhf": "V:VV", "Q6_Vub_vcvt_VhfVhf": "V:VV", "Q6_Whf_vcvt_Vb": "W:V", "Q6_Whf_vcvt_Vub": "W:V",
    "Q6_Vbf_vmax_VbfVbf": "V:VV", "Q6_Vbf_vmin_VbfVbf": "V:VV",
    "Q6_Vsf_equals_Vqf32": "V:V", "Q6_Vhf_equals_Vqf16": "V:V", "Q6_Vhf_equals_Wqf32": "V:W",
}  # fmt: skip
FROM_79 = {
    "Q6_Vqf32_vmpy_VsfRsf": "V:VR", "Q6_Vqf16_vmpy_VhfRhf": "V:VR", "Q6_Vqf16_vmpy_Vqf16Rhf": "V:VR",
    "Q6_Vb_vcvt2_VhfVhf": "V:VV", "Q6_Vub_vcvt2_VhfVhf": "V:VV", "Q6_Whf_vcvt2_Vb": "W:V", "Q6_Whf_vcvt2_Vub": "W:V",
}  # fmt: skip
FROM_81 = {
    "Q6_Q_vcmp_eq_VsfVsf": "Q:VV", "Q6_Q_vcmp_eq_VhfVhf": "Q:VV", "Q6_Vh_equals_Vhf_rnd": "V:V",
    **{f"Q6_Q_vcmp_eq{how}_QV{t}V{t}": "Q:QVV" for t in ("sf", "hf") for how in ("and", "or", "xacc")},
    "Q6_Vqf32_equals_Vsf": "V:V", "Q6_Vqf16_equals_Vhf": "V:V",
    "Q6_Vqf32_equals_Vqf32": "V:V", "Q6_Vqf16_equals_Vqf16": "V:V",
    **{f"Q6_Vqf32_v{op}_V{of}": "V:V" for op in ("neg", "abs") for of in ("qf32", "sf")},
    **{f"Q6_Vqf16_v{op}_V{of}": "V:V" for op in ("neg", "abs") for of in ("qf16", "hf")},
    "Q6_Vqf32_vsub_VsfVqf32": "V:VV", "Q6_Vqf16_vsub_VhfVqf16": "V:VV",
    "Q6_Vbf_equals_Wqf32": "V:W", "Q6_Vw_vilog2_Vsf": "V:V", "Q6_Vw_vilog2_Vqf32": "V:V",
}  # fmt: skip


def functions(arch: int) -> dict[str, str]:
    return FUNCTIONS | (FROM_79 if arch >= 79 else {}) | (FROM_81 if arch >= 81 else {})


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], LaneProgram]:
    folder = tmp_path_factory.mktemp("hvx_float")
    made: dict[int, LaneProgram] = {}

    def get(arch: int) -> LaneProgram:
        if arch not in made:
            made[arch] = LaneProgram("hvx_float", functions(arch), folder, native.Target(arch=arch))
        return made[arch]

    return get


def lanes(special: list[int], dtype: type, seed: int, n: int = 128 * 64) -> list[np.ndarray]:
    """Two operands: every pair of special values, random bits, and values of similar size (cancellation, ties)."""
    rng = np.random.default_rng(seed)
    bits = np.dtype(dtype).itemsize * 8
    mantissa = {16: 10, 32: 23}[bits]
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    random = rng.integers(0, 2**bits, (2, n), dtype=np.uint64)
    near = rng.integers(0, 4 << mantissa, (2, n), dtype=np.uint64) + ((2 ** (bits - mantissa - 2) - 2) << mantissa)
    sign = rng.integers(0, 2, (2, n), dtype=np.uint64) << np.uint64(bits - 1)
    short = near & np.uint64(2**bits - (1 << (mantissa - 3))) ^ sign
    out = []
    for first, k in ((a, 0), (b, 1)):
        all_lanes = np.concatenate([first.astype(np.uint64), random[k], near[k], short[k]]).astype(dtype)
        out.append(np.resize(all_lanes, -(-len(all_lanes) // 128) * 128))
    return out


def sf_lanes(seed: int = 1) -> list[np.ndarray]:
    return lanes(SF_SPECIAL, np.uint32, seed)


def hf_lanes(seed: int = 2) -> list[np.ndarray]:
    return lanes(HF_SPECIAL, np.uint16, seed)


def same(got: np.ndarray, want: np.ndarray, inputs: list[np.ndarray]) -> None:
    """Equal bits, or both NaN."""
    got, want = got.ravel(), want.ravel()
    wrong = (got.view(f"u{got.itemsize}") != want.view(f"u{want.itemsize}")) & ~(np.isnan(got) & np.isnan(want))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        operands = [hex(int(x.ravel()[i])) for x in inputs if x.size == got.size]
        raise AssertionError(f"{wrong.sum()} lanes differ: lane {i} {operands}: {got[i]!r}, expected {want[i]!r}")


def order(bits: np.ndarray) -> np.ndarray:
    """A key that sorts -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    signed = bits.astype(np.int64)
    size = bits.dtype.itemsize * 8
    return np.where(signed >> (size - 1), -(signed & (2 ** (size - 1) - 1)) - 1, signed)


def binary(op: str, a: np.ndarray, b: np.ndarray, dtype: type, arch: int) -> np.ndarray:
    x, y = a.view(dtype).astype(np.float64), b.view(dtype).astype(np.float64)
    with np.errstate(all="ignore"):
        if op in ("add", "sub", "mpy"):
            return {"add": x + y, "sub": x - y, "mpy": x * y}[op].astype(dtype)
    larger = np.where(order(a) > order(b), a, b) if "max" in op else np.where(order(a) > order(b), b, a)
    result = larger.view(dtype).copy()
    if op.startswith("f") or arch >= 81:
        result[np.isnan(x) | np.isnan(y)] = np.nan
    return result


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("kind", ["sf", "hf"])
def test_ieee_arithmetic(programs: Callable[[int], LaneProgram], arch: int, kind: str) -> None:
    dtype = np.float32 if kind == "sf" else np.float16
    a, b = sf_lanes() if kind == "sf" else hf_lanes()
    for name in V[kind]:
        got = programs(arch).run(name, a, b).view(dtype)
        same(got, binary(name.split("_v")[1].split("_")[0], a, b, dtype, arch), [a, b])


def test_signs(programs: Callable[[int], LaneProgram]) -> None:
    a, h = sf_lanes()[0], hf_lanes()[0]
    assert (programs(79).run("Q6_Vsf_vfneg_Vsf", a).view(np.uint32).ravel() == a ^ np.uint32(1 << 31)).all()
    assert (programs(79).run("Q6_Vsf_vabs_Vsf", a).view(np.uint32).ravel() == a & np.uint32(2**31 - 1)).all()
    assert (programs(79).run("Q6_Vhf_vfneg_Vhf", h).view(np.uint16).ravel() == h ^ np.uint16(1 << 15)).all()
    assert (programs(79).run("Q6_Vhf_vabs_Vhf", h).view(np.uint16).ravel() == h & np.uint16(2**15 - 1)).all()


def bf_float(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def even_odd(x: np.ndarray) -> np.ndarray:
    """Lanes of whole vectors as a widening instruction orders them: 32 even ones, then 32 odd ones."""
    return x.reshape(-1, 32, 2).transpose(0, 2, 1).reshape(-1, 64)


def test_widening(programs: Callable[[int], LaneProgram]) -> None:
    a, b = hf_lanes(3)
    c = sf_lanes(4)[0][: a.size]
    for kind in ("hf", "bf"):
        x, y = (bf_float(v) if kind == "bf" else v.view(np.float16) for v in (a, b))
        x, y = even_odd(x).astype(np.float64), even_odd(y).astype(np.float64)
        acc = c.view(np.float32).reshape(-1, 64)
        with np.errstate(all="ignore"):
            for op, want in (("add", x + y), ("sub", x - y), ("mpy", x * y)):
                got = programs(79).run(f"Q6_Wsf_v{op}_V{kind}V{kind}", a, b).view(np.float32)
                same(got, want.astype(np.float32), [])
            got = programs(79).run(f"Q6_Wsf_vmpyacc_WsfV{kind}V{kind}", c, a, b).view(np.float32)
            want = (acc.astype(np.longdouble) + x.astype(np.longdouble) * y).astype(np.float32)
            within(got, want, np.abs(want), 2.0**-23)  # longdouble rounds twice


def within(got: np.ndarray, want: np.ndarray, scale: np.ndarray, bound: float) -> None:
    """|got - want| <= bound * scale (+ one subnormal step) where finite; equal elsewhere."""
    got, want = got.ravel().astype(np.float64), want.ravel().astype(np.float64)
    finite = np.isfinite(want)
    with np.errstate(all="ignore"):
        error = np.abs(got - want) - bound * np.abs(scale.ravel().astype(np.float64))
    wrong = np.where(finite, ~(error <= 2.0**-149), ~((got == want) | (np.isnan(got) & np.isnan(want))))
    i = int(np.argmax(wrong))
    assert not wrong.any(), f"{wrong.sum()} lanes: lane {i}: {got[i]!r}, expected {want[i]!r}"


def test_dot_product(programs: Callable[[int], LaneProgram]) -> None:
    a, b = hf_lanes(5)
    x, y = (even_odd(v.view(np.float16)).astype(np.float64).reshape(-1, 2, 32) for v in (a, b))
    acc = sf_lanes(6)[0][: a.size // 2]
    with np.errstate(all="ignore"):
        products = x * y
        want = (products[:, 0] + products[:, 1]).astype(np.float32)
        same(programs(79).run("Q6_Vsf_vdmpy_VhfVhf", a, b).view(np.float32), want, [])
        got = programs(79).run("Q6_Vsf_vdmpyacc_VsfVhfVhf", acc, a, b).view(np.float32)
        same(got.ravel(), acc.view(np.float32) + want.ravel(), [])


def test_half_multiply_add_rounds_once(programs: Callable[[int], LaneProgram]) -> None:
    a, b = (v[: 64 * 40] for v in hf_lanes(7))
    c = hf_lanes(8)[1][::-1][: a.size].copy()
    got = programs(79).run("Q6_Vhf_vmpyacc_VhfVhfVhf", c, a, b).view(np.float16).ravel()
    x, y, z = (v.view(np.float16).astype(np.float64) for v in (a, b, c))
    with np.errstate(all="ignore"):
        rough = x * y + z
    for i in range(a.size):
        if not np.isfinite(rough[i]):
            assert np.isnan(got[i]) == np.isnan(rough[i]) and (np.isnan(got[i]) or got[i] == rough[i]), i
            continue
        exact = Fraction(x[i]) * Fraction(y[i]) + Fraction(z[i])
        want = qf.QF16.unit  # scale of the rounding below
        exp = max(int(np.floor(np.log2(abs(float(exact))))) if exact else -14, -14)
        rounded = float(round(exact / Fraction(2) ** exp * want) * Fraction(2) ** exp / want)
        expected = np.float16(rounded) if abs(rounded) < 65520 else np.float16(np.copysign(np.inf, rounded))
        assert got[i] == expected, (i, x[i], y[i], z[i], got[i], expected)


@pytest.mark.parametrize("arch", ARCHS)
def test_compares(programs: Callable[[int], LaneProgram], arch: int) -> None:
    rng = np.random.default_rng(9)
    for kind, (a, b) in (("sf", sf_lanes()), ("hf", hf_lanes()), ("bf", hf_lanes())):
        b = np.where(rng.random(b.size) < 0.1, a, b)
        x, y = (bf_float(v) if kind == "bf" else v.view(np.float32 if kind == "sf" else np.float16) for v in (a, b))
        with np.errstate(all="ignore"):
            greater, equal = x > y, x == y
        if arch < 81 and kind != "bf":
            nan = np.isnan(x) | np.isnan(y)
            greater = np.where(nan, order(a) > order(b), greater)
        q = np.repeat(rng.integers(0, 2, a.size) != 0, a.itemsize)
        for what, want in (("gt", greater), ("eq", equal)):
            if what == "eq" and (arch < 81 or kind == "bf"):
                continue
            wide = np.repeat(want, a.itemsize)
            got = programs(arch).run(f"Q6_Q_vcmp_{what}_V{kind}V{kind}", a, b).ravel()
            assert (got == np.where(wide, 0xFF, 0)).all(), (what, kind)
            for how, both in (("and", q & wide), ("or", q | wide), ("xacc", q ^ wide)):
                mask = np.where(q, 0xFF, 0).astype(np.uint8)
                got = programs(arch).run(f"Q6_Q_vcmp_{what}{how}_QV{kind}V{kind}", mask, a, b).ravel()
                assert (got == np.where(both, 0xFF, 0)).all(), (what, how, kind)


def test_sf_hf_conversions(programs: Callable[[int], LaneProgram]) -> None:
    a, b = sf_lanes()
    h = np.arange(2**16, dtype=np.uint16)
    wide = even_odd(h.view(np.float16)).astype(np.float32)
    same(programs(79).run("Q6_Wsf_vcvt_Vhf", h).view(np.float32), wide, [])
    with np.errstate(all="ignore"):
        want = np.stack([a.view(np.float32), b.view(np.float32)], 1).astype(np.float16)
    same(programs(79).run("Q6_Vhf_vcvt_VsfVsf", a, b).view(np.float16), want, [])
    got = bf_float(programs(79).run("Q6_Vbf_vcvt_VsfVsf", a, b).view(np.uint16).ravel())
    exact = np.stack([a, b], 1).ravel().astype(np.uint64)
    rounded = ((exact + 0x7FFF + (exact >> 16 & 1)) >> 16).astype(np.uint16)
    nan = np.isnan(exact.astype(np.uint32).view(np.float32))
    same(got, np.where(nan, np.float32(np.nan), bf_float(rounded)), [])


def test_integer_conversions(programs: Callable[[int], LaneProgram]) -> None:
    run = programs(79).run
    a = sf_lanes()[0]
    w = a.view(np.int32)
    same(run("Q6_Vsf_equals_Vw", w).view(np.float32), w.astype(np.float64).astype(np.float32), [a])
    x = a.view(np.float32).astype(np.float64)
    to_end = np.where(np.isnan(x), np.where(a >> 31, -np.inf, np.inf), x)
    truncated = np.trunc(np.clip(to_end, -(2.0**31), 2.0**31 - 1))
    assert (run("Q6_Vw_equals_Vsf", a).view(np.int32).ravel() == truncated).all()
    h = np.arange(2**16, dtype=np.uint16)
    y = h.view(np.float16).astype(np.float64)
    by_sign = np.where(np.isnan(y), np.where(h >> 15, -np.inf, np.inf), y)
    up = np.where(np.isnan(y), np.inf, y)
    assert (run("Q6_Vh_equals_Vhf", h).view(np.int16).ravel() == np.trunc(np.clip(by_sign, -32768, 32767))).all()
    assert (run("Q6_Vh_vcvt_Vhf", h).view(np.int16).ravel() == np.clip(np.rint(up), -32768, 32767)).all()
    assert (run("Q6_Vuh_vcvt_Vhf", h).view(np.uint16).ravel() == np.clip(np.rint(up), 0, 65535)).all()
    got = programs(81).run("Q6_Vh_equals_Vhf_rnd", h).view(np.int16).ravel()
    assert (got == np.clip(np.rint(by_sign), -32768, 32767)).all()
    with np.errstate(all="ignore"):
        for name in ("Q6_Vhf_equals_Vh", "Q6_Vhf_vcvt_Vh"):
            same(run(name, h).view(np.float16), h.view(np.int16).astype(np.float64).astype(np.float16), [h])
        same(run("Q6_Vhf_vcvt_Vuh", h).view(np.float16), h.astype(np.float64).astype(np.float16), [h])


@pytest.mark.parametrize("form", ["vcvt", "vcvt2"])
def test_byte_conversions(programs: Callable[[int], LaneProgram], form: str) -> None:
    run = programs(79).run
    h = np.arange(2**16, dtype=np.uint16)
    other = h[::-1].copy()
    group = 2 if form == "vcvt" else 1  # neighbours that stay together
    for kind, low, high, dtype in (("b", -128, 127, np.int8), ("ub", 0, 255, np.uint8)):
        x, y = (np.nan_to_num(v.view(np.float16).astype(np.float64), nan=np.inf) for v in (h, other))
        lanes_ = np.stack([x.reshape(-1, group), y.reshape(-1, group)], 1).ravel()
        got = run(f"Q6_V{kind}_{form}_VhfVhf", h, other).view(dtype).ravel()
        assert (got == np.clip(np.rint(lanes_), low, high)).all()
        bytes_ = np.arange(256, dtype=np.uint8)
        wide = bytes_.view(dtype).astype(np.float16).reshape(-1, 128 // (2 * group), 2, group)
        same(run(f"Q6_Whf_{form}_V{kind}", bytes_).view(np.float16), wide.transpose(0, 2, 1, 3), [])


def test_bf16_min_max(programs: Callable[[int], LaneProgram]) -> None:
    a, b = hf_lanes(10)
    for op in ("max", "min"):
        got = programs(79).run(f"Q6_Vbf_v{op}_VbfVbf", a, b).view(np.uint16).ravel()
        x, y = (v.astype(np.uint32) << 16 for v in (a, b))
        same(bf_float(got), binary(f"f{op}", x, y, np.float32, 79), [a, b])


def qfloat_lanes(kind: str, seed: int, n: int) -> list[np.ndarray]:
    """Operands of which many have close exponents, so that alignment, cancellation and ties occur."""
    f = qf.QF32 if kind[:2] in ("qf", "sf") and kind.endswith(("32", "sf")) else qf.QF16
    dtype = np.uint32 if f is qf.QF32 else np.uint16
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 2**f.bits, (2, n), dtype=np.uint64)
    e = rng.integers(f.bias - 3, f.bias + 4, (2, n), dtype=np.uint64)
    close = (raw & np.uint64(2**f.bits - 2**f.exponent_bits)) | e
    if not kind.startswith("q"):
        close = (raw & np.uint64(2 ** (f.bits - 1) | (f.unit - 1))) | (e << np.uint64(f.fraction_bits))
    cleared = (2 ** (f.fraction_bits - 4) - 1) << (f.exponent_bits if kind.startswith("q") else 0)
    sparse = close & np.uint64(2**f.bits - 1 - cleared)
    third = n // 3
    mixed = np.concatenate([raw[:, :third], close[:, third : 2 * third], sparse[:, 2 * third :]], axis=1).astype(dtype)
    special = SF_SPECIAL if f is qf.QF32 else HF_SPECIAL
    mixed[0, : len(special)] = special
    mixed[1, : len(special)] = special[::-1]
    return [mixed[0], mixed[1]]


def qfloat_case(name: str) -> tuple[str, str, str]:
    """Operation, kinds of the operands (`sf`, `qf32`, ...)."""
    operation = name.split("_v")[1].split("_")[0]
    kinds = name.rsplit("_", 1)[1][1:].split("V")
    return operation, kinds[0], kinds[1]


def model(name: str, a: int, b: int) -> int:
    operation, first, second = qfloat_case(name)
    kinds = "".join("q" if k.startswith("q") else "i" for k in (first, second))
    source = qf.QF32 if first in ("sf", "qf32") else qf.QF16
    target = qf.QF32 if "qf32_" in name else qf.QF16
    if operation == "mpy":
        return qf.mul(target, source, kinds, a, b)
    return qf.add(target, kinds, a, b, minus=operation == "sub")


@pytest.mark.parametrize("arch", LEGACY_QFLOAT)
@pytest.mark.parametrize("name", [*V["q32"], *V["q32mpy"], *V["q16"], *V["qwide"]])
def test_legacy_qfloat_bits(programs: Callable[[int], LaneProgram], arch: int, name: str) -> None:
    _, first, second = qfloat_case(name)
    a, b = qfloat_lanes(first, 11, 1536)[0], qfloat_lanes(second, 12, 1536)[1]
    got = programs(arch).run(name, a, b)
    if name in V["qwide"]:
        pairs = [even_odd(v).ravel() for v in (a, b)]
        words = got.view(np.uint32).ravel()
    else:
        pairs, words = [a, b], got.view(a.dtype).ravel()
    for x, y, z in zip(*(p.tolist() for p in pairs), words.tolist(), strict=True):
        want = model(name, x, y)
        assert z == want, f"{name}({x:#x}, {y:#x}) = {z:#x}, expected {want:#x}"


@pytest.mark.parametrize("arch", LEGACY_QFLOAT)
def test_legacy_qfloat_to_ieee(programs: Callable[[int], LaneProgram], arch: int) -> None:
    a = qfloat_lanes("qf32", 13, 1536)[0]
    got = programs(arch).run("Q6_Vsf_equals_Vqf32", a).view(np.uint32).ravel()
    assert got.tolist() == [qf.to_ieee(qf.QF32, qf.QF32, x) for x in a.tolist()]
    got = programs(arch).run("Q6_Vhf_equals_Wqf32", a).view(np.uint16).reshape(-1, 32, 2).transpose(0, 2, 1).ravel()
    assert got.tolist() == [qf.to_ieee(qf.QF32, qf.QF16, x) for x in a.tolist()]
    h = np.arange(2**16, dtype=np.uint16)
    got = programs(arch).run("Q6_Vhf_equals_Vqf16", h).view(np.uint16).ravel()
    assert got.tolist() == [qf.to_ieee(qf.QF16, qf.QF16, x) for x in h.tolist()]


@pytest.mark.parametrize("arch", ARCHS)
def test_raw_literals(programs: Callable[[int], LaneProgram], arch: int) -> None:
    raw = np.full(64, 0x5082, np.uint16)
    half = programs(arch).run("Q6_Vhf_equals_Vqf16", raw).view(np.float16).ravel()
    assert (half == np.float16(1289 * 2.0**-23)).all()
    assert abs(float(half[0]) - 1.5e-4) < 5e-6
    raw32 = np.full(32, (0x400000 << 8) | 127, np.uint32)
    assert (programs(arch).run("Q6_Vsf_equals_Vqf32", raw32).view(np.float32) == np.float32(1 + 2.0**-23)).all()


def ieee_operands(first: str, second: str, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Lanes of each kind and what they are worth as float64, from the exact layout of qfloat."""
    lanes_, values = [], []
    for k, kind in enumerate((first, second)):
        v = qfloat_lanes(kind, seed + k, 3072)[k]
        dtype = np.float32 if v.dtype == np.uint32 else np.float16
        if kind.startswith("q"):
            f = qf.QF32 if v.dtype == np.uint32 else qf.QF16
            v = np.where((v & (2**f.exponent_bits - 1)) == 2**f.exponent_bits - 1, v - np.asarray(1, v.dtype), v)
            if f is qf.QF32:  # smaller ones are rounded to a subnormal float when they are read
                v = np.where((v & 0xFF) < 24, v | np.uint32(32), v)
            exact = np.array([float(qf.value(f, x)) for x in v.tolist()])
            zero = np.abs(exact) == 2.0 ** -(f.bias + f.fraction_bits)
            value = np.where(zero, np.copysign(0, exact), exact)
        else:
            value = v.view(dtype).astype(np.float64)
        lanes_.append(v)
        values.append(value)
    return lanes_, values


@pytest.mark.parametrize("arch", IEEE_QFLOAT)
@pytest.mark.parametrize("name", [*V["q32"], *V["q32mpy"], *V["q16"], *V["qwide"]])
def test_qfloat_from_v79_is_ieee(programs: Callable[[int], LaneProgram], arch: int, name: str) -> None:
    operation, first, second = qfloat_case(name)
    (a, b), (x, y) = ieee_operands(first, second, 14)
    if name in V["qwide"]:
        x, y = even_odd(x).ravel(), even_odd(y).ravel()
    f, dtype = (qf.QF32, np.float32) if "qf32_" in name else (qf.QF16, np.float16)
    with np.errstate(all="ignore"):
        want = {"add": x + y, "sub": x - y, "mpy": x * y}[operation].astype(np.float32).astype(dtype)
    got = programs(arch).run(name, a, b).view(np.uint32 if f is qf.QF32 else np.uint16).ravel()
    fits = 2.0**105 if f is qf.QF32 else 128.0
    nan = (2**f.fraction_bits - 2) << f.exponent_bits | 2**f.exponent_bits - 1
    for z, w in zip(got.tolist(), want.astype(np.float64).tolist(), strict=True):
        if np.isnan(w):
            assert z == nan
        elif np.isinf(w):
            assert z == (qf.pack(f, (2 * f.unit - 1) * (1 if w > 0 else -1), 2**f.exponent_bits - 1))
        elif w == 0:
            assert z == qf.pack(f, int(np.copysign(1, w)), 0)
        elif abs(w) < fits:
            assert qf.value(f, z) == Fraction(w), hex(z)
        else:
            assert abs(qf.value(f, z) / Fraction(w) - 1) <= Fraction(1, f.unit), hex(z)


@pytest.mark.parametrize("arch", IEEE_QFLOAT)
def test_qfloat_from_v79_round_trip(programs: Callable[[int], LaneProgram], arch: int) -> None:
    """x + 0 through qf32 gives x back, specials included, and converts to half with one rounding."""
    a = sf_lanes()[0]
    run, zero = programs(arch).run, np.zeros_like(a)
    x = a.view(np.float32)
    with np.errstate(all="ignore"):
        clean = np.where(np.abs(x) < 2.0**105, x, np.where(np.isfinite(x), np.float32(2.0**105), x))
    clean = clean + np.float32(0)
    q = run("Q6_Vqf32_vadd_VsfVsf", clean, zero)
    exact = np.abs(clean) != np.float32(2.0**105)
    same(run("Q6_Vsf_equals_Vqf32", q).view(np.float32).ravel()[exact], clean[exact], [])
    with np.errstate(all="ignore"):
        halves = clean.reshape(-1, 2, 32).transpose(0, 2, 1).astype(np.float16)
    same(run("Q6_Vhf_equals_Wqf32", q).view(np.float16), halves, [])


def test_qfloat_by_scalar_and_sign(programs: Callable[[int], LaneProgram]) -> None:
    run = programs(81).run
    a, h = sf_lanes()[0], hf_lanes()[0]
    r, rh = np.full_like(a, 0x40490FDB), np.full_like(h, 0x4248)
    by_vector = run("Q6_Vqf32_vmpy_VsfVsf", a, r)
    assert (run("Q6_Vqf32_vmpy_VsfRsf", a, r) == by_vector).all()
    assert (run("Q6_Vqf16_vmpy_VhfRhf", h, rh) == run("Q6_Vqf16_vmpy_VhfVhf", h, rh)).all()
    assert (run("Q6_Vqf16_vmpy_Vqf16Rhf", h, rh) == run("Q6_Vqf16_vmpy_Vqf16Vhf", h, rh)).all()
    zero, hzero = np.zeros_like(a), np.zeros_like(h)
    for q, i, v, z in (("qf32", "sf", a, zero), ("qf16", "hf", h, hzero)):
        plain = run(f"Q6_V{q}_equals_V{i}", v)
        assert (run(f"Q6_V{q}_equals_V{q}", plain) == plain).all()
        negative = run(f"Q6_V{q}_vneg_V{i}", v)
        assert (run(f"Q6_V{q}_vneg_V{q}", plain) == negative).all()
        assert (run(f"Q6_V{q}_vabs_V{q}", plain) == run(f"Q6_V{q}_vabs_V{i}", v)).all()
        assert (run(f"Q6_V{q}_vsub_V{i}V{q}", z, plain) == run(f"Q6_V{q}_vsub_V{i}V{i}", z, v)).all()


def test_exponents_and_bf16_from_qfloat(programs: Callable[[int], LaneProgram]) -> None:
    run = programs(81).run
    a, b = sf_lanes()
    x = np.abs(a.view(np.float32).astype(np.float64))
    with np.errstate(all="ignore"):
        want = np.frexp(x)[1].astype(np.int64) - 1
    want = np.select([x == 0, np.isinf(x), np.isnan(x)], [-(2**31), 2**31 - 2, 2**31 - 1], want)
    assert (run("Q6_Vw_vilog2_Vsf", a).view(np.int32).ravel() == want).all()
    qa, qb = run("Q6_Vqf32_equals_Vsf", a), run("Q6_Vqf32_equals_Vsf", b)
    assert (run("Q6_Vw_vilog2_Vqf32", qa).view(np.int32).ravel() == want).all()
    through = [run("Q6_Vsf_equals_Vqf32", q) for q in (qa, qb)]
    direct = run("Q6_Vbf_vcvt_VsfVsf", *through)
    assert (run("Q6_Vbf_equals_Wqf32", np.concatenate([qa, qb], axis=1)) == direct).all()


@pytest.mark.slow
@pytest.mark.parametrize("arch", [73, 79])
def test_sanitized_build_gives_the_same_bits(programs: Callable[[int], LaneProgram], arch: int, tmp_path: Path) -> None:
    """clang with ASan and UBSan against the release build: no report, and only NaN payloads differ."""
    sanitized = LaneProgram("hvx_float", functions(arch), tmp_path, native.Target(flavour="asan", arch=arch))
    rng = np.random.default_rng(15)
    for name, signature in functions(arch).items():
        operands = [rng.integers(0, 256, (100, 256 if k == "W" else 128), dtype=np.uint8) for k in signature[2:]]
        if signature[2:].startswith("Q"):
            operands[0] = np.where(operands[0] > 127, 255, 0).astype(np.uint8)
        got, want = sanitized.run(name, *operands), programs(arch).run(name, *operands)
        dtype = np.float32 if "sf_v" in name else np.float16
        differs = got.view(f"u{dtype().itemsize}") != want.view(f"u{dtype().itemsize}")
        assert not (differs & ~(np.isnan(got.view(dtype)) & np.isnan(want.view(dtype)))).any(), name
