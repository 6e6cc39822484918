"""Fences when things go wrong: every fault on a rank is the group's error in time, and no process stays behind."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hexnpu
import hexnpu.batch
from hexnpu import GroupGraph, GroupLost, wire
from hexnpu.batch import Batch, BatchBuilder, Placed
from hexnpu.group import Group
from hexnpu.plan import allreduce, op_table, plan
from hexnpu.plan.base import Device, OpSpec, Plan
from hexnpu.tensor import Desc, Type
from hexnpu.wire import Status
from tests.processes import HANG_S, Handles, children, wait_until
from tests.server_client import Batch as RawBatch
from tests.server_client import Client, Server

# A fence time-out that passes, and one that never does: then what the others hear of a fault is not the time-out.
EXPIRES_S, NEVER_S = 1.0, 5 * HANG_S


@pytest.fixture
def group(request: pytest.FixtureRequest) -> Iterator[Group]:
    """A group of so many ranks (2), with a fence time-out (that never passes). Afterwards no process of it is left."""
    n_ranks, timeout_s = getattr(request, "param", (2, NEVER_S))
    group = hexnpu.open(devices=[f"HTP{r}:0" for r in range(n_ranks)], n_threads=1, fence_timeout_s=timeout_s)
    assert isinstance(group, Group)
    assert len(ranks(group)) == n_ranks
    processes = Handles([server_pid(group), *ranks(group)])
    yield group
    group.close()
    assert processes.end()


def group_of(n_ranks: int, timeout_s: float = NEVER_S) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("group", [(n_ranks, timeout_s)], indirect=True, ids=[str(n_ranks)])


def server_pid(group: Group) -> int:
    return int(group.connection._server.process.pid)  # type: ignore[attr-defined]


def ranks(group: Group) -> list[int]:
    """Their processes, which were forked in order."""
    return children(server_pid(group))


def word(group: Group, rank: int) -> tuple[int, int]:
    """Sequence number and status of a rank's fence."""
    place = group.fences[rank]
    value, status = place.buffer.view[place.offset : place.offset + 8].view(np.uint32)
    return int(value), int(status)


def play(group: Group, rank: int, sequence: int, status: int = Status.OK) -> None:
    """Writes a rank's fence in its stead."""
    place = group.fences[rank]
    place.buffer.view[place.offset : place.offset + 8].view(np.uint64)[0] = (sequence & 0xFFFFFFFF) | status << 32


def tensors(group: Group, n: int = 1024) -> list[Placed]:
    """An input of n floats for each rank, then an output for each."""
    n_ranks = len(group.sessions)
    desc = Desc.contiguous(Type.F32, (n,))
    buffer = group.sessions[0].alloc(2 * n_ranks * desc.span_bytes)
    return [Placed(desc, buffer, i * desc.span_bytes) for i in range(2 * n_ranks)]


def sum_steps(group: Group, places: list[Placed], n_ops: int = 1, spoil: int | None = None) -> list[list[Batch]]:
    """ALLREDUCE for each rank. `spoil`: the rank whose plan asks for threads that it does not have."""
    n_ranks = len(group.sessions)
    desc, holes = places[0].desc, [None] * (4 - n_ranks)
    src: Sequence[Placed | None] = [*places[:n_ranks], *holes, *group.fences, *holes]
    steps = []
    for rank, session in enumerate(group.sessions):
        words = allreduce.pack("ALLREDUCE", {"rank": rank, "n_ranks": n_ranks})
        descs = tuple(None if p is None else p.desc for p in src)
        planned = plan(OpSpec("ALLREDUCE", words, descs, tuple(desc for _ in range(n_ranks))), session.device)
        if rank == spoil:
            planned = replace(planned, n_threads=9)
        builder = BatchBuilder(session.max_map_bytes)
        for i in range(n_ops):
            builder.add(op_table()["ALLREDUCE"][0], words, planned.pack(), src, places[n_ranks:], "ALLREDUCE", 2 * i)
        steps.append([builder.finish()])
    return steps


