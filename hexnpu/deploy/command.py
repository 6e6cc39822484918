"""External commands: echoed, run with their output live, their exit code ours."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.process import fulfil_in_thread
from hexnpu.deploy.signals import ended_by_signals

# What a command and its children are given to end by themselves when we are ended.
END_TIMEOUT_S = 10.0
_TICK_S = 0.02


class CommandFailed(DeployError):
    """A command that was echoed has failed; its exit code is ours."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


def at_terminal() -> bool:
    """Whether somebody types what we read. Without a stdin (`<&-`) there is nobody."""
    return sys.stdin is not None and sys.stdin.isatty()


def echo(command: Sequence[str]) -> None:
    sys.stdout.flush()
    print(f"+ {shlex.join(command)}", file=sys.stderr, flush=True)


def run_echoed(
    command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> None:
    """Prints `+ command` to stderr and runs it in `folder`. `environment` holds defaults for what is not set yet.

    Raises CommandFailed with its exit code, 128 + n where signal n ended it. What ends us - Ctrl-C, SIGTERM, SIGHUP -
    ends the command first.
    """
    echo(command)
    # At a terminal Ctrl-C reaches all of its group. Elsewhere the command and its children are a group that we end.
    grouped = os.name == "posix" and not at_terminal()
    started: Future[subprocess.Popen[bytes]] = Future()

    def start() -> subprocess.Popen[bytes]:
        variables = {**(environment or {}), **os.environ}
        return subprocess.Popen(command, cwd=folder, env=variables, start_new_session=grouped)

    with ended_by_signals():
        try:
            # No signal comes between the command's start and our knowing of it.
            fulfil_in_thread(started, start)
            code = started.result().wait()
        except OSError as error:
            raise CommandFailed(f"cannot run {command[0]}: {error.strerror}", 127) from None
        except BaseException:
            if not started.cancel() and started.exception() is None:
                _end(started.result(), grouped)
            raise
    if code:
        code = 128 - code if code < 0 else code
        raise CommandFailed(f"{command[0]} failed with exit code {code}; the command stands above", code)


def _end(process: subprocess.Popen[bytes], grouped: bool) -> None:
    deadline = time.monotonic() + END_TIMEOUT_S
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM) if grouped else process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)
        # Its children may take longer.
        while grouped and _runs(process.pid) and time.monotonic() < deadline:
            time.sleep(_TICK_S)
        os.killpg(process.pid, signal.SIGKILL) if grouped else process.kill()


def _runs(group: int) -> bool:
    """Whether a process of it is left that is no zombie: init can be slow to reap, and in a container may never do so.
    Without /proc zombies count. Raises OSError where the group has gone."""
    os.killpg(group, 0)
    files = list(Path("/proc").glob("[0-9]*/stat"))
    for file in files:
        with contextlib.suppress(OSError):
            state, _, its_group = file.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group and state not in (b"Z", b"X"):
                return True
    return not files
