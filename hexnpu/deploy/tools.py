"""What `hexnpu run` knows of the programs of a package: where they lie, and the arguments that they get unasked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """`defaults`: (the names of an argument, what to add where none of them is given)."""

    name: str
    device_flags: tuple[str, ...] = ()
    defaults: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    verbose: bool = False


# Flags of `hexnpu run` for output that the llama tools print only with -v.
TALKATIVE = ("verbose", "profile", "sched-debug", "hex-verbose", "hex-profile", "hex-optrace")

_DEVICE = ("--device", "-dev")
_THREADS = (("-t", "--threads"), ("-t", "6"))
_GENERATE = (
    (("-ngl", "--gpu-layers", "--n-gpu-layers"), ("-ngl", "99")),
    (("-ub", "--ubatch-size"), ("--ubatch-size", "1024")),
    (("-fa", "--flash-attn"), ("-fa", "on")),
    _THREADS,
)

TOOLS = {
    tool.name: tool
    for tool in (
        Tool("llama-cli", _DEVICE, _GENERATE, verbose=True),
        Tool("llama-completion", _DEVICE, _GENERATE, verbose=True),
        Tool("llama-server", _DEVICE, _GENERATE, verbose=True),
        Tool("llama-bench", _DEVICE, (_THREADS,), verbose=True),
        Tool("llama-mtmd-cli", _DEVICE, verbose=True),
        Tool("test-backend-ops", ("-b",)),
        Tool("htp-server"),
    )
}


def arguments_for(
    command: Sequence[str], device_names: Sequence[str], talkative: bool, windows: bool
) -> tuple[str, ...]:
    """The argument list that runs on the target. A command that is none of the tools stays as it is.

    `device_names`: for a tool's own --device; where there are none, it gets no such argument.
    `talkative`: whether one of TALKATIVE is given.
    """
    name, *arguments = command
    tool = TOOLS.get(name.removesuffix(".exe") if windows else name)
    if tool is None:
        return tuple(command)
    if tool.name == "test-backend-ops":
        arguments = _escape_pattern(arguments)
    added: list[str] = []
    if tool.device_flags and device_names and not _given(arguments, tool.device_flags):
        added += [tool.device_flags[0], ",".join(device_names)]
    for names, words in tool.defaults:
        if not _given(arguments, names):
            added += words
    if tool.verbose and talkative and not _given(arguments, ("-v", "--verbose")):
        added.append("-v")
    return (f"./bin/{tool.name}{'.exe' if windows else ''}", *added, *arguments)


def _given(arguments: Sequence[str], names: tuple[str, ...]) -> bool:
    return any(argument.partition("=")[0] in names for argument in arguments)


def _escape_pattern(arguments: Sequence[str]) -> list[str]:
    """Square brackets after -p: they stand in the names of test cases, and the tool reads a regular expression."""
    pattern_next = [False, *(argument == "-p" for argument in arguments)]
    return [
        re.sub(r"(?<!\\)([\[\]])", r"\\\1", argument) if is_pattern else argument
        for argument, is_pattern in zip(arguments, pattern_next, strict=False)
    ]
