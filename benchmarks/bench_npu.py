"""Generation through FastRPC against the direct path: the same emulator, model and threads, in turn.

    python benchmarks/bench_npu.py [--pairs 5] [--threads 1,2]

Through: htp-server --backend fastrpc, libcdsprpc.so's stand-in, a protection domain with our kernel library, dspqueue.
Every run is a process of its own; the ratio is the median of the pairs'.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from hexnpu.emulator_build import emulator_folder
from scripts.demo_model import demo_model

GOAL = 0.95
N_GENERATE = 400

PROGRAM = """
import json, sys
import hexnpu
from hexnpu.models.engine import Engine
from hexnpu.models.gguf_file import read_gguf
from hexnpu.models.sampler import Sampler, Sampling
target, path, threads, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
file = read_gguf(path)
with hexnpu.open(target, n_threads=threads, strict=True) as session:
    for _ in range(2):  # the first round uploads the weights and compiles the graphs
        engine = Engine(session, file, 1024)
        list(engine.generate(list(range(1000, 1032)), n + 1, Sampler(Sampling()), set()))
    t = engine.timing
print(json.dumps((t.n_generated - 1) / t.generate_s))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", default="1,2")
    arguments = parser.parse_args()
    os.environ |= {"LD_LIBRARY_PATH": str(emulator_folder()), "HEXNPU_EMU_ARCH": "79"}
    model, missed = demo_model(), False
    for threads in map(int, arguments.threads.split(",")):
        pairs = [(speed("npu", model, threads), speed("emu", model, threads)) for _ in range(arguments.pairs)]
        ratio = statistics.median(npu / emu for npu, emu in pairs)
        npu, emu = (statistics.median(side) for side in zip(*pairs, strict=True))
        missed |= ratio < GOAL
        print(
            f"generation {threads} thread(s)   through FastRPC {npu:6.1f}  direct {emu:6.1f} tokens/s   "
            f"ratio {ratio:.2f}  (goal: at least {GOAL})",
            flush=True,
        )
    sys.exit(1 if missed else 0)


def speed(target: str, model: Path, threads: int) -> float:
    command = [sys.executable, "-c", PROGRAM, target, model, str(threads), str(N_GENERATE)]
    return float(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


if __name__ == "__main__":
    main()
