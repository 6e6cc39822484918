"""Several NPU sessions as one: the ranks run the graphs of a GroupGraph at the same time and wait for each other at
fences.

A group survives the loss of nothing: whatever goes wrong on one rank, all ranks end with a status within the fence
time-out, the group closes and raises GroupLost, which names the rank.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import numpy as np

from hexnpu import wire
from hexnpu.batch import Batch, Placed
from hexnpu.compiled import Array, Compiled, HostStep
from hexnpu.errors import DeviceError, GroupLost, HexnpuError, SessionLost, UsageError
from hexnpu.fuse import Fusion
from hexnpu.group_graph import FENCE_DESC, GroupGraph, fuse_sums
from hexnpu.placement import Joint
from hexnpu.session import DEFAULT_FENCE_TIMEOUT_S, DEFAULT_PMU, Profiling, Session, Stats, check_group
from hexnpu.store import MemoryUse
from hexnpu.transport import Connection

# What a rank may take beyond the fence time-out to say that it gave up.
GRACE_S = 3.0
# Before a fence that no run has used for so long could seem to be ahead, all of them are set anew.
REFRESH = 1 << 30
# What a group's profile counts by default: a session's events, and the waits at fences.
DEFAULT_GROUP_PMU = (*DEFAULT_PMU, wire.PMU_FENCE_CYCLES)
# How the kernel says that the fault is another rank's (runtime/fences.c).
PASSED_ON = "has failed"


class CompiledGroup:
    """A GroupGraph made ready for a group's sessions. `apart`: the fusions that could not be made."""

    def __init__(self, sessions: Sequence[Session], fences: Sequence[Placed], graph: GroupGraph) -> None:
        joint = Joint(fences)
        taken, self.apart = fuse_sums(graph, [s.planner.refusal for s in sessions], sessions[0].fusion)
        self.size = graph.size
        self.ranks = [
            Compiled(session, g, joint, places)
            for session, g, places in zip(sessions, graph.ranks, taken, strict=True)
        ]
        self.n_sequences = graph.n_sequences
        for compiled in self.ranks:
            for op in compiled.fallbacks:
                if op.node.sequence is not None:
                    raise HexnpuError(f"{op} joins the ranks, and the NPU cannot take it: {op.reason}")
            compiled.make_steps()
            self.apart += compiled.apart
        self.input_names = {p.name for compiled in self.ranks for p in compiled.inputs}


@dataclass(slots=True)
class _Walk:
    """Where a rank is in its steps."""

    rank: int
    session: Session
    steps: Iterator[Batch | HostStep]
    batch: Batch | None = None  # in flight

    def advance(self, base: int) -> int | None:
        """Runs host steps and sends the next batch; gives its tag, None at the end."""
        self.batch = None
        for step in self.steps:
            if isinstance(step, Batch):
                return self._send(step, base)
            step.run()
        return None

    def _send(self, batch: Batch, base: int) -> int:
        self.batch = batch
        self.session.stamp(batch)
        batch.stamp_sequences(base)
        return self.session.connection.post(self.session.number, batch.data, lambda: self.session.doing(batch))


