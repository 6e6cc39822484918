"""The device server: frames, buffers, sessions, how they die."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hexnpu import wire
from hexnpu.server_build import server_program
from hexnpu.tensor import Desc
from hexnpu.wire import FrameType, ProfileMode, Status
from tests.processes import HANG_S, Handles, children, is_alive, wait_until
from tests.server_client import Client, N, Server, copies, copy_batch, record

F = Desc.contiguous


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as s:
        yield s


@pytest.fixture
def client(server: Server) -> Client:
    return server.client


# Frames


def test_hello(client: Client) -> None:
    (hello,) = np.frombuffer(client.good(FrameType.HELLO).payload, wire.HELLO)
    assert (hello["protocol"], hello["arch"], hello["flavour"]) == (wire.VERSION, 79, b"release")
    assert (hello["n_threads"], hello["n_hmx"], hello["vtcm_bytes"]) == (4, 0, 8 << 20)
    assert (hello["max_map_bytes"], hello["can_share"], hello["clock_khz"]) == (3_355_443_200, 1, 1_000_000)


def test_version() -> None:
    done = subprocess.run([server_program(), "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"htp-server \S+, protocol 1, v79, release\n", done.stdout)


@pytest.mark.parametrize(
    "args", [["--bogus"], ["--threads", "0", "--stdio"], ["--threads", "11", "--stdio"], ["--vtcm", "3", "--stdio"],
             ["--listen", "what"], ["--stdio", "--listen", "unix:/tmp/x"]],
)  # fmt: skip
def test_wrong_arguments(args: list[str]) -> None:
    done = subprocess.run([server_program(), *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and done.stderr and not done.stdout


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(flag: str) -> None:
    done = subprocess.run([server_program(), flag], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: htp-server ")


@pytest.mark.parametrize("word", ["--bogus", "--listen"])
def test_what_is_not_understood_gets_the_usage(word: str) -> None:
    done = subprocess.run([server_program(), word], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    first, usage, *_ = done.stderr.splitlines()
    assert first.endswith(f"what is its value: {word}") and usage.startswith("usage: htp-server ")


def test_wrong_environment() -> None:
    with Server(env={"HEXNPU_EMU_DMA": "never"}) as server:
        code, stderr = server.close()
        assert code == 2 and "HEXNPU_EMU_DMA must be" in stderr


MALFORMED: dict[str, Callable[[Client], object]] = {
    "magic": lambda c: c.send(FrameType.HELLO, magic=1),
    "version": lambda c: c.send(FrameType.HELLO, version=9),
    "type": lambda c: c.send(99),
    "type 0": lambda c: c.send(FrameType.ERROR),
    "too large": lambda c: c.send(FrameType.WRITE, bytes=wire.MAX_FRAME_BYTES + 1),
    "size of a fixed payload": lambda c: c.send(FrameType.OPEN, b"12"),
    "a payload where none is": lambda c: c.send(FrameType.HELLO, b"12"),
    "a batch beyond every limit": lambda c: c.send(FrameType.SUBMIT, bytes=64 << 20),
    "a path beyond every limit": lambda c: c.send(FrameType.LOAD, bytes=1 << 20),
}


@pytest.mark.parametrize("how", MALFORMED)
def test_a_malformed_frame_is_answered_and_the_line_closed(server: Server, how: str) -> None:
    client = server.client
    client.open()
    MALFORMED[how](client)
    reply = client.receive()
    assert reply.type == FrameType.ERROR | wire.REPLY and reply.status == Status.INVAL_PARAMS and reply.text
    assert client.at_end()
    code, stderr = server.close()
    assert (code, stderr) == (0, "")


def test_a_frame_in_pieces_and_many_in_one(client: Client) -> None:
    frame = wire.PACK_FRAME.pack(wire.FRAME_MAGIC, wire.FRAME_VERSION, FrameType.HELLO, 0, 0, 5, 0)
    for byte in frame:
        client.socket.sendall(bytes([byte]))
    assert client.receive().tag == 5
    client.socket.sendall(frame * 500)
    assert all(client.receive().tag == 5 for _ in range(500))


def test_requests_before_replies_are_read(client: Client) -> None:
    """A client that sends on while replies pile up does not block the server for ever, nor loses one."""
    handle = client.alloc(1 << 20)
    data = np.random.default_rng(1).bytes(1 << 20)
    client.write(handle, data)
    for _ in range(60):
        client.send(FrameType.READ, record(wire.RANGE, handle, 0, 0, 1 << 20))
    assert all(client.receive().payload == data for _ in range(60))
    client.good(FrameType.HELLO)


# Buffers


def test_buffers(client: Client) -> None:
    a, b = client.alloc(100_000), client.alloc(3)
    assert client.read(a, 100_000) == bytes(100_000)
    client.write(a, b"x" * 99_999, 1)
    client.write(b, b"abc")
    assert client.read(a, 3, 99_997) == b"xxx" and client.read(a, 2) == b"\0x" and client.read(b, 3) == b"abc"
    assert client.read(a, 0) == b""
    assert client.stats()["n_buffers"] == 2 and client.stats()["buffer_bytes"] == 100_003
    client.good(FrameType.FREE, record(wire.BUFFER_REF, a, 0))
    assert client.stats()["n_buffers"] == 1


@pytest.mark.parametrize(
    ("type", "payload", "says"),
    [
        (FrameType.ALLOC, record(wire.ALLOC, 0, 0, 0), "a buffer of 0 bytes"),
        (FrameType.ALLOC, record(wire.ALLOC, 1 << 60, 0, 0), "the device's memory"),
        (FrameType.FREE, record(wire.BUFFER_REF, 99, 0), "there is no buffer 99"),
        (FrameType.READ, record(wire.RANGE, 99, 0, 0, 1), "there is no buffer 99"),
        (FrameType.READ, record(wire.RANGE, 1, 0, 90, 11), "leave buffer 1 of 100 bytes"),
        (FrameType.READ, record(wire.RANGE, 1, 0, 2**64 - 1, 2), "leave buffer 1"),
        (FrameType.WRITE, record(wire.RANGE, 1, 0, 99, 2) + b"ab", "leave buffer 1"),
        (FrameType.WRITE, record(wire.RANGE, 1, 0, 0, 3) + b"ab", "its range says 3"),
        (FrameType.LOAD, record(wire.LOAD, 1, 5, 0, 0, 1) + b"/none", "cannot open /none: No such file"),
        (FrameType.LOAD, record(wire.LOAD, 1, 4, 0, 0, 1) + b"/etc", "/etc is no regular file"),
        (FrameType.LOAD, record(wire.LOAD, 1, 9, 0, 0, 1) + b"/none", "path_bytes says 9"),
        (FrameType.LOAD, record(wire.LOAD, 1, 9, 0, 1 << 40, 1) + b"/bin/true", "only 0 of 1 bytes"),
        (FrameType.SUBMIT, b"", "there is no session 7"),
        (FrameType.CLOSE, b"", "there is no session 7"),
        (FrameType.OPEN, record(wire.OPEN, 5, 0, 0, b"", 0, 0), "this server has 4"),
        (FrameType.OPEN, record(wire.OPEN, 1, 9, 0, b"", 0, 0), "9437184 bytes of VTCM"),
        (FrameType.OPEN, record(wire.OPEN, 1, 1 << 31, 0, b"", 0, 0), "bytes of VTCM"),
        (FrameType.OPEN, record(wire.OPEN, 1, 2, 2**63, b"", 0, 0), "this server has"),
    ],
)
def test_requests_that_are_refused(client: Client, type: int, payload: bytes, says: str) -> None:
    client.alloc(100)
    reply = client.ask(type, payload, session=7)
    assert reply.status != Status.OK and says in reply.text
    client.good(FrameType.HELLO)


def test_load(client: Client, tmp_path: Path) -> None:
    data = np.random.default_rng(1).bytes(3_000_000)
    path = tmp_path / "weights"
    path.write_bytes(data)
    handle = client.alloc(2_000_000)
    load = record(wire.LOAD, handle, len(str(path)), 1000, 500_001, 1_900_000)
    client.good(FrameType.LOAD, load + str(path).encode())
    assert client.read(handle, 1_900_000, 1000) == data[500_001:2_400_001]
    assert client.read(handle, 1000) == bytes(1000)


def test_shared_memory(client: Client) -> None:
    client.send(FrameType.ALLOC, record(wire.ALLOC, 8 * N, 1, 0))
    head, fds, _, _ = socket.recv_fds(client.socket, wire.FRAME.itemsize, 1)
    handle = int(np.frombuffer(client.socket.recv(100), wire.BUFFER_REF)["handle"][0])
    assert len(head) == wire.FRAME.itemsize and len(fds) == 1
    with pytest.raises(PermissionError):  # it would end the server by SIGBUS
        os.truncate(fds[0], 0)
    memory = np.memmap(os.fdopen(fds[0], "r+b"), np.float32, "r+", shape=(2 * N,))
    memory[:N] = np.arange(N)
    session = client.open()
    assert client.submit(session, copy_batch(handle).bytes()).status == Status.OK
    np.testing.assert_array_equal(memory[N:], memory[:N])


# Sessions


@pytest.mark.parametrize("flavour", ["release", "asan", "tsan"])
def test_a_batch(flavour: str) -> None:
    with Server(flavour) as server:
        client = server.client
        copies(client, client.open())
        assert server.close() == (0, "")


def test_sessions_share_buffers(client: Client) -> None:
    handle = client.alloc(8 * N)
    for _ in range(3):
        copies(client, client.open(), handle)


def test_stats(client: Client) -> None:
    session = client.open()
    copies(client, session)
    stats = client.stats(session)
    assert {k: stats[k] for k in ("n_batches", "n_ops", "n_failed", "dma_transfers", "dma_bytes")} == {
        "n_batches": 1, "n_ops": 1, "n_failed": 0, "dma_transfers": 1, "dma_bytes": 4 * N,
    }  # fmt: skip
    assert (stats["n_mappings"], stats["mapped_bytes"]) == (1, 8 * N)
    client.good(FrameType.UNMAP, record(wire.BUFFER_REF, 1, 0), session)
    assert client.stats(session)["n_mappings"] == 0
    copies(client, session, 1)
    client.good(FrameType.FREE, record(wire.BUFFER_REF, 1, 0))
    assert client.stats(session)["n_mappings"] == 0
    response = client.submit(session, copy_batch(1).bytes())
    assert response.status == Status.INVAL_PARAMS and "handle 1 has no bytes" in response.detail


def test_closing_ends_the_process(server: Server) -> None:
    session = server.client.open()
    (pid,) = server.children()
    server.client.good(FrameType.CLOSE, session=session)
    assert not is_alive(pid) and not server.children()
    assert "there is no session" in server.client.ask(FrameType.STATS, session=session).text


def test_too_many_sessions_are_refused(server: Server) -> None:
    request = record(wire.OPEN, 1, 2, 0, b"HTP0:0", 0, 0)
    replies = [server.client.ask(FrameType.OPEN, request) for _ in range(257)]
    assert {r.status for r in replies[:-1]} == {Status.OK}
    assert replies[-1].text == "cannot open a session: this server has 256 of them already; close some"
    server.client.good(FrameType.CLOSE, session=replies[0].session)
    server.client.open()


def test_more_clients_than_the_server_takes_wait(tmp_path: Path) -> None:
    path = tmp_path / "server"
    process = subprocess.Popen([server_program(), "--listen", f"unix:{path}"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout and process.stdout.readline()
        clients = []
        for _ in range(257):
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(path))
            clients.append(Client(sock))
        for client in clients[:-1]:
            client.good(FrameType.HELLO)
        tag = clients[-1].send(FrameType.HELLO)
        for client in clients[:-1]:  # so often the server has looked at all that came
            client.good(FrameType.HELLO)
        assert select.select([clients[-1].socket], [], [], 0)[0] == []
        clients[0].socket.close()
        assert clients[-1].receive().tag == tag
    finally:
        process.kill()
        process.communicate()


def test_two_clients_on_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "server"
    process = subprocess.Popen([server_program(), "--listen", f"unix:{path}"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout and process.stdout.readline() == f"listening on unix:{path}\n"
        clients = []
        for _ in range(2):
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(path))
            clients.append(Client(sock))
        sessions = [c.open() for c in clients]
        for c, s in zip(clients, sessions, strict=True):
            copies(c, s)
        assert "there is no buffer" in clients[0].ask(FrameType.READ, record(wire.RANGE, 2, 0, 0, 1)).text
        assert "there is no session" in clients[0].ask(FrameType.STATS, session=sessions[1]).text
        clients[0].socket.close()
        wait_until(lambda: len(children(process.pid)) == 1)  # what the dead client had is freed
        copies(clients[1], sessions[1])
        clients[1].socket.close()
        wait_until(lambda: not children(process.pid))
        process.terminate()
        assert process.wait(HANG_S) == 0 and not path.exists()
    finally:
        process.kill()
        process.communicate()


def test_tcp() -> None:
    process = subprocess.Popen([server_program(), "--listen", "tcp:127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        port = int(process.stdout.readline().split()[-1])
        client = Client(socket.create_connection(("127.0.0.1", port)))
        assert not np.frombuffer(client.good(FrameType.HELLO).payload, wire.HELLO)["can_share"][0]
        refused = client.ask(FrameType.ALLOC, record(wire.ALLOC, 10, 1, 0))
        assert refused.status == Status.NO_SUPPORT and "unix socket" in refused.text
        copies(client, client.open())
        client.send(99)
        assert client.receive().type == FrameType.ERROR | wire.REPLY and client.at_end()
    finally:
        process.kill()
        process.communicate()


def test_a_server_over_pipes_ends_with_its_input() -> None:
    done = subprocess.run([server_program(), "--stdio"], input=b"", capture_output=True, timeout=HANG_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# Death


def long_batch(client: Client) -> bytes:
    """Seconds of work, so that what happens to it happens in the middle."""
    n = 4 << 20
    return copy_batch(client.alloc(8 * n), n, n_ops=2000, seq=42).bytes()


def busy(pid: int) -> bool:
    """The process has used a tenth of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]) > 10


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_session_dies_in_an_op_and_the_others_go_on(server: Server, how: signal.Signals) -> None:
    client = server.client
    other, session = client.open(), client.open()
    pid = server.children()[-1]
    tags = [client.send(FrameType.SUBMIT, long_batch(client), session), client.send(FrameType.STATS, session=session)]
    wait_until(lambda: busy(pid))
    os.kill(pid, how)
    for tag in tags:
        reply = client.receive()
        assert (reply.tag, reply.status) == (tag, Status.INTERNAL_ERR)
        says = rf"session 2 was killed by signal {int(how)} \({how.name}\) in op \d+ CPY of batch 42; open a new one"
        assert re.fullmatch(says, reply.text)
    assert re.search(says, client.ask(FrameType.STATS, session=session).text), "later requests are told so too"
    copies(client, other)
    copies(client, client.open())
    client.good(FrameType.CLOSE, session=session)
    code, stderr = server.close()
    assert code == 0 and re.search(says, stderr)


