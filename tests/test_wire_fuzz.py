"""Mutated batches and frames against the asan server: no crash, no write beside a destination, a status for each."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hexnpu import wire
from hexnpu.native import Target
from hexnpu.plan import family, op_table, plan
from hexnpu.plan.base import Device, OpSpec
from hexnpu.server_build import server_program
from hexnpu.tensor import Desc, Type
from hexnpu.wire import FrameType, Status
from tests.server_client import Batch, Client, Reply, Server, record

N_THREADS = 3
VTCM_MIB = 2
BUFFER_BYTES = 96 << 10
D = Desc.contiguous
F32, F16, I32, I64 = Type.F32, Type.F16, Type.I32, Type.I64

# One valid op of every kind of work; the mutations go from there.
OPS: list[tuple[str, list[Desc | None], dict[str, Any], Desc | None]] = [
    ("ADD", [D(F32, (100, 6)), D(F32, (100, 2))], {}, None),
    ("MUL", [D(F16, (64, 3, 2)), D(F16, (1, 3))], {}, None),
    ("SCALE", [D(F32, (33, 5))], {"s": 2.0, "b": 1.0}, None),
    ("UNARY_SILU", [D(F32, (70, 4))], {}, None),
    ("GLU_SWIGLU", [D(F32, (64, 4)), D(F32, (64, 4))], {"swapped": False}, None),
    ("GLU_GEGLU", [D(F32, (128, 4))], {"swapped": True}, None),
    ("RMS_NORM", [D(F32, (96, 5))], {"eps": 1e-6}, None),
    ("RMS_NORM_MUL", [D(F32, (96, 5)), D(F32, (96,))], {"eps": 1e-6}, None),
    ("SOFTMAX", [D(F32, (40, 4, 2)), D(F16, (40, 4))], {"scale": 1.0, "max_bias": 8.0}, None),
    ("ROPE", [D(F32, (64, 2, 3)), D(I32, (3,)), None],
     {"n_dims": 32, "mode": 0, "freq_base": 1e4, "freq_scale": 1.0}, None),
    ("MUL_MAT", [D(Type.TILE_Q4_0, (64, 40)), D(F32, (64, 3))], {}, None),
    ("MUL_MAT", [D(Type.TILE_Q8_0, (32, 33)), D(F32, (32, 1))], {}, None),
    ("MUL_MAT", [D(F16, (64, 9)), D(F32, (64, 3))], {}, None),
    ("MUL_MAT_ADD", [D(Type.TILE_Q4_1, (64, 32)), D(F32, (64, 2)), D(F32, (32, 2))], {}, None),
    ("MUL_MAT_NX", [D(F32, (64, 2)), D(Type.TILE_Q4_0, (64, 32)), D(Type.TILE_Q4_0, (64, 64))], {}, None),
    ("FLASH_ATTN_EXT", [D(F32, (64, 3, 4)), D(F16, (64, 33, 2)), D(F16, (64, 33, 2)), D(F16, (33, 3))],
     {"scale": 0.125, "max_bias": 0.0, "logit_softcap": 0.0}, None),
    ("FLASH_ATTN_EXT", [D(F32, (64, 1, 2)), D(Type.Q8_0, (64, 40, 1)), D(Type.Q8_0, (64, 40, 1)), None],
     {"scale": 0.125, "max_bias": 0.0, "logit_softcap": 5.0}, None),
    ("GET_ROWS", [D(Type.Q4_1, (256, 7)), D(I32, (5,))], {}, None),
    ("GET_ROWS", [D(F16, (70, 7, 2)), D(I64, (5, 2))], {"type": F16}, None),
    ("SET_ROWS", [D(F32, (64, 5)), D(I64, (5,))], {}, D(Type.Q8_0, (64, 9))),
    ("SET_ROWS", [D(F32, (64, 5)), D(I32, (5,))], {}, D(F16, (64, 9))),
    ("CPY", [Desc(F32, (48, 3, 4, 1), (4, 768, 192, 2304))], {"type": F16}, None),
    ("CPY", [Desc(Type.Q8_0, (64, 3, 4, 1), (34, 272, 68, 816))], {"type": Type.Q8_0}, None),
]  # fmt: skip


def batch_of(handle: int, ops: Sequence[int]) -> Batch:
    """The ops one after the other, each with tensors of its own."""
    batch = Batch(handle, BUFFER_BYTES)
    at = 0

    def place(desc: Desc | None) -> int:
        nonlocal at
        if desc is None:
            return wire.ABSENT
        offset, at = at, -(-(at + desc.span_bytes) // 128) * 128
        return batch.tensor(desc, offset)

    for i in ops:
        op, src, params, state = OPS[i]
        module = family(op)
        dst = (state,) if state else module.infer(op, tuple(src), params)
        words = module.pack(op, params)
        planned = plan(OpSpec(op, words, tuple(src), dst), Device(79, N_THREADS, VTCM_MIB << 20))
        batch.op(op, planned.pack(), [place(d) for d in src], [place(d) for d in dst], words)
    assert at <= BUFFER_BYTES
    return batch


def span_of(row: Any) -> int | None:
    """What `size` must be for a tensor's type, ne and nb, where they give one at all."""
    with contextlib.suppress(ValueError, KeyError):
        ne, nb = (tuple(int(x) for x in row[k]) for k in ("ne", "nb"))
        return Desc(Type(int(row["type"])), ne, nb).span_bytes  # type: ignore[arg-type]
    return None


