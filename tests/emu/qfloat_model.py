"""qfloat of v73/v75 in exact rational arithmetic, lane by lane: slow, independent of the emulator, for its tests.

A lane is n * 2^(e - bias - fraction bits) with n odd. Rounding, for a value R * 2^(exp - fraction bits):
- where the exponent cannot grow, to the nearest odd n; where it can, also n = 2 (mod 4) is reachable (half of it, with
  the next exponent); a tie goes down, except that the one at a multiple of 4 goes up;
- R outside [-2, 2) units is halved first; so it is where the exponent is below the range by one; else it saturates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def unit(self) -> int:
        return 2**self.fraction_bits

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits


QF32 = Format(8, 23)
QF16 = Format(5, 10)


@dataclass(frozen=True)
class Number:
    """sig / unit * 2^exp, not normalised."""

    sig: Fraction
    exp: int


def signed(value: int, bits: int) -> int:
    return value - 2**bits if value >> (bits - 1) & 1 else value


def parse(f: Format, lane: int) -> Number:
    m = signed(lane >> f.exponent_bits, f.fraction_bits + 1)
    return Number(Fraction(2 * m + 1), lane % 2**f.exponent_bits - f.bias)


def value(f: Format, lane: int) -> Fraction:
    number = parse(f, lane)
    return number.sig / f.unit * Fraction(2) ** number.exp


def parse_ieee(f: Format, lane: int) -> tuple[int, Number]:
    """Sign (0 or 1) and magnitude; infinity and NaN are read as numbers."""
    field = lane >> f.fraction_bits & (2**f.exponent_bits - 1)
    fraction = lane % f.unit + (f.unit if field else 0)
    return lane >> (f.bits - 1), Number(Fraction(fraction), max(field, 1) - f.bias)


def negate(f: Format, lane: int) -> int:
    return lane ^ (2**f.bits - 2**f.exponent_bits)


def nearest(r: Fraction, exponent_may_grow: bool) -> int:
    base = math.floor(r / 4) * 4
    candidates = [base - 1, base + 1, base + 3, base + 5] + ([base + 2] if exponent_may_grow else [])
    best = min(abs(r - c) for c in candidates)
    tied = [c for c in candidates if abs(r - c) == best]
    return max(tied) if r == base else min(tied)


def pack(f: Format, n: int, e: int) -> int:
    assert n % 2 == 1, n
    return ((n - 1) // 2 << f.exponent_bits | e) % 2**f.bits


def round_lane(f: Format, r: Fraction, exp: int) -> int:
    most, least = f.bias + 1, -f.bias
    carry = r >= 2 * f.unit or r < -2 * f.unit
    if exp > most or (carry and exp == most):
        return pack(f, (2 * f.unit - 1) * (1 if r >= 0 else -1), 0 if r == 0 else most + f.bias)
    if exp < least - 1:
        return pack(f, 1 if r >= 0 else -1, 0)
    if carry or exp == least - 1:
        n, exp = nearest(r / 2, False), exp + 1
    else:
        n = nearest(r, exp < most)
        if n % 2 == 0:
            n, exp = n // 2, exp + 1
    return pack(f, n, 0 if r == 0 else exp + f.bias)


def add_numbers(f: Format, a: Number, b: Number) -> int:
    first, other = (a, b) if a.exp > b.exp else (b, a)
    lead = -(f.fraction_bits + 1) if first.sig == 0 else math.frexp(float(abs(first.sig)))[1] - 1 - f.fraction_bits
    exp = max(first.exp + lead, other.exp)
    total = sum((x.sig * Fraction(2) ** (x.exp - exp) for x in (a, b)), Fraction(0))
    return round_lane(f, total, exp)


def with_sign(sign: int, x: Number) -> Number:
    return Number(-x.sig if sign else x.sig, x.exp)


def add(f: Format, kinds: str, a: int, b: int, minus: bool = False) -> int:
    """`kinds` names the operands: `ii`, `qi` or `qq` (IEEE or qfloat)."""
    if kinds == "ii":
        (sa, x), (sb, y) = parse_ieee(f, a), parse_ieee(f, b)
        sb ^= minus
        if sa and sb:
            return negate(f, add_numbers(f, x, y))
        return add_numbers(f, with_sign(sa, x), with_sign(sb, y))
    if kinds == "qi":
        sb, y = parse_ieee(f, b)
        return add_numbers(f, parse(f, a), with_sign(sb ^ minus, y))
    y = parse(f, b)
    return add_numbers(f, parse(f, a), with_sign(minus, y))


def mul(f: Format, source: Format, kinds: str, a: int, b: int) -> int:
    signs, numbers = [], []
    for kind, lane in zip(kinds, (a, b), strict=True):
        sign, number = parse_ieee(source, lane) if kind == "i" else (0, parse(source, lane))
        signs.append(sign)
        numbers.append(number)
    x, y = numbers
    product = x.sig * y.sig / source.unit**2 * f.unit
    lane = round_lane(f, product, x.exp + y.exp)
    return negate(f, lane) if sum(signs) % 2 else lane


def to_ieee(source: Format, f: Format, lane: int) -> int:
    """IEEE bits of format f, nearest even; the exponent field goes on to all ones, where it saturates."""
    exact = value(source, lane)
    sign, size = exact < 0, abs(exact)
    exp = max(math.floor(math.log2(size)), 1 - f.bias)
    while size >= Fraction(2) ** (exp + 1):
        exp += 1
    while exp > 1 - f.bias and size < Fraction(2) ** exp:
        exp -= 1
    scaled = size / Fraction(2) ** exp * f.unit
    rounded = round(scaled)  # Fraction rounds to even
    bits = rounded + (exp + f.bias - 1) * f.unit
    return min(bits, 2 ** (f.bits - 1) - 1) | sign << (f.bits - 1)
