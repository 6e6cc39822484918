"""Random graphs: fused, placed and batched on the NPU against each node's float64 reference in turn.

What this proves is the host: that no intermediate overwrites another that is still read, that fusions keep the meaning,
and that states are read and written in order. Each seed is one graph; all its leaves of the DAG are outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hexnpu
from hexnpu import Graph, Session, Tensor, Type
from hexnpu.graph import Kind, Node
from hexnpu.plan import family
from hexnpu.plan.base import OpSpec
from tests.ops.harness import Config, nmse

N_OPS = 40
WIDTH = 64
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    config = Config("random:3")  # and the flavour and arch of the op tests
    with hexnpu.open(flavour=config.flavour, arch=config.arch, env={"HEXNPU_EMU_DMA": config.dma}) as s:
        yield s


class Builder:
    """Grows a graph whose tensors are all [WIDTH, n] F32."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.g = Graph()
        self.inputs: dict[str, Array] = {}
        self.live = [self.input(int(n)) for n in self.rng.integers(1, 6, 2)]
        self.state = self.g.state(f"state{seed}", (WIDTH, 7), Type.F32)
        self.unread: dict[int, Tensor] = {}
        for _ in range(N_OPS):
            t = self.step()
            self.unread[id(t.root)] = t
            self.live.append(t)
        for i, t in enumerate(self.unread.values()):
            self.g.output(t, f"y{i}")

    def input(self, n: int) -> Tensor:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.rng.standard_normal((n, WIDTH)).astype(np.float32)
        return self.g.input(name, (WIDTH, n))

    def weight(self, *shape: int) -> Tensor:
        array = (self.rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        return self.g.weight(f"w{len(self.g.weights)}", array)

    def pick(self, n: int | None = None) -> Tensor:
        """A tensor, mostly a late one so that chains grow; with `n`, one of n rows."""
        fitting = [t for t in self.live if n is None or t.ne[1] == n]
        t = fitting[-1 - min(int(self.rng.exponential(3)), len(fitting) - 1)]
        self.unread.pop(id(t.root), None)
        return t

    def shared(self, t: Tensor) -> Tensor:
        """What a fusion would hide; sometimes others may read it."""
        if self.rng.random() < 0.3:
            self.live.append(t)
        return t

    def step(self) -> Tensor:
        g, x = self.g, self.pick()
        match int(self.rng.integers(10)):
            case 0:
                return g.add(x, self.pick(x.ne[1]))
            case 1:
                return g.mul(self.shared(g.rms_norm(x)), self.weight(WIDTH))
            case 2:
                return g.silu(x)
            case 3:
                return g.add(self.shared(g.mul_mat(self.weight(WIDTH, WIDTH), x)), self.pick(x.ne[1]))
            case 4:
                gate, up = (g.mul_mat(self.weight(WIDTH, WIDTH), x) for _ in range(2))
                return g.swiglu(gate, up)
            case 5:
                start = int(self.rng.integers(x.ne[1]))
                return g.scale(g.slice(x, 1, start, x.ne[1]), 0.5)
            case 6:
                return g.sub(x, self.weight(WIDTH))
            case 7:
                halves = g.permute(g.reshape(g.cont(x), (WIDTH // 2, 2, x.ne[1])), (0, 2, 1, 3))
                return g.reshape(g.cpy(halves, Type.F32), (WIDTH, x.ne[1]))
            case 8:
                rows = g.weight(f"i{len(g.weights)}", self.rng.permutation(7)[: x.ne[1]].astype(np.int32))
                before = g.rms_norm(self.state)
                g.set_rows(self.state, x, rows)
                return g.add(g.mul(before, self.weight(WIDTH)), self.state)
            case _:
                return g.add(g.mul_mat(self.weight(WIDTH, WIDTH), x), self.weight(WIDTH))


class Reference:
    """Every tensor in float64, each in memory of its own."""

    def __init__(self, inputs: dict[str, Array]) -> None:
        self.memory: dict[int, Array] = {}
        self.inputs = inputs

    def value(self, t: Tensor) -> Array:
        """A view of the tensor as [ne3, ne2, ne1, ne0], by its strides."""
        root = t.root
        if id(root) not in self.memory:
            if root.kind is Kind.STATE:
                flat = np.zeros(root.desc.n_elements)
            else:
                source = self.inputs[root.name] if root.kind is Kind.INPUT else root.source
                flat = source.astype(np.int64 if source.dtype.kind == "i" else np.float64).reshape(-1)
            self.memory[id(root)] = flat
        memory, size = self.memory[id(root)], t.desc.nb[0]
        strides = tuple(8 * b // size for b in t.nb[::-1])
        view: Array = np.ndarray(t.ne[::-1], memory.dtype, memory.data, 8 * t.offset // size, strides)
        return view

    def run(self, node: Node) -> None:
        sources = [None if t is None else self.value(t).copy() for t in node.src]
        dst = node.dst[0]
        if dst.kind is Kind.STATE:
            sources.append(self.value(dst).copy())
        else:
            self.memory[id(dst)] = np.zeros(dst.desc.n_elements)
        spec = OpSpec(node.op, node.params, tuple(t and t.desc for t in node.src), tuple(t.desc for t in node.dst))
        self.value(dst)[...] = family(node.op).reference(spec, sources, np.float64)[0]


@pytest.mark.parametrize("seed", range(12))
def test_a_random_graph(session: Session, seed: int) -> None:
    built = Builder(seed)
    compiled = session.compile(built.g)
    assert not compiled.fallbacks, [str(op) for op in compiled.fallbacks]
    got = session.run(built.g, built.inputs)
    reference = Reference(built.inputs)
    for node in built.g.nodes:
        reference.run(node)
    for name, t in built.g.outputs.items():
        want = reference.value(t)
        assert nmse(got[name].reshape(want.shape), want) < 1e-8, f"{name} = {t}"


def test_random_graphs_fuse_and_reuse_memory(session: Session) -> None:
    """The graphs above are worth their name: they are fused, and memory is reused."""
    compiled = [session.compile(Builder(seed).g) for seed in range(12)]
    names = {op.node.op for c in compiled for op in c.ops}
    assert names >= {"RMS_NORM_MUL", "MUL_MAT_ADD", "MUL_MAT_NX", "SET_ROWS", "CPY"}
    apart = sum(sum(t.desc.span_bytes for t in op.node.dst) for c in compiled for op in c.ops)
    assert sum(c.compute_bytes for c in compiled) < apart / 2
