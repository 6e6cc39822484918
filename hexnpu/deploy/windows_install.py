"""The runner on a Windows target: built from windows_runner.c by zig, kept as ~/.hexnpu/run-DIGEST.exe there."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path

from hexnpu.cache import cache_dir, cached_folder
from hexnpu.deploy.errors import DeployError

SOURCE = Path(__file__).with_name("windows_runner.c")
# What %PROCESSOR_ARCHITECTURE% says -> what zig calls it.
MACHINES = {"ARM64": "aarch64", "AMD64": "x86_64"}


def runner_name() -> str:
    return f"run-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.exe"


def built_runner(machine: str) -> Path:
    """The runner for a machine that zig knows by this name; built once."""
    name = runner_name()
    folder = cache_dir() / "windows" / machine / Path(name).stem
    return cached_folder(folder, lambda made: compile_program(SOURCE, machine, made / name)) / name


def compile_program(source: Path, machine: str, out: Path, libraries: tuple[str, ...] = ("kernel32",)) -> None:
    """A program of one file that needs no C library and starts at `runner`."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise DeployError("programs on Windows are started by a small one that ziglang builds: pip install ziglang")
    zig = Path(spec.origin).parent
    command: list[str | Path] = [
        zig / ("zig.exe" if os.name == "nt" else "zig"), "cc", "-target", f"{machine}-windows-gnu", "-std=gnu11",
        "-Os", "-s", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-nostdlib",
        "-isystem", zig / "lib/libc/include/any-windows-any", "-Wl,-e,runner", "-Wl,--subsystem,console",
        *(f"-l{library}" for library in libraries), "-o", out, source,
    ]  # fmt: skip
    # Two zigs that compile the same source at once would read each other's half-written files.
    with tempfile.TemporaryDirectory() as own:
        caches = {"ZIG_GLOBAL_CACHE_DIR": str(cache_dir() / "zig"), "ZIG_LOCAL_CACHE_DIR": own}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=os.environ | caches)
    if done.returncode:
        raise DeployError(f"zig did not build {source}: {done.stderr.strip().partition(chr(10))[0]}")
