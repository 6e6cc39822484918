"""A graph over the ranks of a group: one Graph a rank, and the ops between them.

    g = GroupGraph(2)
    parts = [g.ranks[r].mul_mat(w[r], x[r]) for r in range(2)]
    sums = g.allreduce(parts)              # one tensor a rank, the same bits on each
    y = g.hand_over(sums[0], to=1)         # a tensor of rank 1's graph

Ops between ranks run in the order in which they are made, on every rank. Each takes numbers of the run's fence
sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hexnpu.errors import UsageError
from hexnpu.fuse import Fits, Fusion, OpNode, live_nodes
from hexnpu.graph import Graph, Kind, Node, Tensor
from hexnpu.plan import allreduce as plan
from hexnpu.plan import family
from hexnpu.plan.base import ShapeError
from hexnpu.tensor import Desc, Type
from hexnpu.wire import FENCE_BYTES, MAX_RANKS

FENCE_DESC = Desc.contiguous(Type.I32, (FENCE_BYTES // 4,))
# Numbers of the fence sequence that an op takes: ALLREDUCE has an entry and an exit barrier.
_NUMBERS = {"ALLREDUCE": 2, "CPY_FENCE": 1}


@dataclass(slots=True)
class _Sum:
    """One ALLREDUCE: its node on every rank. `to`: the ranks that have a result, in the order of the nodes' dst."""

    nodes: list[Node]
    to: tuple[int, ...]


@dataclass(eq=False)
class GroupGraph:
    """Graphs of `n_ranks` ranks (2 to 4) that exchange tensors. `n_sequences`: fence numbers that a run takes."""

    n_ranks: int
    ranks: list[Graph] = field(init=False)
    n_sequences: int = field(init=False, default=0)
    # What groups made of this graph, by group; hexnpu.group's own.
    compiled: dict[int, Any] = field(init=False, default_factory=dict)
    sums: list[_Sum] = field(init=False, default_factory=list)
    _fences: list[list[Tensor]] = field(init=False)

    def __post_init__(self) -> None:
        if not 2 <= self.n_ranks <= MAX_RANKS:
            raise UsageError(f"a group of {self.n_ranks} ranks; it has 2 to {MAX_RANKS}")
        self.ranks = [Graph() for _ in range(self.n_ranks)]
        self._fences = [[_fence(g, r) for r in range(self.n_ranks)] for g in self.ranks]

    def allreduce(
        self, parts: Sequence[Tensor], to: Sequence[int] | None = None, *, pairs: bool = False, name: str = ""
    ) -> list[Tensor]:
        """The sum of the ranks' tensors (one of each rank's graph, F32 or F16, equal shapes) for the ranks `to` (None:
        all of them). A following add becomes one op with it. `pairs`: they are what `mul_mat(pair=True)` gives."""
        self._own("allreduce", parts)
        wanted = tuple(range(self.n_ranks) if to is None else to)
        if not wanted or len(set(wanted)) != len(wanted) or not all(0 <= r < self.n_ranks for r in wanted):
            raise UsageError(f"allreduce to ranks {wanted}; there are 0 to {self.n_ranks - 1}, each once")
        descs = [p.desc for p in parts]
        desc = plan.infer("ALLREDUCE", descs, {"n_ranks": self.n_ranks, "pairs": pairs})[0]
        label = name or f"allreduce_{len(self.sums)}"
        results = [Tensor(self.ranks[r], label, desc, Kind.RESULT) for r in wanted]
        number = self._take_numbers("ALLREDUCE")
        holes = (None,) * (MAX_RANKS - self.n_ranks)
        nodes = []
        for rank, graph in enumerate(self.ranks):
            src = (*parts, *holes, *self._fences[rank], *holes)
            words = plan.pack("ALLREDUCE", {"rank": rank, "n_ranks": self.n_ranks, "pairs": pairs})
            nodes.append(Node("ALLREDUCE", words, src, tuple(results), number))
            graph.nodes.append(nodes[-1])
        self.sums.append(_Sum(nodes, wanted))
        return results

    def hand_over(self, x: Tensor, to: int, *, name: str = "") -> Tensor:
        """A copy of x in the graph of rank `to`, which waits for it."""
        rank = self._rank_of(x)
        if not 0 <= to < self.n_ranks or to == rank:
            raise UsageError(f"hand_over of {x} of rank {rank} to rank {to}")
        module, label = family("CPY_FENCE"), name or x.name
        received = Tensor(self.ranks[to], label, module.infer("CPY_FENCE", (x.desc,), {})[0], Kind.RESULT)
        number = self._take_numbers("CPY_FENCE")
        send = Node("CPY_FENCE", module.pack("CPY_FENCE", {}), (x,), (received, self._fences[rank][rank]), number)
        wait = Node("FENCE", module.pack("FENCE", {"rank": rank}), (self._fences[to][rank],), (received,), number)
        self.ranks[rank].nodes.append(send)
        self.ranks[to].nodes.append(wait)
        return received

    @property
    def size(self) -> tuple[int, ...]:
        """Changes when something was added to one of the graphs."""
        return tuple(n for g in self.ranks for n in (len(g.nodes), len(g.inputs), len(g.outputs)))

    def _take_numbers(self, op: str) -> int:
        number = self.n_sequences
        self.n_sequences += _NUMBERS[op]
        return number

    def _rank_of(self, x: Tensor) -> int:
        for rank, graph in enumerate(self.ranks):
            if x.graph is graph:
                return rank
        raise UsageError(f"{x} belongs to no graph of this group")

    def _own(self, what: str, parts: Sequence[Tensor]) -> None:
        if len(parts) != self.n_ranks:
            raise ShapeError(f"{what} over {self.n_ranks} ranks has {len(parts)} tensors")
        for rank, part in enumerate(parts):
            if self._rank_of(part) != rank:
                raise UsageError(f"{what}: tensor {rank}, {part}, is not of rank {rank}'s graph")
            if part.root.kind is Kind.WEIGHT:
                raise UsageError(f"{what}: {part} is a weight, which no other rank can read")


