"""What the host side of an op costs: building, compiling and replaying the decode graph of the demo model.

    python -m benchmarks.bench_batcher [--json] [--steps N]

Python time is the CPU time of this process (the server is another one), so a busy machine does not change it much; each
figure is the best of several. Allowed: 100 us an op to compile, 3 us an op to replay, no growth with the steps.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import hexnpu
from hexnpu.batch import Batch
from hexnpu.models.gguf_file import read_gguf
from hexnpu.models.llama import Llama
from scripts.demo_model import demo_model

N_KV = 256
COMPILE_US_ALLOWED = 100.0
REPLAY_US_ALLOWED = 3.0
GROWTH_ALLOWED = 1.2


@dataclass
class Figures:
    """Microseconds an op, over `ops` fused ops; `replay_early` and `replay_late` are the halves of the steps."""

    ops: int
    nodes: int
    batches: int
    batch_bytes: int
    build_us: float
    compile_us: float
    replay_us: float
    replay_early_us: float
    replay_late_us: float

    @property
    def passed(self) -> bool:
        return (
            self.compile_us <= COMPILE_US_ALLOWED
            and self.replay_us <= REPLAY_US_ALLOWED
            and self.replay_late_us <= GROWTH_ALLOWED * self.replay_early_us
        )


def cpu_us(work: Callable[[], object]) -> float:
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e3


def decode_inputs(position: int) -> dict[str, np.ndarray[Any, Any]]:
    mask = np.full((1, N_KV), -np.inf, np.float16)
    mask[0, : position + 1] = 0
    return {
        "tokens": np.array([1], np.int32), "pos": np.array([position], np.int32),
        "kv_rows": np.array([position], np.int64), "mask": mask,
    }  # fmt: skip


def measure(n_steps: int) -> Figures:
    model = Llama(read_gguf(demo_model()), N_KV)
    with hexnpu.open() as session:
        # The first graph uploads the weights; a second one, say for a longer KV cache, only plans and places.
        session.run(model.graph(1, N_KV), decode_inputs(0))
        builds, compiles = [], []
        for _ in range(7):
            graphs: list[hexnpu.Graph] = []
            builds.append(cpu_us(lambda into=graphs: into.append(model.graph(1, N_KV))))  # type: ignore[misc]
            session.planner = type(session.planner)(session.device)  # plans nothing from memory
            compiles.append(cpu_us(lambda graph=graphs[0]: session.compile(graph)))  # type: ignore[misc]
        graph = graphs[0]
        compiled = session.compile(graph)
        gc.collect()
        steps = []
        for step in range(n_steps):
            inputs = decode_inputs(step % N_KV)
            steps.append(cpu_us(lambda inputs=inputs: session.run(graph, inputs)))  # type: ignore[misc]
        n_ops, half = len(compiled.ops), n_steps // 2
        return Figures(
            ops=n_ops,
            nodes=len(graph.nodes),
            batches=compiled.n_batches,
            batch_bytes=sum(len(s.data) for s in compiled.steps if isinstance(s, Batch)),
            build_us=min(builds) / n_ops,
            compile_us=min(compiles) / n_ops,
            replay_us=float(np.median(steps)) / n_ops,
            replay_early_us=float(np.median(steps[:half])) / n_ops,
            replay_late_us=float(np.median(steps[half:])) / n_ops,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--steps", type=int, default=200, help="decode steps to replay")
    options = parser.parse_args()
    figures = measure(options.steps)
    if options.json:
        print(json.dumps(asdict(figures) | {"passed": figures.passed}, indent=2))
    else:
        print(f"decode graph: {figures.nodes} nodes, {figures.ops} ops, {figures.batches} batch(es), "
              f"{figures.batch_bytes / 1024:.0f} KiB")  # fmt: skip
        print(f"build    {figures.build_us:7.2f} us/op")
        print(f"compile  {figures.compile_us:7.2f} us/op   (allowed {COMPILE_US_ALLOWED:g})")
        print(f"replay   {figures.replay_us:7.2f} us/op   (allowed {REPLAY_US_ALLOWED:g})")
        print(f"growth   {figures.replay_late_us / figures.replay_early_us:7.2f} x       (allowed {GROWTH_ALLOWED:g})")
    return 0 if figures.passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
