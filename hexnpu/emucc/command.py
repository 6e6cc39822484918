"""The command `hexnpu emu-cc`, without typer: a build calls it once a source."""

from __future__ import annotations

import sys

from hexnpu.emucc.driver import main
from hexnpu.errors import HexnpuError


def run(arguments: list[str]) -> int:
    """The command itself, on arguments as they were typed; gives the exit code."""
    if not arguments or arguments in (["--help"], ["-h"]):
        print(_HELP)
        return 0 if arguments else 2
    plus = arguments[0] == "c++"
    try:
        return main(arguments[1:] if plus else arguments, plus)
    except HexnpuError as error:
        print(f"emu-cc: error: {error}", file=sys.stderr)
        return 1


_HELP = """usage: hexnpu emu-cc [c++] COMPILER-ARGUMENTS...
       hexnpu emu-cc --sdk-root

A stand-in for hexagon-clang (c++: hexagon-clang++) that compiles DSP sources for the emulator and links DSP libraries.
Inline assembly is translated; flags that choose the DSP's code are dropped. See docs/emu-cc.md.

  -mv79, -mcpu=hexagonv79 ...  the arch: v60 to v81 (default v79); HVX is modelled for v73, v75, v79 and v81
  -c, -S, -E, -shared, -o ...  as everywhere
  --sdk-root                   prints the path of a folder in the shape of the Hexagon SDK, for CMake builds:
                               HEXAGON_SDK_ROOT, its tools folder HEXAGON_TOOLS_ROOT, toolchain file hexnpu-emu.cmake"""
