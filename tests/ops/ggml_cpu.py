"""Single ops computed by ggml itself: the CPU back end inside the xllamacpp wheel, called through its C interface.

    with Ggml() as g:
        y = g.compute(g.op("ggml_rope_ext", g.tensor(x), g.tensor(pos, Type.I32), None, 64, 0, 0, 10000.0, ...))

It proves that a family's float64 reference means what ggml means; its own results carry float32 and F16 rounding.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import xllamacpp

from hexnpu.tensor import Type
from tests.ops.harness import Arg, rows_of

POOL_BYTES = 64 << 20


class _InitParams(ctypes.Structure):
    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    (path,) = Path(xllamacpp.__file__).parent.glob("xllamacpp*.so")
    lib = ctypes.CDLL(str(path))
    lib.ggml_cpu_init()
    lib.ggml_init.argtypes = (_InitParams,)
    for name in ("ggml_init", "ggml_new_tensor_4d", "ggml_get_data", "ggml_new_graph"):
        getattr(lib, name).restype = ctypes.c_void_p
    return lib


class Tensor:
    def __init__(self, pointer: int) -> None:
        self.pointer = pointer


class Ggml:
    """A ggml context; tensors live until it is left."""

    def __enter__(self) -> Ggml:
        self._lib = _library()
        self._ctx = ctypes.c_void_p(self._lib.ggml_init(_InitParams(POOL_BYTES, None, False)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lib.ggml_free(self._ctx)

    def tensor(self, array: np.ndarray[Any, Any], type: Type = Type.F32) -> Tensor:
        """A contiguous tensor of a numpy array (ne reversed), quantized by gguf where `type` asks for it."""
        rows = np.ascontiguousarray(rows_of(Arg(array, type)))
        ne = (*reversed(array.shape), 1, 1, 1)[:4]
        pointer = self._lib.ggml_new_tensor_4d(self._ctx, int(type), *(ctypes.c_int64(n) for n in ne))
        ctypes.memmove(self._lib.ggml_get_data(ctypes.c_void_p(pointer)), rows.ctypes.data, rows.nbytes)
        return Tensor(pointer)

    def op(self, name: str, *args: Tensor | int | float | None) -> Tensor:
        """Calls the function that makes an op; floats go as C floats."""
        function = getattr(self._lib, name)
        function.restype = ctypes.c_void_p
        return Tensor(function(self._ctx, *map(_argument, args)))

    def call(self, name: str, *args: Tensor) -> None:
        """Calls a function that changes tensors and takes no context."""
        getattr(self._lib, name)(*map(_argument, args))

    def compute(self, result: Tensor, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """The F32 values of an op's result, shaped like numpy."""
        graph = ctypes.c_void_p(self._lib.ggml_new_graph(self._ctx))
        self._lib.ggml_build_forward_expand(graph, ctypes.c_void_p(result.pointer))
        assert self._lib.ggml_graph_compute_with_ctx(self._ctx, graph, 1) == 0
        data = self._lib.ggml_get_data(ctypes.c_void_p(result.pointer))
        floats = (ctypes.c_float * int(np.prod(shape))).from_address(data)
        return np.array(floats, np.float64).reshape(shape)


def _argument(value: Tensor | int | float | None) -> Any:
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.pointer)
    if value is None:
        return ctypes.c_void_p(None)
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int(value)
