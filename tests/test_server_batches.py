"""What a batch must be for the device server to run it, and that a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hexnpu import wire
from hexnpu.tensor import Desc, Type
from hexnpu.wire import Status
from tests.server_client import Batch, Client, N, Server, copies, copy_batch, floats

F = Desc.contiguous


@pytest.fixture
def client() -> Iterator[Client]:
    with Server() as server:
        yield server.client


@pytest.fixture(scope="module")
def open_session() -> Iterator[tuple[Client, int, int]]:
    with Server("asan") as server:
        handle = server.client.alloc(64 << 10)
        yield server.client, server.client.open(), handle


def spoil(table: str, field: str, value: Any, row: int = 0) -> Callable[[Batch], None]:
    def change(batch: Batch) -> None:
        getattr(batch, table)[field][row] = value

    return change


def kparam(index: int, value: int) -> Callable[[Batch], None]:
    def change(batch: Batch) -> None:
        batch.ops["kernel_params"][0][index] = value

    return change


def regions(*words: int) -> Callable[[Batch], None]:
    def change(batch: Batch) -> None:
        batch.ops["kernel_params"][0][1:3] = (2, 8192)
        batch.ops["kernel_params"][0][16 : 16 + len(words)] = words

    return change


SPOILED: list[tuple[str, Callable[[Batch], None], str]] = [
    ("magic", spoil("request", "magic", 5), "magic 0x00000005"),
    ("version", spoil("request", "version", 2), "version 2"),
    ("traces", spoil("request", "n_traces", 65537), "the limits are"),
    ("buffer handle", spoil("bufs", "fd", 99), "handle 99 has no bytes"),
    ("buffer base", spoil("bufs", "base", 1), "base must be a multiple of 4096"),
    ("buffer size 0", spoil("bufs", "size", 0), "size 1 to"),
    ("buffer size", spoil("bufs", "size", 65537), "has no bytes 0..65537"),
    ("buffer size huge", spoil("bufs", "size", 2**64 - 1), "size 1 to"),
    ("buffer base huge", spoil("bufs", "base", 2**63), "has no bytes"),
    ("tensor type", spoil("tensors", "type", 7), "tensor 0: type is 7"),
    ("tensor flags", spoil("tensors", "flags", 8), "tensor 0: flags is 8"),
    ("tensor buffer", spoil("tensors", "bi", 1), "tensor 0: bi is 1"),
    ("tensor index", spoil("tensors", "ti", 1), "tensor 0: ti is 1"),
    ("tensor offset", spoil("tensors", "data", 65536), "leaves buffer 0"),
    ("tensor end one element out", spoil("tensors", "data", 61444, 1), "data 61444, size 4096 leaves"),
    ("tensor offset huge", spoil("tensors", "data", 2**64 - 4), "leaves buffer 0"),
    ("tensor alignment", spoil("tensors", "data", 2), "tensor 0: data is 2"),
    ("tensor size", spoil("tensors", "size", 4092), "size is 4092, must be 4096"),
    ("tensor nb[0]", spoil("tensors", "nb", (8, 4096, 4096, 4096)), "nb[0] is 8, must be 4"),
    ("tensor ne", spoil("tensors", "ne", (1025, 1, 1, 1)), "size is 4096, must be 4100"),
    ("tensor ne product", spoil("tensors", "ne", (65536, 65536, 65536, 1)), "number of elements"),
    ("tensor ne product of zero", spoil("tensors", "ne", (0, 65536, 65536, 1)), "number of elements"),
    ("tensor nb odd", spoil("tensors", "ne", (1, 2, 1, 1)), "size is 4096"),
    ("opcode", spoil("ops", "opcode", 65), "op 0 opcode 65, opcode: is not in htp-ops.def"),
    ("opcode huge", spoil("ops", "opcode", 2**32 - 1), "is not in htp-ops.def"),
    ("op without a kernel", spoil("ops", "opcode", 53), "op 0 CLAMP, opcode: this server has no kernel"),
    ("src missing", spoil("ops", "src", [wire.ABSENT] * 10), "op 0 CPY, src0: is missing"),
    ("src index", spoil("ops", "src", [2] + [wire.ABSENT] * 9), "op 0 CPY, src0: is tensor 2 of 2"),
    ("a later src index", spoil("ops", "src", [0] * 9 + [500]), "op 0 CPY, src9: is tensor 500 of 2"),
    ("dst missing", spoil("ops", "dst", [wire.ABSENT] * 4), "op 0 CPY, dst0: is missing"),
    ("two dsts in one place", spoil("ops", "dst", [1, 1, wire.ABSENT, wire.ABSENT]), "dst1: shares memory with dst0"),
    ("dst is a weight", spoil("tensors", "flags", 1, 1), "dst0: is a weight"),
    ("dst overlaps src", spoil("tensors", "data", 2048, 1), "shares memory with src0"),
    ("threads 0", kparam(1, 0), "n_threads is 0"),
    ("threads", kparam(1, 3), "n_threads is 3, must be 1 to 2"),
    ("threads negative", kparam(1, -1), "n_threads"),
    ("VTCM", kparam(2, (2 << 20) + 128), "needs 2097280 bytes of VTCM, the session has 2097152"),
    ("block", kparam(3, -1), "block is -1"),
    ("region alignment", regions(64, 128), "not made of 128-byte lines"),
    ("region size", regions(0, 100), "not made of 128-byte lines"),
    ("region flag", regions(2, 128), "not made of 128-byte lines"),
    ("region beyond", regions(8064, 128), "region 0 ends at 8320, the op has 8192"),
    ("regions of threads beyond", regions(1, 4096), "region 0 ends at 8448"),
    ("region huge", regions(-128, -128), "region 0"),
    ("regions of threads huge", regions(1, 2**31 - 128), "region 0 ends at"),
    ("regions overlap", regions(0, 256, 256, 128), "regions 0 and 1 overlap"),
    ("regions of threads overlap", regions(1, 256, 512, 128), "regions 0 and 1 overlap"),
]


@pytest.mark.parametrize(("change", "says"), [s[1:] for s in SPOILED], ids=[s[0] for s in SPOILED])
def test_a_bad_batch_names_the_field_and_changes_nothing(
    open_session: tuple[Client, int, int], change: Callable[[Batch], None], says: str
) -> None:
    client, session, handle = open_session
    client.write(handle, bytes(range(256)) * 256)
    batch = copy_batch(handle)
    batch.bufs["size"] = 65536
    batch.copy_op(0, 1, 4 * N)  # a good op behind the bad one
    good = batch.bytes()
    change(batch)
    response = client.submit(session, batch.raw())
    assert response.status in (Status.INVAL_PARAMS, Status.NO_SUPPORT, Status.VTCM_TOO_SMALL)
    assert says in response.detail and response.row["n_ops"] == 0
    assert response.row["failing_op"] == (0 if response.detail.startswith("op 0 ") else len(batch.ops))
    assert client.read(handle, 65536) == bytes(range(256)) * 256
    assert client.submit(session, good).status == Status.OK


def test_a_refusal_holds_nothing_of_the_one_before(open_session: tuple[Client, int, int]) -> None:
    client, session, handle = open_session
    batch = copy_batch(handle)
    batch.tensors["data"][1] = 1 << 40
    long = client.submit(session, batch.bytes())
    batch = copy_batch(handle)
    batch.tensors["ti"][1] = 7
    short = client.submit(session, batch.bytes())
    assert len(short.detail) < len(long.detail) and "\0" not in short.detail


def test_the_second_op_is_bad(open_session: tuple[Client, int, int]) -> None:
    client, session, handle = open_session
    client.write(handle, bytes(8 * N - 1) + b"x")
    batch = copy_batch(handle, n_ops=2)
    batch.ops["kernel_params"][1][4] = 3
    response = client.submit(session, batch.bytes())
    assert (response.row["failing_op"], response.row["n_ops"]) == (1, 0)
    assert response.detail.startswith("op 1 CPY, kernel_params: ")
    assert client.read(handle, 1, 8 * N - 1) == b"x", "the first op did not run"


@pytest.mark.parametrize("cut", [0, 1, 31, 32, 33, 100])
def test_a_batch_of_the_wrong_length(open_session: tuple[Client, int, int], cut: int) -> None:
    client, session, handle = open_session
    response = client.submit(session, copy_batch(handle).bytes()[:cut])
    assert response.status == Status.INVAL_PARAMS and f"the batch has {cut} bytes" in response.detail
    response = client.submit(session, copy_batch(handle).bytes() + b"12345678")
    assert response.status == Status.INVAL_PARAMS


def test_strides_by_which_rows_share_memory(open_session: tuple[Client, int, int]) -> None:
    client, session, handle = open_session
    for nb, good in (((4, 64, 128, 256), True), ((4, 60, 128, 256), False), ((4, 128, 64, 256), True),
                     ((4, 64, 64, 256), False), ((4, 0, 128, 256), False)):  # fmt: skip
        batch = Batch(handle, 65536)
        dense = F(Type.F32, (16, 2, 2, 2))
        batch.tensor(dense, 0), batch.tensor(Desc(Type.F32, dense.ne, nb), 4096)
        batch.copy_op(0, 1, 64)
        response = client.submit(session, batch.bytes())
        assert (response.status == Status.OK) == good, response.detail
        assert good or "rows share memory" in response.detail


def test_in_place_is_the_same_view_only(open_session: tuple[Client, int, int]) -> None:
    client, session, handle = open_session
    for other, good in (((8, 8), True), ((64,), False), ((4, 16), False)):
        batch = Batch(handle, 65536)
        batch.tensor(F(Type.F32, (8, 8)), 0), batch.tensor(F(Type.F32, other), 0)
        batch.copy_op(0, 1, 4 * other[0])
        response = client.submit(session, batch.bytes())
        assert (response.status == Status.OK) == good, response.detail


@pytest.mark.parametrize(
    ("src", "dst", "status"),
    [(0, 252, Status.INVAL_PARAMS), (252, 0, Status.INVAL_PARAMS), (0, 4, Status.INVAL_PARAMS), (0, 256, Status.OK),
     (256, 0, Status.OK)],
)  # fmt: skip
def test_one_shared_element_is_refused(
    open_session: tuple[Client, int, int], src: int, dst: int, status: Status
) -> None:
    client, session, handle = open_session
    batch = Batch(handle, 65536)
    batch.tensor(F(Type.F32, (64,)), src), batch.tensor(F(Type.F32, (64,)), dst)
    batch.copy_op(0, 1, 256)
    assert client.submit(session, batch.bytes()).status == status


def test_the_limits_of_the_counts(client: Client) -> None:
    session, handle = client.open(), client.alloc(64)
    batch = Batch(handle, 64)
    a, b = batch.tensor(F(Type.F32, (4,)), 0), batch.tensor(F(Type.F32, (4,)), 32)
    batch.copy_op(a, b, 16)
    batch.ops = np.repeat(batch.ops, wire.MAX_OPS)
    batch.tensors = np.repeat(batch.tensors, wire.MAX_TENSORS // 2)
    batch.tensors["ti"] = np.arange(wire.MAX_TENSORS)
    batch.bufs = np.repeat(batch.bufs, wire.MAX_BUFS)
    assert client.submit(session, batch.bytes()).row["n_ops"] == wire.MAX_OPS
    assert client.stats(session)["n_mappings"] == 1
    for table in ("bufs", "tensors", "ops"):
        batch.request[f"n_{table}"] += 1
        assert "the limits are" in client.submit(session, batch.raw()).detail
        batch.request[f"n_{table}"] -= 1


def test_the_mapping_window(client: Client) -> None:
    """More bytes than the window: the oldest mappings make room; too much at once is a status."""
    session = client.open(max_map_bytes=64 << 10)
    handles = [client.alloc(8 * N) for _ in range(100)]
    for handle in (*handles, *handles[::7]):
        copies(client, session, handle)
        stats = client.stats(session)
        assert stats["n_mappings"] <= 8 and stats["mapped_bytes"] <= 64 << 10
    batch = Batch()
    for handle in handles[:9]:
        batch.add_buf(handle, 8 * N)
    response = client.submit(session, batch.bytes())
    assert response.status == Status.INVAL_PARAMS and "larger than the 65536 bytes" in response.detail
    copies(client, session, handles[50])


def test_many_mappings(client: Client) -> None:
    session = client.open()
    for _ in range(80):
        copies(client, session)
    assert client.stats(session)["n_mappings"] == 64


def test_part_of_a_buffer(client: Client) -> None:
    session, handle = client.open(), client.alloc(64 << 10)
    client.write(handle, floats(), 32 << 10)
    batch = Batch()
    batch.add_buf(handle, 16 << 10, 32 << 10)
    a, b = batch.tensor(F(Type.F32, (N,)), 32 << 10), batch.tensor(F(Type.F32, (N,)), 36 << 10)
    batch.copy_op(a, b, 4 * N)
    assert client.submit(session, batch.bytes()).status == Status.OK
    assert client.read(handle, 4 * N, 36 << 10) == floats()
    batch.tensors["data"][0] = 28 << 10
    assert "leaves buffer 0" in client.submit(session, batch.bytes()).detail