def lost(
    group: Group, steps: Sequence[Sequence[Batch]], meanwhile: Callable[[], None] = lambda: None, n_ops: int = 1
) -> str:
    """What the group says when these steps fail, as they do; `meanwhile` runs beside them."""
    errors: list[BaseException] = []

    def body() -> None:
        try:
            group.run_steps(steps, 2 * n_ops)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    try:
        meanwhile()
    finally:
        thread.join(HANG_S)
    assert not thread.is_alive(), "the group hangs"
    assert errors and isinstance(errors[0], GroupLost), errors
    with pytest.raises(hexnpu.SessionLost):
        group.run_steps(steps, 2 * n_ops)  # a group survives the loss of nothing
    return str(errors[0])


def expired(text: str, rank: int, seen: int = 0) -> bool:
    """Whether somebody waited for that rank as long as the time-out is."""
    found = re.search(rf"fence of rank {rank}: expected 1, seen {seen} for (\d+) ms", text)
    return found is not None and int(found[1]) >= 1000 * EXPIRES_S


# A rank that dies


def test_killed_before_entry(group: Group) -> None:
    steps = sum_steps(group, tensors(group))
    os.kill(ranks(group)[1], signal.SIGKILL)
    text = lost(group, steps)
    assert "rank 1 (HTP1:0): " in text and "was killed by signal 9 (SIGKILL)" in text and "open a new group" in text


@group_of(3)
def test_killed_between_entry_and_exit(group: Group) -> None:
    """Rank 2 is played here: it enters and does not leave, so the others wait at the exit when rank 1 dies."""
    first = group._sequence
    play(group, 2, first)

    def kill() -> None:
        wait_until(lambda: word(group, 1)[0] == first + 1)
        rank = Handles(ranks(group)[1:2])
        os.kill(ranks(group)[1], signal.SIGKILL)
        assert rank.end()
        play(group, 2, first, Status.INTERNAL_ERR)  # rank 0 may have gone on to wait for it

    text = lost(group, [*sum_steps(group, tensors(group))[:2], []], kill)
    assert "rank 1 (HTP1:0): " in text and "(SIGKILL) in op 0 ALLREDUCE of batch 1" in text


def test_killed_during_the_reduction(group: Group) -> None:
    """Of many in a row: they take far longer than the kill."""
    first, n_ops = group._sequence, 4000
    steps = sum_steps(group, tensors(group, 4 << 20), n_ops)
    seen = []

    def kill() -> None:
        wait_until(lambda: all(word(group, rank)[0] > first for rank in range(2)))
        rank = Handles(ranks(group)[1:])
        os.kill(ranks(group)[1], signal.SIGKILL)
        assert rank.end()
        seen.append(word(group, 1)[0])

    text = lost(group, steps, kill, n_ops)
    assert seen[0] < first + 2 * n_ops - 1, "it had left already"
    assert re.search(r"rank 1 \(HTP1:0\): .*\(SIGKILL\) in op \d+ ALLREDUCE of batch 1", text)


# A rank that does not come


@group_of(2, EXPIRES_S)
def test_a_rank_that_stands_still(group: Group) -> None:
    os.kill(ranks(group)[1], signal.SIGSTOP)
    text = lost(group, sum_steps(group, tensors(group)))
    assert expired(text, rank=1) and "rank 0 (HTP0:0): " in text


