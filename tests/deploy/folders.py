"""Packages, the folders that they are pushed to, and what interrupts a push."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from hexnpu.deploy.push import Report, Watcher

Push = Callable[..., Report]
# Older than what counts as just written, so that sums are remembered.
LONG_AGO = 1_600_000_000


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.chmod(0o600)  # who is not root writes no file of 0444
    path.write_bytes(data)
    path.chmod(mode)
    os.utime(path, (LONG_AGO, LONG_AGO))


def odd_package(root: Path) -> Path:
    """All kinds of names, modes and contents."""
    write(root / "bin/tool", b"\x7fELF tool", 0o755)
    write(root / "bin/script", b"#!/bin/sh\n", 0o750)
    write(root / "lib/it's a $lib; x", b"lib", 0o644)
    write(root / "lib/new\nline", b"newline", 0o640)
    write(root / "lib/\udcffbytes", b"not utf-8", 0o600)
    write(root / "lib/-rf", b"dash", 0o644)
    write(root / "big", os.urandom(3 << 20), 0o444)
    write(root / "empty", b"", 0o644)
    (root / "lib/libx.so").symlink_to("it's a $lib; x")
    (root / "bin/up").symlink_to("../lib")
    (root / "nothing in here").mkdir()
    return root


def tree(root: Path) -> dict[str, object]:
    """Everything in a folder but push's own state."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith(".hexnpu"):
            continue
        if path.is_symlink():
            found[name] = os.readlink(path)  # noqa: PTH115
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return found


def state_of(to: Path) -> set[str]:
    """What push keeps there for itself."""
    return {path.name for path in (to / ".hexnpu").iterdir()}


class Interrupts(Watcher):
    """Ctrl-C after so many bytes."""

    def __init__(self, after: int) -> None:
        self.left = after

    def bytes(self, n_bytes: int) -> None:
        self.left -= n_bytes
        if self.left <= 0:
            raise KeyboardInterrupt
