"""Responses -> the lines of a profile log: one for the batch, one for each op, in mode 3 one for each trace event."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from hexnpu.batch import Response
from hexnpu.errors import HexnpuError
from hexnpu.graph import Tensor
from hexnpu.wire import MAX_TRACES, TRACE_NAMES, TRACE_STOP, ProfileMode

if TYPE_CHECKING:
    from hexnpu.planner import PlannedOp


class ProfileLog:
    """Writes profile lines for one device to a file or to stderr, each with the host's time since the log began.

    With `beside` they go into the log of another device of the same group, which must outlive this one.
    """

    def __init__(
        self, device: str, mode: ProfileMode, path: Path | None, pmu: Sequence[int], beside: ProfileLog | None = None
    ) -> None:
        self.mode = mode
        self._path: Path | None = path if beside is None else beside._path
        self._is_guest = beside is not None
        self._file: TextIO
        self._start: float
        if beside is not None:
            self._file, self._start = beside._file, beside._start
            self._prefix = f"ggml-hex: {device} "
            return
        self._prefix = "ggml-hex: "
        try:
            self._file = sys.stderr if path is None else path.open("w", encoding="utf-8")
        except OSError as error:
            raise HexnpuError(f"cannot write the profile log {path}: {error.strerror}") from None
        self._start = time.perf_counter()
        events = ",".join(str(e) for e in pmu) or "none"
        self._lines([f"Profiling mode {int(mode)} : pmu-evt [ {events} ]"])
        self._prefix += f"{device} "  # the banner is the tool's, all else a device's

    @property
    def n_traces(self) -> int:
        """Room for trace events, per thread and batch."""
        return MAX_TRACES if self.mode is ProfileMode.TRACE else 0

    def write(self, ops: Sequence[PlannedOp], r: Response) -> None:
        cycles = r.cycles_stop - r.cycles_start
        lines = [
            f"profile-op OPBATCH|----|n-ops {r.n_ops}|evt-cnt {','.join(map(str, r.n_traces))}|----|----|"
            f"{_times(r.usecs, cycles, r.cycles_start)}"
        ]
        for op, row in zip(ops, r.profiles, strict=False):
            start, stop = int(row["cycles_start"]), int(row["cycles_stop"])
            line = f"profile-op {op.profile_text}|{_times(int(row['usecs']), (stop - start) & 0xFFFFFFFF, start)}"
            if self.mode is ProfileMode.PMU:
                line += f" pmu [{','.join(str(int(v)) for v in row['pmu'])}]"
            lines.append(line)
        for thread, events in enumerate(r.traces):
            for cycle, event, info in events.tolist():
                what = "stop" if info & TRACE_STOP else "start"
                name = TRACE_NAMES.get(event, str(event))
                lines.append(f"trace-evt {name}: thread {thread} info {info & ~TRACE_STOP} {what} {cycle}")
        self._lines(lines)

    def _lines(self, lines: Sequence[str]) -> None:
        us = int((time.perf_counter() - self._start) * 1e6)
        stamp = f"{us // 60_000_000}.{us // 1_000_000 % 60:02d}.{us // 1000 % 1000:03d}.{us % 1000:03d}"
        with self._named():
            self._file.write("".join(f"{stamp} D {self._prefix}{line}\n" for line in lines))

    def close(self) -> None:
        if self._file is sys.stderr:
            self._file.flush()
        elif not self._is_guest:
            with self._named():
                self._file.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """A failed write says nothing of which file it was."""
        try:
            yield
        except OSError as error:
            error.filename = None if self._path is None else str(self._path)
            raise


def _times(usecs: int, cycles: int, start: int) -> str:
    return f"usec {usecs} cycles {cycles} start {start} mhz {cycles / max(usecs, 1):.1f}"


def op_text(name: str, src: Sequence[Tensor | None], dst: Tensor, kernel: str) -> str:
    """NAME|names|dims|types|strides|kernel params: sources in the op's order, the last output."""
    n = max((i + 1 for i, t in enumerate(src) if t is not None), default=0)
    columns = [
        " x ".join("NONE" if t is None else text(t) for t in src[:n]) + f" -> {text(dst)}"
        for text in (_name, _dims, _type, _strides)
    ]
    return "|".join((name, *columns, kernel))


def _name(t: Tensor) -> str:
    return t.name


def _type(t: Tensor) -> str:
    return t.type.name.lower()


def _dims(t: Tensor) -> str:
    return ":".join(map(str, t.ne[: _n_dims(t)]))


def _strides(t: Tensor) -> str:
    return ":".join(map(str, t.nb[: _n_dims(t)])) + ("" if t.desc.is_contiguous else "!")


def _n_dims(t: Tensor) -> int:
    return 2 if t.ne[2] * t.ne[3] == 1 else 4