def test_a_session_dies_idle(server: Server) -> None:
    session = server.client.open()
    copies(server.client, session)
    (pid,) = server.children()
    ended = Handles([pid])
    os.kill(pid, signal.SIGBUS)
    assert ended.end()
    reply = server.client.ask(FrameType.SUBMIT, b"", session)
    assert "(SIGBUS) between batches" in reply.text and reply.status == Status.INTERNAL_ERR


@pytest.mark.parametrize("end", ["client", "server"])
def test_nothing_is_left_behind(server: Server, end: str) -> None:
    client = server.client
    session = client.open()
    client.open()
    pids = server.children()
    ended = Handles(pids)
    client.send(FrameType.SUBMIT, long_batch(client), session)
    wait_until(lambda: busy(pids[0]))
    if end == "client":
        assert server.close() == (0, "")
    else:
        server.process.kill()
        with contextlib.suppress(EOFError, ConnectionError):
            client.receive()
    assert ended.end()


# Profiles


def profiled(client: Client, session: int, mode: ProfileMode, pmu: tuple[int, ...] = (0,) * 8) -> None:
    client.good(FrameType.PROFILE, record(wire.PROFILE_SET, mode, pmu, 0), session)


def test_profile_modes(client: Client) -> None:
    session, handle = client.open(), client.alloc(8 * N)
    batch = copy_batch(handle, n_ops=3)
    batch.request["n_traces"] = 100
    assert client.submit(session, batch.bytes()).tail == b""
    profiled(client, session, ProfileMode.BASIC)
    response = client.submit(session, batch.bytes())
    rows = response.profiles()
    assert list(rows["opcode"]) == [33] * 3 and not rows["pmu"].any()
    assert (np.diff(rows["cycles_start"].astype(np.int64)) > 0).all()
    start, stop = int(response.row["cycles_start"]), int(response.row["cycles_stop"])
    assert 0 <= (int(rows["cycles_start"][0]) - start) % 2**32 <= stop - start
    profiled(client, session, ProfileMode.PMU, (0xF000, 3, 0xF001, 0, 0, 0, 0, 0))
    assert client.submit(session, batch.bytes()).profiles()["pmu"].tolist() == [[1, 0, 4 * N, 0, 0, 0, 0, 0]] * 3
    assert "profile mode 4" in client.ask(FrameType.PROFILE, record(wire.PROFILE_SET, 4, (0,) * 8, 0), session).text


DMA, L2FLUSH = 0, 1


@pytest.mark.parametrize("room", [0, 3, 100])
def test_traces(client: Client, room: int) -> None:
    """Stale lines out, a wait for DMA in each of two ops, the results into memory; what does not fit is left out."""
    session, handle = client.open(), client.alloc(8 * N)
    profiled(client, session, ProfileMode.TRACE)
    batch = copy_batch(handle, n_ops=2)
    batch.request["n_traces"] = room
    for _ in range(2):
        response = client.submit(session, batch.bytes())
        events = list(response.events())
        assert [len(e) for e in events] == [min(room, 8)] + [0] * 10
        assert list(events[0]["id"]) == [L2FLUSH, L2FLUSH, DMA, DMA, DMA, DMA, L2FLUSH, L2FLUSH][:room]
        assert [bool(i & wire.TRACE_STOP) for i in events[0]["info"]] == ([False, True] * 4)[:room]
        assert (np.diff(events[0]["cycles"].astype(np.int64)) >= 0).all()
    profiled(client, session, ProfileMode.OFF)
    assert client.submit(session, batch.bytes()).tail == b""