def _fence(graph: Graph, rank: int) -> Tensor:
    return Tensor(graph, f"fence-{rank}", FENCE_DESC, Kind.FENCE, offset=rank * FENCE_BYTES)


# ALLREDUCE + ADD -> ALLREDUCE_ADD: all ranks make it, or none does.


def fuse_sums(
    graph: GroupGraph, fits: Sequence[Fits], mask: int
) -> tuple[list[dict[int, OpNode | None]], list[str]]:
    """For each rank what `hexnpu.fuse.fuse` takes as made, and a line for each fusion that could not be made."""
    taken: list[dict[int, OpNode | None]] = [{} for _ in graph.ranks]
    reasons: list[str] = []
    if not Fusion.chosen(mask) & Fusion.ALLREDUCE_ADD:
        return taken, reasons
    live = [live_nodes(g) for g in graph.ranks]
    for sum in graph.sums:
        if sum.to != tuple(range(graph.n_ranks)):
            continue
        found = [_addition(graph.ranks[r], live[r], sum.nodes[r], sum.nodes[r].dst[r]) for r in sum.to]
        adds = [f for f in found if isinstance(f, _Addition)]
        if not adds:
            continue
        if len(adds) < len(found):
            reason = next(f for f in found if isinstance(f, str))
        else:
            nodes = [_fused(sum.nodes[r], adds, r) for r in sum.to]
            reason = next((why for r in sum.to if (why := fits[r](nodes[r])) is not None), "")
        if reason:
            reasons.append(f"ALLREDUCE+ADD -> {adds[0].node.dst[0].name} run apart: {reason}")
            continue
        for rank, node in enumerate(nodes):
            taken[rank][id(sum.nodes[rank])] = None
            taken[rank][id(adds[rank].node)] = node
    return taken, reasons


@dataclass(slots=True)
class _Addition:
    node: Node
    residual: Tensor


def _addition(graph: Graph, live: list[Node], node: Node, result: Tensor) -> _Addition | str:
    """The ADD that a rank's sum goes into, or why there is none."""
    readers = [n for n in live if any(t is not None and t.root is result for t in n.src)]
    if len(readers) != 1 or readers[0].op != "ADD" or any(t.root is result for t in graph.outputs.values()):
        return f"{result.name} has another reader or is an output"
    add = readers[0]
    a, b = add.src
    assert a is not None and b is not None
    residual = b if a is result else a
    if (a is result) == (b is result) or residual.root is result or add.dst[0].desc != result.desc:
        return f"{result.name} is not added as it is"
    if not plan.residual_fits(result.desc, residual.desc):
        return f"{residual} does not fit {result}"
    between = live[live.index(node) + 1 : live.index(add)]
    if any(n.sequence is not None for n in between):
        return "another op between ranks lies in between"
    if any(t is not None and t.root.kind is Kind.STATE for t in node.src):
        return "it reads a state, which may change in between"
    return _Addition(add, residual)


def _fused(node: Node, adds: Sequence[_Addition], rank: int) -> OpNode:
    return OpNode(
        "ALLREDUCE_ADD",
        "ALLREDUCE+ADD",
        node.params,
        (*node.src, adds[rank].residual),
        tuple(a.node.dst[0] for a in adds),
        (node, adds[rank].node),
        node.sequence,
    )
