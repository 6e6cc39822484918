"""Quantized weights -> tiles of 32 rows x 32 k, the layout of include/htp-tiles.h. Done once, at upload."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hexnpu.tensor import BLOCKS, TILE, Desc, Type

TILED = {Type.Q4_0: Type.TILE_Q4_0, Type.Q4_1: Type.TILE_Q4_1, Type.Q8_0: Type.TILE_Q8_0}

# A block as 32-bit words: its quants, and its scales as one more word (d in the low half, m in the high one).
_BLOCK_WORDS = {
    Type.Q4_0: np.dtype([("dm", "<u2"), ("qs", "<u4", (4,))]),
    Type.Q4_1: np.dtype([("dm", "<u4"), ("qs", "<u4", (4,))]),
    Type.Q8_0: np.dtype([("dm", "<u2"), ("qs", "<u4", (8,))]),
}
_SIGN_BITS = np.uint32(0x80808080)  # w + 128 for four signed bytes at once


def tile_desc(desc: Desc) -> Desc:
    """The descriptor of `desc`'s matrices as tiles."""
    return Desc.contiguous(TILED[desc.type], desc.ne)


def repack(desc: Desc, raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The bytes of a contiguous quantized tensor (GGUF's layout) as tiles; `tile_desc(desc).span_bytes` of them.

    Raises ValueError where the type has no tile form or the bytes are not those of the tensor.
    """
    if desc.type not in TILED:
        raise ValueError(f"{desc.type.name} weights have no tile form")
    if raw.size != desc.span_bytes or not desc.is_contiguous:
        raise ValueError(f"{desc} takes {desc.span_bytes} contiguous bytes, got {raw.size}")
    k, n = desc.ne[0], desc.ne[1]
    matrices, n_blocks, whole, rest = desc.ne[2] * desc.ne[3], k // TILE, n // TILE, n % TILE
    n_words = BLOCKS[TILED[desc.type]][1] // (4 * TILE)
    tiles = np.zeros((matrices, whole + (rest > 0), n_blocks, n_words, TILE), np.uint32)
    blocks = np.ascontiguousarray(raw).view(_BLOCK_WORDS[desc.type]).reshape(matrices, n, n_blocks)
    for rows, out in zip(blocks, tiles, strict=True):
        _fill(rows[: whole * TILE].reshape(whole, TILE, n_blocks), out[:whole])
        if rest:
            _fill(rows[None, whole * TILE :], out[whole:])
    if desc.type == Type.Q8_0:
        tiles[..., :-1, :] ^= _SIGN_BITS
        tiles[:, whole:, :, :-1, rest:] = 0
    return tiles.reshape(-1).view(np.uint8)


def _fill(blocks: npt.NDArray[np.void], tiles: npt.NDArray[np.uint32]) -> None:
    """blocks: (tile rows, up to 32 rows, K / 32); tiles: (tile rows, K / 32, words, 32)."""
    n_rows = blocks.shape[1]
    tiles[..., :-1, :n_rows] = blocks["qs"].transpose(0, 2, 3, 1)
    tiles[..., -1, :n_rows] = blocks["dm"].transpose(0, 2, 1)
