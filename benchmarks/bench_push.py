"""Push and run against the programs they stand for: `scp -r`, `ssh` and `adb push`, over the same loopback servers.

    .venv/bin/python benchmarks/bench_push.py [--adb] [--files 500] [--mib 200] [--link MB_PER_S]

Needs Debian's openssh-server, openssh-client and, with --adb, adb. Each cold push goes into a new folder and knows no
sums yet; a figure is the best of all rounds. `master` is a connection that OpenSSH keeps open (ControlMaster). `--link`
puts a link of that speed before the device, such as 40 for USB 2.
"The push alone" is the same code in a process that has started and connected: what a push of nothing new costs without
the start of Python and without the login.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.slow_link import slow_link
from hexnpu.deploy.device import open_device
from hexnpu.deploy.push import Watcher, push
from hexnpu.deploy.source import Source
from hexnpu.deploy.targets import parse_target
from tests.deploy.conftest import Adb
from tests.deploy.sshd import Master, Sshd, make_key

HEXNPU = [sys.executable, "-m", "hexnpu"]
ROUNDS, AGAIN = 3, 7
Command = list[object]


def make_package(root: Path, n_files: int, n_bytes: int) -> None:
    for n in range(n_files):
        path = root / f"dir{n % 20}" / f"file{n}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(n_bytes // n_files))


def seconds(command: Command) -> float:
    started = time.monotonic()
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr.decode()}")
    return time.monotonic() - started


def pushes(target: str, package: Path, to: Path) -> Command:
    return [*HEXNPU, "push", "--target", target, "--install-dir", package, "--target-dir", to]


def forget_sums() -> None:
    shutil.rmtree(Path(os.environ["HEXNPU_CACHE"]) / "push", ignore_errors=True)


def compare(folder: Path, package: Path, targets: dict[str, str], theirs: Callable[[Path], Command]) -> None:
    """`targets`: name -> --target; `theirs` gives the command that copies the package to a folder."""
    cold: dict[str, list[float]] = {name: [] for name in targets}
    again: dict[str, list[float]] = {name: [] for name in targets}
    alone: dict[str, list[float]] = {name: [] for name in targets}
    other = []
    for n in range(ROUNDS):
        for name, target in targets.items():
            mine = folder / f"ours{n}"
            forget_sums()
            cold[name].append(seconds(pushes(target, package, mine)))
            again[name] += (seconds(pushes(target, package, mine)) for _ in range(AGAIN))
            alone[name] += alone_seconds(target, package, mine)
            shutil.rmtree(mine)
        their = folder / f"theirs{n}"
        their.mkdir()
        other.append(seconds(theirs(their)))
        shutil.rmtree(their)
    best = min(other)
    print(f"{theirs(folder)[0]:<40}{best * 1e3:8.0f} ms")
    for what, figures in (("cold push", cold), ("nothing new", again), ("nothing new, the push alone", alone)):
        for name in targets:
            ours = min(figures[name])
            print(f"{what + name:<40}{ours * 1e3:8.0f} ms   {best / ours:6.2f} x faster")


def alone_seconds(target: str, package: Path, to: Path) -> list[float]:
    figures = []
    with open_device(parse_target(target)) as device:
        for _ in range(AGAIN):
            started = time.monotonic()
            with Source(package) as source:
                report = push(device, source, str(to), watcher=Watcher())
            figures.append(time.monotonic() - started)
            assert not report.sent
    return figures


def link_to(port: int, mb_per_s: float | None) -> AbstractContextManager[int]:
    return nullcontext(port) if mb_per_s is None else slow_link(port, mb_per_s * 1e6)


def bench_ssh(folder: Path, package: Path, mb_per_s: float | None) -> None:
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True)
    server = Sshd(folder / "sshd", "/usr/sbin/sshd")
    server.start()
    with link_to(server.port, mb_per_s) as server.port:
        bench_server(server, home, folder, package)


def bench_server(server: Sshd, home: Path, folder: Path, package: Path) -> None:
    (server.folder / "authorized_keys").write_text(make_key(home / ".ssh/id_ed25519"))
    known = home / ".ssh/known_hosts"
    known.write_text(server.known_hosts_line())
    os.environ["HOME"] = str(home)
    master = Master(server, home)
    master.start()
    options = ["-q", "-F", "none", "-i", home / ".ssh/id_ed25519", "-o", f"UserKnownHostsFile={known}"]
    host = f"{server.user}@127.0.0.1"
    targets = {"": server.target, ", master": master.target}
    try:
        compare(
            folder, package, targets, lambda to: ["scp", *options, "-P", server.port, "-r", package, f"{host}:{to}"]
        )
        runs = {f"hexnpu run -- true{name}": [*HEXNPU, "run", "--target", target, "--target-dir", folder, "--", "true"]
                for name, target in targets.items()}  # fmt: skip
        runs["ssh true"] = ["ssh", *options, "-p", server.port, host, "true"]
        runs["ssh true, master"] = ["ssh", "-F", home / ".ssh/config", master.name, "true"]
        figures = {name: min(seconds(list(command)) for _ in range(AGAIN)) for name, command in runs.items()}
        for name, figure in figures.items():
            more = figure - figures["ssh true, master" if "master" in name else "ssh true"]
            print(f"{name:<40}{figure * 1e3:8.0f} ms   {more * 1e3:6.0f} ms more")
    finally:
        master.stop()
        server.stop()


def bench_adb(folder: Path, package: Path, mb_per_s: float | None) -> None:
    adb = Adb("adb", folder / "adb-home")
    adb.home.mkdir()
    adb.run("start-server")
    os.environ["ANDROID_ADB_SERVER_PORT"] = str(adb.port)
    try:
        direct = adb.connect(folder)
        with link_to(int(direct.rpartition(":")[2]), mb_per_s) as port:
            serial = f"127.0.0.1:{port}"
            adb.run("connect", serial)
            compare(folder, package, {"": f"adb:{serial}"}, lambda to: ["adb", "-s", serial, "push", package, to])
    finally:
        adb.run("kill-server")
        for device in adb.devices.values():
            device.kill()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--adb", action="store_true")
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--mib", type=int, default=200)
    parser.add_argument("--link", type=float, metavar="MB_PER_S")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["HEXNPU_CACHE"] = str(folder / "cache")
        # As installed: with compiled modules, whatever the environment says.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "pyc")
        make_package(folder / "pkg", options.files, options.mib << 20)
        python = min(seconds([sys.executable, "-c", "pass"]) for _ in range(AGAIN))
        link = f" over {options.link:g} MB/s" if options.link else ""
        print(f"{options.mib} MiB in {options.files} files{link}; python -c pass takes {python * 1e3:.0f} ms")
        (bench_adb if options.adb else bench_ssh)(folder, folder / "pkg", options.link)


if __name__ == "__main__":
    main()
