"""UNARY_SILU, UNARY_GELU (tanh form), UNARY_SIGMOID and SCALE (x * s + b): dst = f(src0), F32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, ShapeError, f32_bits
from hexnpu.plan.rowwise import EXP_WORK, Array, gelu, need_type, no_params, number, one_tensor, plan_rows, sigmoid
from hexnpu.tensor import Desc, Type


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """src0's shape and type."""
    x = one_tensor(op, src)
    return (Desc.contiguous(x.type, x.ne),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """SCALE takes `s` and, if it adds something, `b`; the others take nothing."""
    if op != "SCALE":
        return no_params(op, params)
    if not {"s"} <= params.keys() <= {"s", "b"}:
        raise ShapeError(f"SCALE takes s and b, not {', '.join(params) or 'nothing'}")
    return (f32_bits(number(op, "s", params["s"])), f32_bits(number(op, "b", params.get("b", 0.0))), *(0,) * 14)


def plan(spec: OpSpec, device: Device) -> Plan:
    x = spec.src[0]
    assert x is not None
    need_type("src0", x, Type.F32)
    need_type("dst", spec.dst[0], Type.F32)
    name = f"{spec.op.lower().removeprefix('unary_')}-f32"
    work = 1 if spec.op == "SCALE" else EXP_WORK
    return plan_rows(device, spec.dst[0], (x,), kernel_name=name, elementwise=True, work=work)


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    assert src[0] is not None
    x: Array = src[0].astype(dtype, copy=False)
    with np.errstate(all="ignore"):
        if spec.op == "SCALE":
            return (x * x.dtype.type(spec.f32(0)) + x.dtype.type(spec.f32(1)),)
        if spec.op == "UNARY_GELU":
            return (gelu(x),)
        return (x * sigmoid(x) if spec.op == "UNARY_SILU" else sigmoid(x),)
