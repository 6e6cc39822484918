"""RMS_NORM: x / sqrt(mean(x^2) + eps) over each row; RMS_NORM_MUL: times a weight that repeats over the rows. F32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, ShapeError, f32_bits
from hexnpu.plan.rowwise import Array, need_repeat, need_type, number, plan_rows, tile_to
from hexnpu.tensor import Desc, Type


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """x's shape and type. Raises ShapeError where the weight does not repeat into it."""
    want = 2 if op == "RMS_NORM_MUL" else 1
    if len(src) != want or src[0] is None or src[-1] is None:
        raise ShapeError(f"{op} takes {want} tensor{'s' * (want > 1)}, not {len(src)}")
    if want == 2:
        need_repeat(op, src[-1], "the weight", src[0].ne)
    return (Desc.contiguous(src[0].type, src[0].ne),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """`eps`."""
    if params.keys() != {"eps"}:
        raise ShapeError(f"{op} takes eps, not {', '.join(params) or 'nothing'}")
    return (f32_bits(number(op, "eps", params["eps"])), *(0,) * 15)


def plan(spec: OpSpec, device: Device) -> Plan:
    src = [s for s in spec.src if s is not None]
    for role, desc in zip(("src0", "src1"), src, strict=False):
        need_type(role, desc, Type.F32)
    need_type("dst", spec.dst[0], Type.F32)
    if src[-1].ne[0] != src[0].ne[0]:
        raise Refusal(f"a weight of {src[-1].ne[0]} columns for rows of {src[0].ne[0]}; the kernel takes whole rows")
    name = spec.op.lower().replace("_", "-") + "-f32"
    return plan_rows(device, spec.dst[0], src, kernel_name=name, elementwise=False)


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    assert src[0] is not None
    x: Array = src[0].astype(dtype, copy=False)
    with np.errstate(all="ignore"):
        mean = np.sum(x * x, axis=-1, keepdims=True, dtype=dtype) / max(x.shape[-1], 1)
        y = x / np.sqrt(mean + x.dtype.type(spec.f32(0)))
        if spec.op == "RMS_NORM_MUL":
            assert src[1] is not None
            y = y * tile_to(src[1].astype(dtype, copy=False), x.shape)
    return (y,)
