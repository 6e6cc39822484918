"""Speed and memory of `hexnpu profile` and `hexnpu trace`, against a bare Python loop over the same log.

    python benchmarks/bench_profile.py            # a million lines; exits 1 if a limit is missed

CPU time is user and system of the whole child process, Python's start included; peak is its maximum resident set.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from profile_log import write, write_sparse

HEXNPU = [sys.executable, "-c", "from hexnpu.cli import main; main()"]
LOOP = "sum('profile-op' in l for l in open({!r}))"
ROUNDS = 5


@dataclass
class Cost:
    cpu: float
    peak_mib: float


def cost(command: list[str]) -> Cost:
    """CPU seconds and peak memory of one run; what it prints goes nowhere."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {command}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def loop_seconds(log: Path) -> float:
    """CPU seconds of the loop alone, without the start of Python."""
    code = f"import time; a = time.process_time(); {LOOP.format(str(log))}; print(time.process_time() - a)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)


def best(log: Path, *arguments: str) -> tuple[float, Cost]:
    """The smallest loop and command costs of some alternating rounds."""
    loops, costs = [], []
    for _ in range(ROUNDS):
        loops.append(loop_seconds(log))
        costs.append(cost([*HEXNPU, *arguments]))
    return min(loops), min(costs, key=lambda item: item.cpu)


def first_line_seconds(log: Path) -> float:
    """Wall time from the start of `profile --head 10` to its first line."""
    begin = time.monotonic()
    command = [*HEXNPU, "profile", str(log), "--head", "10"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        taken = time.monotonic() - begin
        process.stdout.read()
    if not line:
        raise SystemExit("profile --head 10 printed nothing")
    return taken


class Table:
    def __init__(self) -> None:
        self.missed = 0

    def row(self, what: str, value: float, unit: str, limit: float, at_least: bool = False) -> None:
        good = value >= limit if at_least else value <= limit
        self.missed += not good
        sign = ">=" if at_least else "<="
        print(f"{what:52} {value:9.2f} {unit:6} {sign} {limit:g} {'' if good else 'MISSED'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = parser.parse_args().lines
    table = Table()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, double, sparse, big = (folder / part for part in ("log", "double", "sparse", "big"))
        write(log, lines)
        write(double, 2 * lines)
        write_sparse(sparse, 3 * lines)
        cost([*HEXNPU, "profile", str(log)])  # builds what is built on first use
        trace = str(folder / "t.perfetto-trace")
        loop, profile = best(log, "profile", str(log))
        print(f"log {log.stat().st_size / 1e6:.0f} MB, {lines:,} lines; the loop takes {loop:.3f} CPU-s")
        print(f"profile {profile.cpu:.3f} CPU-s")
        table.row("profile, times the loop", profile.cpu / loop, "x", 4.5)
        table.row("profile, peak memory", profile.peak_mib, "MiB", 220)
        loop, tracing = best(log, "trace", str(log), "-o", trace)
        print(f"trace {tracing.cpu:.3f} CPU-s, {Path(trace).stat().st_size / 1e6:.1f} MB")
        table.row("trace, times the loop", tracing.cpu / loop, "x", 13.5)
        table.row("trace, peak memory", tracing.peak_mib, "MiB", 310)
        table.row("profile, twice the lines", best(double, "profile", str(double))[1].cpu / profile.cpu, "x", 2.1)
        twice = best(double, "trace", str(double), "-o", trace)[1]
        table.row("trace, twice the lines", twice.cpu / tracing.cpu, "x", 2.1)
        start = cost([*HEXNPU, "profile", "--help"]).cpu
        seconds = best(sparse, "profile", str(sparse))[1].cpu
        size = sparse.stat().st_size / 1e6
        table.row("1 % of the lines matter, start included", size / seconds, "MB/s", 500, at_least=True)
        print(f"  of its {seconds:.3f} s, {start:.3f} s are the start alone")
        with log.open("rb") as source, big.open("wb") as target:
            target.write(source.read(64 << 20))
            target.truncate(10_000_000_000)  # 10 GB, a hole behind the first 64 MiB: --head must not read so far
        table.row("first line of --head 10 on a 10 GB log", first_line_seconds(big), "s", 1.0)
    sys.exit(1 if table.missed else 0)


if __name__ == "__main__":
    main()
