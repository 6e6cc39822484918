"""One ALLREDUCE (or several in a row) on the ranks of a group, over tensors in one shared buffer with guard bytes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import hexnpu
from hexnpu.batch import Batch, BatchBuilder, Placed
from hexnpu.group import Group
from hexnpu.plan import allreduce, op_table, plan
from hexnpu.plan.base import OpSpec
from hexnpu.tensor import DTYPES, Desc, Type
from tests.processes import HANG_S

GUARD = 0xA5
GUARD_BYTES = 256

_groups: dict[tuple[Any, ...], Group] = {}


def group_of(n_ranks: int, n_threads: int = 2, vtcm_mib: int = 2, flavour: str = "release", **env: str) -> Group:
    """The open group of so many ranks; groups live until the process ends."""
    key = (n_ranks, n_threads, vtcm_mib, flavour, *sorted(env.items()))
    group = _groups.get(key)
    if group is None or group.connection.closed:
        opened = hexnpu.open(
            devices=[f"HTP{r}:0" for r in range(n_ranks)], n_threads=n_threads, vtcm_mib=vtcm_mib, flavour=flavour,
            fence_timeout_s=HANG_S, env=env,
        )  # fmt: skip
        assert isinstance(opened, Group)
        group = _groups[key] = opened
    return group


@dataclass(frozen=True)
class Case:
    """A sum: shape in ggml's order, bytes free behind each row of inputs and outputs, what is added, for how many."""

    ne: tuple[int, ...]
    type: Type = Type.F32
    pads: tuple[int, ...] = (0,)  # of the tensors in turn
    residual: str = ""  # "", "full" or "row"
    n_dsts: int | None = None
    in_place: bool = False
    pairs: bool = False  # of a matrix; all is dense

    def part(self, i: int) -> Desc:
        """An input."""
        return Desc.contiguous(Type.F32, (*self.desc(i).ne[:2], 2)) if self.pairs else self.desc(i)

    def desc(self, i: int) -> Desc:
        dense = Desc.contiguous(self.type, self.ne)
        row = dense.nb[1] + self.pads[i % len(self.pads)]
        plane = row * dense.ne[1]
        return Desc(self.type, dense.ne, (dense.nb[0], row, plane, plane * dense.ne[2]))


