"""Matmul kernels on the emulator: GOPS by weight type, shape and columns, beside numpy's sgemm with as many threads.

    .venv/bin/python benchmarks/bench_matmul.py [--threads 1,2] [--columns 1,128] [--seconds 0.4] [--model]

Weights rotate through as many copies as 100 MB hold, as those of a model do: M = 1 is bound by memory. `--model` times
the matmuls of a step of SmolLM2-135M instead (Q4_1, output head Q8_0), whatever the weights' values.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import hexnpu.session
from hexnpu.batch import Batch, BatchBuilder, Placed
from hexnpu.plan import matmul, op_table
from hexnpu.plan.base import OpSpec
from hexnpu.session import Session
from hexnpu.tensor import Desc, Type
from hexnpu.wire import TENSOR_WEIGHT

TYPES = (Type.TILE_Q4_0, Type.TILE_Q4_1, Type.TILE_Q8_0, Type.F16, Type.F32)
SHAPES = ((576, 576), (576, 1536), (1536, 576))
COLD_BYTES = 100 << 20


class Bench:
    """A session, and batches of matmuls in it. All weights lie behind each other in one buffer, all else in another."""

    def __init__(self, session: Session, weight_bytes: int, other_bytes: int) -> None:
        self.session = session
        self._weights = session.alloc(weight_bytes)
        self._other = session.alloc(other_bytes)
        self._weights.view[:] = 0x11
        self._other.view.view(np.float32)[:] = np.random.default_rng(0).standard_normal(other_bytes // 4)
        self._weights.flush(0, weight_bytes)
        self._other.flush(0, other_bytes)
        self._at = {id(self._weights): 0, id(self._other): 0}
        self.builder = BatchBuilder(session.max_map_bytes)

    def place(self, desc: Desc, is_weight: bool = False) -> Placed:
        buffer = self._weights if is_weight else self._other
        at = self._at[id(buffer)]
        if at + desc.span_bytes > buffer.bytes:
            at = 0
        self._at[id(buffer)] = -(-(at + desc.span_bytes) // 128) * 128
        return Placed(desc, buffer, at, TENSOR_WEIGHT if is_weight else 0)

    def add(self, op: str, src: Sequence[Placed]) -> Placed:
        descs = tuple(p.desc for p in src)
        spec = OpSpec(op, (0,) * 16, descs, matmul.infer(op, descs, {}))
        plan = matmul.plan(spec, self.session.device)
        results = [self.place(d) for d in spec.dst]
        self.builder.add(op_table()[op][0], spec.params, plan.pack(), src, results, op)
        return results[0]

    def seconds(self, batch: Batch, at_least: float) -> float:
        """Of one batch on the device, the best of several."""
        times: list[float] = []
        start = time.perf_counter()
        while time.perf_counter() - start < at_least or len(times) < 3:
            times.append(self.session.submit(batch).usecs * 1e-6)
        return min(times)


def single_op(session: Session, type: Type, k: int, n: int, m: int, at_least: float) -> tuple[float, float]:
    """GOPS, and GB/s of weights."""
    w, x = Desc.contiguous(type, (k, n)), Desc.contiguous(Type.F32, (k, m))
    copies = max(1, COLD_BYTES // w.span_bytes) if m == 1 else 4
    bench = Bench(session, (w.span_bytes + 128) * copies, x.span_bytes + (4 * n * m + 128) * copies + 256)
    activation = bench.place(x)
    for _ in range(copies):
        bench.add("MUL_MAT", [bench.place(w, True), activation])
    seconds = bench.seconds(bench.builder.finish(), at_least) / copies
    return 2e-9 * k * n * m / seconds, 1e-9 * w.span_bytes / seconds


def model_step(session: Session, m: int, at_least: float) -> tuple[float, float]:
    """Seconds of the matmuls of a step of SmolLM2-135M over m tokens (the head over one), and their weights' bytes."""
    q, kv, ffn, head = ((k, n) for k, n in ((576, 576), (576, 192), (576, 1536), (576, 49152)))

    def tile(shape: tuple[int, int], type: Type = Type.TILE_Q4_1) -> Desc:
        return Desc.contiguous(type, shape)

    layer = [("MUL_MAT_NX", [q, kv, kv]), ("MUL_MAT", [q]), ("MUL_MAT_NX", [ffn, ffn]), ("MUL_MAT", [(1536, 576)])]
    total = 30 * sum(tile(s).span_bytes for _, shapes in layer for s in shapes) + tile(head, Type.TILE_Q8_0).span_bytes
    bench = Bench(session, total + (1 << 20), 64 << 20)
    for _ in range(30):
        for op, shapes in layer:
            x = bench.place(Desc.contiguous(Type.F32, (shapes[0][0], m)))
            weights = [bench.place(tile(s), True) for s in shapes]
            bench.add(op, [x, *weights] if op == "MUL_MAT_NX" else [*weights, x])
    bench.add(
        "MUL_MAT", [bench.place(tile(head, Type.TILE_Q8_0), True), bench.place(Desc.contiguous(Type.F32, (576, 1)))]
    )
    return bench.seconds(bench.builder.finish(), at_least), total


