"""ALLREDUCE and ALLREDUCE_ADD: the sum in rank order, the same bits on every rank, whatever the ranks' timing."""

from __future__ import annotations

import numpy as np
import pytest

from hexnpu.errors import GroupLost
from hexnpu.group import Group
from hexnpu.plan import allreduce, plan
from hexnpu.plan.base import Device, OpSpec, Refusal, ShapeError
from hexnpu.tensor import Desc, Type
from tests.ops.ranks import Case, Ranks, group_of, random_case

CASES = {
    "one element": Case((1,)),
    "fewer elements than ranks": Case((3,)),
    "odd": Case((1001,)),
    "a model's row": Case((4096,)),
    "rows": Case((576, 7)),
    "halves": Case((577, 3), Type.F16),
    "rows apart": Case((100, 9), pads=(4, 0, 128)),
    "fewer rows than ranks, apart": Case((100, 2), pads=(60,)),
    "wide rows apart": Case((20000, 3), pads=(12,)),
    "four dimensions": Case((33, 2, 3, 2)),
    "residual": Case((576, 7), residual="full"),
    "residual, rows apart": Case((576, 7), pads=(64, 4), residual="full"),
    "one row for all": Case((576, 7), residual="row"),
    "one row for all, halves": Case((576, 7), Type.F16, residual="row"),
    "one row for one": Case((576,), residual="row"),
    "for one rank": Case((576, 5), n_dsts=1),
    "in place": Case((576, 5), in_place=True),
    "in place with residual": Case((576, 5), residual="row", in_place=True),
    "empty": Case((0, 4)),
    "pairs": Case((576, 7), pairs=True),
    "pairs with residual": Case((577, 3), residual="full", pairs=True),
    "one pair": Case((1,), pairs=True),
    "many pairs for one rank": Case((4096, 30), n_dsts=1, pairs=True),
}


@pytest.mark.parametrize("n_ranks", [2, 3, 4])
@pytest.mark.parametrize("name", CASES)
def test_sum(name: str, n_ranks: int) -> None:
    Ranks(group_of(n_ranks), CASES[name]).check(np.random.default_rng([n_ranks, len(name)]))


@pytest.mark.parametrize("n_ranks", [2, 3, 4])
def test_random_sums(n_ranks: int) -> None:
    rng = np.random.default_rng(n_ranks)
    for _ in range(40):
        Ranks(group_of(n_ranks), random_case(rng, n_ranks)).check(rng)


def skewed(flavour: str, sessions: str, seed: int, n_ranks: int) -> Group:
    return group_of(
        n_ranks, flavour=flavour, HEXNPU_EMU_SKEW=str(seed), HEXNPU_EMU_SESSIONS=sessions,
        HEXNPU_EMU_DMA=f"random:{seed}",
    )  # fmt: skip


WAYS = [("release", "processes"), ("release", "threads"), ("tsan", "threads"), ("asan", "processes")]


@pytest.mark.parametrize(("flavour", "sessions"), WAYS)
def test_chains_of_sums_of_skewed_ranks(flavour: str, sessions: str) -> None:
    """A barrier that lets a rank through too early is a wrong sum, and under ThreadSanitizer a race."""
    for n_ranks in (2, 3, 4):
        group, rng = skewed(flavour, sessions, n_ranks, n_ranks), np.random.default_rng([9, n_ranks])
        for case in (Case((4096,)), Case((1000, 3), pads=(4, 8)), Case((577, 5), Type.F16)):
            Ranks(group, case).check_chain(rng, 6)


