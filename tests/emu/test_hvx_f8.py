"""Eight-bit floats (v79) against float64: every pair of bytes, every half."""

from __future__ import annotations

import numpy as np
import pytest

from hexnpu.native import Target
from tests.emu.lane_program import LaneProgram

FUNCTIONS = {
    "Q6_Whf_vadd_VV": "W:VV", "Q6_Whf_vsub_VV": "W:VV", "Q6_Whf_vmpy_VV": "W:VV", "Q6_Whf_vmpyacc_WhfVV": "W:WVV",
    "Q6_Whf_vcvt_V": "W:V", "Q6_V_vcvt_VhfVhf": "V:VV",
    "Q6_V_vabs_V": "V:V", "Q6_V_vfneg_V": "V:V", "Q6_V_vfmax_VV": "V:VV", "Q6_V_vfmin_VV": "V:VV",
}  # fmt: skip


@pytest.fixture(scope="module", params=[Target("release", 79), Target("asan", 81)], ids=["release", "asan"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LaneProgram:
    return LaneProgram("hvx_f8", FUNCTIONS, tmp_path_factory.mktemp("hvx_f8"), request.param)


def value(byte: np.ndarray) -> np.ndarray:
    """Bias 8, exponent 15 is a number as any other, subnormals, 0x80 is NaN."""
    byte = byte.astype(np.int64)
    exponent, fraction = byte >> 3 & 15, byte & 7
    magnitude = np.where(exponent, (8 + fraction) * 2.0 ** (exponent - 11), fraction * 2.0**-10)
    return np.where(byte == 0x80, np.nan, np.where(byte & 0x80, -magnitude, magnitude))


BYTES = np.arange(256, dtype=np.uint8)
U, V = (x.ravel() for x in np.meshgrid(BYTES, BYTES))


def even_odd(lanes: np.ndarray) -> np.ndarray:
    """Bytes as a widening instruction orders them: a vector's even ones, then its odd ones."""
    return lanes.reshape(-1, 64, 2).transpose(0, 2, 1).ravel()


def same_halves(got: np.ndarray, want: np.ndarray) -> None:
    got = got.view(np.float16).ravel()
    wrong = (got.view(np.uint16) != want.view(np.uint16)) & ~(np.isnan(got) & np.isnan(want))
    i = int(np.argmax(wrong))
    assert not wrong.any(), f"{wrong.sum()} lanes: lane {i}: {got[i]}, expected {want[i]}"


@pytest.mark.parametrize("op", ["add", "sub", "mpy"])
def test_every_pair(program: LaneProgram, op: str) -> None:
    x, y = value(even_odd(U)), value(even_odd(V))
    want = {"add": x + y, "sub": x - y, "mpy": x * y}[op].astype(np.float16)
    same_halves(program.run(f"Q6_Whf_v{op}_VV", U, V), want)


def test_products_accumulate(program: LaneProgram) -> None:
    rng = np.random.default_rng(1)
    acc = rng.integers(0, 1 << 16, U.size, dtype=np.uint16)
    acc[:8] = [0x7C00, 0xFC00, 0x7FFF, 0x7E00, 0, 0x8000, 1, 0x7BFF]
    x, y = value(even_odd(U)).astype(np.float32), value(even_odd(V)).astype(np.float32)
    with np.errstate(all="ignore"):
        want = (x * y + acc.view(np.float16).astype(np.float32)).astype(np.float16)
    same_halves(program.run("Q6_Whf_vmpyacc_WhfVV", acc, U, V), want)


def test_signs_minima_maxima(program: LaneProgram) -> None:
    def run(name: str, *operands: np.ndarray) -> np.ndarray:
        return value(program.run(name, *operands).ravel())

    x, y = value(U), value(V)
    np.testing.assert_array_equal(run("Q6_V_vabs_V", U), np.abs(x))
    np.testing.assert_array_equal(run("Q6_V_vfneg_V", U), -x)
    np.testing.assert_array_equal(run("Q6_V_vfmax_VV", U, V), np.maximum(x, y))
    np.testing.assert_array_equal(run("Q6_V_vfmin_VV", U, V), np.minimum(x, y))
    assert program.run("Q6_V_vfneg_V", np.zeros(128, np.uint8)).max() == 0, "there is no negative zero"


def test_every_byte_to_half(program: LaneProgram) -> None:
    same_halves(program.run("Q6_Whf_vcvt_V", U), value(even_odd(U)).astype(np.float16))


def test_every_half_to_byte(program: LaneProgram) -> None:
    """Nearest even; 248 would round to 256 and is NaN, as infinity; what rounds to zero is +0."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    got = program.run("Q6_V_vcvt_VhfVhf", halves, halves[::-1].copy()).reshape(-1, 64, 2)
    numbers = np.array(sorted((value(np.uint8(b)), b) for b in range(128)))
    x = np.abs(halves.view(np.float16).astype(np.float64))
    x = np.where(x < 1e9, x, 1e9)  # infinity and NaN end as what is too large
    above = np.clip(np.searchsorted(numbers[:, 0], x), 1, 127)
    low, high = numbers[above - 1], numbers[above]
    to_low, to_high = x - low[:, 0], high[:, 0] - x
    nearer = np.where(to_low == to_high, high[:, 1] % 2 == 0, to_high < to_low)
    want = np.where(nearer, high[:, 1], low[:, 1]).astype(np.uint8)
    want |= np.where((halves >> 15).astype(bool) & (want != 0), 0x80, 0).astype(np.uint8)
    want[~(x < 248)] = 0x80
    np.testing.assert_array_equal(got[:, :, 0].ravel(), want)
    np.testing.assert_array_equal(got[:, :, 1].ravel(), want[::-1])
