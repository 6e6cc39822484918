"""Kernels that make mistakes (bad_kernels.c): each is caught, and ends at most its own session."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from hexnpu.native import Target, compile_program
from hexnpu.plan import op_table
from hexnpu.server_build import server_sources
from hexnpu.tensor import Desc, Type
from hexnpu.wire import FrameType, Status
from tests.server_client import Batch, Client, Reply, Response, Server

HERE = Path(__file__).parent
(
    NONE, READ_UNWRITTEN_VTCM, WRITE_BEHIND_REGION, WRITE_BEHIND_BUFFER, READ_BEFORE_POP, FORGET_A_TRANSFER,
    MISALIGNED_LOAD, NULL_POINTER, RACE, ABORT, SPIN, UNKNOWN,
) = range(12)  # fmt: skip
BYTES = 128
GOOD = bytes(range(BYTES))


def bad_server(flavour: str, env: Mapping[str, str] | None = None) -> Server:
    """A server whose every kernel is the bad one."""
    families = sorted({family for _, family in op_table().values()} - {"none"})
    text = (HERE / "bad_kernels.c").read_text() + "".join(f"\nFAMILY({family});" for family in families) + "\n"
    sources = [s for s in server_sources() if s.parent.name != "kernels"]
    with tempfile.TemporaryDirectory() as folder:
        kernels = Path(folder) / "bad_kernels.c"
        kernels.write_text(text)
        program = compile_program("bad-server", [*sources, kernels], Target(flavour))
    return Server(flavour, env=env, program=program)


def batch(client: Client, *mistakes: int) -> tuple[int, bytes]:
    """A buffer that ends with the destination, and one op a mistake on 128 bytes before and in it."""
    handle = client.alloc(2 * BYTES)
    client.write(handle, GOOD)
    b = Batch(handle, 2 * BYTES, seq=9)
    desc = Desc.contiguous(Type.F32, (BYTES // 4,))
    src, dst = b.tensor(desc, 0), b.tensor(desc, BYTES)
    for mistake in mistakes:
        b.op("CPY", (mistake, 2 if mistake == RACE else 1, 4096, 1, *[0] * 12, 0, 256), (src,), (dst,))
    return handle, b.bytes()


def run(server: Server, *mistakes: int) -> Reply:
    client = server.client
    return client.ask(FrameType.SUBMIT, batch(client, *mistakes)[1], client.open())


def test_no_mistake() -> None:
    with bad_server("asan") as server:
        assert Response.of(run(server, NONE).payload).status == Status.OK
        assert server.client.read(1, BYTES, BYTES) == GOOD
        assert server.close() == (0, "")


@pytest.mark.parametrize(
    ("flavour", "mistake", "report"),
    [
        ("asan", WRITE_BEHIND_REGION, "AddressSanitizer"),
        ("asan", WRITE_BEHIND_BUFFER, "AddressSanitizer"),
        ("asan", MISALIGNED_LOAD, "misaligned"),
        ("asan", NULL_POINTER, "SEGV on unknown address"),
        ("tsan", RACE, "data race"),
    ],
)
def test_a_sanitizer_ends_the_session(flavour: str, mistake: int, report: str) -> None:
    with bad_server(flavour) as server:
        reply = run(server, NONE, mistake, NONE)
        assert reply.status == Status.INTERNAL_ERR
        assert reply.text == (
            "session 1 ended with status 86 (a sanitizer's report is on the server's stderr) in op 1 CPY of batch 9; "
            "open a new one"
        )
        assert Response.of(run(server, NONE).payload).status == Status.OK, "another session goes on"
        code, stderr = server.close()
        assert code == 0 and report in stderr and "bad_kernels.c" in stderr


@pytest.mark.parametrize(("mistake", "name"), [(NULL_POINTER, "SIGSEGV"), (ABORT, "SIGABRT")])
def test_a_crash_ends_the_session(mistake: int, name: str) -> None:
    with bad_server("release") as server:
        assert f"({name}) in op 2 CPY of batch 9" in run(server, NONE, NONE, mistake).text
        assert Response.of(run(server, NONE).payload).status == Status.OK


@pytest.mark.parametrize("flavour", ["release", "asan", "tsan"])
def test_vtcm_is_poison_until_it_is_written(flavour: str) -> None:
    """Also where the op before wrote it."""
    with bad_server(flavour) as server:
        assert Response.of(run(server, NONE, READ_UNWRITTEN_VTCM).payload).status == Status.OK
        got = np.frombuffer(server.client.read(1, BYTES, BYTES), np.float32)
        assert np.isnan(got).all()


def test_a_read_before_its_pop_is_caught_by_the_random_order() -> None:
    """In order it works by luck; out of order some seed shows it."""
    seen = set()
    for seed in range(1, 9):
        with bad_server("release", {"HEXNPU_EMU_DMA": f"random:{seed}"}) as server:
            run(server, READ_BEFORE_POP)
            seen.add(server.client.read(1, BYTES, BYTES))
    assert b"\xff" * BYTES in seen


def test_a_forgotten_transfer_is_a_status() -> None:
    with bad_server("release") as server:
        response = Response.of(run(server, NONE, FORGET_A_TRANSFER, NONE).payload)
        assert (response.status, response.row["failing_op"]) == (Status.INTERNAL_ERR, 1)
        assert response.detail == "op 1 CPY, kernel: a job returned with DMA transfers in flight"


def test_an_endless_op_does_not_block_the_server() -> None:
    with bad_server("release") as server:
        client = server.client
        session = client.open()
        _, endless = batch(client, SPIN)
        client.send(FrameType.SUBMIT, endless, session)
        handle, good = batch(client, NONE)  # answered while the other session spins
        assert client.submit(client.open(), good).status == Status.OK
        assert client.read(handle, BYTES, BYTES) == GOOD
        os.kill(server.children()[0], signal.SIGTERM)
        assert "(SIGTERM) in op 0 CPY of batch 9" in client.receive().text


def test_closing_a_session_ends_its_batch() -> None:
    with bad_server("release") as server:
        client = server.client
        session = client.open()
        client.send(FrameType.SUBMIT, batch(client, SPIN)[1], session)
        client.send(FrameType.CLOSE, session=session)
        assert client.receive().text == f"session {session} was closed"
        assert client.receive().status == Status.OK and not server.children()


def test_an_unknown_variant() -> None:
    with bad_server("release") as server:
        response = Response.of(run(server, NONE, UNKNOWN).payload)
        assert response.detail == "op 1 CPY, kernel_params: no such mistake" and response.row["n_ops"] == 0