@pytest.mark.parametrize(("flavour", "sessions"), WAYS)
def test_random_sums_of_skewed_ranks(flavour: str, sessions: str) -> None:
    for n_ranks in (2, 3, 4):
        group, rng = skewed(flavour, sessions, n_ranks, n_ranks), np.random.default_rng([7, n_ranks])
        for _ in range(6):
            Ranks(group, random_case(rng, n_ranks)).check(rng, n_times=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("flavour", ["release", "tsan", "asan"])
def test_many_random_sums_of_skewed_ranks(flavour: str, seed: int) -> None:
    for n_ranks in (2, 3, 4):
        group = skewed(flavour, "threads" if flavour == "tsan" else "processes", 100 + seed, n_ranks)
        rng = np.random.default_rng([seed, n_ranks])
        for _ in range(25):
            Ranks(group, random_case(rng, n_ranks)).check(rng, n_times=4)


@pytest.mark.parametrize("n_ranks", [2, 4])
def test_thousands_in_a_row_through_the_wrap_of_the_sequence(n_ranks: int) -> None:
    """The fences' numbers pass 2^32 in the middle of the second batch."""
    group = group_of(n_ranks, n_threads=1)
    group._sequence = group._refreshed = 2**32 - 3000
    group._refresh()
    rng = np.random.default_rng(3)
    ranks = Ranks(group, Case((576,), residual="full"))
    for _ in range(3):
        ranks.check(rng, n_times=1000)
    assert group._sequence == 2**32 + 3000


def test_tsan_sees_what_ranks_share() -> None:
    """Without it the runs under ThreadSanitizer prove nothing: a rank that reads a peer's output before any fence."""
    from hexnpu.batch import BatchBuilder, Placed
    from hexnpu.plan import cpy, op_table

    group = group_of(2, flavour="tsan", HEXNPU_EMU_SESSIONS="threads")
    meeting = Ranks(group, Case((64,)))
    desc = Desc.contiguous(Type.F32, (4096,))
    buffer = group.sessions[0].alloc(3 * desc.span_bytes)
    places = [Placed(desc, buffer, i * desc.span_bytes) for i in range(3)]
    steps = []
    for rank, session in enumerate(group.sessions):
        builder = BatchBuilder(session.max_map_bytes)
        # Both are at work when they begin: the socket by which one rank's end reaches the other would order them.
        meeting.add_to(builder, rank, 1)
        planned = cpy.plan(OpSpec("CPY", (0,) * 16, (desc,), (desc,)), session.device)
        src, dst = places[rank : rank + 1], places[rank + 1 : rank + 2]  # rank 0 writes the middle, rank 1 reads it
        for _ in range(50):
            builder.add(op_table()["CPY"][0], (0,) * 16, planned.pack(), src, dst)
        steps.append([builder.finish()])
    with pytest.raises(GroupLost, match="data race"):
        group.run_steps(steps, 2)


# Planning


def spec(rank: int, n_ranks: int, descs: list[Desc], op: str = "ALLREDUCE", residual: Desc | None = None) -> OpSpec:
    src = [*descs, *[None] * (4 - n_ranks), *[None] * 4, residual]
    return OpSpec(op, allreduce.pack(op, {"rank": rank, "n_ranks": n_ranks}), tuple(src), tuple(descs))


@pytest.mark.parametrize("n_ranks", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 64, 65, 4096, 100003])
def test_slices_cover_every_element_once(n: int, n_ranks: int) -> None:
    slices = [
        plan(spec(r, n_ranks, [Desc.contiguous(Type.F32, (n,))] * n_ranks), Device()).args[2:4] for r in range(n_ranks)
    ]
    covered = [i for first, count in slices for i in range(first, first + count)]
    assert covered == list(range(n))


def test_what_the_planner_refuses() -> None:
    x = Desc.contiguous(Type.F32, (64, 4))
    with pytest.raises(Refusal, match=r"is F16"):
        plan(spec(0, 2, [x, Desc.contiguous(Type.F16, (64, 4))]), Device())
    crossed = Desc(Type.F32, (64, 4, 3, 1), (4, 1024, 256, 4096))
    with pytest.raises(Refusal, match="one stride"):
        plan(spec(0, 2, [crossed, crossed]), Device())
    with pytest.raises(ShapeError, match="inputs differ"):
        allreduce.infer("ALLREDUCE", [x, Desc.contiguous(Type.F32, (64, 5))], {"n_ranks": 2})
    pairs = Desc.contiguous(Type.F32, (64, 4, 2))
    assert allreduce.infer("ALLREDUCE", [pairs, pairs], {"n_ranks": 2, "pairs": True})[1].ne == (64, 4, 1, 1)
    with pytest.raises(ShapeError, match="are no pairs"):
        allreduce.infer("ALLREDUCE", [x, x], {"n_ranks": 2, "pairs": True})
    with pytest.raises(ShapeError, match="rank 2 of 2"):
        allreduce.pack("ALLREDUCE", {"rank": 2, "n_ranks": 2})
