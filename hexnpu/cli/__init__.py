"""The command line: one module per command, which parses, prints and sets the exit code, and imports its work late."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hexnpu.errors import DISK_FULL, HexnpuError, one_line

# The base of what typer raises for wrong flags and arguments; it exports only the leaves.
CommandLineError: Any = typer.BadParameter.__mro__[2]

# What an output can fail with: the disk, its quota or its limit is full, the disk is broken or the terminal gone.
NOT_WRITTEN = (*DISK_FULL, errno.EFBIG, errno.EIO)

# Panel of `hexnpu --help` -> its commands: each a function in the module of its name, which imports what it needs in
# the function, so that every command starts fast.
PANELS = {
    "Compute": ("generate", "plan", "ops"),
    "Build, push, run": ("build", "push", "run", "devices", "doctor", "smoke"),
    "Profile": ("profile", "compare", "audit", "trace"),
    "Emulate the SDK": ("emulate", "emu-cc", "idl"),
}
RUNNERS = ("run", "emulate")
COMMANDS = {name: panel for panel, names in PANELS.items() for name in names}


def build_app(only: str | None = None) -> typer.Typer:
    """The application; with `only`, just that command is imported (the others cannot be called then)."""
    app = typer.Typer(
        name="hexnpu",
        help="Offload, deploy, profile and emulate tensor graphs for the Snapdragon Hexagon NPU.",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, panel in COMMANDS.items():
        if only in (None, name):
            function = name.replace("-", "_")
            module = importlib.import_module(f"hexnpu.cli.{function}")
            app.command(name, rich_help_panel=panel)(getattr(module, function))

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Say which hexnpu this is.")
        ] = False,
    ) -> None:
        """Keeps `hexnpu COMMAND` the form also where only one command is loaded."""

    return app


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"hexnpu {version('hexnpu')}")
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and exits: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    _open_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    command = arguments[0] if arguments and arguments[0] in COMMANDS else None
    try:
        if command == "emu-cc":  # a compiler's arguments are no business of typer's
            sys.exit(importlib.import_module("hexnpu.emucc.command").run(arguments[1:]))
        sys.exit(build_app(command)(args=arguments or ["--help"], prog_name="hexnpu", standalone_mode=False))
    except CommandLineError as error:
        usage = f"hexnpu {command} --help" if command else "hexnpu --help"
        # `hexnpu run ls -la`: the flag may be the program's.
        behind = "; what is for the program goes behind --" if command in RUNNERS and "--" not in arguments else ""
        print(f"hexnpu: {error.format_message()} (see: {usage}{behind})", file=sys.stderr)
        sys.exit(2)
    except HexnpuError as error:
        print(f"hexnpu: {error.shown()}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has gone (`hexnpu ... | head`); Python must not try to flush into it again.
        sys.stdout = None
        sys.exit(1)
    except PermissionError as error:
        what = one_line(str(error.filename or "a file"))
        print(f"hexnpu: {what}: {error.strerror}; mend its permissions, or name another", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.errno not in NOT_WRITTEN:
            raise
        what = one_line(str(error.filename or "the output"))
        print(f"hexnpu: cannot write {what}: {error.strerror}", file=sys.stderr)
        sys.stdout = None
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)


def _open_streams() -> None:
    """A closed stdout or stderr takes everything; what the encoding of an open one lacks comes as question marks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
