"""One NPU session: its buffers, its batches, the graphs compiled for it."""

from __future__ import annotations

import os
import re
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypedDict, overload

from hexnpu import wire
from hexnpu.batch import Batch, Response, parse_response
from hexnpu.compiled import Array, Compiled, graph_size
from hexnpu.errors import DeviceError, HexnpuError, SessionLost, UsageError
from hexnpu.fuse import Fusion
from hexnpu.graph import Graph
from hexnpu.plan.base import Device
from hexnpu.planner import Planner
from hexnpu.profile_lines import ProfileLog
from hexnpu.store import MemoryUse, Store
from hexnpu.transport import Buffer, Connection, connect
from hexnpu.wire import ProfileMode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hexnpu.group import Group

DEFAULT_THREADS = 4
DEFAULT_FENCE_TIMEOUT_S = 60.0
_DEVICE = re.compile(r"HTP\d+(:\d+)?")
DEFAULT_PMU = (wire.PMU_DMA_TRANSFERS, wire.PMU_DMA_BYTES)


class Options(TypedDict, total=False):
    """What `open` takes besides the target and the devices."""

    n_threads: int | None
    vtcm_mib: int | None
    arch: int | str | None
    flavour: str | None
    strict: bool
    fusion: int
    max_map_bytes: int | None
    fence_timeout_s: float
    env: dict[str, str] | None


@overload
def open(target: str | None = None, **options: Unpack[Options]) -> Session: ...
@overload
def open(target: str | None, devices: Sequence[str], **options: Unpack[Options]) -> Session | Group: ...
@overload
def open(*, devices: Sequence[str], **options: Unpack[Options]) -> Session | Group: ...


