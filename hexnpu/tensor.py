"""Tensor types and shapes in ggml's terms: `ne` counts elements, fastest dimension first; `nb` is bytes a step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

Shape = tuple[int, int, int, int]


class Type(IntEnum):
    """ggml's type numbers; 200 + n is type n repacked into tiles of 32 rows x 32 k (see docs/kernels.md)."""

    F32 = 0
    F16 = 1
    Q4_0 = 2
    Q4_1 = 3
    Q8_0 = 8
    Q4_K = 12
    Q5_K = 13
    Q6_K = 14
    IQ4_NL = 20
    I32 = 26
    I64 = 27
    MXFP4 = 39
    TILE_F32 = 200
    TILE_F16 = 201
    TILE_Q4_0 = 202
    TILE_Q4_1 = 203
    TILE_Q8_0 = 208


TILE = 32

# (elements, bytes) of one block. A tile type's block is the whole 32 x 32 tile.
BLOCKS: dict[Type, tuple[int, int]] = {
    Type.F32: (1, 4),
    Type.F16: (1, 2),
    Type.I32: (1, 4),
    Type.I64: (1, 8),
    Type.Q4_0: (32, 18),
    Type.Q4_1: (32, 20),
    Type.Q8_0: (32, 34),
    Type.Q4_K: (256, 144),
    Type.Q5_K: (256, 176),
    Type.Q6_K: (256, 210),
    Type.IQ4_NL: (32, 18),
    Type.MXFP4: (32, 17),
    Type.TILE_F32: (1024, 4096),
    Type.TILE_F16: (1024, 2048),
    Type.TILE_Q4_0: (1024, 640),
    Type.TILE_Q4_1: (1024, 640),
    Type.TILE_Q8_0: (1024, 1152),
}

DTYPES: dict[Type, np.dtype[np.generic]] = {
    Type.F32: np.dtype(np.float32),
    Type.F16: np.dtype(np.float16),
    Type.I32: np.dtype(np.int32),
    Type.I64: np.dtype(np.int64),
}


def row_bytes(type: Type, n: int) -> int:
    """Bytes of a contiguous row of `n` elements. Raises ValueError where `n` is no whole number of blocks."""
    elements, size = BLOCKS[type]
    if n % elements:
        raise ValueError(f"a row of {n} elements is not a whole number of {type.name} blocks of {elements}")
    return n // elements * size


@dataclass(frozen=True, slots=True)
class Desc:
    """Type, shape and strides of a tensor, without its place in memory."""

    type: Type
    ne: Shape
    nb: Shape

    @staticmethod
    def contiguous(type: Type, ne: tuple[int, ...]) -> Desc:
        """The dense layout. For a tile type nb[0] is a tile, nb[1] a row of tiles (32 rows of elements), both ne[0] and
        ne[1] rounded up to whole tiles."""
        padded = (*ne, 1, 1, 1, 1)
        shape: Shape = (padded[0], padded[1], padded[2], padded[3])
        nb0 = BLOCKS[type][1]
        if type >= Type.TILE_F32:
            nb1 = -(-shape[0] // TILE) * nb0
            nb2 = -(-shape[1] // TILE) * nb1
        else:
            nb1 = row_bytes(type, shape[0])
            nb2 = nb1 * shape[1]
        return Desc(type, shape, (nb0, nb1, nb2, nb2 * shape[2]))

    @property
    def n_rows(self) -> int:
        return self.ne[1] * self.ne[2] * self.ne[3]

    @property
    def n_elements(self) -> int:
        return self.ne[0] * self.n_rows

    @property
    def row_bytes(self) -> int:
        return row_bytes(self.type, self.ne[0])

    @property
    def span_bytes(self) -> int:
        """Bytes from the first to behind the last element; 0 for an empty tensor."""
        if not self.n_elements:
            return 0
        if self.type >= Type.TILE_F32:
            return self.nb[3] * self.ne[3]
        elements, size = BLOCKS[self.type]
        first_row = (self.ne[0] // elements - 1) * self.nb[0] + size  # a transposed row has gaps
        return first_row + sum((n - 1) * b for n, b in zip(self.ne[1:], self.nb[1:], strict=True))

    @property
    def is_contiguous(self) -> bool:
        # A dimension of size 1 is never walked, so its stride does not matter.
        want = Desc.contiguous(self.type, self.ne)
        return all(n == 1 or a == b for n, a, b in zip(self.ne, self.nb, want.nb, strict=True))

    def __str__(self) -> str:
        return f"{self.type.name.lower()}[{':'.join(map(str, self.ne))}]"
