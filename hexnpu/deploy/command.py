"""External commands: echoed, run with their output live, their exit code ours."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hexnpu.deploy.errors import DeployError

# What a command is given to end by itself after Ctrl-C, which the terminal sent to it as well.
END_TIMEOUT_S = 10.0


class CommandFailed(DeployError):
    """A command that was echoed has failed; its exit code is ours."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.exit_code = code


def run_echoed(
    command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> None:
    """Prints `+ command` to stderr and runs it in `folder`. `environment` holds defaults for what is not set yet.

    Raises CommandFailed with its exit code, 128 + n where signal n ended it.
    """
    sys.stdout.flush()
    print(f"+ {shlex.join(command)}", file=sys.stderr, flush=True)
    try:
        process = subprocess.Popen(command, cwd=folder, env={**(environment or {}), **os.environ})
    except OSError as error:
        raise CommandFailed(f"cannot run {command[0]}: {error.strerror}", 127) from None
    try:
        code = process.wait()
    except KeyboardInterrupt:
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    if code:
        code = 128 - code if code < 0 else code
        raise CommandFailed(f"{command[0]} failed with exit code {code}; the command stands above", code)
