"""Op nodes -> planned ops: each distinct op is planned once for a session's device."""

from __future__ import annotations

from dataclasses import dataclass

from hexnpu.fuse import OpNode
from hexnpu.graph import Kind
from hexnpu.plan import family
from hexnpu.plan import plan as make_plan
from hexnpu.plan.base import Device, OpSpec, Plan, Refusal
from hexnpu.profile_lines import op_text
from hexnpu.tensor import Desc


@dataclass(slots=True, eq=False)
class PlannedOp:
    """An op node with its plan, or with the reason why there is none (`plan` is None then)."""

    node: OpNode
    spec: OpSpec
    plan: Plan | None
    kernel_params: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        return str(self.node)

    @property
    def profile_text(self) -> str:
        kernel = "----" if self.plan is None else f"{self.plan.kernel_name} vtcm {self.plan.vtcm_bytes}"
        return op_text(self.node.name, self.node.src, self.node.dst[-1], kernel)


class Planner:
    """Plans op nodes for one device, each distinct op once."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._known: dict[OpSpec, tuple[Plan | None, tuple[int, ...], str]] = {}

    def planned(self, node: OpNode) -> PlannedOp:
        spec = self.spec(node)
        known = self._known.get(spec)
        if known is None:
            try:
                made = make_plan(spec, self._device)
                known = (made, made.pack(), "")
            except Refusal as refusal:
                known = (None, (), str(refusal))
            self._known[spec] = known
        return PlannedOp(node, spec, *known)

    def refusal(self, node: OpNode) -> str | None:
        """Why the NPU cannot take a node; None where it can."""
        return self.planned(node).reason or None

    def spec(self, node: OpNode) -> OpSpec:
        """The op as it is planned: weights in the type that their family repacks them to."""
        weight_type = getattr(family(node.op), "weight_type", None)
        src = []
        for i, t in enumerate(node.src):
            desc = None if t is None else t.desc
            if weight_type is not None and t is not None and t.root is t and t.kind is Kind.WEIGHT:
                tiled = weight_type(node.op, i, t.desc)
                desc = t.desc if tiled is None else Desc.contiguous(tiled, t.ne)
            src.append(desc)
        return OpSpec(node.op, node.params, tuple(src), tuple(t.desc for t in node.dst))