def open(
    target: str | None = None,
    devices: Sequence[str] = ("HTP0:0",),
    *,
    n_threads: int | None = None,
    vtcm_mib: int | None = None,
    arch: int | str | None = None,
    flavour: str | None = None,
    strict: bool = False,
    fusion: int = Fusion.ALL,
    max_map_bytes: int | None = None,
    fence_timeout_s: float = DEFAULT_FENCE_TIMEOUT_S,
    env: dict[str, str] | None = None,
) -> Session | Group:
    """Opens an NPU session on `target` (None: this machine's emulator), or a group of them: one for each of `devices`.

    A device is HTPn:m, virtual session m of NPU n; the sessions of one NPU share its VTCM. `n_threads` is the number of
    HVX threads a session (default: 4, or its share of the CPUs there are, or what the NPU has), `vtcm_mib` its VTCM
    (default: what the device has), `max_map_bytes` what it maps at a time. `fence_timeout_s`: how long a rank of a
    group waits for another before the group is lost. `arch` and `flavour` choose the emulator's build. `strict` makes
    an op that the NPU cannot take an error instead of a numpy fallback; `fusion` is a mask of hexnpu.fuse.Fusion. `env`
    is added to the emulator's environment. Use the session in a `with` block, or close it.
    """
    check_devices(devices)
    if vtcm_mib not in (None, 2, 4, 8):
        raise UsageError(f"vtcm_mib is {vtcm_mib}; it must be 2, 4 or 8")
    threads = max(1, min(DEFAULT_THREADS, (os.cpu_count() or 1) // len(devices))) if n_threads is None else n_threads
    connection = connect(target, arch=arch, flavour=flavour, env=env)
    if n_threads is None:
        threads = min(threads, connection.hello.n_threads)
    try:
        if len(devices) == 1:
            return Session(
                connection, devices[0], threads, vtcm_mib or 0, strict=strict, fusion=fusion,
                max_map_bytes=max_map_bytes,
            )  # fmt: skip
        from hexnpu.group import Group

        return Group(
            connection, devices, threads, vtcm_mib or 0, strict=strict, fusion=fusion, max_map_bytes=max_map_bytes,
            fence_timeout_s=fence_timeout_s,
        )  # fmt: skip
    except BaseException:
        connection.close()
        raise


def check_devices(devices: Sequence[str]) -> None:
    """Raises UsageError where a session or a group cannot have these devices."""
    if isinstance(devices, str) or not devices:
        raise UsageError(f"devices is {devices!r}; a session has a list of one device, ['HTP0:0'], a group of several")
    for device in devices:
        if not _DEVICE.fullmatch(device):
            raise UsageError(
                f"{device!r} is no device; one is HTPn, or HTPn:m for session m of NPU n: HTP0:0,HTP1:0 are two NPUs, "
                "HTP0:0,HTP0:1 two sessions of one"
            )
    if len(devices) > 1:
        check_group(devices)


def check_group(devices: Sequence[str]) -> None:
    """Raises UsageError where these are not the devices of a group."""
    different = {device if ":" in device else f"{device}:0" for device in devices}
    if not 2 <= len(devices) <= wire.MAX_RANKS or len(different) != len(devices):
        raise UsageError(f"a group of {', '.join(devices)}; it has 2 to {wire.MAX_RANKS} different devices")


@dataclass(slots=True)
class Stats:
    """What ran where, over all runs of a session's graphs."""

    runs: int = 0
    npu_ops: int = 0
    fallback_ops: int = 0
    batches: int = 0
    last_run_ops: int = 0
    last_run_batches: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def count(self, *ranks: Compiled) -> None:
        """One run of a graph, or of the graphs of a group's ranks."""
        fallbacks = [op for compiled in ranks for op in compiled.fallbacks]
        self.last_run_ops = sum(len(compiled.ops) for compiled in ranks)
        self.last_run_batches = sum(compiled.n_batches for compiled in ranks)
        self.runs += 1
        self.npu_ops += self.last_run_ops - len(fallbacks)
        self.fallback_ops += len(fallbacks)
        self.batches += self.last_run_batches
        for op in fallbacks:
            self.reasons[f"{op.node.name}: {op.reason}"] += 1

    @property
    def fallback_reasons(self) -> list[str]:
        """One line for each reason, the most frequent first."""
        return [f"{n} x {reason}" for reason, n in self.reasons.most_common()]


class Profiling:
    """What Session.profile gives: leaving its `with` block ends the profile."""

    def __init__(self, session: Session | Group) -> None:
        self._session = session

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if not self._session.connection.closed:
            self._session.profile(0)


class Session:
    """One NPU session. `device` is what plans may use of it."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        n_threads: int,
        vtcm_mib: int = 0,
        *,
        strict: bool = False,
        fusion: int = Fusion.ALL,
        max_map_bytes: int | None = None,
        fence_timeout_s: float | None = None,
    ) -> None:
        hello = connection.hello
        if not 1 <= n_threads <= hello.n_threads:
            raise UsageError(f"{connection.name} gives 1 to {hello.n_threads} HVX threads, not {n_threads}")
        if max_map_bytes is not None and not 1 <= max_map_bytes <= hello.max_map_bytes:
            raise UsageError(f"{connection.name} maps 1 to {hello.max_map_bytes} bytes, not {max_map_bytes}")
        self.name = name if ":" in name else f"{name}:0"
        self.connection = connection
        self.strict = strict
        self.fusion = fusion
        self.device = Device(hello.arch, n_threads, vtcm_mib << 20 or hello.vtcm_bytes)
        self.max_map_bytes = max_map_bytes or hello.max_map_bytes
        fence_ms = 0 if fence_timeout_s is None else max(1, round(fence_timeout_s * 1000))
        self.number = connection.open_session(self.name, n_threads, vtcm_mib, max_map_bytes or 0, fence_ms)
        self.planner = Planner(self.device)
        self.store = Store(self.alloc, self.max_map_bytes)
        self.stats = Stats()
        self._seq = 0
        self._log: ProfileLog | None = None
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self.number} {self.name} on {self.connection.name}>"

    def close(self) -> None:
        """Ends the session and its server. Safe to call twice."""
        if self._log is not None:
            self._log.close()
            self._log = None
        for graph in list(self._graphs):
            self.forget(graph)
        self.connection.close()

    # Graphs

    def run(self, graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Runs a graph: {input name: array} -> {output name: array}, compiling it on first sight.

        Arrays have numpy's order of axes (a tensor of ne (4, 3) is an array of shape (3, 4)) and the tensor's own
        dtype; outer axes of size 1 are dropped in results. A quantized output comes as bytes, the last axis a row.
        """
        return self.compile(graph).run(inputs)

    def compile(self, graph: Graph) -> Compiled:
        """The graph made ready to run in this session; kept until the graph goes, grows, or is forgotten."""
        known: Compiled | None = graph.compiled.get(id(self))
        if known is None or known.size != graph_size(graph):
            known = graph.compiled[id(self)] = Compiled(self, graph)
            self._graphs.add(graph)
        return known

    def forget(self, graph: Graph) -> None:
        """Frees what was made of a graph; weights and states stay while another graph uses them."""
        graph.compiled.pop(id(self), None)
        self._graphs.discard(graph)

    @property
    def memory(self) -> MemoryUse:
        """Bytes allocated for weights, states and intermediates."""
        return self.store.use()

    def clear_states(self) -> None:
        """Zeroes every state (KV caches)."""
        self.store.clear_states()

    def profile(
        self,
        mode: int,
        log_file: str | Path | None = None,
        pmu: Sequence[int] = DEFAULT_PMU,
        *,
        beside: Session | None = None,
    ) -> Profiling:
        """Writes profile lines from now on: 1 a line per op, 2 with PMU counters, 3 with trace events, 0 ends it.

        `log_file`: None is stderr. `pmu`: up to 8 event numbers, by default the emulator's DMA transfers and bytes.
        `beside`: into the log of this other session instead. The result is a context manager that ends the profile.
        """
        if mode not in ProfileMode.__members__.values():
            raise UsageError(f"no profile mode {mode}; 0 is off, 1 ops, 2 with counters, 3 with trace events")
        if len(pmu) > 8:
            raise UsageError(f"{len(pmu)} PMU events; the NPU counts 8 at a time")
        if self._log is not None:
            self._log.close()
            self._log = None
        self.connection.profile(self.number, mode, tuple(pmu))
        if mode:
            path = None if log_file is None else Path(log_file)
            self._log = ProfileLog(self.name, ProfileMode(mode), path, pmu, None if beside is None else beside._log)
        return Profiling(self)

    # Batches

    def alloc(self, n_bytes: int) -> Buffer:
        """A zeroed buffer that this session can map."""
        return self.connection.alloc(self.number, n_bytes)

    def submit(self, batch: Batch) -> Response:
        """Runs a batch. Raises DeviceError where an op was refused, SessionLost where the server died over it."""
        self.stamp(batch)
        try:
            raw = self.connection.submit(self.number, batch.data, lambda: self.doing(batch))
        except SessionLost:
            self.close()
            raise
        return self.accept(batch, raw)

    def stamp(self, batch: Batch) -> None:
        """Gives a batch that is about to be sent its number."""
        self._seq += 1
        batch.stamp(self._seq, 0 if self._log is None else self._log.n_traces)

    def accept(self, batch: Batch, raw: bytearray) -> Response:
        """The response to the batch that was stamped last. Raises DeviceError where an op was refused."""
        try:
            response = parse_response(raw)
        except ValueError as error:
            raise HexnpuError(f"{self.name}: the server answered batch {self._seq} with {error}") from None
        if response.seq != self._seq:
            raise SessionLost(f"{self.name}: the server answered batch {response.seq} instead of {self._seq}")
        if response.status != wire.Status.OK:
            raise DeviceError(self._refusal(batch, response))
        if self._log is not None:
            self._log.write(batch.ops, response)
        return response

    def doing(self, batch: Batch) -> str:
        """What a batch is, for an error about it."""
        names = [str(op) for op in batch.ops[:4]]
        rest = len(batch.ops) - len(names)
        return f"batch {self._seq}: {', '.join(names)}" + (f" and {rest} more ops" if rest else "")

    def _refusal(self, batch: Batch, response: Response) -> str:
        status = response.status
        name = wire.Status(status).name if status in wire.Status.__members__.values() else f"status {status}"
        n = response.failing_op
        where = f"op {n} ({batch.ops[n]})" if n < len(batch.ops) else "the batch"
        return f"{self.name} batch {self._seq}: {where}: {name}: {response.detail}"
