"""FENCE: a tensor that a peer writes is there once the peer's fence shows a sequence number. CPY_FENCE: CPY, then the
release of this rank's own fence. See kernels/fence-ops.c; hexnpu.group makes both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from hexnpu.plan import cpy
from hexnpu.plan.base import Device, OpSpec, Plan, ShapeError
from hexnpu.tensor import Desc

Array = npt.NDArray[Any]

# Words of params: the sequence number is stamped into the batch at each run.
SEQ, RANK = 0, 1


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """CPY_FENCE: a copy of x. FENCE: what the peer's copy is like, given as second source."""
    x = src[0] if op == "CPY_FENCE" else src[1] if len(src) == 2 else None
    if x is None:
        raise ShapeError(f"{op} is made by GroupGraph.hand_over, between two graphs of a group")
    return (Desc.contiguous(x.type, x.ne),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    """`rank`: the peer whose fence is awaited."""
    rank = params.get("rank", 0)
    if not isinstance(rank, int) or set(params) - {"rank"}:
        raise ShapeError(f"{op}: its only parameter is the peer's rank, not {params}")
    return (0, rank, *[0] * 14)


def plan(spec: OpSpec, device: Device) -> Plan:
    if spec.op == "FENCE":
        return Plan(0, "fence", 1, 0)
    return cpy.plan(replace(spec, dst=spec.dst[:1]), device)


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    x = src[0] if spec.op == "CPY_FENCE" else src[1]
    assert x is not None
    return (x.astype(dtype),)
