"""Runs one program of a package on a target: live output, input, log, time-out, and its end on Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import time
from typing import BinaryIO

from hexnpu.deploy.device import Command, Device
from hexnpu.deploy.errors import DeployError, TimedOut
from hexnpu.deploy.process import STDOUT, Process, start_thread
from hexnpu.deploy.signals import ended_by_signals

# How long to wait for output before the clock is looked at (and, on Windows, Ctrl-C is).
_TICK_S = 0.5


def run(
    device: Device, command: Command, *, stdout: BinaryIO, stderr: BinaryIO, log: BinaryIO | None = None,
    stdin: BinaryIO | None = None, timeout_s: float | None = None,
) -> int:  # fmt: skip
    """Its exit code. `log` gets a copy of both streams; without `stdin` the program reads end of file.

    Whatever ends this - Ctrl-C, SIGTERM, a time-out, a reader of stdout that went away - ends the program and its
    children first. Raises TimedOut, ConnectionLost and OSError of the streams.
    """
    with ended_by_signals():
        process = device.open(command)
        done = False
        try:
            start_thread(lambda: _feed(process, stdin))
            _follow(process, stdout, stderr, log, timeout_s, device.name)
            done = True
            return process.exit_code()
        finally:
            if not done:
                # Where the connection is lost nothing can be ended, and that is already the error.
                with contextlib.suppress(DeployError):
                    process.kill()
            process.close()


def _follow(
    process: Process, stdout: BinaryIO, stderr: BinaryIO, log: BinaryIO | None, timeout_s: float | None, name: str
) -> None:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        try:
            piece = process.read(_TICK_S if deadline is None else min(_TICK_S, max(0, deadline - time.monotonic())))
        except TimeoutError:
            piece = (STDOUT, b"")
        if piece is None:
            return
        if piece[1]:
            out = stdout if piece[0] == STDOUT else stderr
            out.write(piece[1])
            out.flush()
            if log:
                log.write(piece[1])
                log.flush()
        if deadline is not None and time.monotonic() >= deadline:
            raise TimedOut(f"{process.what} ran on {name} for more than {timeout_s:g} s and was ended (--timeout)")


def _feed(process: Process, stdin: BinaryIO | None) -> None:
    """Passes on what is typed or piped, as it comes."""
    if stdin is not None:
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(stdin.fileno(), 65536):
                process.write(data)
    process.close_stdin()
