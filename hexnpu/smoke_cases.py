"""The cases of `hexnpu smoke`: for each op the shapes that it is run with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hexnpu.graph import Graph, Tensor
from hexnpu.tensor import BLOCKS, DTYPES, Type

Array = npt.NDArray[Any]

N_K, N_ROWS = 256, 75  # whole blocks of every type; a last tile that is not full
N = 100  # no whole number of vectors
HEAD, N_HEADS, N_KV_HEADS, N_KV = 64, 4, 2, 67


class Builder:
    """What a case builds its op from: inputs and weights with random values."""

    def __init__(self, type: Type, seed: int) -> None:
        self.type = type
        self.g = Graph()
        self.inputs: dict[str, Array] = {}
        self._rng = np.random.default_rng(seed)

    def input(self, *ne: int, type: Type = Type.F32) -> Tensor:
        """An input of random numbers."""
        return self.given(self.numbers(*ne).astype(DTYPES[type]))

    def given(self, array: Array) -> Tensor:
        """An input of these values."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        kind = next(t for t, d in DTYPES.items() if d == array.dtype)
        return self.g.input(name, tuple(reversed(array.shape)), kind)

    def weight(self, *ne: int) -> Tensor:
        """A constant of the case's type."""
        kind = self.type
        name = f"w{len(self.g.weights)}"
        if kind in (Type.I32, Type.I64):
            return self.g.weight(name, self._rng.integers(-99, 99, tuple(reversed(ne))).astype(DTYPES[kind]))
        if kind in DTYPES:
            return self.g.weight(name, self.numbers(*ne).astype(DTYPES[kind]))
        return self.g.weight(name, (kind, ne, self._blocks(kind, ne)))

    def index(self, n: int, below: int) -> Tensor:
        """n different numbers, in no order."""
        return self.given(self._rng.permutation(below)[:n].astype(np.int32))

    def numbers(self, *ne: int) -> Array:
        """Random numbers, float32, in numpy's order of axes."""
        return self._rng.standard_normal(tuple(reversed(ne)), np.float32)

    def _blocks(self, kind: Type, ne: tuple[int, ...]) -> bytes:
        import gguf

        number = gguf.GGMLQuantizationType(int(kind))
        try:
            return bytes(gguf.quants.quantize(self.numbers(*ne), number).tobytes())
        except NotImplementedError:
            return self._random_blocks(kind, ne)

    def _random_blocks(self, kind: Type, ne: tuple[int, ...]) -> bytes:
        """K-quants, which gguf only reads: any bytes are a block, with scales that are small numbers."""
        elements, size = BLOCKS[kind]
        n = int(np.prod(ne)) // elements
        blocks = self._rng.integers(0, 256, (n, size), dtype=np.uint8)
        scale = self._rng.uniform(0.01, 0.02, (n, 2)).astype(np.float16).view(np.uint8)
        if kind == Type.Q6_K:
            blocks[:, -2:] = scale[:, :2]  # the scale ends the block
        else:
            blocks[:, :4] = scale  # scale and minimum begin it
        return blocks.tobytes()


Case = Callable[[Builder, int], Tensor]
"""Adds one op with n columns (rows, tokens) to the graph."""


def _mul_mat(b: Builder, n: int) -> Tensor:
    return b.g.mul_mat(b.weight(N_K, N_ROWS), b.input(N_K, n))


def _mul_mat_add(b: Builder, n: int) -> Tensor:
    return b.g.op("MUL_MAT_ADD", b.weight(N_K, N_ROWS), b.input(N_K, n), b.input(N_ROWS, n))


def _mul_mat_nx(b: Builder, n: int) -> Tensor:
    return b.g.op("MUL_MAT_NX", b.input(N_K, n), b.weight(N_K, N_ROWS), b.weight(N_K, 32), b.weight(N_K, 32))


def _binary(op: str, *, repeated: bool) -> Case:
    def build(b: Builder, n: int) -> Tensor:
        x, y = b.numbers(N, n), b.numbers(N, 1 if repeated else n)
        if op == "DIV":
            y = np.abs(y) + 1  # away from 0
        dtype = DTYPES[b.type]
        return b.g.op(op, b.given(x.astype(dtype)), b.given(y.astype(dtype)))

    return build


