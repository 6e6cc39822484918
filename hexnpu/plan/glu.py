"""GLU_SWIGLU, GLU_SWIGLU_OAI, GLU_GEGLU: dst = act(a) * b, F32.

a and b are two tensors of one shape, or the two halves of each row of one (`swapped`: b comes first).
SWIGLU: act = silu. GEGLU: act = gelu, tanh form. SWIGLU_OAI: a = min(a, limit), b = clamp(b, -limit, limit),
dst = a sigmoid(alpha a) (b + 1).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, ShapeError, f32_bits
from hexnpu.plan.rowwise import EXP_WORK, Array, gelu, need_type, number, plan_rows, sigmoid, src_of
from hexnpu.tensor import Desc, Type


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """The shape of a. Raises ShapeError where a and b differ, or one tensor has no halves."""
    a, b = src[0] if src else None, src[1] if len(src) > 1 else None
    if a is None:
        raise ShapeError(f"{op} takes one or two tensors, not none")
    if b is None:
        if a.ne[0] % 2:
            raise ShapeError(f"{op}: rows of {a.ne[0]} columns cannot be split in halves; give two tensors")
        return (Desc.contiguous(a.type, (a.ne[0] // 2, *a.ne[1:])),)
    if a.ne != b.ne or a.type != b.type:
        raise ShapeError(f"{op}: {a} and {b} must have the same shape and type")
    return (Desc.contiguous(a.type, a.ne),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """`swapped` (False), and for GLU_SWIGLU_OAI `alpha` and `limit`."""
    known = {"swapped", "alpha", "limit"} if op == "GLU_SWIGLU_OAI" else {"swapped"}
    if unknown := params.keys() - known:
        raise ShapeError(f"{op} takes {', '.join(sorted(known))}, not {', '.join(sorted(unknown))}")
    alpha, limit = (number(op, k, params.get(k, default)) for k, default in (("alpha", 1.702), ("limit", 7.0)))
    oai = (f32_bits(alpha), f32_bits(limit)) if op == "GLU_SWIGLU_OAI" else (0, 0)
    return (0, int(bool(params.get("swapped"))), *oai, *(0,) * 12)


def plan(spec: OpSpec, device: Device) -> Plan:
    a, b, dst = spec.src[0], src_of(spec, 1), spec.dst[0]
    assert a is not None
    need_type("src0", a, Type.F32)
    need_type("dst", dst, Type.F32)
    if b is None:
        a = b = dataclasses.replace(a, ne=dst.ne)
    else:
        need_type("src1", b, Type.F32)
    name = f"{spec.op.lower().removeprefix('glu_')}-f32"
    return plan_rows(device, dst, (a, b), kernel_name=name, elementwise=True, work=EXP_WORK)


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    assert src[0] is not None
    a: Array = src[0].astype(dtype, copy=False)
    second = src[1] if len(spec.src) > 1 else None
    if second is None:
        half = a.shape[-1] // 2
        a, b = (a[..., half:], a[..., :half]) if spec.params[1] else (a[..., :half], a[..., half:])
    else:
        b = second.astype(dtype, copy=False)
    with np.errstate(all="ignore"):
        if spec.op == "GLU_SWIGLU_OAI":
            alpha, limit = a.dtype.type(spec.f32(2)), a.dtype.type(spec.f32(3))
            a, b = np.minimum(a, limit), np.clip(b, -limit, limit)
            return (a * sigmoid(alpha * a) * (b + 1),)
        return ((gelu(a) if spec.op == "GLU_GEGLU" else a * sigmoid(a)) * b,)
