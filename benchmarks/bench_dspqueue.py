"""Round trips of dspqueue messages between a host program and a DSP library on the stand-in.

    .venv/bin/python benchmarks/bench_dspqueue.py [--rounds 5000]

A reader waits at either end. `asleep`: a millisecond has passed since the last message, so that the DSP's thread has to
be woken up; without, it is still looking. The goal is 30 us for an empty message; a phone takes 61.
"""

from __future__ import annotations

import argparse
import json
import sys

from tests.fastrpc.programs import dsp_library, run_host

GOAL_US = 30.0
SIZES = (0, 256, 4096, 65536)


def round_trips(rounds: int, pause_us: int) -> list[tuple[int, float, float]]:
    """Size, best and median in microseconds."""
    arguments = [str(rounds), str(pause_us), *map(str, SIZES)]
    result = run_host("queue_bench", *arguments, libraries=[dsp_library("queue_echo_skel")], timeout=300)
    if result.returncode:
        sys.exit(f"queue_bench failed:\n{result.stderr}")
    times = [tuple(map(float, line.split())) for line in result.stdout.splitlines()]
    return [(size, best, median) for size, (best, median) in zip(SIZES, times, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5000)
    options = parser.parse_args()
    missed = False
    for asleep in (False, True):
        for size, best, median in round_trips(options.rounds // (5 if asleep else 1), 1000 if asleep else 0):
            print(json.dumps({"bytes": size, "asleep": asleep, "best_us": best, "median_us": median}))
            missed |= size == 0 and median > GOAL_US
    if missed:
        sys.exit(f"an empty message takes more than {GOAL_US:.0f} us")


if __name__ == "__main__":
    main()