def _unary(op: str, **params: Any) -> Case:
    return lambda b, n: b.g.op(op, b.input(N, n), **params)


def _rms_norm_mul(b: Builder, n: int) -> Tensor:
    return b.g.op("RMS_NORM_MUL", b.input(N, n), b.weight(N), eps=1e-5)


def _glu(op: str, **params: Any) -> tuple[Case, Case]:
    return (
        lambda b, n: b.g.op(op, b.input(N, n), b.input(N, n), **params),
        lambda b, n: b.g.op(op, b.input(2 * N, n), None, **params),
    )


def _causal(n: int, n_kv: int) -> Array:
    """0 where a token may look, -inf elsewhere; the last token sees everything."""
    return np.where(np.tri(n, n_kv, n_kv - n) > 0, 0, -np.inf).astype(np.float16)


def _softmax(b: Builder, n: int) -> Tensor:
    return b.g.softmax(b.input(N, n), b.given(_causal(n, N)), scale=0.5)


def _softmax_sinks(b: Builder, n: int) -> Tensor:
    return b.g.softmax(b.input(N, n, N_HEADS), None, b.input(N_HEADS))


def _rope(mode: str) -> Case:
    def build(b: Builder, n: int) -> Tensor:
        return b.g.rope(b.input(HEAD, N_HEADS, n), b.given(np.arange(7, 7 + n, dtype=np.int32)), mode=mode)

    return build


def _flash_attn(b: Builder, n: int) -> Tensor:
    k, v = (b.weight(HEAD, N_KV, N_KV_HEADS) for _ in range(2))
    return b.g.flash_attn(b.input(HEAD, n, N_HEADS), k, v, b.given(_causal(n, N_KV)))


def _get_rows(b: Builder, n: int) -> Tensor:
    return b.g.get_rows(b.weight(N_K, N_ROWS), b.index(n, N_ROWS))


def _set_rows(b: Builder, n: int) -> Tensor:
    state = b.g.state(f"smoke {b.type.name} {n}", (N_K, N_ROWS), b.type)
    return b.g.set_rows(state, b.input(N_K, n), b.index(n, N_ROWS))


def _cpy(b: Builder, n: int) -> Tensor:
    return b.g.cpy(b.input(N, n, type=b.type), b.type)


def _cpy_converted(b: Builder, n: int) -> Tensor:
    return b.g.cpy(b.input(N, n, type=b.type), Type.F16 if b.type is Type.F32 else Type.F32)


CASES: dict[str, tuple[Case, ...]] = {
    **{op: (_binary(op, repeated=False), _binary(op, repeated=True)) for op in ("MUL", "ADD", "SUB", "DIV")},
    "MUL_MAT": (_mul_mat,),
    "MUL_MAT_NX": (_mul_mat_nx,),
    "MUL_MAT_ADD": (_mul_mat_add,),
    "RMS_NORM": (_unary("RMS_NORM", eps=1e-5),),
    "RMS_NORM_MUL": (_rms_norm_mul,),
    **{op: (_unary(op),) for op in ("UNARY_SILU", "UNARY_GELU", "UNARY_SIGMOID")},
    "GLU_SWIGLU": _glu("GLU_SWIGLU"),
    "GLU_SWIGLU_OAI": _glu("GLU_SWIGLU_OAI", alpha=1.702, limit=7.0),
    "GLU_GEGLU": _glu("GLU_GEGLU"),
    "SOFTMAX": (_softmax, _softmax_sinks),
    "ROPE": (_rope("normal"), _rope("neox")),
    "FLASH_ATTN_EXT": (_flash_attn,),
    "SET_ROWS": (_set_rows,),
    "GET_ROWS": (_get_rows,),
    "SCALE": (_unary("SCALE", s=-1.7, b=3.0),),
    "CPY": (_cpy, _cpy_converted),
}
# Between several sessions only: `hexnpu smoke` opens one.
GROUP_OPS = frozenset({"FENCE", "CPY_FENCE", "ALLREDUCE", "ALLREDUCE_ADD"})
