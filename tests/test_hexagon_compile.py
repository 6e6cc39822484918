"""Kernels and runtime compile for every Hexagon arch without a warning (-Werror), against our own SDK declarations."""

from __future__ import annotations

import pytest

from hexnpu.native import ARCHS, DEFAULT_ARCH, Target, compile_objects
from hexnpu.server_build import device_sources

EM_HEXAGON = 164


@pytest.mark.parametrize(
    "arch", [pytest.param(a, marks=() if a == DEFAULT_ARCH else pytest.mark.slow) for a in ARCHS], ids="v{}".format
)
def test_everything_the_device_runs_compiles(arch: int) -> None:
    sources = device_sources()
    assert {"rows-ops.c", "dma-queue.c"} <= {s.name for s in sources}
    objects = compile_objects(sources, Target(arch=arch, hexagon=True), label="Hexagon objects")
    for obj in objects:
        header = obj.read_bytes()[:20]
        assert header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == 164, (
            f"{obj} is no Hexagon object"
        )
