"""What every op family's plan file uses: the op as planned, the device's budget, the plan, its VTCM layout.

A family module `hexnpu.plan.FAMILY` (the name stands in htp-ops.def) has:

    infer(op, src, params) -> tuple[Desc, ...]      shapes of the results; raises ShapeError in the user's words
    plan(spec, device) -> Plan                      kernel parameters; raises Refusal where the NPU cannot take the op
    reference(spec, src, dtype) -> tuple[ndarray]   the op in numpy, arrays shaped like numpy (ne reversed),
                                                    computed in `dtype` (float32: fallback; float64: tests)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from hexnpu.errors import HexnpuError
from hexnpu.tensor import Desc

N_PARAMS = 16
N_KPARAMS = 32
N_ARGS = 12
N_REGIONS = 8
VTCM_ALIGN = 128
# Left free behind each region, so that the sanitizer build can put a red zone there.
VTCM_GAP = 128
PER_THREAD = 1


class ShapeError(HexnpuError):
    """The shapes, types or parameters of an op do not go together."""


class Refusal(Exception):
    """The NPU cannot take this op; the text says why, with numbers. The host computes it instead."""


@dataclass(frozen=True, slots=True)
class Device:
    """What a plan may use of the session."""

    arch: int = 79
    n_threads: int = 4
    vtcm_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True)
class OpSpec:
    """One NPU op: its name in htp-ops.def, its 16 parameters (floats by their bits), inputs and outputs."""

    op: str
    params: tuple[int, ...]
    src: tuple[Desc | None, ...]
    dst: tuple[Desc, ...]

    def f32(self, i: int) -> float:
        return f32_of(self.params[i])


@dataclass(frozen=True, slots=True)
class Region:
    bytes: int
    per_thread: bool


@dataclass(slots=True)
class Plan:
    """Kernel choice and VTCM layout of one op. Regions are numbered in the order they are added."""

    kernel: int
    kernel_name: str
    n_threads: int
    block: int
    args: Sequence[int] = ()
    regions: list[Region] = field(default_factory=list)

    def shared(self, n_bytes: int) -> int:
        """Adds a VTCM region that all threads share; gives its number."""
        self.regions.append(Region(_align(n_bytes), False))
        return len(self.regions) - 1

    def per_thread(self, n_bytes: int) -> int:
        """Adds a VTCM region of which every thread has one; gives its number."""
        self.regions.append(Region(_align(n_bytes), True))
        return len(self.regions) - 1

    @property
    def vtcm_bytes(self) -> int:
        return sum((r.bytes + VTCM_GAP) * (self.n_threads if r.per_thread else 1) for r in self.regions)

    def fit(self, device: Device) -> Plan:
        """Itself, or a Refusal with numbers where the layout is larger than the device's VTCM."""
        if self.vtcm_bytes > device.vtcm_bytes:
            raise Refusal(f"needs {self.vtcm_bytes} bytes of VTCM, the session has {device.vtcm_bytes}")
        return self

    def pack(self) -> tuple[int, ...]:
        """The 32 integers of kernel_params, laid out as include/htp-kernel.h says."""
        assert len(self.args) <= N_ARGS and len(self.regions) <= N_REGIONS
        words = [self.kernel, self.n_threads, self.vtcm_bytes, self.block, *self.args]
        words += [0] * (4 + N_ARGS - len(words))
        offset = 0
        for region in self.regions:
            # Thread t has its copy at offset + t * (bytes + gap); the runtime knows the gap (HTP_VTCM_GAP).
            words += [offset | (PER_THREAD if region.per_thread else 0), region.bytes]
            offset += (region.bytes + VTCM_GAP) * (self.n_threads if region.per_thread else 1)
        return (*words, *[0] * (N_KPARAMS - len(words)))


def _align(n_bytes: int) -> int:
    return -(-n_bytes // VTCM_ALIGN) * VTCM_ALIGN


def f32_bits(value: float) -> int:
    """The bits of a float32 as the int32 that travels in an op's params."""
    return int(struct.unpack("<i", struct.pack("<f", value))[0])


def float_word(op: str, name: str, value: object) -> int:
    """A parameter as the float32 that travels. Raises ShapeError for what is no number."""
    if not isinstance(value, (int, float)):
        raise ShapeError(f"{op}: {name} is {value!r}, not a number")
    return f32_bits(float(value))


def f32_of(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])
