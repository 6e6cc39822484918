"""The matrix unit (platform/emu/hmx.c) against float64 products, its tile layout element by element, and its rules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from hexnpu.native import ARCHS, Target, compile_program, kernels_dir

HERE = Path(__file__).parent
TILE = 2048
DEEP, WEIGHT_DEEP = 1, 2
BEFORE, RETAIN, POS = 1, 2, 4
UNIT_SCALE = [0x3C00] * 32 + [0] * 32


def start(
    image: bytes, *script: str, target: Target, extra: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    sources = [HERE / "hmx_program.c", *sorted((kernels_dir() / "platform/emu").glob("*.c"))]
    program = compile_program("hmx-program", sources, target, extra)
    return subprocess.run([program, *script], input=image, capture_output=True, check=False)


class Vtcm:
    """VTCM as the tests lay it out: tiles, weights and column words, each at an offset of its own."""

    def __init__(self, *parts: np.ndarray) -> None:
        self.image = bytearray()
        self.offsets = [self.put(part) for part in parts]

    def put(self, part: np.ndarray) -> int:
        self.image += bytes(-len(self.image) % TILE)
        self.image += np.ascontiguousarray(part).tobytes()
        return len(self.image) - part.nbytes

    def room(self, n_tiles: int = 1) -> int:
        return self.put(np.full(n_tiles * TILE, 0xEE, np.uint8))

    def run(self, *script: str, target: Target | None = None, extra: tuple[str, ...] = ()) -> bytes:
        done = start(bytes(self.image), *script, target=target or Target(), extra=extra)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        assert len(done.stdout) == len(self.image)
        return done.stdout


def columns(words: list[int]) -> np.ndarray:
    return np.array(words, np.uint32)


def packed(matrix: np.ndarray) -> np.ndarray:
    """Rows of 32 halves as tiles: element (r, c) is halfword (r/2)*64 + 2c + (r&1)."""
    rows = matrix.astype(np.float16).reshape(-1, 2, 32)
    return rows.transpose(0, 2, 1).copy()


def unpacked(data: bytes, offset: int) -> np.ndarray:
    return np.frombuffer(data, np.float16, 1024, offset).reshape(16, 32, 2).transpose(0, 2, 1).reshape(32, 32)


def activation_tiles(a: np.ndarray) -> np.ndarray:
    """32 rows of K elements as K/32 tiles one after the other."""
    return np.concatenate([packed(a[:, k : k + 32]) for k in range(0, a.shape[1], 32)])


def half_spacing(x: np.ndarray) -> np.ndarray:
    return np.exp2(np.maximum(np.floor(np.log2(np.abs(x) + 1e-30)), -14.0) - 10)


def assert_product(got: np.ndarray, a: np.ndarray, w: np.ndarray, scale: np.ndarray | float = 1.0) -> None:
    """Within half a unit of the last place of a half, and what 24-bit sums may lose."""
    a, w = a.astype(np.float16).astype(np.float64), w.astype(np.float16).astype(np.float64)
    exact, most = a @ w * scale, np.abs(a) @ np.abs(w) * np.abs(scale)
    bound = 0.5 * half_spacing(exact) + (a.shape[1] + 4) * 2.0**-24 * most
    worst = np.max(np.abs(got.astype(np.float64) - exact) - bound)
    assert worst <= 0, f"{worst} beyond the bound"


def random_matrix(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    return (rng.standard_normal((rows, cols)) * np.exp2(rng.integers(-6, 3, (rows, 1)))).astype(np.float16)


def test_layout_element_by_element() -> None:
    """A single 1 in the activations picks one row of the weights, for each of the 1024 places."""
    ones = np.zeros((1024, 32, 32), np.float16)
    for place in range(1024):
        ones[place, place // 32, place % 32] = 1
    weights = np.arange(1024, dtype=np.float16).reshape(32, 32)
    activations = np.concatenate([packed(one) for one in ones])
    vtcm = Vtcm(columns(UNIT_SCALE), activations, packed(weights))
    bias, a, w = vtcm.offsets
    out = vtcm.room(1024)
    script = [f"bias {bias}"]
    for place in range(1024):
        script += [f"mac {a + place * TILE} 2047 {w} 2047 0", f"store {out + place * TILE} 0 0"]
    data = vtcm.run(*script)
    for place in range(1024):
        expected = np.zeros((32, 32), np.float16)
        expected[place // 32] = weights[place % 32]
        assert np.array_equal(unpacked(data, out + place * TILE), expected), f"row {place // 32}, element {place % 32}"


def deep_products(target: Target, extra: tuple[str, ...] = ()) -> None:
    rng = np.random.default_rng(target.arch)
    for n_tiles in (1, 2, 3, int(rng.integers(4, 31)), 31, 32):
        a, w = random_matrix(rng, 32, 32 * n_tiles), random_matrix(rng, 32 * n_tiles, 32)
        vtcm = Vtcm(columns(UNIT_SCALE), activation_tiles(a), packed(w))
        bias, at, wt = vtcm.offsets
        out, last = vtcm.room(), n_tiles * TILE - 1
        deep = f"mac {at} {last} {wt} {last} {DEEP}"
        one_by_one = [f"mac {at + t * TILE} 2047 {wt + t * TILE} 2047 0" for t in range(n_tiles)]
        by_intrinsics = f"intrinsics {at} {wt} {n_tiles} {out}"
        for products in (["clear", deep, f"store {out} 0 0"], [*one_by_one, f"store {out} 0 0"], [by_intrinsics]):
            data = vtcm.run(f"bias {bias}", *products, target=target, extra=extra)
            assert_product(unpacked(data, out), a, w)


@pytest.mark.parametrize("arch", ARCHS)
def test_deep_products(arch: int) -> None:
    deep_products(Target("release", arch))


def test_deep_products_under_sanitizers() -> None:
    deep_products(Target("asan"))


def test_deep_products_of_any_processor() -> None:
    deep_products(Target(), ("-DHEXNPU_EMU_GENERIC",))


def test_longer_products_accumulate() -> None:
    rng = np.random.default_rng(5)
    a, w = random_matrix(rng, 32, 32 * 77), random_matrix(rng, 32 * 77, 32)
    vtcm = Vtcm(columns(UNIT_SCALE), activation_tiles(a), packed(w))
    bias, at, wt = vtcm.offsets
    out = vtcm.room()
    macs = []
    for t, n in ((0, 32), (32, 32), (64, 13)):
        macs.append(f"mac {at + t * TILE} {n * TILE - 1} {wt + t * TILE} {n * TILE - 1} 1")
    data = vtcm.run(f"bias {bias}", "clear", *macs, f"store {out} 2047 0")
    assert_product(unpacked(data, out), a, w)


@pytest.mark.parametrize(("n_tiles", "first", "last"), [(1, 0, 7), (1, 8, 15), (1, 16, 31), (3, 24, 15), (2, 16, 7)])
def test_part_of_the_inner_elements(n_tiles: int, first: int, last: int) -> None:
    """Tiles of activations are whole, their weights are a stream without gaps."""
    rng = np.random.default_rng(first + last)
    a = random_matrix(rng, 32, 32 * n_tiles)
    k = slice(first, (n_tiles - 1) * 32 + last + 1)
    w = random_matrix(rng, k.stop - k.start, 32)
    vtcm = Vtcm(columns(UNIT_SCALE), activation_tiles(a), packed(w))
    bias, at, wt = vtcm.offsets
    out = vtcm.room()
    a_range, w_range = (n_tiles - 1) << 11 | 0x783 | last << 2, len(w) * 64 - 1
    data = vtcm.run(f"bias {bias}", f"mac {at | first << 2} {a_range} {wt} {w_range} 1", f"store {out} 0 0")
    assert_product(unpacked(data, out), a[:, k], w)


def test_column_words() -> None:
    """Each column has a scale and an output bias of its own, and a bias before the scale."""
    rng = np.random.default_rng(9)
    a, w = random_matrix(rng, 32, 32), random_matrix(rng, 32, 32)
    scale, after, before = (rng.standard_normal(32).astype(np.float16) for _ in range(3))
    bits = [x.view(np.uint16).astype(np.uint32) for x in (scale, after, before)]
    words = np.concatenate([bits[0] | bits[1] << 16, bits[2] << 16])
    vtcm = Vtcm(words, packed(a), packed(w))
    bias, at, wt = vtcm.offsets
    full, low = vtcm.room(), vtcm.room()
    mac = f"mac {at} 2047 {wt} 2047 0"
    data = vtcm.run(f"bias {bias}", mac, f"store {full} 0 0", f"bias_low {bias}", mac, f"store {low} 0 0")
    product = a.astype(np.float64) @ w.astype(np.float64)
    f64 = [x.astype(np.float64) for x in (scale, after, before)]
    for offset, exact in ((full, (product + f64[2]) * f64[0] + f64[1]), (low, product * f64[0] + f64[1])):
        got = unpacked(data, offset).astype(np.float64)
        assert np.all(np.abs(got - exact) <= 0.5 * half_spacing(exact) + 2e-4)


def test_the_extra_bits_of_a_column() -> None:
    """Four more bits of the scale and of the output bias, five of the bias before; negation; shapes of the sum."""
    sums = np.zeros((32, 32))
    sums[0], sums[1] = 3, -3
    words = []
    high = [8, 8 << 4, 16 << 11 | 0x3C00 << 16, 1 << 10, 1 << 8, 2 << 8, 3 << 8]
    for column in range(32):
        words.append(0x3C00 | (0x3C00 << 16 if column == 1 else 0))
    words += high + [0] * (32 - len(high))
    vtcm = Vtcm(columns(words), packed(np.eye(32)), packed(sums))
    bias, at, wt = vtcm.offsets
    out = vtcm.room()
    data = vtcm.run(f"bias {bias}", f"mac {at} 2047 {wt} 2047 0", f"store {out} 0 0")
    half_ulp = 2.0**-11
    exact = [
        [3 * (1 + half_ulp), 4 + half_ulp, 4 + half_ulp, -3, 0, 3, 3],
        [-3 * (1 + half_ulp), -2 + half_ulp, -2 + half_ulp, 3, -3, 0, 3],
    ]
    assert np.array_equal(unpacked(data, out)[:2, : len(high)], np.array(exact).astype(np.float16))


def test_accumulators() -> None:
    """A store clears its accumulator and swaps, :retain does neither; mxclracc.hf clears both."""
    one, two = np.eye(32), 2 * np.eye(32)
    vtcm = Vtcm(columns(UNIT_SCALE), packed(one), packed(two))
    bias, a, w = vtcm.offsets
    out = [vtcm.room() for _ in range(9)]
    mac_one, mac_two = f"mac {a} 2047 {a} 2047 0", f"mac {a} 2047 {w} 2047 0"
    data = vtcm.run(
        f"bias {bias}",
        mac_one, f"store {out[0]} 0 {RETAIN}", mac_two, f"store {out[1]} 0 0",  # 1, 3
        mac_two, f"store {out[2]} 0 0", f"store {out[3]} 0 0",  # 2, 0
        mac_one, "swap", mac_two, f"store {out[4]} 0 {RETAIN}", "swap", f"store {out[5]} 0 {RETAIN}",  # 2, 1
        "clear", f"store {out[6]} 0 {RETAIN}", "swap", f"store {out[7]} 0 {RETAIN}",  # 0, 0
        mac_one, f"store {out[8]} 0 {RETAIN | BEFORE}",  # nothing lies before an aligned tile
    )  # fmt: skip
    got = [unpacked(data, o)[0, 0] for o in out[:8]]
    assert got == [1, 3, 2, 0, 2, 1, 0, 0]
    assert data[out[8] : out[8] + TILE] == b"\xee" * TILE


def test_deep_weights_fill_both_accumulators() -> None:
    rng = np.random.default_rng(3)
    a, w = random_matrix(rng, 32, 64), random_matrix(rng, 128, 32)
    vtcm = Vtcm(columns(UNIT_SCALE), activation_tiles(a), packed(w))
    bias, at, wt = vtcm.offsets
    out = [vtcm.room(), vtcm.room()]
    mac = f"mac {at} 4095 {wt} 8191 {DEEP | WEIGHT_DEEP}"
    data = vtcm.run(f"bias {bias}", mac, f"store {out[0]} 0 0", f"store {out[1]} 0 0")
    assert_product(unpacked(data, out[0]), a, w[:64])
    assert_product(unpacked(data, out[1]), a, w[64:])


def test_other_ways_to_say_it() -> None:
    """Halves of a packet, negated weights, conversion and store apart, four banks of column words."""
    rng = np.random.default_rng(4)
    a, w = random_matrix(rng, 32, 32), random_matrix(rng, 32, 32)
    vtcm = Vtcm(columns([0] * 64), columns(UNIT_SCALE), packed(a), packed(w))
    zero, bias, at, wt = vtcm.offsets
    out = [vtcm.room() for _ in range(4)]
    data = vtcm.run(
        f"bias {zero}", f"bias {bias | 3}",
        f"activation {at} 2047 0", f"weight {wt} 2047 0", f"convert {2 | 3 << 12}", f"store_converted {out[0]} 0",
        f"mac {at} 2047 {wt | 32} 2047 0", f"convert {3 | 3 << 12}", f"store_converted {out[1]} 0",
        f"convert {3 << 12}", f"store_converted {out[2]} 0",
        f"mac {at} 2047 {wt} 2047 0", f"store {out[3]} 0 0",
    )  # fmt: skip
    assert_product(unpacked(data, out[0]), a, w)
    assert_product(unpacked(data, out[1]), a, -w)
    assert np.array_equal(unpacked(data, out[2]), np.maximum(unpacked(data, out[1]), 0))
    assert not unpacked(data, out[3]).any(), "bank 0 has scales of zero"


def extended(bits: np.ndarray) -> np.ndarray:
    """Halves as the unit reads them: exponent 31 is one more exponent."""
    bits = bits.astype(np.int64)
    exponent, fraction = bits >> 10 & 31, bits & 1023
    magnitude = np.where(exponent, (1024 + fraction) * 2.0 ** (exponent - 25), fraction * 2.0**-24)
    return np.where(bits & 0x8000, -magnitude, magnitude)


def test_every_half_passes() -> None:
    """Times the unit matrix. Infinity and NaN do not exist: their patterns are numbers up to 131008. -0 becomes +0."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(64, 32, 32)
    vtcm = Vtcm(columns(UNIT_SCALE), np.concatenate([packed(tile) for tile in halves]), packed(np.eye(32)))
    bias, a, w = vtcm.offsets
    out = vtcm.room(64)
    script = [f"bias {bias}"]
    for t in range(64):
        script += [f"mac {a + t * TILE} 2047 {w} 2047 0", f"store {out + t * TILE} 0 0"]
    data = vtcm.run(*script)
    got = np.concatenate([unpacked(data, out + t * TILE) for t in range(64)]).view(np.uint16).ravel()
    expected = np.arange(1 << 16, dtype=np.uint16)
    expected[0x8000] = 0
    np.testing.assert_array_equal(got, expected)


