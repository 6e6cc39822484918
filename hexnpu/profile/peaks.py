"""Peak rates of the chips, for `--arch`: few figures, each with where it was published. None is a promise of a vendor.

HMX: f16 multiply-adds counted as two. DMA: DDR to tightly coupled memory by user DMA.
"""

from __future__ import annotations

from dataclasses import dataclass

from hexnpu.errors import UsageError

_E26 = "EuroSys '26, arXiv 2509.23324, Table 2 (measured, 1024^3 f16)"
_MODEL = "QEMU HMX model default, 8192 MAC/cycle at 1.0 GHz (a model's constant, not a measurement)"
_TMAN = "T-MAN, arXiv 2511.11248, Table 2 (measured)"


@dataclass(frozen=True)
class Peak:
    """Peak rates of one architecture: GFLOP/s of HMX, GB/s of user DMA."""

    hmx_gflops: float
    hmx_source: str
    dma_gbs: float
    dma_source: str


PEAKS: dict[str, Peak] = {
    "v73": Peak(16_384.0, _MODEL, 59.0, _TMAN),
    "v75": Peak(12_032.54, _E26, 60.0, _E26),
    "v79": Peak(16_384.0, _MODEL, 59.0, _TMAN),
    "v81": Peak(16_384.0, _MODEL, 59.0, _TMAN),
}


def peak_of(arch: str) -> Peak:
    """The row of `arch`, such as v79 or 79; UsageError lists the known ones."""
    peak = PEAKS.get(f"v{arch.lower().removeprefix('v')}")
    if peak is None:
        raise UsageError(f"--arch {arch} is not known: give one of {', '.join(PEAKS)}")
    return peak
