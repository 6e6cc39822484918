"""Weight tiles, read back byte by byte as include/htp-tiles.h describes them, against gguf's own dequantization."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize

from hexnpu.repack import TILED, repack, tile_desc
from hexnpu.tensor import Desc, Type

ZERO_POINT = {Type.Q4_0: 8, Type.Q4_1: 0, Type.Q8_0: 128}


def quantized(type: Type, shape: tuple[int, ...], seed: int = 0) -> npt.NDArray[np.uint8]:
    weights = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return quantize(weights, GGMLQuantizationType(int(type))).reshape(-1).view(np.uint8)


def weight_at(type: Type, tile: npt.NDArray[np.uint8], row: int, k: int) -> float:
    """One weight of a tile, by the words of the header file."""
    n_vectors = 8 if type == Type.Q8_0 else 4
    if type == Type.Q8_0:
        quant = int(tile[128 * (k // 4) + 4 * row + k % 4])
    else:
        byte = int(tile[128 * (k % 16 // 4) + 4 * row + k % 4])
        quant = byte >> 4 if k >= 16 else byte & 15
    d, m = tile[128 * n_vectors + 4 * row :][:4].view(np.float16).astype(np.float32)
    return float(d * np.float32(quant - ZERO_POINT[type]) + m)


@pytest.mark.parametrize("type", sorted(TILED))
@pytest.mark.parametrize("ne", [(32, 32), (96, 33), (64, 1), (32, 31, 2), (64, 65, 2, 3)])
def test_every_weight_is_where_the_header_says(type: Type, ne: tuple[int, ...]) -> None:
    desc = Desc.contiguous(type, ne)
    raw = quantized(type, ne[::-1])
    tiled = tile_desc(desc)
    data = repack(desc, raw)
    assert data.nbytes == tiled.span_bytes
    expected = dequantize(raw.reshape(desc.n_rows, -1), GGMLQuantizationType(int(type))).reshape(desc.ne[::-1])
    for i3, i2, n, k in np.ndindex(expected.shape):
        place = i3 * tiled.nb[3] + i2 * tiled.nb[2] + n // 32 * tiled.nb[1] + k // 32 * tiled.nb[0]
        assert weight_at(type, data[place : place + tiled.nb[0]], n % 32, k % 32) == expected[i3, i2, n, k]


@pytest.mark.parametrize("type", sorted(TILED))
def test_rows_beyond_the_matrix_are_zero(type: Type) -> None:
    tiles = repack(Desc.contiguous(type, (32, 5)), quantized(type, (5, 32)))
    assert not tiles.reshape(-1, 32, 4)[:, 5:].any()


def test_what_cannot_be_repacked_says_so() -> None:
    with pytest.raises(ValueError, match="F16 weights have no tile form"):
        repack(Desc.contiguous(Type.F16, (32, 32)), np.zeros(2048, np.uint8))
    with pytest.raises(ValueError, match=r"takes 640 contiguous bytes, got 10"):
        repack(Desc.contiguous(Type.Q4_1, (32, 32)), np.zeros(10, np.uint8))
