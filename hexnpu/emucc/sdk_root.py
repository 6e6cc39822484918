"""A folder in the shape of the Hexagon SDK, so that CMake trees written for the SDK build for the emulator.

What such trees ask for: the functions of build/cmake/hexagon_fun.cmake, headers under incs/, the compilers under
tools/Tools/bin. The folder holds small files of our own and links to the emulator's headers. It is named by a hash of
its contents, and appears by a rename.
"""

from __future__ import annotations

import hashlib
import itertools
import shlex
import sys
from pathlib import Path

from hexnpu.cache import cache_dir, cached_folder
from hexnpu.native import ARCHS, kernels_dir

_CMAKE = Path(__file__).resolve().parent / "cmake"
_HEADER_FOLDERS = ("incs", "incs/stddef", "ipc/fastrpc/incs", "ipc/fastrpc/rpcmem/inc", "rtos/qurt", "utils/examples")
_TOOLS = "tools/Tools/bin"
# Libraries of the DSP that trees name by path: empty files, which the linker leaves out (arguments.py).
_LIBRARIES = "tools/Tools/target/hexagon/lib/v{arch}/G0/pic/{name}"
_LIBRARY_NAMES = ("libc++.so.1", "libc++abi.so.1", "libc.so", "libgcc.so")


def sdk_root() -> Path:
    """The folder, made if it is not in the cache yet."""
    files, links = _files(), _links()
    digest = hashlib.sha256(repr((sorted(files.items()), sorted(links.items()))).encode()).hexdigest()[:20]
    return cached_folder(cache_dir() / "sdk" / digest, lambda folder: _make(folder, files, links))


def _make(root: Path, files: dict[str, tuple[str, bool]], links: dict[str, str]) -> None:
    for name, (text, executable) in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if executable:
            path.chmod(0o755)
    for name, target in links.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def _files() -> dict[str, tuple[str, bool]]:
    """Name -> text, and whether it is a program."""
    python = shlex.quote(sys.executable)
    package = shlex.quote(str(Path(__file__).resolve().parents[2]))
    # A checkout is found whatever Python's path is; an installed package is found anyway.
    environment = "" if "site-packages" in package else f"PYTHONPATH={package}${{PYTHONPATH:+:$PYTHONPATH}} "

    def script(command: str) -> tuple[str, bool]:
        return f'#!/bin/sh\n{environment}exec {python} {command} "$@"\n', True

    files = {
        f"{_TOOLS}/hexagon-clang": script("-m hexnpu.emucc"),
        f"{_TOOLS}/hexagon-clang++": script("-m hexnpu.emucc c++"),
        f"{_TOOLS}/hexagon-ar": script("-m ziglang ar"),
        f"{_TOOLS}/hexagon-ranlib": script("-m ziglang ranlib"),
        "bin/hexnpu": script("-m hexnpu"),
        "hexagon_sdk.json": ('{"root": {"tools": {"info": [{"path": "tools"}]}}}\n', False),
    }
    for arch, name in itertools.product(ARCHS, _LIBRARY_NAMES):
        files[_LIBRARIES.format(arch=arch, name=name)] = ("", False)
    files["utils/half.h"] = ((_CMAKE / "half.h").read_text(), False)
    for source in sorted(_CMAKE.glob("*.cmake")):
        folder = "" if source.name == "hexnpu-emu.cmake" else "build/cmake/"
        files[folder + source.name] = (source.read_text(), False)
    return files


def _links() -> dict[str, str]:
    """Name -> the header or IDL file that it links to."""
    sdk = kernels_dir() / "platform/hexagon/sdk"
    emu = kernels_dir() / "platform/emu"
    headers = {h.name: str(h) for h in sorted(sdk.iterdir()) if h.suffix in (".h", ".idl")}
    links = {f"{folder}/{name}": target for folder in _HEADER_FOLDERS for name, target in headers.items()}
    links[f"{_TOOLS}/../include/hexagon_types.h".replace("bin/../", "")] = str(emu / "hexagon_types.h")
    return links
