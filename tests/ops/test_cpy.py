"""CPY: one type by DMA whatever the strides, F32 and F16 into each other, bit-exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hexnpu.plan.base import Refusal, ShapeError
from hexnpu.plan.cpy import infer
from hexnpu.tensor import Desc, Type
from tests.ops.harness import Arg, Config, View, check_op, plan_of, run_op, session_for

PAIRS = [(Type.F32, Type.F32), (Type.F32, Type.F16), (Type.F16, Type.F32), (Type.F16, Type.F16)]
SHAPES = [(1,), (5, 1), (31, 33), (2, 3, 4, 65), (1, 1, 1, 40000), (3, 20000), (300, 64)]


def values(shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_floats(source: Type, target: Type, shape: tuple[int, ...]) -> None:
    check_op("CPY", [Arg(values(shape), source)], {"type": target}, exact=True)


@pytest.mark.parametrize("type", [Type.Q8_0, Type.Q4_0, Type.Q4_1])
def test_blocks_are_copied_as_they_are(type: Type) -> None:
    check_op("CPY", [Arg(values((3, 5, 7, 96)), type, View((0, 2, 1, 3)))], {"type": type}, exact=True)


@pytest.mark.parametrize("type", [Type.I32, Type.I64])
def test_integers(type: Type) -> None:
    check_op("CPY", [Arg(np.arange(600).reshape(3, 200) - 300, type)], {"type": type}, exact=True)


VIEWS = [
    View((0, 2, 1, 3)), View((0, 3, 2, 1)), View((0, 2, 3, 1), (64, 0, 0)), View(pad=(4, 0, 0)), View(pad=(0, 64, 0)),
    View(pad=(32, 4, 128), offset=4),
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_strided_sources(source: Type, target: Type, view: View) -> None:
    check_op("CPY", [Arg(values((3, 4, 5, 66)), source, view)], {"type": target}, exact=True)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_strided_destinations(source: Type, target: Type, view: View) -> None:
    into = Arg(values((3, 4, 5, 66), 2), target, view)
    check_op("CPY", [Arg(values((3, 4, 5, 66)), source, View((0, 3, 1, 2)))], dst=into, exact=True)


def test_what_one_descriptor_does_not_take() -> None:
    """16 MiB in a piece, strides of 16 MiB, 65535 rows: the DMA queue cuts them up."""
    one = Config(n_threads=1)
    to_f32 = {"type": Type.F32}
    check_op("CPY", [Arg(values((5_000_000,)))], to_f32, exact=True, configs=(one,))
    check_op("CPY", [Arg(values((2, 300)), view=View(pad=(17 << 20, 0, 0)))], to_f32, exact=True, configs=(one,))
    rows = [Arg(values((65536, 3)), view=View(pad=(4, 0, 0)))]
    plan = replace(plan_of("CPY", rows, to_f32, config=one), block=65536)
    outcome = run_op("CPY", rows, to_f32, config=one, planned=plan)
    assert outcome.error is None and not outcome.strayed
    np.testing.assert_array_equal(outcome.dst[0].view(np.float32)[0, 0], rows[0].array)


def test_special_values() -> None:
    x = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 65519, 65520, 1e-8, 6e-8, -1e-45, 1e-40, 3.4e38] * 7)
    for source, target in PAIRS:
        with np.errstate(over="ignore"):
            check_op("CPY", [Arg(x, source)], {"type": target}, exact=True)


def test_an_empty_tensor() -> None:
    check_op("CPY", [Arg(np.zeros((0, 64)))], {"type": Type.F16}, exact=True)


def test_a_destination_of_another_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match="differ in shape"):
        infer("CPY", (Desc.contiguous(Type.F32, (4,)), Desc.contiguous(Type.F32, (5,))), {})


def test_what_is_not_copied() -> None:
    with pytest.raises(Refusal, match="Q8_0 is not copied to F32"):
        plan_of("CPY", [Arg(values((4, 32)), Type.Q8_0)], {"type": Type.F32})
    with pytest.raises(ShapeError, match="type must be"):
        infer("CPY", (Desc.contiguous(Type.F32, (4,)),), {"type": "f16"})


def test_rows_go_by_few_transfers() -> None:
    """Rows that follow each other with one stride are one 2D transfer, not one a row."""
    session = session_for(Config())
    before = session.connection.stats(session.number)["dma_transfers"]
    outcome = run_op("CPY", [Arg(values((512, 10)), view=View(pad=(64, 0, 0)))], {"type": Type.F32}, config=Config())
    assert outcome.error is None
    assert session.connection.stats(session.number)["dma_transfers"] - before == 1
