"""Runs one program of a package on a target: live output, input, log, time-out, and its end on Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import time
from concurrent.futures import Future, wait
from typing import BinaryIO

from hexnpu.deploy.device import Command, Device
from hexnpu.deploy.errors import DeployError, TimedOut
from hexnpu.deploy.posix import ANSWER_S, EXPAND, what
from hexnpu.deploy.process import STDOUT, Process, fulfil_in_thread, start_thread
from hexnpu.deploy.signals import ended_by_signals, ignored_signals
from hexnpu.deploy.tools import TOOLS

# How long to wait for output before the clock is looked at (and, on Windows, Ctrl-C is).
_TICK_S = 0.5


class NotEnded(DeployError):
    """We end with the exit code that we had a reason for, but the program may go on."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


def has_input(stdin: BinaryIO) -> bool:
    """False for /dev/null and for a file that is read to its end; of a pipe or a terminal nobody knows."""
    try:
        info = os.fstat(stdin.fileno())
        if stat.S_ISREG(info.st_mode):
            return os.lseek(stdin.fileno(), 0, os.SEEK_CUR) < info.st_size
        # (Windows numbers no devices; there its NUL passes for a terminal.)
        null = stat.S_ISCHR(info.st_mode) and info.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116
        return stdin.isatty() or not null
    except (OSError, ValueError):
        return False


def run(
    device: Device, command: Command, *, stdout: BinaryIO, stderr: BinaryIO, log: BinaryIO | None = None,
    stdin: BinaryIO | None = None, timeout_s: float | None = None,
) -> int:  # fmt: skip
    """Its exit code. `log` gets a copy of both streams; without `stdin` the program reads end of file.

    Whatever ends this - Ctrl-C, SIGTERM, a time-out, a reader of stdout that went away - ends the program and its
    descendants first. Raises TimedOut, NotEnded, ConnectionLost and OSError of the streams.
    """
    with ended_by_signals():
        opening: Future[Process] = Future()
        try:
            # No signal comes between the program's start and our knowing of it.
            fulfil_in_thread(opening, lambda: device.open(command))
            process = opening.result()
            start_thread(lambda: _feed(process, stdin))
            _follow(process, stdout, stderr, log, timeout_s, device.name)
            process.close()
            return process.exit_code()
        except BaseException as reason:
            with ignored_signals():
                _end(opening, command, device.name, reason)
            raise


def missing_tool(device: Device, command: Command) -> str | None:
    """A sentence, if the program is one of the tools that lie in ./bin and is not there: for exit code 127, which can
    have other reasons."""
    name = command.argv[0].removeprefix("./bin/")
    if name not in TOOLS or not device.posix:
        return None
    try:
        there = device.shell(f'd=$1; {EXPAND}; test -e "$d/bin/$2"', command.directory, name, timeout_s=ANSWER_S)
    except DeployError:
        return None
    if there.code != 1:
        return None
    whose = "this project's" if name == "htp-server" else "a llama.cpp"
    return (
        f"no {name} in {command.directory}/bin on {device.name}: push {whose} package there (hexnpu push), "
        "or name the folder that has it (--source, --target-dir)"
    )


def _end(opening: Future[Process], command: Command, name: str, reason: BaseException) -> None:
    if opening.cancel():
        return
    try:
        wait([opening], ANSWER_S)
        if not opening.done():
            raise DeployError(f"{name} does not answer")
        if opening.exception():
            return  # nothing was started
        try:
            opening.result().kill()
        finally:
            opening.result().close()
    except DeployError as error:
        # Any other reason is an error that will be told, such as a lost connection.
        if isinstance(reason, KeyboardInterrupt | SystemExit | TimedOut):
            text = f"{what(command)} could not be ended on {name} and may still run there: {error}"
            raise NotEnded(text, _exit_code(reason)) from None


def _exit_code(reason: KeyboardInterrupt | SystemExit | TimedOut) -> int:
    if isinstance(reason, KeyboardInterrupt):
        return 130
    return reason.exit_code if isinstance(reason, TimedOut) else int(reason.code or 0)


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
        _write(stdout if piece[0] == STDOUT else stderr, piece[1])
        if log:
            _write(log, piece[1], str(log.name))
        if deadline is not None and time.monotonic() >= deadline:
            raise TimedOut(f"{process.what} ran on {name} for more than {timeout_s:g} s and was ended (--timeout)")


def _write(stream: BinaryIO, data: bytes, name: str | None = None) -> None:
    """All of it at once, also into a pipe that does not block. An OSError has the file's name."""
    left = memoryview(data)
    try:
        while left:
            try:
                left = left[os.write(stream.fileno(), left) :]
            except BlockingIOError:
                select.select([], [stream], [])
    except OSError as error:
        error.filename = name
        raise


def _feed(process: Process, stdin: BinaryIO | None) -> None:
    """Passes on what is typed or piped, as it comes."""
    if stdin is not None:
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(stdin.fileno(), 65536):
                process.write(data)
    process.close_stdin()
