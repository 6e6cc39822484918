"""The log in columns: one numpy array a field, one row a record, every text once.

Counters are kept as printed (`start`, `cycles` of events: the low 32 bits); `timeline` gives them their high half.
A value that the line did not have is -1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]
U16 = npt.NDArray[np.uint16]
U8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]
F64 = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]

N_THREADS = 11  # ten HVX threads and, last, HMX
HMX_THREAD = 10
N_PMU = 8
NAMES = np.uint16  # numbers of devices and event names; a damaged log may hold many

OPBATCH = 0  # `profile-op OPBATCH`: the device's own start and cycles
TRAILER = 1  # `profile-batch`: after its ops, host times only


@dataclass(frozen=True)
class OpText:
    """One distinct op line without its figures. `dims` and `types` list the inputs, then the output."""

    raw: str
    op: str
    names: str
    dims: str
    types: str
    strides: str = ""
    params: str = ""
    generation: str = "pipes"


@dataclass
class Ops:
    """One row a `profile-op` line (OPBATCH apart). usec, cycles as printed; start: low 32 bits or -1."""

    device: U16
    text: I32
    usec: I64
    cycles: I64
    start: I64
    line: I64
    pmu: U32 | None  # [n, 8] or None where no line has counters

    def __len__(self) -> int:
        return len(self.text)


@dataclass
class Events:
    """One row a `trace-evt` or `trace-op` line. cycles: low 32 bits of the device counter."""

    device: U16
    thread: U8
    name: U16
    stop: Bool
    info: U32
    cycles: U32
    line: I64

    def __len__(self) -> int:
        return len(self.name)


@dataclass
class BatchLines:
    """One row a batch line. start: all 64 bits (OPBATCH) or -1; stamp_us: the host stamp of the line or -1."""

    device: U16
    kind: U8
    n_ops: I64
    usec: I64  # OPBATCH: device time; trailer: sum of the ops' usec
    cycles: I64
    start: I64
    host_usec: I64  # trailer: batch-dur-usec, else -1
    stamp_us: I64
    line: I64
    evt_cnt: I64  # [n, 11], -1 where the line has none

    def __len__(self) -> int:
        return len(self.device)


@dataclass
class Unreadable:
    """Lines that look like a record of one kind and are not readable."""

    kind: str
    count: int
    first_line: int
    example: str


@dataclass
class Log:
    """A whole log. `lines` is the number of lines read; `devices` in order of appearance."""

    source: str
    devices: list[str]
    texts: list[OpText]
    event_names: list[str]
    ops: Ops
    events: Events
    batches: BatchLines
    unreadable: list[Unreadable] = field(default_factory=list)
    lines: int = 0
    bytes: int = 0
    mode: int | None = None
    pmu_events: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped_early: bool = False
