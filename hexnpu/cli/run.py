"""`hexnpu run`: a program of the pushed package on a target. deploy/environment.py has the table of its flags."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from hexnpu.cli import nonempty, package_options
from hexnpu.deploy.environment import FLAGS, EnvFlag

if TYPE_CHECKING:
    from hexnpu.deploy.device import Command
    from hexnpu.deploy.targets import Target


NOT_FOUND = 127  # of a shell, env or loader


def _run(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND ARGS...", help="A tool of the package, or any program.")
    ] = None,
    target: package_options.Target = None,
    source: package_options.Source = None,
    install_dir: Annotated[
        Path | None, typer.Option(parser=nonempty.path, help="Package folder of a run on this machine.")
    ] = None,
    target_dir: Annotated[
        str | None, typer.Option(parser=nonempty.text, help="Where the package is on the target.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="The -dbg package of a run on this machine.")] = False,
    devices: Annotated[
        str | None,
        typer.Option("--devices", "--device", "-d", help="HTP0,HTP1 ... or how many sessions.", show_default="HTP0"),
    ] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable; repeatable.")] = None,
    print_only: Annotated[bool, typer.Option("--print", help="Show the exact remote command; run nothing.")] = False,
    log: Annotated[
        Path | None, typer.Option(parser=nonempty.path, help="Keep a copy of the output in this file.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="S", help="End it after S seconds (124).")] = None,
    accept_new_host_key: package_options.AcceptNewHostKey = False,
    **flags: Any,
) -> None:
    """Run a tool of the pushed package on the target: live output, its exit code."""
    from hexnpu.deploy.device import Command, printed_command
    from hexnpu.deploy.quoting import encode
    from hexnpu.deploy.run import has_input
    from hexnpu.deploy.targets import parse_target
    from hexnpu.errors import UsageError

    if not command:
        print(context.get_help())
        sys.exit(2)
    if timeout is not None and not 0 < timeout < math.inf:  # NaN is neither
        raise UsageError(f"--timeout {timeout:g}: give a number of seconds above 0, or leave it out")
    where = parse_target(target)
    given = {flag.name: flags[flag.parameter] for flag in FLAGS}
    argv, variables = _line(command, where, devices, given, env or [])
    directory = _directory(where, source, install_dir, target_dir, debug)
    has_stdin = sys.stdin is not None and has_input(sys.stdin.buffer)
    # Over ADB one stream: profile lines come by stderr, results by stdout, and their order is kept.
    merge = where.kind == "android"
    program = Command(argv, directory, variables, core_dumps=True, merge=merge, has_input=has_stdin)
    if print_only:
        # Bytes: a name need not be UTF-8, and the encoding of a terminal may lack what one has.
        sys.stdout.buffer.write(encode(printed_command(where, program)) + b"\n")
    else:
        sys.exit(_execute(where, program, log, timeout, accept_new_host_key))


def _line(
    command: list[str], target: Target, devices: str | None, given: dict[str, Any], env: list[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Argument list and environment."""
    from hexnpu.deploy.environment import run_environment
    from hexnpu.deploy.tools import TALKATIVE, arguments_for

    variables, names = run_environment(devices, given, env, os.environ)
    talkative = any(given.get(name) for name in TALKATIVE)
    windows = target.kind == "windows" or (target.here and os.name == "nt")
    return arguments_for(command, names, talkative, windows), variables


def _directory(
    target: Target, source: Path | None, install_dir: Path | None, target_dir: str | None, debug: bool
) -> str:
    from hexnpu.deploy import package

    if target_dir is not None:
        return target_dir
    if not target.here:
        return package.target_dir(target, package.package_tree(source))
    # Absolute, as a device takes what is relative for a path below the home.
    if install_dir is not None:
        return str(package.package_root(install_dir).absolute())
    return str(package.local_package(package.package_tree(source), debug).absolute())


def _execute(
    target: Target, program: Command, log: Path | None, timeout_s: float | None, accept_new_host_key: bool
) -> int:
    from hexnpu.deploy import run
    from hexnpu.deploy.device import open_device
    from hexnpu.errors import one_line

    with _log(log) as copy, open_device(target, accept_new_host_key=accept_new_host_key) as device:
        if copy and stat.S_ISREG(os.fstat(copy.fileno()).st_mode):
            copy.truncate(0)
        code = run.run(
            device, program, stdout=sys.stdout.buffer, stderr=sys.stderr.buffer, log=copy,
            stdin=sys.stdin.buffer if program.has_input else None, timeout_s=timeout_s,
        )  # fmt: skip
        if code == NOT_FOUND and (sentence := run.missing_tool(device, program)):
            print(f"hexnpu: {one_line(sentence)}", file=sys.stderr)
        return code


def _log(file: Path | None) -> contextlib.AbstractContextManager[BinaryIO | None]:
    """Open, with what it had: that goes only when there is a connection."""
    from hexnpu.errors import UsageError

    try:
        return file.open("ab") if file else contextlib.nullcontext()
    except OSError as error:
        raise UsageError(f"--log {file}: {error.strerror}; name a file in a folder that you may write") from None


def _parameter(flag: EnvFlag) -> inspect.Parameter:
    sets = [f"{name}={flag.value}" if flag.value else name for name in flag.variables]
    sets += [f"{name}={value}" for name, value in flag.also]
    what = f"{flag.help} ({', '.join(sets)})"
    if flag.value is not None:
        switch = Annotated[bool, typer.Option(f"--{flag.name}", help=what)]
        return inspect.Parameter(flag.parameter, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=switch)
    option = typer.Option(f"--{flag.name}", metavar="V", help=what, show_default=flag.default or False)
    value = Annotated[str | None, option]
    return inspect.Parameter(flag.parameter, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=value)


def _with_flags() -> None:
    """Typer reads a command's options from its signature: the table's flags take the place of **flags."""
    signature = inspect.signature(_run, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    all_parameters = own + [_parameter(flag) for flag in FLAGS]
    _run.__annotations__ = {p.name: p.annotation for p in all_parameters} | {"return": None}
    _run.__signature__ = signature.replace(parameters=all_parameters)  # type: ignore[attr-defined]


_with_flags()
run = _run