class Mutator:
    """Changes fields of a batch; a seed gives the same changes again."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def number(self, old: int, bits: int) -> int:
        pick = int(self.rng.integers(0, 8))
        small = int(self.rng.integers(-2, 9))
        choices = (
            small, old + small, old * 2, old // 2, old ^ (1 << int(self.rng.integers(0, bits))), -1 - abs(small),
            (1 << (bits - 1)) + small, int(self.rng.integers(0, 1 << 16)),
        )  # fmt: skip
        return choices[pick] % (1 << bits)

    def change(self, batch: Batch) -> None:
        tables = ("tensors", "tensors", "tensors", "ops", "ops", "ops", "bufs", "request")
        rows = getattr(batch, tables[self.rng.integers(0, len(tables))])
        row = int(self.rng.integers(0, len(rows)))
        name = str(self.rng.choice(rows.dtype.names))
        cell = rows[name][row : row + 1]
        flat = cell.view(f"<u{cell.dtype.itemsize}").reshape(-1)
        i = int(self.rng.integers(0, flat.size))
        flat[i] = self.number(int(flat[i]), 8 * cell.dtype.itemsize)

    def repair(self, batch: Batch) -> None:
        """Sizes that fit the mutated shapes again, so that more than the first check is reached."""
        for row in batch.tensors:
            size = span_of(row)
            if size is not None and size < 1 << 32:
                row["size"] = size

    def mutate(self, batch: Batch) -> bytes:
        batch.bytes()
        for _ in range(int(self.rng.integers(1, 4))):
            self.change(batch)
        if self.rng.random() < 0.7:
            self.repair(batch)
        raw = bytearray(batch.raw())
        if self.rng.random() < 0.02:
            raw[int(self.rng.integers(0, len(raw)))] ^= int(self.rng.integers(1, 256))
        if self.rng.random() < 0.02:
            raw = raw[: int(self.rng.integers(0, len(raw)))]
        return bytes(raw)


def writable(batch: Batch) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The buffer's bytes that some op may write."""
    mask = np.zeros(BUFFER_BYTES, bool)
    for index in np.unique(batch.ops["dst"]):
        if index < len(batch.tensors):
            row = batch.tensors[index]
            mask[min(int(row["data"]), BUFFER_BYTES) : int(row["data"]) + int(row["size"])] = True
    return mask