class Group:
    """NPU sessions that work together; rank r is `sessions[r]`. Use it in a `with` block, or close it."""

    def __init__(
        self,
        connection: Connection,
        devices: Sequence[str],
        n_threads: int,
        vtcm_mib: int = 0,
        *,
        strict: bool = False,
        fusion: int = Fusion.ALL,
        max_map_bytes: int | None = None,
        fence_timeout_s: float = DEFAULT_FENCE_TIMEOUT_S,
        first_sequence: int = 1,
    ) -> None:
        """`first_sequence`: where the fences' sequence numbers begin."""
        check_group(devices)
        if fence_timeout_s <= 0:
            raise UsageError(f"fence_timeout_s is {fence_timeout_s}; it must be more than 0")
        self.connection = connection
        self.fence_timeout_s = fence_timeout_s
        self.sessions = [
            Session(
                connection, device, n_threads, vtcm_mib or vtcm_share(device, devices, connection.hello.vtcm_bytes),
                strict=strict, fusion=fusion, max_map_bytes=max_map_bytes, fence_timeout_s=fence_timeout_s,
            )
            for device in devices
        ]  # fmt: skip
        self.name = ", ".join(s.name for s in self.sessions)
        self.stats = Stats()
        n = len(self.sessions)
        memory = connection.alloc(self.sessions[0].number, n * wire.FENCE_BYTES)
        self.fences = [
            Placed(FENCE_DESC, memory, r * wire.FENCE_BYTES, wire.TENSOR_FENCE) for r in range(n)
        ]
        self._sequence = first_sequence
        self._refreshed = first_sequence
        self._refresh()
        self._graphs: weakref.WeakSet[GroupGraph] = weakref.WeakSet()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Group {self.name} on {self.connection.name}>"

    def close(self) -> None:
        """Ends all sessions and their server. Safe to call twice."""
        for graph in list(self._graphs):
            self.forget(graph)
        for session in reversed(self.sessions):  # the first one's log holds the others' lines
            session.close()

    # Graphs

    def run(self, graph: GroupGraph, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Runs a graph on all ranks. An input goes to every rank whose graph has one of that name; the outputs of all
        ranks come back under their names, which differ. Arrays are as in Session.run."""
        compiled = self.compile(graph)
        if unknown := inputs.keys() - compiled.input_names:
            known = ", ".join(sorted(compiled.input_names)) or "none"
            raise UsageError(f"the graph has no input {min(unknown)!r}; its inputs are {known}")
        for rank in compiled.ranks:
            rank.load({p.name: inputs[p.name] for p in rank.inputs if p.name in inputs})
        self.run_steps([c.steps for c in compiled.ranks], compiled.n_sequences)
        self.stats.count(*compiled.ranks)
        return {name: array for rank in compiled.ranks for name, array in rank.results().items()}

    def compile(self, graph: GroupGraph) -> CompiledGroup:
        """The graph made ready to run in this group; kept until the graph goes, grows, or is forgotten."""
        if graph.n_ranks != len(self.sessions):
            raise UsageError(f"the graph is for {graph.n_ranks} ranks, the group has {len(self.sessions)}")
        known: CompiledGroup | None = graph.compiled.get(id(self))
        if known is None or known.size != graph.size:
            known = graph.compiled[id(self)] = CompiledGroup(self.sessions, self.fences, graph)
            self._graphs.add(graph)
        return known

    def forget(self, graph: GroupGraph) -> None:
        """Frees what was made of a graph; weights and states stay while another graph uses them."""
        graph.compiled.pop(id(self), None)
        self._graphs.discard(graph)

    @property
    def memory(self) -> MemoryUse:
        """Bytes allocated for weights, states and intermediates, over all ranks."""
        uses = [s.memory for s in self.sessions]
        return MemoryUse(
            sum(u.weight_bytes for u in uses), sum(u.state_bytes for u in uses), sum(u.compute_bytes for u in uses)
        )

    def clear_states(self) -> None:
        """Zeroes every state (KV caches) of every rank."""
        for session in self.sessions:
            session.clear_states()

    def profile(
        self, mode: int, log_file: str | Path | None = None, pmu: Sequence[int] = DEFAULT_GROUP_PMU
    ) -> Profiling:
        """As Session.profile; each line names its rank's device."""
        first, *others = self.sessions
        if mode == 0:
            for session in reversed(self.sessions):
                session.profile(0)
        else:
            first.profile(mode, log_file, pmu)
            for session in others:
                session.profile(mode, pmu=pmu, beside=first)
        return Profiling(self)

    # Running

    def run_steps(self, steps: Sequence[Sequence[Batch | HostStep]], n_sequences: int) -> None:
        """Runs each rank's steps in turn, all ranks at once; their fences take `n_sequences` numbers."""
        base = self._take_sequences(n_sequences)
        flying: dict[int, _Walk] = {}
        faults: list[tuple[int | None, HexnpuError]] = []
        walks = [_Walk(r, s, iter(mine)) for r, (s, mine) in enumerate(zip(self.sessions, steps, strict=True))]
        try:
            for walk in walks:
                tag = walk.advance(base)
                if tag is not None:
                    flying[tag] = walk
            while flying:
                timeout = self.fence_timeout_s + GRACE_S if faults else None
                tag, reply = self.connection.collect(lambda: self._doing(flying), timeout)
                walk = flying.pop(tag)
                fault = _fault(walk, reply)
                if fault is not None:
                    faults.append((walk.rank, fault))
                    self._publish_failure(walk.rank, base)
                elif not faults:
                    next_tag = walk.advance(base)
                    if next_tag is not None:
                        flying[next_tag] = walk
        except SessionLost as lost:
            faults.append((None, lost))
        if faults:
            self._lose(faults)

    def _doing(self, flying: Mapping[int, _Walk]) -> str:
        return "; ".join(f"{w.session.name} {w.session.doing(w.batch)}" for w in flying.values() if w.batch)

    def _publish_failure(self, rank: int, base: int) -> None:
        """In the rank's stead, which may be dead or never have begun: its peers then need not wait for the time-out."""
        self._write_fence(rank, base - 1, wire.Status.INTERNAL_ERR)

    def _write_fence(self, rank: int, sequence: int, status: wire.Status) -> None:
        word = (sequence & 0xFFFFFFFF) | int(status) << 32
        fence = self.fences[rank]
        fence.buffer.write(fence.offset, np.array([word], np.uint64).view(np.uint8))

    def _take_sequences(self, n: int) -> int:
        """`n` numbers of the fence sequence; the first of them."""
        if self._sequence - self._refreshed > REFRESH:
            self._refresh()
        base = self._sequence
        self._sequence += n
        return base

    def _refresh(self) -> None:
        """Between runs nobody looks at the fences, so they may be set: behind every number that is to come."""
        for rank in range(len(self.sessions)):
            self._write_fence(rank, self._sequence - 1, wire.Status.OK)
        self._refreshed = self._sequence

    def _lose(self, faults: Sequence[tuple[int | None, HexnpuError]]) -> NoReturn:
        """Closes the group over the fault that the others follow from: the first that speaks of no other rank's."""
        own = [f for f in faults if PASSED_ON not in str(f[1])]
        rank, cause = (own or faults)[0]
        self.close()
        whose = "" if rank is None else f"rank {rank} ({self.sessions[rank].name}): "
        stderr = cause.stderr if isinstance(cause, SessionLost) else ""
        raise GroupLost(f"the group of {self.name} is lost: {whose}{cause}; open a new group", stderr) from None


def _fault(walk: _Walk, reply: bytearray | SessionLost | DeviceError) -> HexnpuError | None:
    """What is wrong with the reply to a rank's batch."""
    if isinstance(reply, HexnpuError):
        return reply
    assert walk.batch is not None
    try:
        walk.session.accept(walk.batch, reply)
    except HexnpuError as error:
        return error
    return None


def vtcm_share(device: str, devices: Sequence[str], vtcm_bytes: int) -> int:
    """MiB of VTCM for a session: virtual sessions of one NPU (HTP0:0, HTP0:1) share what it has; 0 is all of it."""
    npu = device.partition(":")[0]
    n = sum(d.partition(":")[0] == npu for d in devices)
    return max(2, *(mib for mib in (2, 4, 8) if mib << 20 <= vtcm_bytes // n)) if n > 1 else 0
