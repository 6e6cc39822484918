"""Where every tensor of a graph lies: weights and states in the session's memory, inputs and outputs in the graph's own
buffer, intermediates in a compute buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hexnpu.batch import Placed
from hexnpu.graph import Graph, Kind, Tensor
from hexnpu.memory import Life, align, place
from hexnpu.planner import PlannedOp
from hexnpu.store import Alloc, Store, StoredWeight, WantedWeight, WeightKey
from hexnpu.tensor import Desc
from hexnpu.transport import Buffer
from hexnpu.wire import FENCE_BYTES


@dataclass(slots=True)
class Joint:
    """What the graphs of a group share: the ranks' fences, and each graph's placement by its id."""

    fences: Sequence[Placed]
    places: dict[int, Placement] = field(default_factory=dict)


class Placement:
    """`io` holds the inputs in its first `input_bytes` bytes, then the results that are outputs and those that a peer
    writes at a time of its own."""

    def __init__(
        self, store: Store, alloc: Alloc, graph: Graph, ops: Sequence[PlannedOp], joint: Joint | None = None
    ) -> None:
        self._graph = graph
        self._joint = joint
        if joint is not None:
            joint.places[id(graph)] = self
        self.weights: dict[WeightKey, StoredWeight] = store.weights(_wanted_weights(graph, ops))
        self._states = store.states(list(graph.states.values()))
        self._roots: dict[int, tuple[Buffer, int]] = {}
        self._placed: dict[int, Placed] = {}
        self.io, self.input_bytes = self._place_io(alloc, graph)
        self.compute_bytes = self._place_results(store, ops)

    def _place_io(self, alloc: Alloc, graph: Graph) -> tuple[Buffer, int]:
        inputs = list(graph.inputs.values())
        received = (t for n in graph.nodes if n.op == "FENCE" for t in n.dst)
        results = {id(t.root): t.root for t in (*graph.outputs.values(), *received) if t.root.kind is Kind.RESULT}
        offsets = [0]
        for t in (*inputs, *results.values()):
            offsets.append(align(offsets[-1] + t.desc.span_bytes))
        buffer = alloc(max(offsets[-1], 1))
        for t, offset in zip((*inputs, *results.values()), offsets, strict=False):
            self._roots[id(t)] = (buffer, offset)
        return buffer, offsets[len(inputs)]

    def _place_results(self, store: Store, ops: Sequence[PlannedOp]) -> int:
        births: dict[int, tuple[Tensor, int]] = {}
        deaths: dict[int, int] = {}
        for step, op in enumerate(ops):
            made = set(map(id, op.node.dst))
            for t in (*op.node.dst, *(t.root for t in op.node.src if t is not None)):
                if t.kind is Kind.RESULT and t.graph is self._graph and id(t) not in self._roots:
                    # A source that nobody made is the empty result of an op that was left out.
                    assert id(t) in births or id(t) in made or not t.desc.n_elements
                    births.setdefault(id(t), (t, step))
                    deaths[id(t)] = step
        if not births:
            return 0
        lives = [Life(t.desc.span_bytes, step, deaths[key]) for key, (t, step) in births.items()]
        offsets, n_bytes = place(lives)
        buffer = store.compute(n_bytes)
        self._roots.update((key, (buffer, offset)) for key, offset in zip(births, offsets, strict=True))
        return n_bytes

    def placed(self, t: Tensor, desc: Desc | None = None) -> Placed:
        """The place of a tensor; of a weight, in the form of `desc`."""
        if t.graph is not self._graph:
            assert self._joint is not None
            return self._joint.places[id(t.graph)].placed(t)
        if t.kind is Kind.FENCE:
            assert self._joint is not None
            return self._joint.fences[t.offset // FENCE_BYTES]
        if t.root.kind is Kind.WEIGHT:
            whole = self.weights[(t.root.name, id(t.root.source), int((desc or t.desc).type))].placed
            return whole if t.root is t else _window(t, whole)
        known = self._placed.get(id(t))
        if known is None:
            if t.root.kind is Kind.STATE:
                known = _window(t, self._states[t.root.name])
            else:
                buffer, offset = self._roots[id(t.root)]
                known = Placed(t.desc, buffer, offset + t.offset)
            self._placed[id(t)] = known
        return known


def _window(t: Tensor, whole: Placed) -> Placed:
    return Placed(t.desc, whole.buffer, whole.offset + t.offset, whole.flags)


def _wanted_weights(graph: Graph, ops: Sequence[PlannedOp]) -> list[WantedWeight]:
    """The weights that the NPU's ops read, in the form they want, and those that are outputs themselves."""
    wanted = []
    for op in ops:
        if op.plan is None:
            continue  # numpy reads the source
        for t, desc in zip(op.node.src, op.spec.src, strict=True):
            if t is not None and desc is not None and t.root.kind is Kind.WEIGHT:
                wanted.append(WantedWeight(t.root, desc if t.root is t else t.root.desc, op.node.op))
    outputs = (t.root for t in graph.outputs.values() if t.root.kind is Kind.WEIGHT)
    return wanted + [WantedWeight(t, t.desc, "") for t in outputs]
