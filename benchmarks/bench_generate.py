"""Generation on the emulated NPU against llama.cpp's CPU back end: same file, same threads, in turn.

    python benchmarks/bench_generate.py [--pairs 3] [--threads 1,2]

Prints for each number of threads the tokens/s of both and the ratio of each pair's (median), then the time from
start to first token and the peak memory of client and server. Every run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
N_PROMPT, N_GENERATE = 128, 128

OURS = """
import json, sys
import numpy as np, hexnpu
from hexnpu.models.engine import Engine
from hexnpu.models.gguf_file import read_gguf
from hexnpu.models.sampler import Sampler, Sampling
path, threads, n_prompt, n_generate = sys.argv[1], *map(int, sys.argv[2:])
file = read_gguf(path)
tokens = list(range(1000, 1000 + n_prompt))
with hexnpu.open("emu", n_threads=threads, strict=True) as session:
    for _ in range(2):  # the first round uploads the weights and compiles the graphs
        engine = Engine(session, file, 1024)
        list(engine.generate(tokens, n_generate + 1, Sampler(Sampling()), set()))
    t = engine.timing
print(json.dumps([t.n_prompt / t.prompt_s, (t.n_generated - 1) / t.generate_s]))
"""

LLAMA_CPP = """
import json, os, sys
import xllamacpp
path, threads, n_prompt, n_generate = sys.argv[1], *map(int, sys.argv[2:])
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel = path, 1024, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
body = {"prompt": list(range(1000, 1000 + n_prompt)), "max_tokens": n_generate, "temperature": 0, "ignore_eos": True,
        "cache_prompt": False}
for _ in range(2):
    timings = server.handle_completions(body)["timings"]
print(json.dumps([timings["prompt_per_second"], timings["predicted_per_second"]]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from scripts.demo_model import demo_model

    model = demo_model()
    for threads in map(int, arguments.threads.split(",")):
        compare(model, threads, arguments.pairs)
    print(f"start to first token, warm cache   {first_token(model):6.2f} s  (goal: at most 3)")
    peak, budget = peak_memory(model)
    print(f"peak memory, client + server       {peak:6.0f} MiB")
    print(f"  of GGUF + KV + compute           {budget:6.0f} MiB   ratio {peak / budget:.2f}  (goal: at most 1.3)")


def compare(model: Path, threads: int, pairs: int) -> None:
    rounds = [(speeds(OURS, model, threads), speeds(LLAMA_CPP, model, threads)) for _ in range(pairs)]
    for i, (phase, goal) in enumerate((("prompt", 0.8), ("generation", 1.0))):
        ours = statistics.median(r[0][i] for r in rounds)
        theirs = statistics.median(r[1][i] for r in rounds)
        ratio = statistics.median(r[0][i] / r[1][i] for r in rounds)
        print(
            f"{phase:10s} {threads} thread(s)   hexnpu {ours:7.1f}  llama.cpp {theirs:7.1f} tokens/s   "
            f"ratio {ratio:.2f}  (goal: at least {goal})",
            flush=True,
        )


def speeds(program: str, model: Path, threads: int) -> tuple[float, float]:
    """(prompt, generation) tokens/s as the program reports them."""
    command = [sys.executable, "-c", program, model, *map(str, (threads, N_PROMPT, N_GENERATE))]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    prompt, generation = json.loads(result.stdout.strip().splitlines()[-1])
    return prompt, generation


def generate_command(model: Path, n_tokens: int) -> list[str]:
    prompt = "The quick brown fox jumps over the lazy dog and"
    return [sys.executable, "-m", "hexnpu", "generate", str(model), "-p", prompt, "-n", str(n_tokens)]


def first_token(model: Path) -> float:
    """Seconds from the start of the command to its first byte of text; the second of two runs."""
    for _ in range(2):
        start = time.perf_counter()
        with subprocess.Popen(generate_command(model, 1), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            seconds = time.perf_counter() - start
    return seconds


def peak_memory(model: Path) -> tuple[float, float]:
    """(peak, budget) in MiB: proportional set sizes of the whole process tree; GGUF + KV cache + compute buffers."""
    peak_kib = 0
    with subprocess.Popen(generate_command(model, 200), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak_kib = max(peak_kib, tree_pss_kib(process.pid))
            threading.Event().wait(0.02)
    kv_and_compute = session_bytes(model)
    return peak_kib / 1024, (model.stat().st_size + kv_and_compute) / 2**20


def tree_pss_kib(pid: int) -> int:
    """Kilobytes of a process and its descendants, a shared page counted once."""
    total, waiting = 0, [pid]
    while waiting:
        current = waiting.pop()
        try:
            waiting += map(int, Path(f"/proc/{current}/task/{current}/children").read_text().split())
            rollup = Path(f"/proc/{current}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(rollup.split("\nPss:")[1].split()[0])
    return total


def session_bytes(model: Path) -> int:
    """Bytes of the KV cache and of the compute buffers that `hexnpu generate` with its default context allocates."""
    code = (
        "import sys, hexnpu; from hexnpu.models.engine import Engine; from hexnpu.models.gguf_file import read_gguf\n"
        "file = read_gguf(sys.argv[1])\n"
        "with hexnpu.open('emu') as s:\n"
        "    e = Engine(s, file, file.integer('llama.context_length'))\n"
        "    e.evaluate(list(range(10, 22))); e.evaluate([5])\n"
        "    print(s.memory.state_bytes + s.memory.compute_bytes)"
    )
    result = subprocess.run([sys.executable, "-c", code, model], capture_output=True, text=True, check=True, cwd=ROOT)
    return int(result.stdout)


if __name__ == "__main__":
    os.environ.pop("HEXNPU_EMU_DMA", None)
    main()
