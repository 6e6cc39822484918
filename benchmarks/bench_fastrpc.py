"""Invocations of a DSP library on the stand-in: an empty method, and arguments of several sizes.

    .venv/bin/python benchmarks/bench_fastrpc.py

`rpcmem` arguments go by reference, others are copied. The goal is 15 us for an empty method.
"""

from __future__ import annotations

import json
import sys

from tests.fastrpc.programs import dsp_library, run_host

GOAL_US = 15.0
SIZES = (0, 4096, 65536, 1 << 20, 16 << 20)


def invocations() -> list[tuple[int, bool, float, float]]:
    """Bytes of the argument, whether it is rpcmem, best and median in microseconds."""
    result = run_host("invoke_bench", *map(str, SIZES), libraries=[dsp_library("calc_skel")], timeout=300)
    if result.returncode:
        sys.exit(f"invoke_bench failed:\n{result.stderr}")
    times = [tuple(map(float, line.split())) for line in result.stdout.splitlines()]
    kinds = [(size, rpcmem) for size in SIZES for rpcmem in (False, True)]
    return [(*kind, best, median) for kind, (best, median) in zip(kinds, times, strict=True)]


def main() -> None:
    missed = False
    for size, rpcmem, best, median in invocations():
        print(json.dumps({"bytes": size, "rpcmem": rpcmem, "best_us": best, "median_us": median}))
        missed |= size == 0 and median > GOAL_US
    if missed:
        sys.exit(f"an empty invocation takes more than {GOAL_US:.0f} us")


if __name__ == "__main__":
    main()
