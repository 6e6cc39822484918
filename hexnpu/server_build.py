"""Builds the device server: the emulator's platform, the runtime, the server and every kernel there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hexnpu.build_command import build_command
from hexnpu.native import Target, compile_program, kernels_dir

DEVICE_FOLDERS = ("runtime", "kernels")
SERVER_FOLDERS = ("platform/emu", "platform/emu/hvx", *DEVICE_FOLDERS, "server", "server/fastrpc")


def device_sources() -> list[Path]:
    """The C files that a Hexagon device runs."""
    return _sources(DEVICE_FOLDERS)


def server_sources() -> list[Path]:
    """The C files of the server for this machine."""
    return _sources(SERVER_FOLDERS)


def _sources(folders: Sequence[str]) -> list[Path]:
    return [source for folder in folders for source in sorted((kernels_dir() / folder).glob("*.c"))]


def server_program(target: Target | None = None) -> Path:
    """The path of htp-server for a flavour and arch, built first where it has to be. Raises BuildError."""
    return compile_program("htp-server", server_sources(), target)


if __name__ == "__main__":
    build_command("server_build", server_program)
