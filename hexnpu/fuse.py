"""Graph -> op nodes: which neighbours become one NPU op.

A fusion is made where the tensor between its parts has no other reader and is no output, where nothing that the parts
read can change between them, and where the fused op's plan fits; otherwise the ops run apart and the reason is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntFlag

from hexnpu.graph import Graph, Kind, Node, Tensor

MAX_NX = 4


class Fusion(IntFlag):
    """The bits of the mask that chooses fusions, like GGML_HEXAGON_OPFUSION; 0 is none."""

    ALL = 1
    RMS_NORM_MUL = 2
    MUL_MAT_ADD = 4
    MUL_MAT_NX = 8
    ALLREDUCE_ADD = 16

    @staticmethod
    def chosen(mask: int) -> Fusion:
        """The fusions of a mask, ALL spelled out."""
        return Fusion(~0 if mask & Fusion.ALL else mask)


@dataclass(slots=True, eq=False)
class OpNode:
    """One op as the NPU gets it. `name` is that of the profile log, the parts' names joined by '+'."""

    op: str
    name: str
    params: tuple[int, ...]
    src: tuple[Tensor | None, ...]
    dst: tuple[Tensor, ...]
    parts: tuple[Node, ...]
    sequence: int | None = None

    def __str__(self) -> str:
        return f"{self.name} -> {self.dst[-1].name}"


# Gives why the NPU cannot take a fused op, None where it can.
Fits = Callable[[OpNode], str | None]


# Node (by its id) -> what stands in its place; None where another node has taken it in.
Places = Mapping[int, "OpNode | None"]


def fuse(
    graph: Graph, fits: Fits, mask: int = Fusion.ALL, taken: Places | None = None
) -> tuple[list[OpNode], list[str]]:
    """The op nodes of a graph in running order, and a line for each fusion that was there but could not be made.

    Nodes that no output, no state and no other graph depends on are left out. `taken`: fusions made already.
    """
    return _Fuser(graph, fits, mask, taken or {}).run()


def live_nodes(graph: Graph) -> list[Node]:
    """The nodes that an output, a state or another graph of the group depends on."""
    needed = {id(t.root) for t in graph.outputs.values()}
    live = []
    for node in reversed(graph.nodes):
        roots = [t.root for t in node.dst]
        if node.sequence is not None or any(id(r) in needed or r.kind is Kind.STATE for r in roots):
            live.append(node)
            needed.update(id(t.root) for t in node.src if t is not None)
    return live[::-1]


class _Fuser:
    def __init__(self, graph: Graph, fits: Fits, mask: int, taken: Places) -> None:
        self._fits = fits
        self._on = Fusion.chosen(mask)
        self._place = dict(taken)
        self._nodes = live_nodes(graph)
        self._readers = Counter(id(t.root) for n in self._nodes for t in n.src if t is not None)
        self._readers.update(id(t.root) for t in graph.outputs.values())
        self._maker = {id(t): n for n in self._nodes for t in n.dst}
        self._reasons: list[str] = []

    def run(self) -> tuple[list[OpNode], list[str]]:
        if self._on & Fusion.MUL_MAT_NX:
            self._fuse_nx()
        for node in self._nodes:
            if id(node) in self._place:
                continue
            if node.op == "ADD" and self._on & Fusion.MUL_MAT_ADD:
                self._fuse_pair(node, "MUL_MAT", "MUL_MAT_ADD", _addend_fits)
            elif node.op == "MUL" and self._on & Fusion.RMS_NORM_MUL:
                self._fuse_pair(node, "RMS_NORM", "RMS_NORM_MUL", _factor_fits)
        result = []
        for node in self._nodes:
            if id(node) in self._place:
                taken = self._place[id(node)]
                if taken is not None:
                    result.append(taken)
            else:
                result.append(OpNode(node.op, node.op, node.params, node.src, node.dst, (node,), node.sequence))
        return result, self._reasons

    def _fuse_nx(self) -> None:
        """MUL_MATs of one activation by weights of one type, at the first one's place."""
        groups: dict[tuple[int, int, int, tuple[int, ...]], list[Node]] = {}
        for node in self._nodes:
            if node.op != "MUL_MAT":
                continue
            w, x = node.src
            # A weight is there from the start; a state could change between the first and the last of them.
            if w is None or x is None or w.kind is not Kind.WEIGHT or w.root is not w or x.root.kind is Kind.STATE:
                continue
            if w.ne[2] * w.ne[3] == 1:
                groups.setdefault((id(x), w.type, w.ne[0], node.params), []).append(node)
        for group in groups.values():
            for at in range(0, len(group), MAX_NX):
                nodes = group[at : at + MAX_NX]
                if len(nodes) > 1:
                    weights = tuple(n.src[0] for n in nodes)
                    results = tuple(n.dst[0] for n in nodes)
                    self._take("MUL_MAT_NX", nodes, nodes[0], (nodes[0].src[1], *weights), results)

    def _fuse_pair(
        self, node: Node, first_op: str, fused_op: str, shapes_fit: Callable[[Tensor, Tensor], bool]
    ) -> None:
        """`first_op` and then `node`, which reads its result as one operand, at the node's place."""
        a, b = node.src
        assert a is not None and b is not None
        for result, other in ((a, b), (b, a)):
            first = self._maker.get(id(result))
            if first is None or first.op != first_op or id(first) in self._place or result.root is other.root:
                continue
            if node.dst[0].ne != result.ne or node.dst[0].type != result.type:
                continue  # the result is what is repeated
            if self._readers[id(result.root)] > 1:
                return self._apart((first, node), f"{result.name} has another reader or is an output")
            if not shapes_fit(result, other):
                return self._apart((first, node), f"{other} does not fit {result}")
            if any(t is not None and t.root.kind is Kind.STATE for t in first.src):
                return self._apart((first, node), "it reads a state, which may change in between")
            return self._take(fused_op, [first, node], node, (*first.src, other), node.dst)
        return None

    def _take(
        self, op: str, nodes: list[Node], at: Node, src: tuple[Tensor | None, ...], dst: tuple[Tensor, ...]
    ) -> None:
        fused = OpNode(op, "+".join(n.op for n in nodes), nodes[0].params, src, dst, tuple(nodes))
        reason = self._fits(fused)
        if reason is not None:
            return self._apart(nodes, reason)
        for node in nodes:
            self._place[id(node)] = None
        self._place[id(at)] = fused
        return None

    def _apart(self, nodes: tuple[Node, ...] | list[Node], reason: str) -> None:
        self._reasons.append(f"{'+'.join(n.op for n in nodes)} -> {nodes[-1].dst[-1].name} run apart: {reason}")


def _addend_fits(result: Tensor, addend: Tensor) -> bool:
    """A bias row, or a residual of the result's shape."""
    return addend.ne in (result.ne, (result.ne[0], 1, 1, 1))


def _factor_fits(result: Tensor, factor: Tensor) -> bool:
    """A weight of whole rows that repeats over the result's rows."""
    return factor.ne[0] == result.ne[0] and all(n in (1, m) for n, m in zip(factor.ne[1:], result.ne[1:], strict=True))
