"""Placement by liveness: nothing that lives overlaps, and memory is reused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexnpu.memory import ALIGN, Life, align, place

LIVES = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=60).map(
    lambda rows: _in_order(rows)
)


def _in_order(rows: list[tuple[int, int, int]]) -> list[Life]:
    lives, step = [], 0
    for size, gap, length in rows:
        step += gap
        lives.append(Life(size, step, step + length))
    return lives


@settings(deadline=None)
@given(LIVES)
def test_what_lives_together_lies_apart(lives: list[Life]) -> None:
    offsets, total = place(lives)
    for i, (a, at_a) in enumerate(zip(lives, offsets, strict=True)):
        assert at_a % ALIGN == 0 and at_a + a.bytes <= total
        for b, at_b in list(zip(lives, offsets, strict=True))[:i]:
            if a.birth <= b.death and b.birth <= a.death:
                assert at_a + a.bytes <= at_b or at_b + b.bytes <= at_a


@settings(deadline=None)
@given(LIVES)
def test_the_buffer_is_no_larger_than_everything_apart(lives: list[Life]) -> None:
    _, total = place(lives)
    together = max(
        sum(align(max(x.bytes, 1)) for x in lives if x.birth <= step <= x.death) for step in {x.birth for x in lives}
    )
    assert together <= total <= sum(align(max(x.bytes, 1)) for x in lives)


@pytest.mark.parametrize("n", [10, 1000])
def test_a_chain_needs_two_places_however_long(n: int) -> None:
    # While an op runs, its input and its output live; the place before the last is free for the next.
    offsets, total = place([Life(1024, i, i + 1) for i in range(n)])
    assert total == 2 * 1024 and len(set(offsets)) == 2


def test_lives_out_of_order_are_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        place([Life(1, 3, 4), Life(1, 2, 5)])
