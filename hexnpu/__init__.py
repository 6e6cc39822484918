"""hexnpu: offload, deploy, profile and emulate for the Snapdragon Hexagon NPU.

The names below are imported when they are first used: `import hexnpu.profile` does not load the offload path. Nor is
anything else loaded here: what takes time before `hexnpu.__main__` runs, Ctrl-C would end with a traceback.
"""

from __future__ import annotations

TYPE_CHECKING = False  # for type checkers it is true, as typing's is
if TYPE_CHECKING:
    from typing import Any

    from hexnpu.errors import DeviceError, GroupLost, HexnpuError, SessionLost, UsageError
    from hexnpu.fuse import Fusion
    from hexnpu.graph import Graph, Tensor
    from hexnpu.group import Group
    from hexnpu.group_graph import GroupGraph
    from hexnpu.plan.base import ShapeError
    from hexnpu.session import Session, open
    from hexnpu.tensor import Type

__all__ = [
    "DeviceError", "Fusion", "Graph", "Group", "GroupGraph", "GroupLost", "HexnpuError", "Session", "SessionLost",
    "ShapeError", "Tensor", "Type", "UsageError", "open",
]  # fmt: skip

_HOMES = {
    "errors": ("DeviceError", "GroupLost", "HexnpuError", "SessionLost", "UsageError"), "fuse": ("Fusion",),
    "graph": ("Graph", "Tensor"), "group": ("Group",), "group_graph": ("GroupGraph",),
    "plan.base": ("ShapeError",), "session": ("Session", "open"), "tensor": ("Type",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    import importlib

    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"hexnpu.{home}"), name)
    raise AttributeError(f"module 'hexnpu' has no attribute {name!r}")