def test_overflow_and_rounding_at_the_edges() -> None:
    """Up to 131008 nearest even, then 131008; down to subnormal halves; :pos drops negative results."""
    bits = np.array([0x7BFF, 0xFBFF, 0x7C00, 0x7FFF, 0xFFFF, 0x7BFF, 0x0400, 0x0001], np.uint16)
    factors = np.array([1, 1.0009765625, 1.5, 2, 2.0**-9, 2.0**-10, 2.0**-11, 1.0002], np.float16)
    a, w = np.zeros((32, 32), np.float16), np.zeros((32, 32), np.float16)
    a[:8, 0], w[0, :8] = bits.view(np.float16), factors
    vtcm = Vtcm(columns(UNIT_SCALE), packed(a), packed(w))
    bias, at, wt = vtcm.offsets
    out, positive = vtcm.room(), vtcm.room()
    mac = f"mac {at} 2047 {wt} 2047 0"
    data = vtcm.run(f"bias {bias}", mac, f"store {out} 0 {RETAIN}", f"store {positive} 0 {POS}")
    exact = np.multiply.outer(extended(bits), factors.astype(np.float64))
    numbers = extended(np.arange(0x8000, dtype=np.uint16))
    nearest = np.searchsorted((numbers[1:] + numbers[:-1]) / 2, np.abs(exact))
    tie = np.isin(np.abs(exact), (numbers[1:] + numbers[:-1]) / 2)
    expected = nearest + (tie & (nearest % 2 == 1))
    expected |= np.where((exact < 0) & (expected != 0), 0x8000, 0)
    np.testing.assert_array_equal(unpacked(data, out).view(np.uint16)[:8, :8], expected)
    kept = np.where(expected & 0x8000, 0, expected)
    np.testing.assert_array_equal(unpacked(data, positive).view(np.uint16)[:8, :8], kept)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (["hold 0", "clear"], "mxclracc.hf on a thread without HAP_compute_res_hmx_lock()"),
        (["hold 0", "mac 0 2047 2048 2047 0"], "activation.hf = mxmem on a thread without HAP_compute_res_hmx_lock()"),
        (["mac 1024 2047 2048 2047 0"], "a tile must be 2048-byte aligned"),
        (["mac 0 2047 2064 2047 0"], "weights must be 128-byte aligned"),
        (["mac 0 4095 0 4095 0"], "without :deep it takes one tile"),
        (["mac 0 67583 0 67583 1"], "at most 32 tiles"),
        (["mac 0 4095 0 2047 1"], "the activations ask for 4096 bytes of weights"),
        (["mac 0 2035 0 2047 1"], "must begin and end at a multiple of 8"),
        (["mac 8386560 4095 0 4095 1"], "not within VTCM"),
        (["mac 0 4095 8386560 4095 1"], "weight.hf = mxmem at"),
        (["mac -2048 2047 0 2047 0"], "not within VTCM"),
        (["weight 0 2047 0"], "without activation.hf = mxmem"),
        (["bias 128"], "the column words must be 256-byte aligned"),
        (["bias 8388608"], "bias = mxmem at"),
        (["store 8388608 0 0"], "mxmem.hf = acc at"),
        (["store 512 0 0"], "a tile must be 2048-byte aligned"),
        (["store 0 4096 0"], "its parameter below 2048"),
        (["convert 130"], "only bits 0 (retain)"),
    ],
)  # fmt: skip
def test_broken_rules_end_the_process(script: list[str], says: str) -> None:
    done = start(bytes(TILE), *script, target=Target())
    assert done.returncode == -6, f"{script} went on"
    assert says in done.stderr.decode()
