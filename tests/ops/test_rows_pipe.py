"""The pipeline of the row-wise ops: in place, and against plans and shapes that lie."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from hexnpu.batch import BatchBuilder, Placed
from hexnpu.plan import op_table, plan
from tests.ops.harness import FAST, Arg, Config, View, plan_of, run_op, session_for, spec_of
from tests.ops.rows_cases import FalsePlan, normal

Case = tuple[str, list[tuple[int, ...]], dict[str, Any]]
CASES: list[Case] = [
    ("ADD", [(96, 6, 4), (96, 3, 1)], {}),
    ("MUL", [(200, 9), (1, 9)], {}),
    ("SCALE", [(300, 7)], {"s": 2.0}),
    ("GLU_SWIGLU", [(400, 7)], {}),
    ("RMS_NORM_MUL", [(96, 6, 4), (96, 1, 4)], {"eps": 1e-5}),
    ("SOFTMAX", [(70, 6, 4), (70, 8, 2), (4,)], {"max_bias": 8.0}),
    ("SOFTMAX", [(70, 1, 4), (70, 8, 2), (4,)], {}),
]


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("config", FAST)
@pytest.mark.parametrize(("op", "params", "other"), [
    ("ADD", {}, (576, 65)), ("MUL", {}, (1, 65)), ("SUB", {}, (576, 1)), ("UNARY_SILU", {}, None),
    ("GLU_SWIGLU", {}, (576, 65)), ("RMS_NORM_MUL", {"eps": 1e-5}, (576,)), ("SOFTMAX", {}, None),
])  # fmt: skip
def test_in_place(op: str, params: dict[str, Any], other: tuple[int, ...] | None, config: Config) -> None:
    src = [Arg(normal((576, 65)))] + ([Arg(normal(other, 2))] if other else [])
    apart = run_op(op, src, params, config=config)
    spec = spec_of(op, src, params)
    session = session_for(config)
    buffer = session.alloc(1 << 20)
    offsets = [0, 512 << 10]
    for arg, offset in zip(src, offsets, strict=False):
        raw = np.ascontiguousarray(arg.array, np.float32).view(np.uint8).ravel()
        buffer.view[offset : offset + raw.size] = raw
    buffer.flush(0, buffer.bytes)
    placed = [Placed(d, buffer, o, 0) for d, o in zip(spec.src, offsets, strict=False) if d is not None]
    builder = BatchBuilder(session.max_map_bytes)
    builder.add(op_table()[op][0], spec.params, plan(spec, config.device).pack(), placed, placed[:1], op)
    session.submit(builder.finish())
    buffer.fetch(0, buffer.bytes)
    assert np.array_equal(buffer.view[: spec.dst[0].span_bytes], apart.dst[0].ravel())


def changed(ne: tuple[int, ...], rng: random.Random) -> tuple[int, ...]:
    i = rng.randrange(len(ne))
    return (*ne[:i], rng.choice([0, 1, ne[i] - 1, ne[i] + 1, ne[i] * 2, 3]), *ne[i + 1 :])


def false_words(rng: random.Random) -> dict[int, int]:
    """Up to three words of kernel_params with values that a plan would not give."""
    values = [0, 1, 2, 3, 5, 64, 127, 128, 129, 4096, 65536, 1 << 20, 1 << 30, (1 << 31) - 1, -1, -128, -(1 << 31)]
    return {rng.randrange(32): rng.choice(values) for _ in range(rng.randrange(4))}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_lies_are_refused_or_harmless(case: Case) -> None:
    """Whatever plan and shapes say, the device answers, writes nothing outside dst, and goes on."""
    op, shapes, params = case
    honest = [Arg(normal(ne, i)) for i, ne in enumerate(shapes)]
    dst = np.zeros(spec_of(op, honest, params).dst[0].ne[::-1])
    planned = plan_of(op, honest, params)
    rng = random.Random(op)
    n_refused = 0
    for _ in range(60):
        ne = [changed(s, rng) if rng.random() < 0.3 else s for s in shapes]
        src = [Arg(normal(s, i), view=View(pad=(rng.choice([0, 0, 4]), 0, 0))) for i, s in enumerate(ne)]
        outcome = run_op(op, src, params, dst=Arg(dst), planned=FalsePlan(planned, false_words(rng)))
        assert not outcome.strayed, outcome.strayed
        n_refused += outcome.error is not None
    assert 10 < n_refused < 60
    assert run_op(op, honest, params).error is None