@pytest.mark.parametrize("group", [(2, EXPIRES_S), (4, EXPIRES_S)], indirect=True, ids=["2", "4"])
def test_every_rank_gets_a_status(group: Group) -> None:
    """The last rank never comes: each of the others gives up by itself, with fence, expected and seen number."""
    last = len(group.sessions) - 1
    steps = sum_steps(group, tensors(group))
    details = []
    tags = []
    for session, (batch,) in zip(group.sessions[:last], steps, strict=False):
        session.stamp(batch)
        batch.stamp_sequences(1)
        tags.append(group.connection.post(session.number, batch.data, ""))
    for _ in tags:
        _, raw = group.connection.collect("", HANG_S)
        assert isinstance(raw, bytearray)
        response = hexnpu.batch.parse_response(raw)
        assert response.status == Status.INTERNAL_ERR and response.failing_op == 0
        details.append(response.detail)
    own = [d for d in details if "op 0 ALLREDUCE: " in d and expired(d, rank=last)]
    passed_on = [d for d in details if "has failed" in d]
    assert own and len(own) + len(passed_on) == last


# A rank that fails


def test_a_refused_op(group: Group) -> None:
    text = lost(group, sum_steps(group, tensors(group), spoil=1))
    assert "rank 1 (HTP1:0): " in text and "INVAL_PARAMS" in text and "n_threads is 9" in text
    assert "op 0 (ALLREDUCE)" in text


def test_an_op_that_fails_while_it_runs(group: Group) -> None:
    g = GroupGraph(2)
    table = np.arange(64, dtype=np.float32).reshape(4, 16)
    parts = [
        r.get_rows(r.weight("table", table), r.input(f"rows{i}", (2,), Type.I32)) for i, r in enumerate(g.ranks)
    ]
    g.ranks[0].output(g.allreduce(parts)[0], "y")
    good, bad = np.array([0, 3], np.int32), np.array([0, 4], np.int32)
    assert np.array_equal(group.run(g, {"rows0": good, "rows1": good})["y"], 2 * table[[0, 3]])
    with pytest.raises(GroupLost, match=r"rank 1 \(HTP1:0\): .*GET_ROWS"):
        group.run(g, {"rows0": good, "rows1": bad})


@group_of(3)
def test_a_failure_is_passed_on(group: Group) -> None:
    steps = [*sum_steps(group, tensors(group))[:2], []]
    text = lost(group, steps, lambda: play(group, 2, 0, Status.VTCM_TOO_SMALL))
    # the first to meet it passes it on, and is the one whom a third may see first
    assert "VTCM_TOO_SMALL" in text and re.search(r"rank [012] has failed", text)


# Garbage

GARBAGE = {
    "far ahead": (0x40000001, Status.OK),
    "just beyond what a batch can be ahead": (1 + 2 * wire.MAX_OPS + 1, Status.OK),
    "no status": (1, 0),
    "an unknown status": (1, 6),
    "ones": (0xFFFFFFFF, 0xFFFFFFFF),
    "far behind": (0x90000001, Status.OK),
}


@group_of(2, EXPIRES_S)
@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_in_a_fence(group: Group, name: str) -> None:
    value, status = GARBAGE[name]
    play(group, 1, value, status)
    text = lost(group, [sum_steps(group, tensors(group))[0], []])
    if name == "far behind":
        assert expired(text, rank=1, seen=value)
    else:
        assert f"fence of rank 1: expected 1, seen {value} (status {int(status)}), which no rank writes" in text


@group_of(2, EXPIRES_S)
@pytest.mark.parametrize("seed", range(4))
def test_garbage_while_both_ranks_work(group: Group, seed: int) -> None:
    """Whatever a stray writer does to the fences: the sum is right, or the group is lost."""
    rng = np.random.default_rng(seed)
    places = tensors(group)
    parts = [rng.integers(0, 100, 1024).astype(np.float32) for _ in range(2)]
    for place, part in zip(places, parts, strict=False):
        place.buffer.write(place.offset, part.view(np.uint8))
    stop = threading.Event()

    def scribble() -> None:
        while not stop.is_set():
            place = group.fences[int(rng.integers(2))]
            place.buffer.view[place.offset : place.offset + 8] = rng.integers(0, 256, 8, np.uint8)

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        group.run_steps(sum_steps(group, places, n_ops=200), 400)
    except GroupLost:
        return
    finally:
        stop.set()
        thread.join()
    for place in places[2:]:
        sums = place.buffer.view[place.offset : place.offset + place.desc.span_bytes].view(np.float32)
        assert np.array_equal(sums, parts[0] + parts[1])