@dataclass
class Ranks:
    """The tensors of a case in memory."""

    group: Group
    case: Case
    inputs: list[Placed] = field(default_factory=list)
    residuals: list[Placed] = field(default_factory=list)
    outputs: list[Placed] = field(default_factory=list)

    def __post_init__(self) -> None:
        case, n = self.case, len(self.group.sessions)
        n_dsts = n if case.n_dsts is None else case.n_dsts
        one_row = Desc.contiguous(case.type, case.ne[:1])
        wanted = [case.part(r) for r in range(n)]
        wanted += [] if not case.residual else [one_row if case.residual == "row" else case.desc(r) for r in range(n)]
        wanted += [] if case.in_place else [case.desc(r + 1) for r in range(n_dsts)]
        offsets, end = [], GUARD_BYTES
        for desc in wanted:
            offsets.append(end)
            end += -(-desc.span_bytes // 128) * 128 + GUARD_BYTES
        self.buffer = self.group.sessions[0].alloc(end)
        placed = [Placed(d, self.buffer, o) for d, o in zip(wanted, offsets, strict=True)]
        self.inputs = placed[:n]
        self.residuals = placed[n : 2 * n] if case.residual else []
        self.outputs = placed[:n_dsts] if case.in_place else placed[len(placed) - n_dsts :]

    def view(self, p: Placed) -> np.ndarray[Any, Any]:
        """A tensor's elements in numpy order."""
        if not p.desc.n_elements:
            return np.zeros(p.desc.ne[::-1], DTYPES[p.desc.type])
        return np.ndarray(p.desc.ne[::-1], DTYPES[p.desc.type], self.buffer.view.data, p.offset, p.desc.nb[::-1])

    def fill(self, rng: np.random.Generator) -> None:
        self.buffer.view[:] = GUARD
        residual = rng.standard_normal(self.view(self.residuals[0]).shape) if self.residuals else None
        for p in self.inputs:
            self.view(p)[...] = rng.standard_normal(self.view(p).shape) * 2.0 ** rng.integers(-8, 8)
            if self.case.pairs:
                self.view(p)[:, 1] *= np.float32(2.0**-24)
        for p in self.residuals:
            self.view(p)[...] = residual  # a residual is the same on every rank

    def wanted(self) -> np.ndarray[Any, Any]:
        """The sum in rank order, of halves in floats and rounded once; computed from what is in memory now."""
        inputs = [self.view(p).astype(np.float32) for p in self.inputs]
        total = sum_of_pairs(inputs) if self.case.pairs else functools.reduce(np.add, inputs)
        for p in self.residuals[:1]:
            total = total + self.view(p).astype(np.float32)
        return total.astype(DTYPES[self.case.type])

    def steps(self, n_times: int) -> list[list[Batch]]:
        """`n_times` ALLREDUCEs in one batch a rank."""
        steps = []
        for rank, session in enumerate(self.group.sessions):
            builder = BatchBuilder(session.max_map_bytes)
            self.add_to(builder, rank, n_times)
            steps.append([builder.finish()])
        return steps

    def add_to(self, builder: BatchBuilder, rank: int, n_times: int, first: int = 0) -> None:
        n = len(self.group.sessions)
        op = "ALLREDUCE_ADD" if self.residuals else "ALLREDUCE"
        holes = [None] * (4 - n)
        residual = [self.residuals[rank]] if self.residuals else []
        src: Sequence[Placed | None] = [*self.inputs, *holes, *self.group.fences, *holes, *residual]
        words = allreduce.pack(op, {"rank": rank, "n_ranks": n, "pairs": self.case.pairs})
        descs = tuple(None if p is None else p.desc for p in src)
        spec = OpSpec(op, words, descs, tuple(p.desc for p in self.outputs))
        planned = plan(spec, self.group.sessions[rank].device)
        for i in range(n_times):
            builder.add(op_table()[op][0], words, planned.pack(), src, self.outputs, op, first + 2 * i)

    def check_chain(self, rng: np.random.Generator, n_times: int) -> None:
        """Each rank copies its output to its input, sums, and so on: it reads what its peers wrote just before, and
        writes what they read just before, so that every barrier is needed."""
        self.buffer.view[:] = GUARD
        for p in self.outputs:
            self.view(p)[...] = rng.standard_normal(self.view(p).shape)
        want = [self.view(p).copy() for p in self.outputs]
        for _ in range(n_times):
            total = want[0].astype(np.float32)
            for other in want[1:]:
                total = total + other.astype(np.float32)
            want = [total.astype(want[0].dtype)] * len(want)
        steps = []
        for rank, session in enumerate(self.group.sessions):
            builder = BatchBuilder(session.max_map_bytes)
            src, dst = self.outputs[rank], self.inputs[rank]
            copy = plan(OpSpec("CPY", (0,) * 16, (src.desc,), (dst.desc,)), session.device)
            for i in range(n_times):
                builder.add(op_table()["CPY"][0], (0,) * 16, copy.pack(), (src,), (dst,), "CPY")
                self.add_to(builder, rank, 1, first=2 * i)
            steps.append([builder.finish()])
        self.group.run_steps(steps, 2 * n_times)
        for rank, p in enumerate(self.outputs):
            assert np.array_equal(self.view(p), want[rank]), f"{self.case}: output {rank} after {n_times} sums"

    def run(self, n_times: int = 1) -> None:
        self.group.run_steps(self.steps(n_times), 2 * n_times)

    def check(self, rng: np.random.Generator, n_times: int = 1) -> None:
        """All outputs are the rank-order sum, bit for bit, and nothing else was written."""
        self.fill(rng)
        want, before = self.wanted(), self.buffer.view.copy()
        self.run(1 if self.case.in_place else n_times)  # in place each run adds to the last
        bits = np.uint16 if self.case.type == Type.F16 else np.uint32
        for rank, p in enumerate(self.outputs):
            wrong = int(np.count_nonzero(self.view(p).view(bits) != want.view(bits)))
            assert not wrong, f"{self.case}: {wrong} of {want.size} elements of output {rank} differ from the sum"
            self.view(p)[...] = 0
        ours = self.buffer.view.copy()
        self.buffer.view[:] = before
        for p in self.outputs:
            self.view(p)[...] = 0
        assert np.array_equal(ours, self.buffer.view), f"{self.case}: bytes outside the outputs changed"


def sum_of_pairs(pairs: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Of [1, 2, M, N]: floats in rank order, and what each addition lost with what the pairs lacked."""
    hi, lo = pairs[0][:, :1], pairs[0][:, 1:]
    for p in pairs[1:]:
        total = hi + p[:, :1]
        # Exact: the sum of two floats and its rounding error have no more than 53 bits here.
        lost = (hi.astype(np.float64) + p[:, :1] - total).astype(np.float32)
        hi, lo = total, lo + p[:, 1:] + lost
    return np.asarray(hi + lo)


def random_case(rng: np.random.Generator, n_ranks: int) -> Case:
    """Mostly awkward: odd sizes, one element, fewer elements than ranks, rows apart, one row added to all."""
    shape = [int(rng.choice([1, 2, 3, 31, 64, 127, 576, 1000, 4096, 5001]))]
    if rng.random() < 0.6:
        shape.append(int(rng.choice([1, 2, 3, 5, 17, 64])))
        if rng.random() < 0.3:
            shape.append(int(rng.choice([1, 2, 3])))
    type = Type.F16 if rng.random() < 0.4 else Type.F32
    pads = tuple(int(p) * 4 for p in rng.integers(0, 40, rng.integers(1, 4))) if rng.random() < 0.4 else (0,)
    residual = str(rng.choice(["", "full", "row"]))
    n_dsts = int(rng.integers(1, n_ranks + 1)) if rng.random() < 0.3 else None
    in_place = bool(rng.random() < 0.2)
    if rng.random() < 0.25:
        return Case(tuple(shape[:2]), residual="full" if residual else "", n_dsts=n_dsts, pairs=True)
    return Case(tuple(shape), type, pads, residual, n_dsts, in_place)
