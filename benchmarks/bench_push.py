"""Push and run against the programs they stand for: `scp -r`, `ssh` and `adb push`, over the same loopback servers.

    .venv/bin/python benchmarks/bench_push.py [--adb] [--files 500] [--mib 200]

Needs Debian's openssh-server, openssh-client and, with --adb, adb. Each cold push goes into a new folder; the figure is
the best of three, taken in turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.deploy.conftest import Adb
from tests.deploy.sshd import Sshd, make_key

HEXNPU = [sys.executable, "-m", "hexnpu"]
ROUNDS = 3


def make_package(root: Path, n_files: int, n_bytes: int) -> None:
    for n in range(n_files):
        path = root / f"dir{n % 20}" / f"file{n}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(n_bytes // n_files))


def seconds(command: list[object]) -> float:
    started = time.monotonic()
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr.decode()}")
    return time.monotonic() - started


def compare(folder: Path, ours: Callable[[Path], list[object]], theirs: Callable[[Path], list[object]]) -> None:
    """`ours` and `theirs` give the command that pushes the package to a folder."""
    cold, other, again = [], [], []
    for n in range(ROUNDS):
        mine, their = folder / f"ours{n}", folder / f"theirs{n}"
        cold.append(seconds(ours(mine)))
        again.append(min(seconds(ours(mine)) for _ in range(3)))
        their.mkdir()
        other.append(seconds(theirs(their)))
        subprocess.run(["rm", "-rf", mine, their], check=True)
    name = theirs(folder)[0]
    print(f"cold push    {min(cold):6.2f} s   {name} {min(other):6.2f} s   {min(other) / min(cold):6.2f} x faster")
    print(f"nothing new  {min(again):6.2f} s   {name} {min(other):6.2f} s   {min(other) / min(again):6.2f} x faster")


def bench_ssh(folder: Path, package: Path) -> None:
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True)
    server = Sshd(folder / "sshd", "/usr/sbin/sshd")
    server.start()
    (server.folder / "authorized_keys").write_text(make_key(home / ".ssh/id_ed25519"))
    known = home / ".ssh/known_hosts"
    known.write_text(server.known_hosts_line())
    os.environ["HOME"] = str(home)
    options = ["-q", "-F", "none", "-i", home / ".ssh/id_ed25519", "-o", f"UserKnownHostsFile={known}"]
    try:
        compare(
            folder,
            lambda to: [*HEXNPU, "push", "--target", server.target, "--install-dir", package, "--target-dir", to],
            lambda to: ["scp", *options, "-P", server.port, "-r", package, f"{server.user}@127.0.0.1:{to}"],
        )
        ours = [*HEXNPU, "run", "--target", server.target, "--target-dir", folder, "--", "true"]
        theirs = ["ssh", *options, "-p", server.port, f"{server.user}@127.0.0.1", "true"]
        run, ssh = (min(seconds(list(command)) for _ in range(7)) for command in (ours, theirs))
        print(f"run -- true  {run * 1e3:6.0f} ms  ssh {ssh * 1e3:6.0f} ms   {(run - ssh) * 1e3:6.0f} ms more")
    finally:
        server.stop()


def bench_adb(folder: Path, package: Path) -> None:
    adb = Adb("adb", folder / "adb-home")
    adb.home.mkdir()
    adb.run("start-server")
    os.environ["ANDROID_ADB_SERVER_PORT"] = str(adb.port)
    try:
        serial = adb.connect(folder)
        compare(
            folder,
            lambda to: [*HEXNPU, "push", "--target", f"adb:{serial}", "--install-dir", package, "--target-dir", to],
            lambda to: ["adb", "-s", serial, "push", package, to],
        )
        adb.disconnect(serial)
    finally:
        adb.run("kill-server")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--adb", action="store_true")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--mib", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["HEXNPU_CACHE"] = str(folder / "cache")
        make_package(folder / "pkg", options.files, options.mib << 20)
        print(f"{options.mib} MiB in {options.files} files")
        (bench_adb if options.adb else bench_ssh)(folder, folder / "pkg")


if __name__ == "__main__":
    main()