# Batches that are refused

N = 1024


def kernel_params(rank: int = 0) -> Plan:
    desc = Desc.contiguous(Type.F32, (N,))
    spec = OpSpec("ALLREDUCE", (0, rank, 2, *[0] * 13), (desc, desc), (desc, desc))
    return plan(spec, Device(n_threads=1, vtcm_bytes=2 << 20))


def allreduce_batch(data: int, fences: int) -> RawBatch:
    """Tensors 0..3: two inputs and two outputs; 4 and 5: fences."""
    batch = RawBatch(data, 16 * N)
    batch.add_buf(fences, 256)
    batch.bufs[1]["flags"] = wire.BUF_FENCE
    floats, line = Desc.contiguous(Type.F32, (N,)), Desc.contiguous(Type.I32, (32,))
    tensors = [batch.tensor(floats, 4 * N * i) for i in range(4)]
    slots = [batch.tensor(line, 128 * i, wire.TENSOR_FENCE, 1) for i in range(2)]
    hole = wire.ABSENT
    src = (*tensors[:2], hole, hole, *slots)
    batch.op("ALLREDUCE", kernel_params().pack(), src, tensors[2:], (1, 0, 2))
    return batch


def set_op(field: str, at: int, value: int) -> Callable[[RawBatch], None]:
    def change(batch: RawBatch) -> None:
        batch.ops[0][field][at] = value

    return change


def set_tensor(index: int, **fields: Any) -> Callable[[RawBatch], None]:
    def change(batch: RawBatch) -> None:
        for name, value in fields.items():
            batch.tensors[index][name] = value

    return change


def set_buf(index: int, **fields: Any) -> Callable[[RawBatch], None]:
    def change(batch: RawBatch) -> None:
        for name, value in fields.items():
            batch.bufs[index][name] = value

    return change


def add_alias(batch: RawBatch) -> None:
    batch.add_buf(int(batch.bufs[1]["fd"]), 256)


def write_fence_by_copy(batch: RawBatch) -> None:
    batch.ops = batch.ops[:0]
    batch.copy_op(batch.tensor(Desc.contiguous(Type.I32, (32,)), 0), 4, 128)


def add_residual(batch: RawBatch) -> None:
    batch.ops[0]["src"][8] = 0


