"""Two NPUs as one on the emulator: what a sum over ranks costs, and what a second rank brings.

    .venv/bin/python benchmarks/bench_allreduce.py [MODEL.gguf] [--runs 200] [--tokens 40]

ALLREDUCE: beside a numpy add of the same arrays plus one round trip to the server (an empty batch for each rank). The
rest is generation, one rank with one thread against two ranks with one each. All are best and median of interleaved
runs, so that both sides meet the same neighbours: each rank wants a core of its own, and a shared machine's memory is
at times three times as fast as at others. The cost of the barriers is what the profile says of FENCE.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import hexnpu
from hexnpu.group import Group
from hexnpu.models.engine import Engine
from hexnpu.models.gguf_file import read_gguf
from hexnpu.models.split import Split

SHAPES = ((4096, 1), (4096, 512))
DEVICES = ("HTP0:0", "HTP1:0")


def times(what: Sequence[Callable[[], object]], runs: int) -> list[tuple[float, float]]:
    """Best and median of each in microseconds, run in turn."""
    taken: list[list[float]] = [[] for _ in what]
    for i in range(runs + 1):
        for run, times_of_it in zip(what, taken, strict=True):
            start = time.perf_counter()
            run()
            if i:
                times_of_it.append((time.perf_counter() - start) * 1e6)
    return [(min(t), statistics.median(t)) for t in taken]


def sums(runs: int) -> list[dict[str, object]]:
    from tests.ops.ranks import Case, Ranks

    results = []
    opened = hexnpu.open(devices=DEVICES, n_threads=1)
    assert isinstance(opened, Group)
    with opened as group:
        nothing = [[empty(group, r)] for r in range(2)]
        for ne in SHAPES:
            ranks = Ranks(group, Case(ne))
            ranks.fill(np.random.default_rng(0))
            steps = ranks.steps(1)
            a, b = (np.array(ranks.view(p)) for p in ranks.inputs)
            total = np.empty_like(a)
            ours, trip, numpy = times(
                (
                    lambda steps=steps: group.run_steps(steps, 2),
                    lambda: group.run_steps(nothing, 0),
                    lambda a=a, b=b, total=total: np.add(a, b, out=total),
                ),
                runs,
            )
            for i, kind in enumerate(("best", "median")):
                results.append(
                    {"op": f"ALLREDUCE {ne[0]} x {ne[1]}", "of": kind, "us": round(ours[i], 1),
                     "numpy_us": round(numpy[i], 1), "round_trip_us": round(trip[i], 1),
                     "ratio": round(ours[i] / (numpy[i] + trip[i]), 2)}
                )  # fmt: skip
    return results


def empty(group: Group, rank: int) -> object:
    from hexnpu.batch import BatchBuilder

    return BatchBuilder(group.sessions[rank].max_map_bytes).finish()


def generation(model: Path, tokens: int, rounds: int = 5) -> list[dict[str, object]]:
    """Tokens a second of one rank and of two, in turn, so that both meet the same neighbours on this machine."""
    file = read_gguf(model)
    engines = {
        n: Engine(hexnpu.open(devices=DEVICES[:n], n_threads=1, strict=True), file, 512, split=Split("tensor"))
        for n in (1, 2)
    }
    taken: dict[int, list[float]] = {1: [], 2: []}
    for engine in engines.values():
        engine.evaluate(list(range(100, 110)))
        engine.evaluate([100])
    for _ in range(rounds):
        for n, engine in engines.items():
            engine.position = 10
            for token in range(tokens):
                start = time.perf_counter()
                engine.evaluate([200 + token])
                taken[n].append(time.perf_counter() - start)
    barriers = barrier_us(engines[2])
    for engine in engines.values():
        engine.session.close()
    results: list[dict[str, object]] = []
    for kind, value in (("best", min), ("median", statistics.median)):
        one, two = value(taken[1]), value(taken[2])
        results.append(
            {"op": "generation", "of": kind, "one_rank_tokens_s": round(1 / one, 1),
             "two_ranks_tokens_s": round(1 / two, 1), "speed_up": round(one / two, 2)}
        )  # fmt: skip
    return [*results, {"op": "barriers of a token on rank 0", "us": round(barriers, 1)}]


def barrier_us(engine: Engine) -> float:
    """The time rank 0 waits for rank 1 in one token, from the profile's FENCE events; the best of some."""
    waits = []
    for _ in range(8):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "profile.log"
            engine.position = 10
            with engine.session.profile(3, log):
                engine.evaluate([200])
            found = re.findall(r"HTP0:0 trace-evt FENCE: thread 0 info \d+ (start|stop) (\d+)", log.read_text())
        cycles = [int(at) for _, at in found]
        waits.append(sum((stop - start) & 0xFFFFFFFF for start, stop in zip(cycles[::2], cycles[1::2], strict=True)))
    return min(waits) / 1000  # the emulator's clock is 1 GHz


def main() -> None:
    from scripts.demo_model import demo_model

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=40)
    options = parser.parse_args()
    for result in (*sums(options.runs), *generation(options.model or demo_model(), options.tokens)):
        print(json.dumps(result))


if __name__ == "__main__":
    main()
