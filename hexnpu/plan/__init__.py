"""Op node -> kernel parameters and VTCM layout, one file per op family; the families stand in htp-ops.def."""

from __future__ import annotations

import functools
import importlib
import re
from types import ModuleType

from hexnpu.native import kernels_dir
from hexnpu.plan.base import Device, OpSpec, Plan, Refusal

_ROW = re.compile(r"^HTP_OP\((\d+), (\w+), (\w+)\)$", re.MULTILINE)


@functools.lru_cache(maxsize=1)
def op_table() -> dict[str, tuple[int, str]]:
    """Op name -> (op code, family), read from the C table; family `none` = not supported by the NPU side."""
    text = (kernels_dir() / "include" / "htp-ops.def").read_text()
    return {name: (int(code), family) for code, name, family in _ROW.findall(text)}


@functools.cache
def family(op: str) -> ModuleType:
    """The plan module of an op. Raises Refusal for an op that has none."""
    name = op_table().get(op, (0, "none"))[1]
    if name == "none":
        raise Refusal(f"{op} has no NPU kernel")
    return importlib.import_module(f"hexnpu.plan.{name}")


def plan(spec: OpSpec, device: Device) -> Plan:
    """The plan of one op. Raises Refusal where the NPU cannot take it."""
    result: Plan = family(spec.op).plan(spec, device)
    return result.fit(device)
