"""Runs a host program with the FastRPC stand-in in its loader path, and counts what it did."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hexnpu.emulator_build import emulator_folder
from hexnpu.errors import UsageError
from hexnpu.native import DEFAULT_ARCH

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # exit codes as a shell has them
_COUNTERS = struct.Struct("<5Q")  # struct fr_counters of platform/fastrpc/shared.h
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)


@dataclass(frozen=True)
class Machine:
    """What the emulated device has; None: what the caller's environment says, else the stand-in's default."""

    arch: int | None = None
    hvx: int | None = None
    hmx: int | None = None
    vtcm_mib: int | None = None
    npus: int | None = None

    def environment(self) -> dict[str, str]:
        values = {
            "HEXNPU_EMU_ARCH": self.arch,
            "HEXNPU_EMU_HVX": self.hvx,
            "HEXNPU_EMU_HMX": self.hmx,
            "HEXNPU_EMU_VTCM": self.vtcm_mib,
            "HEXNPU_EMU_NPUS": self.npus,
        }
        return {name: str(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Counters:
    """Of all processes of a run."""

    sessions: int = 0
    calls: int = 0
    packets: int = 0
    bytes_mapped: int = 0
    faults: int = 0

    def __str__(self) -> str:
        counts = [(self.sessions, "session"), (self.calls, "call"), (self.packets, "queue packet")]
        texts = [_count(n, name) for n, name in counts]
        return ", ".join([*texts, f"{_size(self.bytes_mapped)} mapped", _count(self.faults, "fault")])


def _count(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"


def _size(n: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= factor:
            return f"{n / factor:.1f} {unit}"
    return f"{n} B"


def loader_environment(machine: Machine, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that make a program meet the stand-in. Builds it where it has to be: raises BuildError."""
    rest = inherited.get("LD_LIBRARY_PATH")
    path = str(emulator_folder())
    # Always set: it tells a hexnpu that runs as the program that its NPU is this one.
    arch = inherited.get("HEXNPU_EMU_ARCH") or str(DEFAULT_ARCH)
    paths = {"LD_LIBRARY_PATH": f"{path}:{rest}" if rest else path}
    return {"HEXNPU_EMU_ARCH": arch} | machine.environment() | paths


def run_emulated(command: Sequence[str], machine: Machine) -> tuple[int, Counters]:
    """Runs `command` with our own streams; its exit code (128 + n where signal n ended it) and what it did.

    Signals that reach us reach it. Raises UsageError where there is no such program.
    """
    program = shutil.which(command[0])
    if not program:
        found = Path(command[0]).exists()
        raise ProgramError(
            f"{command[0]} is not executable: chmod +x it" if found
            else f"there is no program {command[0]}: give its path, or put its folder into PATH",
            NOT_EXECUTABLE if found else NOT_FOUND,
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="hexnpu-emulate-") as folder:
        summary = Path(folder) / "summary"
        summary.write_bytes(bytes(mmap.PAGESIZE))
        variables = loader_environment(machine, os.environ) | {"HEXNPU_EMU_SUMMARY": str(summary)}
        with _forwarded_signals() as forward_to:
            try:
                process = subprocess.Popen([program, *command[1:]], env=os.environ | variables)
            except OSError as error:
                raise ProgramError(f"cannot run {program}: {error.strerror}", NOT_EXECUTABLE) from None
            forward_to(process)
            code = process.wait()
        return 128 - code if code < 0 else code, read_counters(summary)


class ProgramError(UsageError):
    """The program to run cannot be run."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


def read_counters(summary: Path) -> Counters:
    return Counters(*_COUNTERS.unpack_from(summary.read_bytes()))


@contextlib.contextmanager
def _forwarded_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Gives a function that says to which program; what comes earlier waits for it. Ctrl-C reaches the program by the
    terminal, so it is left to it; what is sent to us alone is passed on."""
    program: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, frame: object) -> None:
        program[0].send_signal(number) if program else early.append(number)

    def forward_to(process: subprocess.Popen[bytes]) -> None:
        program.append(process)
        for number in early:
            process.send_signal(number)

    if threading.current_thread() is not threading.main_thread():
        yield forward_to
        return
    before = {number: signal.signal(number, pass_on) for number in _FORWARDED}
    # (SIG_IGN would be inherited.)
    before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield forward_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
