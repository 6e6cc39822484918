"""Packages, the folders that they are pushed to, and what interrupts a push."""

from __future__ import annotations

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
    path.write_bytes(data)
    path.chmod(mode)
    os.utime(path, (LONG_AGO, LONG_AGO))


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
