"""The common lines of a block by scan.c, which is built on first use; every other line is named for `grammar`.

Where it cannot be built (no compiler, no cache folder) all lines go to `grammar`: the same result, slower.
"""

from __future__ import annotations

import ctypes
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hexnpu.cache import cache_dir, cpu_features
from hexnpu.errors import HexnpuError
from hexnpu.profile.columns import I32, I64, N_PMU, U8, U16, U32, AnyArray, Bool

SOURCE = Path(__file__).with_name("scan.c")
BUILD_FLAGS = ("-shared", "-fPIC", "-Wno-unused-command-line-argument")  # of compiling and linking alike
ROOM = 1 << 14
_DEVICES, _EVENTS, _TEXTS = range(3)
_ARRAYS: tuple[tuple[str, type, int], ...] = (
    ("event_line", np.int32, 1), ("event_device", np.uint8, 1), ("event_thread", np.uint8, 1),
    ("event_name", np.uint8, 1), ("event_stop", np.uint8, 1), ("event_info", np.uint32, 1),
    ("event_cycles", np.uint32, 1), ("op_line", np.int32, 1), ("op_text", np.int32, 1), ("op_device", np.uint8, 1),
    ("op_usec", np.int64, 1), ("op_cycles", np.int64, 1), ("op_start", np.int64, 1), ("op_pmu", np.uint32, N_PMU),
    ("odd_line", np.int32, 1), ("odd_begin", np.int64, 1), ("odd_end", np.int64, 1),
)  # fmt: skip


@dataclass
class EventRows:
    """Events of a block; line: counted from the block's first."""

    line: I32 | I64
    device: U8 | U16
    thread: U8
    name: U8 | U16
    stop: Bool
    info: U32
    cycles: U32


@dataclass
class OpRows:
    """Ops of a block; text: number of the text; pmu: None where no line has counters."""

    line: I32 | I64
    device: U8 | U16
    text: I32
    usec: I64
    cycles: I64
    start: I64
    pmu: U32 | None


@dataclass
class Scanned:
    """One block: rows, and the lines left to `grammar` as (line, begin, end)."""

    events: EventRows
    ops: OpRows
    odd: list[tuple[int, int, int]]
    lines: int  # up to here, from the block's first
    n_events: int  # also when the rows were not wanted


class _Rows(ctypes.Structure):
    """rows_t of scan.c."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("room", "lines", "n_events", "n_ops", "n_odd", "n_pmu")),
        *((name, ctypes.c_void_p) for name, _, _ in _ARRAYS),
    ]


class Scanner:
    """scan.c with its memory: devices, event names and op texts keep their numbers from block to block."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._scan = ctypes.c_void_p(library.scan_new())
        if not self._scan:
            raise MemoryError("scan_new")
        self._arrays: dict[str, AnyArray] = {name: np.empty(ROOM * n, dtype) for name, dtype, n in _ARRAYS}
        self._rows = _Rows(room=ROOM, **{name: array.ctypes.data for name, array in self._arrays.items()})

    def __del__(self) -> None:
        if getattr(self, "_scan", None):
            self._library.scan_free(self._scan)

    def blocks(self, data: bytes, want_events: bool) -> list[Scanned]:
        """The rows of whole lines, in as many parts as the arrays' room asks for."""
        parts, at, line = [], 0, 0
        while True:
            at = self._library.scan_block(self._scan, ctypes.byref(self._rows), data, len(data), at, line)
            parts.append(self._part(want_events))
            line = self._rows.lines
            if at == len(data):
                return parts

    def _part(self, want_events: bool) -> Scanned:
        rows, arrays = self._rows, self._arrays

        def events(name: str) -> AnyArray:
            return np.array(arrays[name][: rows.n_events if want_events else 0])

        def ops(name: str) -> AnyArray:
            return np.array(arrays[name][: rows.n_ops])

        pmu = arrays["op_pmu"][: rows.n_ops * N_PMU].reshape(-1, N_PMU).copy() if rows.n_pmu else None
        odd = zip(*(arrays[name][: rows.n_odd].tolist() for name in ("odd_line", "odd_begin", "odd_end")), strict=True)
        return Scanned(
            EventRows(
                events("event_line"), events("event_device"), events("event_thread"), events("event_name"),
                events("event_stop").view(np.bool_), events("event_info"), events("event_cycles"),
            ),
            OpRows(
                ops("op_line"), ops("op_device"), ops("op_text"), ops("op_usec"), ops("op_cycles"), ops("op_start"), pmu
            ),
            list(odd),
            rows.lines,
            rows.n_events,
        )  # fmt: skip

    def _names(self, what: int, known: int) -> list[bytes]:
        length = ctypes.c_int32()
        found = []
        for number in range(known, self._library.scan_count(self._scan, what)):
            at = self._library.scan_name(self._scan, what, number, ctypes.byref(length))
            found.append(ctypes.string_at(at, length.value))
        return found

    def devices(self, known: int) -> list[bytes]:
        """Devices from number `known` on."""
        return self._names(_DEVICES, known)

    def events(self, known: int) -> list[bytes]:
        """Event names from number `known` on."""
        return self._names(_EVENTS, known)

    def texts(self, known: int) -> list[bytes]:
        """Op texts from number `known` on."""
        return self._names(_TEXTS, known)


def library() -> ctypes.CDLL | None:
    """scan.c as a library, built if need be; None (and a line on stderr) when that is not possible."""
    try:
        loaded = ctypes.CDLL(str(_library_path()))
    except (HexnpuError, OSError) as error:
        reason = str(error).splitlines()[0]
        print(f"hexnpu: reading slowly, the fast log scanner could not be built: {reason}", file=sys.stderr)
        return None
    loaded.scan_new.restype = ctypes.c_void_p
    loaded.scan_block.restype = ctypes.c_int64
    loaded.scan_block.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_int64] * 3]
    loaded.scan_name.restype = ctypes.c_void_p
    loaded.scan_name.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p]
    loaded.scan_count.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    loaded.scan_free.argtypes = [ctypes.c_void_p]
    return loaded


def _library_path() -> Path:
    """By a name of its own, so that a start with the library built does not load the build code (nor OpenSSL)."""
    source = SOURCE.read_bytes() + cpu_features().encode()
    path = cache_dir() / "lib" / f"logscan-{zlib.crc32(source):08x}-{len(source)}.so"
    if not path.exists():
        from hexnpu import native

        built = native.compile_program("logscan", [SOURCE], native.Target(), BUILD_FLAGS)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_bytes(built.read_bytes())
        part.replace(path)
    return path