def sgemm_gops(k: int, n: int, m: int, at_least: float) -> float:
    rng = np.random.default_rng(0)
    copies = max(1, min(COLD_BYTES // (4 * k * n), 16))
    weights = [rng.standard_normal((n, k), dtype=np.float32) for _ in range(copies)]
    x = rng.standard_normal((k, m), dtype=np.float32)
    times: list[float] = []
    start = time.perf_counter()
    while time.perf_counter() - start < at_least or len(times) < 3:
        begin = time.perf_counter()
        for w in weights:
            w @ x
        times.append((time.perf_counter() - begin) / copies)
    return 2e-9 * k * n * m / min(times)


def sgemm_in_child(n_threads: int, columns: list[int], at_least: float) -> dict[str, float]:
    """{"K N M": GOPS}; OpenBLAS takes its number of threads at start."""
    code = (
        "import bench_matmul as b, json, sys\n"
        "shapes = [(k, n, m) for k, n in b.SHAPES for m in json.loads(sys.argv[1])]\n"
        "print(json.dumps({f'{k} {n} {m}': b.sgemm_gops(k, n, m, float(sys.argv[2])) for k, n, m in shapes}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, json.dumps(columns), str(at_least)],
        check=True, capture_output=True, text=True, cwd=Path(__file__).parent,
        env={**os.environ, "OPENBLAS_NUM_THREADS": str(n_threads)},
    )  # fmt: skip
    return dict(json.loads(result.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--columns", default="1,128")
    parser.add_argument("--seconds", type=float, default=0.4, help="least time per figure")
    parser.add_argument("--model", action="store_true")
    args = parser.parse_args()
    columns = [int(m) for m in args.columns.split(",")]
    for n_threads in (int(t) for t in args.threads.split(",")):
        if args.model:
            with hexnpu.session.open(n_threads=n_threads) as session:
                for m in columns:
                    seconds, n_bytes = model_step(session, m, args.seconds)
                    print(
                        f"{n_threads} threads, {m:3} tokens: {1e3 * seconds:7.2f} ms, {m / seconds:7.1f} tokens/s, "
                        f"{1e-9 * n_bytes / seconds:5.1f} GB/s of weights",
                        flush=True,
                    )
            continue
        sgemm = sgemm_in_child(n_threads, columns, args.seconds)
        print(f"{'type':10} {'K':>5} {'N':>5} {'M':>4} threads {'GOPS':>7} {'GB/s':>6} {'sgemm':>7} ratio")
        for type in TYPES:
            for m in columns:
                for k, n in SHAPES:
                    with hexnpu.session.open(n_threads=n_threads) as session:
                        gops, rate = single_op(session, type, k, n, m, args.seconds)
                    beside = sgemm[f"{k} {n} {m}"]
                    print(
                        f"{type.name:10} {k:5} {n:5} {m:4} {n_threads:7} {gops:7.1f} {rate:6.2f} {beside:7.1f} "
                        f"{gops / beside:5.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
