"""SOFTMAX: softmax(x * scale + slope * mask) over each row, F32 (ggml's soft_max_ext).

mask: F16 or F32, [columns, at least as many rows, repeats over heads, repeats over batches]. slope: 1, or ALiBi's where
max_bias > 0. sinks: F32 [heads], one more term of each row's sum. A row that is -inf throughout gives 0 (ggml: NaN).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, ShapeError, f32_bits
from hexnpu.plan.rowwise import EXP_WORK, Array, need_repeat, need_type, number, plan_rows, src_of, tile_to
from hexnpu.tensor import Desc, Type


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """x's shape and type. Raises ShapeError where mask or sinks do not go with it."""
    x, mask, sinks = (*src, None, None, None)[:3]
    if x is None or len(src) > 3:
        raise ShapeError(f"{op} takes x, a mask and sinks, not {len(src)} tensors")
    if mask is not None:
        if mask.ne[0] != x.ne[0] or mask.ne[1] < x.ne[1]:
            raise ShapeError(f"{op}: the mask {mask} has not the columns and rows of {x}")
        need_repeat(op, mask, "the mask", x.ne, range(2, 4))
    elif number(op, "max_bias", params.get("max_bias", 0.0)) > 0:
        raise ShapeError(f"{op}: max_bias needs a mask")
    if sinks is not None and (sinks.ne[0] != x.ne[2] or sinks.n_rows != 1):
        raise ShapeError(f"{op}: sinks {sinks} must be one row of {x.ne[2]}, the heads of {x}")
    return (Desc.contiguous(x.type, x.ne),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """`scale` (1) and `max_bias` (0)."""
    if unknown := params.keys() - {"scale", "max_bias"}:
        raise ShapeError(f"{op} takes scale and max_bias, not {', '.join(sorted(unknown))}")
    scale, bias = (number(op, k, params.get(k, default)) for k, default in (("scale", 1.0), ("max_bias", 0.0)))
    return (f32_bits(scale), f32_bits(bias), *(0,) * 14)


def plan(spec: OpSpec, device: Device) -> Plan:
    x, mask, sinks = spec.src[0], src_of(spec, 1), src_of(spec, 2)
    assert x is not None
    need_type("src0", x, Type.F32)
    need_type("dst", spec.dst[0], Type.F32)
    src = [x]
    if mask is not None:
        need_type("src1", mask, Type.F16, Type.F32)
        src.append(mask)
    if sinks is not None:
        need_type("src2", sinks, Type.F32)
        src.append(Desc.contiguous(Type.F32, (1, 1, sinks.ne[0], 1)))
    n_pow2, *bases = alibi(x.ne[2], spec.f32(1))
    name = "softmax" + (f"-mask-{mask.type.name.lower()}" if mask else "") + ("-sinks" if sinks else "")
    args = (n_pow2, *map(f32_bits, bases))
    return plan_rows(device, spec.dst[0], src, kernel_name=name, elementwise=False, work=EXP_WORK, args=args)


def alibi(n_heads: int, max_bias: float) -> tuple[int, float, float]:
    """(n, b0, b1) of ALiBi's slopes: head h has b0^(h + 1) below n (a power of 2), b1^(2 (h - n) + 1) from n on."""
    n_pow2 = 1 << max(n_heads, 1).bit_length() - 1
    return n_pow2, 2.0 ** (-max_bias / n_pow2), 2.0 ** (-max_bias / 2 / n_pow2)


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    x, mask, sinks = (*src[: len(spec.src)], None, None)[:3]
    assert x is not None
    z: Array = x.astype(dtype, copy=False)
    z = z * z.dtype.type(spec.f32(0))
    if not z.size:
        return (z,)
    with np.errstate(all="ignore"):
        if mask is not None:
            rows = mask[:, :, : z.shape[2]].astype(dtype, copy=False)
            z = z + _slopes(z.shape[1], spec.f32(1)).astype(dtype)[:, None, None] * tile_to(rows, z.shape)
        most = z.max(axis=-1, keepdims=True)
        sink = np.full((z.shape[1], 1, 1), -np.inf, dtype) if sinks is None else sinks.astype(dtype).reshape(-1, 1, 1)
        most = np.maximum(most, sink)
        most = np.where(np.isneginf(most), 0, most)
        e = np.exp(z - most)
        total = e.sum(axis=-1, keepdims=True) + np.exp(sink - most)
        return (np.where(total == 0, 0, e / np.where(total == 0, 1, total)).astype(dtype),)


def _slopes(n_heads: int, max_bias: float) -> Array:
    n_pow2, base0, base1 = alibi(n_heads, max_bias)
    slopes = [base0 ** (h + 1) if h < n_pow2 else base1 ** (2 * (h - n_pow2) + 1) for h in range(n_heads)]
    return np.array(slopes) if max_bias > 0 else np.ones(n_heads)