def contents() -> bytes:
    """Small integers: valid rows, positions and floats of every kind, now and then something wild."""
    rng = np.random.default_rng(3)
    words = rng.integers(0, 4, BUFFER_BYTES // 4).astype(np.uint32)
    words[1::2] = 0  # so that an I64 is small too
    wild = rng.random(words.size) < 0.02
    words[wild] = rng.integers(0, 1 << 32, int(wild.sum()), np.uint32)
    return words.tobytes()


def slow(seed: int, n: int) -> Any:
    return pytest.param(seed, n, marks=pytest.mark.slow)


@pytest.mark.parametrize(("seed", "n"), [(1, 1500), slow(2, 15000), slow(3, 15000)])
def test_mutated_batches(seed: int, n: int) -> None:
    seen: dict[Status, int] = dict.fromkeys(Status, 0)
    mutator = Mutator(seed)
    with Server("asan", ["--threads", str(N_THREADS)]) as server:
        client = server.client
        handle, session = client.alloc(BUFFER_BYTES), client.open(N_THREADS, VTCM_MIB)
        full = contents()
        valid = [batch_of(handle, [i]) for i in range(len(OPS))]
        for i, batch in enumerate(valid):
            client.write(handle, full)
            response = client.submit(session, batch.bytes())
            assert response.status == Status.OK or "index" in response.detail, f"{OPS[i]}: {response.detail}"
        for step in range(n):
            chosen = [int(c) for c in mutator.rng.integers(0, len(OPS), int(mutator.rng.integers(1, 4)))]
            batch = batch_of(handle, chosen)
            raw = mutator.mutate(batch)
            client.write(handle, full)
            reply = client.ask(FrameType.SUBMIT, raw, session)
            what = f"seed {seed}, step {step}, ops {[OPS[c][0] for c in chosen]}"
            if reply.status != Status.OK:
                pytest.fail(f"{what}: {reply.text}\n{server.close()[1][-8000:]}")
            row = np.frombuffer(reply.payload, wire.RESPONSE, count=1)[0]
            seen[Status(row["status"])] += 1
            assert row["status"] == Status.OK or row["detail"], what
            before, after = (np.frombuffer(b, np.uint8) for b in (full, client.read(handle, BUFFER_BYTES)))
            strayed = np.flatnonzero((before != after) & ~writable(batch))
            assert not strayed.size, f"{what}: wrote byte {strayed[0]}, which belongs to no destination"
        assert server.close()[0] == 0
    assert all(seen[s] for s in (Status.OK, Status.INVAL_PARAMS, Status.NO_SUPPORT)), f"a one-sided fuzz: {seen}"


FRAMES: list[tuple[FrameType, bytes]] = [
    (FrameType.HELLO, b""),
    (FrameType.ALLOC, record(wire.ALLOC, 4096, 0, 0)),
    (FrameType.FREE, record(wire.BUFFER_REF, 1, 0)),
    (FrameType.WRITE, record(wire.RANGE, 1, 0, 0, 16) + bytes(16)),
    (FrameType.READ, record(wire.RANGE, 1, 0, 0, 16)),
    (FrameType.LOAD, record(wire.LOAD, 1, 9, 0, 0, 16) + b"/bin/true"),
    (FrameType.STATS, b""),
    (FrameType.SUBMIT, record(wire.REQUEST, wire.MAGIC, wire.VERSION, 1, 0, 0, 0, 0)),
    (FrameType.PROFILE, record(wire.PROFILE_SET, 1, (0,) * 8, 0)),
    (FrameType.UNMAP, record(wire.BUFFER_REF, 1, 0)),
]


def mutated_frame(mutator: Mutator) -> bytes:
    type, payload = FRAMES[int(mutator.rng.integers(0, len(FRAMES)))]
    header = np.zeros(1, wire.FRAME)
    header[0] = (wire.FRAME_MAGIC, wire.FRAME_VERSION, type, 1, 0, 5, len(payload))
    raw = bytearray(header.tobytes() + payload)
    if mutator.rng.random() < 0.5:
        i = int(mutator.rng.integers(0, len(raw)))
        raw[i] = mutator.number(raw[i], 8)
    if mutator.rng.random() < 0.1:
        raw = raw[: int(mutator.rng.integers(0, len(raw)))]
    return bytes(raw)


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    path = tmp_path / "server"
    process = subprocess.Popen(
        [server_program(Target("asan")), "--listen", f"unix:{path}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    process.stdout.readline()
    yield process, path
    process.kill()
    process.communicate()


def drain(client: Client) -> Iterator[Reply]:
    """All that is answered until the server, having seen our end, closes its."""
    client.socket.shutdown(socket.SHUT_WR)
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            yield client.receive()


@pytest.mark.parametrize(("seed", "n"), [(1, 1500), slow(2, 20000)])
def test_mutated_frames(listening: tuple[subprocess.Popen[str], Path], seed: int, n: int) -> None:
    process, path = listening
    mutator = Mutator(seed)
    answered = 0
    for step in range(0, n, 10):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(path))
        client = Client(sock)
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            for _ in range(10):
                sock.sendall(mutated_frame(mutator))
        for reply in drain(client):
            assert reply.status in list(Status) and (reply.status == Status.OK or reply.text), (
                f"seed {seed}, step {step}"
            )
            answered += 1
        sock.close()
        if process.poll() is not None:
            assert process.stderr
            pytest.fail(f"seed {seed}, step {step}: the server died\n{process.stderr.read()[-8000:]}")
    assert answered > n // 4
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(path))
    assert Client(sock).ask(FrameType.HELLO).status == Status.OK
    sock.close()


def test_the_seeds_repeat() -> None:
    a, b = (Mutator(4).mutate(batch_of(1, [0, 5, 17])) for _ in range(2))
    assert a == b
    assert {op for op, *_ in OPS} <= set(op_table())
