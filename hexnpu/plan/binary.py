"""ADD, SUB, MUL, DIV: dst = src0 op src1, src1 repeated over src0 as ggml broadcasts. F32, or F16 throughout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, ShapeError
from hexnpu.plan.rowwise import Array, need_repeat, need_type, no_params, plan_rows, tile_to
from hexnpu.tensor import Desc, Type

OPS: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide,
}  # fmt: skip


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """src0's shape and type. Raises ShapeError where src1 does not repeat into it."""
    if len(src) != 2 or src[0] is None or src[1] is None:
        raise ShapeError(f"{op} takes two tensors, not {len(src)}")
    need_repeat(op, src[1], "src1", src[0].ne)
    return (Desc.contiguous(src[0].type, src[0].ne),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    return no_params(op, params)


def plan(spec: OpSpec, device: Device) -> Plan:
    a, b = spec.src[:2]
    assert a is not None and b is not None
    need_type("src0", a, Type.F32, Type.F16)
    need_type("src1", b, Type.F32, Type.F16)
    if not a.type == b.type == spec.dst[0].type:
        types = f"{a.type.name}, {b.type.name} -> {spec.dst[0].type.name}"
        raise Refusal(f"types {types}; the kernel takes one type throughout")
    name = f"{spec.op.lower()}-{a.type.name.lower()}"
    return plan_rows(device, spec.dst[0], (a, b), kernel_name=name, elementwise=True)


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    a, b = src[:2]
    assert a is not None and b is not None
    with np.errstate(all="ignore"):
        return (OPS[spec.op](a.astype(dtype, copy=False), tile_to(b.astype(dtype, copy=False), a.shape)),)
