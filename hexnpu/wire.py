"""The structures of include/htp-wire.h and htp-frames.h as numpy dtypes: the only place that knows byte offsets.

A dtype serves to read tables (responses, profiles) and to be compared with the C compiler's layout, which
tests/test_wire.py does. The hot path packs with `struct`: `packer(dtype)` derives the format from the dtype, so the
two cannot drift apart.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any

import numpy as np

MAGIC = 0x42505448  # "HTPB"
VERSION = 1
FRAME_MAGIC = 0x46505448  # "HTPF"
FRAME_VERSION = 1
REPLY = 0x8000
MAX_FRAME_BYTES = 1 << 31

MAX_BUFS = 16
MAX_TENSORS = 8192
MAX_OPS = 8192
MAX_SRC = 10
MAX_DST = 4
TRACE_SLOTS = 11
ABSENT = 0xFFFF
TRACE_STOP = 0x8000
MAX_TRACES = 65536  # n_traces of a request


class Status(IntEnum):
    OK = 1
    INTERNAL_ERR = 2
    NO_SUPPORT = 3
    INVAL_PARAMS = 4
    VTCM_TOO_SMALL = 5


class FrameType(IntEnum):
    ERROR = 0
    HELLO = 1
    OPEN = 2
    CLOSE = 3
    ALLOC = 4
    FREE = 5
    WRITE = 6
    READ = 7
    LOAD = 8
    SUBMIT = 9
    PROFILE = 10
    STATS = 11
    UNMAP = 12


class ProfileMode(IntEnum):
    OFF = 0
    BASIC = 1
    PMU = 2
    TRACE = 3


# The PMU events that the emulator counts; hardware has others.
PMU_DMA_TRANSFERS = 0xF000
PMU_DMA_BYTES = 0xF001
PMU_FENCE_CYCLES = 0xF002

TENSOR_WEIGHT = 1
TENSOR_REPACK = 2
TENSOR_FENCE = 4
BUF_FENCE = 1
MAX_RANKS = 4
FENCE_BYTES = 128

TRACE_NAMES = {
    0: "DMA", 1: "L2FLUSH", 2: "INIT", 3: "BUFF", 4: "FENCE", 20: "HVX_COMP", 21: "HVX_A_QUANT", 22: "HVX_A_PREP",
    23: "HVX_W_DEQUANT", 24: "HVX_W_PREP", 25: "HVX_O_PROC", 26: "HVX_FA_QK", 27: "HVX_FA_SFM", 28: "HVX_FA_Q_PREP",
    29: "HVX_FA_K_PREP", 30: "HVX_FA_V_PREP", 40: "HMX_COMP",
}  # fmt: skip

REQUEST = np.dtype(
    [("magic", "<u4"), ("version", "<u4"), ("seq", "<u8"), ("n_bufs", "<u4"), ("n_tensors", "<u4"), ("n_ops", "<u4"),
     ("n_traces", "<u4")]
)  # fmt: skip
BUF = np.dtype([("base", "<u8"), ("size", "<u8"), ("flags", "<u4"), ("fd", "<u4")])
TENSOR = np.dtype(
    [("data", "<u8"), ("size", "<u4"), ("flags", "<u4"), ("type", "<u4"), ("bi", "<u2"), ("ti", "<u2"),
     ("ne", "<u4", 4), ("nb", "<u4", 4)]
)  # fmt: skip
OP = np.dtype(
    [("opcode", "<u4"), ("flags", "<u4"), ("params", "<i4", 16), ("kernel_params", "<i4", 32),
     ("src", "<u2", MAX_SRC), ("dst", "<u2", MAX_DST), ("pad", "<u4")]
)  # fmt: skip
RESPONSE = np.dtype(
    [("seq", "<u8"), ("cycles_start", "<u8"), ("cycles_stop", "<u8"), ("status", "<u4"), ("failing_op", "<u4"),
     ("n_ops", "<u4"), ("usecs", "<u4"), ("n_profiles", "<u4"), ("n_traces", "<u4", TRACE_SLOTS), ("detail", "S160")]
)  # fmt: skip
PROFILE = np.dtype(
    [("opcode", "<u4"), ("usecs", "<u4"), ("cycles_start", "<u4"), ("cycles_stop", "<u4"), ("pmu", "<u4", 8)]
)
TRACE_EVENT = np.dtype([("cycles", "<u4"), ("id", "<u2"), ("info", "<u2")])

FRAME = np.dtype(
    [("magic", "<u4"), ("version", "<u2"), ("type", "<u2"), ("session", "<u4"), ("status", "<u4"), ("tag", "<u8"),
     ("bytes", "<u8")]
)  # fmt: skip
HELLO = np.dtype(
    [("protocol", "<u4"), ("arch", "<u4"), ("n_threads", "<u4"), ("n_hmx", "<u4"), ("vtcm_bytes", "<u8"),
     ("max_map_bytes", "<u8"), ("can_share", "<u4"), ("clock_khz", "<u4"), ("flavour", "S16")]
)  # fmt: skip
OPEN = np.dtype(
    [("n_threads", "<u4"), ("vtcm_mib", "<u4"), ("max_map_bytes", "<u8"), ("device", "S32"),
     ("fence_timeout_ms", "<u4"), ("pad", "<u4")]
)  # fmt: skip
ALLOC = np.dtype([("bytes", "<u8"), ("share", "<u4"), ("pad", "<u4")])
BUFFER_REF = np.dtype([("handle", "<u4"), ("pad", "<u4")])
RANGE = np.dtype([("handle", "<u4"), ("pad", "<u4"), ("offset", "<u8"), ("bytes", "<u8")])
LOAD = np.dtype([("handle", "<u4"), ("path_bytes", "<u4"), ("offset", "<u8"), ("file_offset", "<u8"), ("bytes", "<u8")])
PROFILE_SET = np.dtype([("mode", "<u4"), ("pmu", "<u4", 8), ("pad", "<u4")])
STATS = np.dtype(
    [(name, "<u8") for name in (
        "n_batches", "n_ops", "n_failed", "dma_transfers", "dma_bytes", "n_buffers", "buffer_bytes", "mapped_bytes",
        "n_mappings", "fence_cycles",
    )]
)  # fmt: skip

# By the C structure's name, for the comparison with the compiler's layout.
STRUCTS = {
    "htp_request": REQUEST, "htp_buf": BUF, "htp_wire_tensor": TENSOR, "htp_wire_op": OP, "htp_response": RESPONSE,
    "htp_profile": PROFILE, "htp_trace_event": TRACE_EVENT, "htp_frame": FRAME, "htp_hello": HELLO, "htp_open": OPEN,
    "htp_alloc": ALLOC, "htp_buffer_ref": BUFFER_REF, "htp_range": RANGE, "htp_load": LOAD,
    "htp_profile_set": PROFILE_SET, "htp_stats": STATS,
}  # fmt: skip

_CODES = {"<u2": "H", "<u4": "I", "<u8": "Q", "<i4": "i"}


def packer(dtype: np.dtype[Any]) -> struct.Struct:
    """A struct.Struct of the same bytes; an array field takes its elements one after the other."""
    parts = []
    for name in dtype.names or ():
        field = dtype[name]
        if field.kind == "S":
            parts.append(f"{field.itemsize}s")
        else:
            count = int(np.prod(field.shape)) if field.shape else 1
            parts.append(f"{count}{_CODES[field.base.str]}")
    result = struct.Struct("<" + "".join(parts))
    assert result.size == dtype.itemsize, f"{dtype} has padding"
    return result


PACK_REQUEST = packer(REQUEST)
PACK_BUF = packer(BUF)
PACK_TENSOR = packer(TENSOR)
PACK_OP = packer(OP)
PACK_FRAME = packer(FRAME)
SEQ_OFFSET = 8  # of seq in a request
N_TRACES_OFFSET = 28
PARAMS_OFFSET = 8  # of params in an op
