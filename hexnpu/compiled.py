"""A graph made ready for one session: fused, planned, placed, serialized. Running it again only rewrites its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hexnpu.batch import Batch, BatchBuilder, Placed
from hexnpu.errors import HexnpuError, UsageError
from hexnpu.fallback import elements, rows, run_on_host
from hexnpu.fuse import OpNode, fuse
from hexnpu.fuse import Places as FusedPlaces
from hexnpu.graph import Graph, Kind, Tensor
from hexnpu.placement import Joint, Placement
from hexnpu.plan import op_table
from hexnpu.planner import PlannedOp
from hexnpu.tensor import DTYPES, Desc

if TYPE_CHECKING:
    from hexnpu.session import Session

Array = npt.NDArray[Any]


class StrictError(HexnpuError):
    """An op that the NPU cannot take, in a strict session."""


@dataclass(slots=True)
class HostStep:
    """An op computed here, between two batches."""

    op: PlannedOp
    src: tuple[Placed | None, ...]
    dst: tuple[Placed, ...]

    def run(self) -> None:
        run_on_host(self.op.spec, self.op.node.src, self.src, self.dst)


@dataclass(slots=True)
class Port:
    """An input or output of the graph: the array over its memory. `shape` is the tensor's, outer 1s dropped."""

    name: str
    placed: Placed
    memory: Array
    shape: tuple[int, ...]


class Compiled:
    """What `session.compile` makes of a graph. `ops`: its planned ops; `apart`: the fusions that could not be made.

    A graph of a group is placed with the others (`joint`) and with the fusions that all of them make (`taken`); its
    steps are made when all graphs have their places.
    """

    def __init__(
        self, session: Session, graph: Graph, joint: Joint | None = None, taken: FusedPlaces | None = None
    ) -> None:
        self.size = graph_size(graph)
        self._session = session
        nodes, self.apart = fuse(graph, session.planner.refusal, session.fusion, taken)
        # An op without elements has nothing to compute.
        self.ops = [session.planner.planned(n) for n in nodes if any(t.desc.n_elements for t in n.dst)]
        self.fallbacks = [op for op in self.ops if op.plan is None]
        if self.fallbacks and session.strict:
            op = self.fallbacks[0]
            raise StrictError(f"{op} of {_operands(op.node)} cannot run on the NPU: {op.reason}")
        memory = Placement(session.store, session.alloc, graph, self.ops, joint)
        self._weights = memory.weights
        self.compute_bytes = memory.compute_bytes
        self._io = memory.io
        self._input_bytes = memory.input_bytes
        self.inputs = [_port(name, memory.placed(t)) for name, t in graph.inputs.items()]
        self.outputs = [_port(name, memory.placed(t)) for name, t in graph.outputs.items()]
        self._memory = memory
        if joint is None:
            self.make_steps()

    def make_steps(self) -> None:
        self.steps = _steps(self.ops, self._memory.placed, self._session.max_map_bytes)
        self.n_batches = sum(isinstance(s, Batch) for s in self.steps)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """One run; gives a copy of each output."""
        self.load(inputs)
        for step in self.steps:
            if isinstance(step, Batch):
                self._session.submit(step)
            else:
                step.run()
        self._session.stats.count(self)
        return self.results()

    def load(self, inputs: Mapping[str, Array]) -> None:
        """Puts the inputs of a run where the device reads them."""
        if len(inputs) != len(self.inputs):
            self._wrong_names(inputs)
        for port in self.inputs:
            a = inputs.get(port.name)
            if a is None or a.__class__ is not np.ndarray or a.dtype != port.memory.dtype or a.shape != port.shape:
                a = self._accept(port, inputs)
            port.memory[...] = a
        self._io.flush(0, self._input_bytes)

    def results(self) -> dict[str, Array]:
        """A copy of each output."""
        result = {}
        for port in self.outputs:
            port.placed.buffer.fetch(port.placed.offset, port.placed.desc.span_bytes)
            result[port.name] = port.memory.reshape(port.shape).copy()
        return result

    def _wrong_names(self, inputs: Mapping[str, Array]) -> None:
        known = [p.name for p in self.inputs]
        unknown = [n for n in inputs if n not in known]
        if unknown:
            raise UsageError(f"the graph has no input {unknown[0]!r}; its inputs are {', '.join(known) or 'none'}")

    def _accept(self, port: Port, inputs: Mapping[str, Array]) -> Array:
        """The input as an array of the port's shape. Raises UsageError where it is missing or another one."""
        self._wrong_names(inputs)
        if port.name not in inputs:
            raise UsageError(f"input {port.name!r} is missing; it is {port.placed.desc}")
        a = np.asarray(inputs[port.name])
        if a.dtype != port.memory.dtype:
            raise UsageError(f"input {port.name!r} is an array of {a.dtype}, the graph wants {port.memory.dtype}")
        if a.ndim > 4 or (1,) * (4 - a.ndim) + a.shape != port.memory.shape:
            raise UsageError(f"input {port.name!r} has shape {a.shape}, the graph wants {port.shape}")
        return a


def graph_size(graph: Graph) -> tuple[int, int, int]:
    """Changes when something was added to the graph."""
    return len(graph.nodes), len(graph.inputs), len(graph.outputs)


def _operands(node: OpNode) -> str:
    return ", ".join("nothing" if t is None else str(t) for t in node.src)


def _port(name: str, placed: Placed) -> Port:
    desc = placed.desc
    read = elements if desc.type in DTYPES else rows
    memory = read(desc, placed.buffer.view, placed.offset)
    shape = memory.shape
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return Port(name, placed, memory, shape)


Places = Callable[[Tensor, "Desc | None"], Placed]


def _steps(ops: Sequence[PlannedOp], places: Places, max_map_bytes: int) -> list[Batch | HostStep]:
    """Batches within the protocol's limits, and host steps between them."""
    steps: list[Batch | HostStep] = []
    builder = BatchBuilder(max_map_bytes)
    codes = op_table()
    for op in ops:
        node = op.node
        dst = tuple(places(t, None) for t in node.dst)
        if op.plan is None:
            if len(builder):
                steps.append(builder.finish())
                builder = BatchBuilder(max_map_bytes)
            src = tuple(None if t is None or t.root.kind is Kind.WEIGHT else places(t, None) for t in node.src)
            steps.append(HostStep(op, src, dst))
            continue
        src = tuple(None if t is None else places(t, d) for t, d in zip(node.src, op.spec.src, strict=True))
        if not builder.fits((*src, *dst)):
            if not len(builder):
                raise HexnpuError(f"{op} needs more memory at a time than the session maps ({max_map_bytes} bytes)")
            steps.append(builder.finish())
            builder = BatchBuilder(max_map_bytes)
        builder.add(codes[node.op][0], node.params, op.kernel_params, src, dst, op, node.sequence)
    if len(builder):
        steps.append(builder.finish())
    return steps
