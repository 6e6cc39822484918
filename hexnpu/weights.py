"""What a weight is made from: its type and shape, its bytes, and whether they can be right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hexnpu.errors import HexnpuError, UsageError
from hexnpu.plan.base import ShapeError
from hexnpu.tensor import BLOCKS, DTYPES, Desc, Shape, Type

MAX_ELEMENTS = 1 << 31
MAX_BYTES = 1 << 32


class GgufLike(Protocol):
    """A tensor of a GGUF file that reads its own bytes (hexnpu.models.gguf_file.GgufTensor)."""

    @property
    def type(self) -> Type: ...
    @property
    def ne(self) -> Shape: ...
    def read(self) -> npt.NDArray[np.uint8]: ...


# A numpy array, (type, ne, bytes), a tensor of our GGUF reader (GgufLike), or a ReaderTensor of the gguf package, which
# has no types.
WeightSource = Any


def dense(what: str, type: Type, ne: Sequence[int]) -> Desc:
    """A contiguous tensor's descriptor. Raises ShapeError in the words of `what` where there can be none."""
    if not 1 <= len(ne) <= 4 or any(int(n) != n or n < 0 for n in ne):
        raise ShapeError(f"{what}: {tuple(ne)} is no shape of one to four dimensions")
    try:
        return wieldy(what, Desc.contiguous(type, tuple(int(n) for n in ne)))
    except ValueError as error:
        raise ShapeError(f"{what}: {error}") from None


def wieldy(what: str, desc: Desc) -> Desc:
    """The descriptor itself. Raises ShapeError where the tensor is larger than the wire's 32-bit sizes can say."""
    if desc.n_elements >= MAX_ELEMENTS or desc.span_bytes >= MAX_BYTES:
        raise ShapeError(f"{what}: {desc} is too large; a tensor has less than 2^31 elements and 2^32 bytes")
    return desc


def describe_source(name: str, source: WeightSource) -> tuple[Type, tuple[int, ...]]:
    """Type and ne of what a weight is made from."""
    if isinstance(source, np.ndarray):
        for kind, dtype in DTYPES.items():
            if source.dtype == dtype:
                return kind, tuple(reversed(source.shape)) or (1,)
        raise UsageError(f"weight {name}: an array of {source.dtype}; use float32, float16, int32 or int64")
    if isinstance(source, tuple) and len(source) == 3:
        kind, ne, data = source
        want = dense(f"weight {name}", Type(kind), ne).span_bytes
        if len(data) != want:
            raise ShapeError(f"weight {name}: {len(data)} bytes, {Type(kind).name} of ne {tuple(ne)} takes {want}")
        return Type(kind), tuple(ne)
    if hasattr(source, "read") and hasattr(source, "ne"):
        return source.type, source.ne
    if hasattr(source, "tensor_type"):  # gguf.ReaderTensor
        try:
            return Type(int(source.tensor_type)), tuple(int(n) for n in source.shape)
        except ValueError:
            raise UsageError(f"weight {name}: type {source.tensor_type.name} is not known here") from None
    raise UsageError(
        f"weight {name}: made from a {type(source).__name__}; use a numpy array, a GGUF tensor or (Type, ne, bytes)"
    )


def read_source(source: WeightSource) -> npt.NDArray[np.uint8]:
    """The bytes of what a weight is made from, flat."""
    if isinstance(source, np.ndarray):
        return np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    if hasattr(source, "tensor_type"):  # a ReaderTensor is a tuple too
        return np.ascontiguousarray(source.data).reshape(-1).view(np.uint8)
    if isinstance(source, tuple):
        return np.frombuffer(source[2], np.uint8)
    return np.asarray(source.read())


class WeightError(HexnpuError):
    """A weight that holds NaN or infinite scales."""


# Where a block keeps its half-precision scales: byte offsets.
_SCALES = {
    Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q8_0: (0,), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,),
    Type.IQ4_NL: (0,),
}  # fmt: skip


def check_finite(name: str, type: Type, raw: npt.NDArray[np.uint8]) -> None:
    """Raises WeightError for NaN elements or scales (and infinite scales): every product with them would be NaN."""
    if type in (Type.F32, Type.F16):
        bad = int(np.count_nonzero(np.isnan(raw.view(DTYPES[type]))))
    elif type in _SCALES:
        blocks = raw.reshape(-1, BLOCKS[type][1])
        bad = 0
        for at in _SCALES[type]:
            # The upper byte of a half: all ones in the exponent means inf or NaN.
            bad += int(np.count_nonzero((blocks[:, at + 1] & 0x7C) == 0x7C))
    else:
        return
    if bad:
        what = "elements are NaN" if type in DTYPES else "scales are NaN or infinite"
        raise WeightError(f"weight {name}: {bad} {what}; the file is damaged or was converted wrongly")
