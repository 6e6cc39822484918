"""Text fields of many lines at once: unaligned 8-byte loads and arithmetic on their bytes, in numpy.

A text is a uint8 array with at least PAD bytes in front of and behind what is read. `words(text)[p]` are the bytes
p .. p+7 as one little-endian integer: the first character is its lowest byte.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

PAD = 64

_ZEROS = np.uint64(0x3030303030303030)
_LOW7 = np.uint64(0x7F7F7F7F7F7F7F7F)
_TEN_UP = np.uint64(0x7676767676767676)  # 0x80 - 10: sets a byte's top bit when it is 10 or more
_HIGH = np.uint64(0x8080808080808080)
_GATHER = np.uint64(0x0102040810204080)  # collects bit 0 of the eight bytes in the top byte
_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_QUADS = np.uint64(0x0000FFFF0000FFFF)
_LOW32 = np.uint64(0xFFFFFFFF)
_U = np.uint64


def _run_lengths(from_top: bool) -> npt.NDArray[np.int64]:
    """For each 8-bit mask of foreign bytes: how many bytes before the first foreign one, from either end."""
    table = np.zeros(256, np.int64)
    for mask in range(256):
        bits = [mask >> i & 1 for i in range(8)]
        if from_top:
            bits.reverse()
        table[mask] = bits.index(1) if 1 in bits else 8
    return table


_LEADING = _run_lengths(from_top=False)
_TRAILING = _run_lengths(from_top=True)
_TEN_TO = 10 ** np.arange(9, dtype=np.uint64)
# _KEEP[k]: the k highest bytes. A shift by 64 is not portable, hence a table.
_KEEP = np.array([0] + [((1 << 64) - 1) ^ ((1 << (64 - 8 * k)) - 1) for k in range(1, 8)] + [(1 << 64) - 1], np.uint64)


def words(text: npt.NDArray[np.uint8]) -> Words:
    """A view of every 8-byte window of the text."""
    view: Words = np.ndarray((len(text) - 7,), np.dtype("<u8"), text.data, 0, (1,))
    return view


def word(text: bytes) -> np.uint64:
    """Up to 8 characters as they stand in the low bytes of a word."""
    value: np.uint64 = np.uint64(int.from_bytes(text, "little"))
    return value


def _movemask(flags: Words) -> npt.NDArray[np.intp]:
    """The top bits of the eight bytes as one 8-bit number, the first character's in bit 0."""
    mask: npt.NDArray[np.intp] = (((flags >> _U(7)) * _GATHER) >> _U(56)).astype(np.intp)
    return mask


def _foreign_to_digits(values: Words) -> tuple[Words, npt.NDArray[np.intp]]:
    digits = values ^ _ZEROS
    return digits, _movemask((((digits & _LOW7) + _TEN_UP) | digits) & _HIGH)


def _decimal(digits: Words) -> Words:
    """Eight digit bytes, the most significant first (lowest byte), as a number."""
    value = (digits * _U(10) + (digits >> _U(8))) & _PAIRS
    value = (value * _U(100) + (value >> _U(16))) & _QUADS
    number: Words = (value * _U(10000) + (value >> _U(32))) & _LOW32
    return number


def number_before(view: Words, end: Positions, wide: bool) -> tuple[Words, Positions]:
    """The decimal numbers that end just before `end`: (values, number of digits; 0 = none).

    Up to 7 digits are read, up to 15 if `wide`; 8 or 16 digits are returned where there are more.
    """
    digits, foreign = _foreign_to_digits(view[end - 8])
    count = _TRAILING[foreign]
    value = _decimal(digits & _KEEP[count])
    if wide:
        full = np.flatnonzero(count == 8)
        if len(full):
            digits, foreign = _foreign_to_digits(view[end[full] - 16])
            more = _TRAILING[foreign]
            value[full] += _decimal(digits & _KEEP[more]) * _U(100_000_000)
            count[full] += more
    return value, count


def number_at(view: Words, start: Positions) -> tuple[Words, Positions]:
    """The decimal numbers that begin at `start`: (values, number of digits; 0 = none, 16 = perhaps longer)."""
    digits, foreign = _foreign_to_digits(view[start])
    count = _LEADING[foreign]
    value = _decimal((digits << (_U(64) - (count << 3).astype(np.uint64))) & _KEEP[count])
    full = np.flatnonzero(count == 8)
    if len(full):
        digits, foreign = _foreign_to_digits(view[start[full] + 8])
        more = _LEADING[foreign]
        low = _decimal((digits << (_U(64) - (more << 3).astype(np.uint64))) & _KEEP[more])
        value[full] = value[full] * _TEN_TO[more] + low
        count[full] += more
    return value, count


def letters_before(view: Words, end: Positions, stop: int) -> tuple[Words, Positions]:
    """The up to 8 bytes before `end` and after the last byte equal to `stop`: (bytes in the high end, how many)."""
    values = view[end - 8]
    differ = values ^ _U(stop * 0x0101010101010101)
    equal = ~(((differ & _LOW7) + _LOW7) | differ | _LOW7)
    count = _TRAILING[_movemask(equal)]
    return values & _KEEP[count], count