REFUSED: list[tuple[str, Callable[[RawBatch], None], str]] = [
    ("an op that writes a fence", write_fence_by_copy, "dst0: is a fence, which only fence ops touch"),
    ("an op that reads a fence", set_op("src", 0, 4), "src0: is a fence, which only fence ops touch"),
    ("no fence where one belongs", set_op("src", 4, 0), "src4: must be a fence"),
    ("a fence without its flag", set_tensor(4, flags=0), "tensor 4: is no fence, but its buffer holds only such"),
    ("a fence among data", set_buf(1, flags=0), "tensor 4: is a fence, but its buffer holds none"),
    ("data among fences", set_tensor(0, bi=1, size=128, ne=(32, 1, 1, 1)), "tensor 0: is no fence, but its buffer"),
    ("an alias of the fences' buffer", add_alias, "buffers 1 and 2: one handle with different flags"),
    ("a buffer flag", set_buf(0, flags=2), "buffer 0: flags is 2"),
    ("half a line", set_tensor(4, data=64), "tensor 4: a fence is one aligned line"),
    ("a short fence", set_tensor(4, size=64, ne=(16, 1, 1, 1)), "tensor 4: a fence is one aligned line"),
    ("one fence for two", set_op("src", 5, 4), "ranks 0 and 1 have one fence"),
    ("rank", set_op("params", 1, 2), "rank 2 of 2"),
    ("ranks", set_op("params", 2, 5), "rank 0 of 5"),
    ("one rank", set_op("params", 2, 1), "rank 0 of 1"),
    ("ranks without inputs", set_op("params", 2, 3), "3 ranks have an input (src2) and a fence (src6) each"),
    ("a residual that is not added", add_residual, "src8: is what ALLREDUCE_ADD adds"),
    ("a slice too long", set_op("kernel_params", 7, N + 1), "the slice of 1 x 1025"),
    ("a slice that begins behind", set_op("kernel_params", 6, 0x7FFFFFFF), "leaves 1 x 1024"),
    ("no kernel", set_op("kernel_params", 0, 2), "there is no kernel 2"),
    ("a tile without columns", set_op("kernel_params", 4, 0), "tiles of 1 x 0"),
    ("too many tiles in flight", set_op("kernel_params", 5, 5), "5 in flight"),
    ("a region too small", set_op("kernel_params", 4, 1 << 20), "region 0 must be per thread and have"),
    ("an output too many", lambda b: set_op("dst", 2, 0)(b), "dst2"),
    ("a hole among the outputs", lambda b: (set_op("dst", 2, 3)(b), set_op("dst", 1, wire.ABSENT)(b))[0], "dst2"),
    ("another type", set_tensor(2, type=Type.I32), "dst0: has type 26"),
    ("another shape", set_tensor(1, ne=(N - 1, 1, 1, 1), size=4 * N - 4), "src1: ne[0] is 1023, must be 1024"),
    ("parts that are no pairs", set_op("params", 3, 1), "src0: ne[2] is 1, must be 2"),
]  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[tuple[Client, int, int, int]]:
    with Server() as server:
        client = server.client
        yield client, client.open(vtcm_mib=2), client.alloc(16 * N), client.alloc(256)


@pytest.mark.parametrize(("change", "says"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refused_batches(client: tuple[Client, int, int, int], change: Callable[[RawBatch], None], says: str) -> None:
    line, session, data, fences = client
    batch = allreduce_batch(data, fences)
    change(batch)
    response = line.submit(session, batch.bytes())
    assert response.status in (Status.INVAL_PARAMS, Status.NO_SUPPORT)
    assert says in response.detail


def test_fence_and_cpy_fence_need_their_fences(client: tuple[Client, int, int, int]) -> None:
    line, session, data, fences = client
    for op, src, dst, says in (
        ("FENCE", (0,), (2,), "src0: must be a fence"),
        ("CPY_FENCE", (0,), (2,), "dst1: is missing"),
        ("CPY_FENCE", (0,), (2, 3), "dst1: must be a fence"),
        ("CPY_FENCE", (4,), (2, 5), "src0: is a fence"),
    ):
        batch = allreduce_batch(data, fences)
        batch.ops = batch.ops[:0]
        batch.op(op, (0, 1, 0, 1024, 4 * N, 1), src, dst, (1,))
        assert says in line.submit(session, batch.bytes()).detail, op


def test_a_copy_releases_its_fence_and_another_session_sees_it(client: tuple[Client, int, int, int]) -> None:
    line, session, data, fences = client
    values = np.arange(N, dtype=np.float32)
    line.write(data, values.tobytes())
    batch = allreduce_batch(data, fences)
    batch.ops = batch.ops[:0]
    batch.op("CPY_FENCE", (0, 1, 0, 1024, 4 * N, 1), (0,), (2, 4), (41,))
    batch.op("FENCE", (0, 1), (4,), (2,), (41,))
    batch.op("FENCE", (0, 1), (4,), (2,), (40,))  # later is fine too
    assert line.submit(session, batch.bytes()).status == Status.OK
    assert line.read(fences, 8) == (41).to_bytes(4, "little") + int(Status.OK).to_bytes(4, "little")
    assert line.read(data, 4 * N, 8 * N) == values.tobytes()
