"""Ops that the NPU cannot take, in numpy (float32), on the same memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hexnpu.batch import Placed
from hexnpu.graph import Kind, Tensor
from hexnpu.plan import family
from hexnpu.plan.base import OpSpec
from hexnpu.tensor import DTYPES, Desc, Type
from hexnpu.weights import read_source

Array = npt.NDArray[Any]


def run_on_host(
    spec: OpSpec, src: Sequence[Tensor | None], places: Sequence[Placed | None], dst: Sequence[Placed]
) -> None:
    """Computes one op. `places` are those of the sources; a weight has none and is read from what it was made from."""
    descs = tuple(None if t is None else t.desc for t in src)
    arrays: list[Array | None] = [
        None if t is None else _source_values(t, place) for t, place in zip(src, places, strict=True)
    ]
    old: list[Array] = []
    if spec.op == "SET_ROWS":
        old = [_placed_values(dst[0])]
        arrays += old
    spec = dataclasses.replace(spec, src=descs)
    with np.errstate(all="ignore"):
        results = family(spec.op).reference(spec, arrays, np.float32)
    for i, (place, result) in enumerate(zip(dst, results, strict=True)):
        _store(place, np.asarray(result), old[i] if old else None)


def _source_values(t: Tensor, place: Placed | None) -> Array:
    if place is not None:
        return _placed_values(place)
    assert t.root.kind is Kind.WEIGHT
    return read_values(t.desc, read_source(t.root.source), t.offset)


def _placed_values(place: Placed) -> Array:
    place.buffer.fetch(place.offset, place.desc.span_bytes)
    # A copy: the reference may keep it while the destination is written.
    values: Array = read_values(place.desc, place.buffer.view, place.offset).copy()
    return values


def read_values(desc: Desc, memory: npt.NDArray[np.uint8], offset: int) -> Array:
    """The elements in numpy order, 4-D: a view where the type has a dtype, otherwise dequantized to float32."""
    if desc.type in DTYPES:
        return elements(desc, memory, offset)
    from gguf import quants

    values: Array = quants.dequantize(np.ascontiguousarray(rows(desc, memory, offset)), _kind(desc.type))
    return values


def elements(desc: Desc, memory: npt.NDArray[np.uint8], offset: int) -> Array:
    """A strided view of a tensor of F32, F16, I32 or I64, axes in numpy order."""
    if not desc.n_elements:
        return np.zeros(desc.ne[::-1], DTYPES[desc.type])
    view: Array = np.ndarray(desc.ne[::-1], DTYPES[desc.type], memory.data, offset, desc.nb[::-1])
    return view


def rows(desc: Desc, memory: npt.NDArray[np.uint8], offset: int) -> npt.NDArray[np.uint8]:
    """A strided view of a tensor's rows as bytes: [ne3, ne2, ne1, bytes of a row]."""
    shape = (*desc.ne[:0:-1], desc.row_bytes)
    if not desc.n_elements:
        return np.zeros(shape, np.uint8)
    view: npt.NDArray[np.uint8] = np.ndarray(shape, np.uint8, memory.data, offset, (*desc.nb[:0:-1], 1))
    return view


def _kind(type: Type) -> Any:
    from gguf import GGMLQuantizationType

    return GGMLQuantizationType(int(type))


def _store(place: Placed, values: Array, old: Array | None) -> None:
    desc, memory = place.desc, place.buffer.view
    place.buffer.fetch(place.offset, desc.span_bytes)
    if desc.type in DTYPES:
        elements(desc, memory, place.offset)[...] = values
    else:
        from gguf import quants

        target = rows(desc, memory, place.offset)
        quantized = quants.quantize(np.ascontiguousarray(values, np.float32), _kind(desc.type))
        # Rows that were not written keep their blocks: quantizing again could change them.
        written = np.ones(values.shape[:-1], bool) if old is None else (values != old).any(axis=-1)
        target[written] = quantized[written]
    place.buffer.flush(place.offset, desc.span_bytes)
