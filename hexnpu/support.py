"""Which ops and types the NPU takes, found by asking the planner, so that the answer is what happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hexnpu.plan import family, op_table, plan
from hexnpu.plan.base import Device, OpSpec, Refusal, ShapeError
from hexnpu.tensor import BLOCKS, Desc, Type

D = Desc.contiguous


@dataclass(frozen=True, slots=True)
class Support:
    """An op, whether it has a kernel, and the types it takes (of the weight, the table, the cache or the input)."""

    op: str
    code: int
    family: str
    types: tuple[str, ...]
    kernels: tuple[str, ...]


def support(device: Device) -> Iterator[Support]:
    """All ops of the table, in the order of their codes."""
    for op, (code, name) in op_table().items():
        kernels: dict[Type, str] = {}
        if name != "none":
            for type in BLOCKS:
                kernel = _kernel_for(op, type, device)
                if kernel:
                    kernels[type] = kernel
        yield Support(op, code, name, tuple(t.name for t in kernels), tuple(dict.fromkeys(kernels.values())))


def _kernel_for(op: str, type: Type, device: Device) -> str | None:
    """The kernel that a small op with `type` gets, or None where it is refused."""
    if type >= Type.TILE_F32:  # made at upload, never asked for by a user
        return None
    try:
        src, params = _example(op, type)
        dst = family(op).infer(op, src, params)
        if op == "SET_ROWS":
            src = src[:-1]
        src = tuple(None if d is None else _uploaded(op, i, d) for i, d in enumerate(src))
        return plan(OpSpec(op, family(op).pack(op, params), src, dst), device).kernel_name
    except (Refusal, ShapeError):
        return None


def _uploaded(op: str, index: int, desc: Desc) -> Desc:
    """A weight as it is after the upload: some families repack it."""
    weight_type = getattr(family(op), "weight_type", None)
    tile = weight_type(op, index, desc) if weight_type else None
    return desc if tile is None else D(tile, desc.ne)


def _example(op: str, type: Type) -> tuple[tuple[Desc | None, ...], dict[str, object]]:
    """Inputs that `op` takes if it takes `type` at all; 256 elements a row are whole blocks of every type."""
    f32, x = Type.F32, D(type, (256, 8))
    idx = D(Type.I32, (8,))
    fence, ranks = D(Type.I32, (32,)), {"rank": 0, "n_ranks": 2}
    summed = (x, x, None, None, fence, fence, None, None)
    examples: dict[str, tuple[tuple[Desc | None, ...], dict[str, object]]] = {
        "MUL_MAT": ((x, D(f32, (256, 4))), {}),
        "MUL_MAT_ADD": ((x, D(f32, (256, 4)), D(f32, (8, 4))), {}),
        "MUL_MAT_NX": ((D(f32, (256, 4)), x, x), {}),
        "RMS_NORM": ((x,), {"eps": 1e-5}),
        "RMS_NORM_MUL": ((x, D(f32, (256,))), {"eps": 1e-5}),
        "SCALE": ((x,), {"s": 2.0}),
        "SOFTMAX": ((x,), {"scale": 1.0, "max_bias": 0.0}),
        "GET_ROWS": ((x, idx), {}),
        "SET_ROWS": ((D(f32, (256, 8)), idx, x), {}),
        "ROPE": ((D(type, (256, 2, 8)), idx), {"n_dims": 64, "mode": 0, "freq_base": 1e4, "freq_scale": 1.0}),
        "FLASH_ATTN_EXT": (
            (D(f32, (256, 4, 2)), D(type, (256, 32, 2)), D(type, (256, 32, 2)), D(Type.F16, (32, 4))),
            {"scale": 0.125, "max_bias": 0.0, "logit_softcap": 0.0},
        ),
        "CPY": ((x,), {"type": f32}),
        "FENCE": ((fence, x), {"rank": 0}),
        "ALLREDUCE": (summed, {**ranks}),
        "ALLREDUCE_ADD": ((*summed, x), {**ranks}),
    }
    if op in ("ADD", "SUB", "MUL", "DIV"):
        return (x, x), {}
    if op.startswith("GLU_"):
        return (x, x), {}
    return examples.get(op, ((x,), {}))
