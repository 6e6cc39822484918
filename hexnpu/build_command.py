"""The command line of `python -m hexnpu.server_build` and its kin, which print the path of what they build."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from hexnpu.errors import HexnpuError, UsageError
from hexnpu.native import DEFAULT_ARCH, Target, parse_arch, parse_flavour


def build_command(module: str, build: Callable[[Target], Path], *, has_arch: bool = True) -> None:
    """Builds for the flavour and the arch that the command line names, and exits as the other commands do."""
    words = sys.argv[1:]
    usage = f"usage: python -m hexnpu.{module} [FLAVOUR{' [ARCH]' if has_arch else ''}]"
    if words in (["-h"], ["--help"]):
        print(f"{usage}\n\nBuilds it where it has to be, and prints its path. FLAVOUR: release (default), asan, tsan.")
        return
    try:
        if len(words) > 1 + has_arch:
            raise UsageError(f"{words[1 + has_arch]!r} is one argument too many; {usage}")
        flavour, arch = [*words, *("release", str(DEFAULT_ARCH))[len(words) :]]
        print(build(Target(parse_flavour(flavour), parse_arch(arch, "ARCH"))))
    except HexnpuError as error:
        print(f"hexnpu: {error.shown()}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
