"""A kernel as they are written for the NPU: threads, VTCM, user DMA and HVX, called through the stand-in."""

from __future__ import annotations

import pytest

from tests.fastrpc.programs import dsp_library, run_host


@pytest.mark.parametrize("dma", ("lazy", "eager", "random:1", "random:2"))
def test_a_buffer_through_vtcm(dma: str) -> None:
    result = run_host("pipeline_host", libraries=[dsp_library("pipeline_skel")], environment={"HEXNPU_EMU_DMA": dma})
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("dma", ("lazy", "random:3"))
def test_descriptors_with_a_pointer(dma: str) -> None:
    """Eight bytes where the DSP has four, as in the sources of other projects."""
    libraries = [dsp_library("pipeline_skel", "-DPOINTER_NEXT")]
    result = run_host("pipeline_host", libraries=libraries, environment={"HEXNPU_EMU_DMA": dma})
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("arch", (73, 81))
def test_other_architectures(arch: int) -> None:
    library = dsp_library("pipeline_skel", f"-mv{arch}")
    result = run_host("pipeline_host", libraries=[library], environment={"HEXNPU_EMU_ARCH": str(arch)})
    assert result.returncode == 0, result.stderr
