"""Where built parts are kept, and for which processor. Light, so that finding a built part costs no start-up time."""

from __future__ import annotations

import functools
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path

from hexnpu.errors import DISK_FULL, BuildError


def cache_dir() -> Path:
    """`HEXNPU_CACHE`, or ~/.cache/hexnpu."""
    return Path(os.environ.get("HEXNPU_CACHE") or Path.home() / ".cache" / "hexnpu")


def cached_folder(folder: Path, fill: Callable[[Path], None]) -> Path:
    """`folder`, of the cache and named by what is in it. Where it is not there yet `fill` is given an empty one; it
    appears whole, by a rename, and the first of several processes wins. Raises BuildError."""
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as scratch:
            made = Path(scratch) / folder.name
            made.mkdir()
            fill(made)
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    except OSError as error:
        raise cache_error(error) from None
    return folder


def cache_error(error: OSError) -> BuildError:
    remedy = "free some space or set HEXNPU_CACHE" if error.errno in DISK_FULL else "set HEXNPU_CACHE to another folder"
    return BuildError(f"cannot write the build cache {cache_dir()}: {error.strerror}; {remedy}")


@functools.lru_cache
def cpu_features() -> str:
    """The processor's features as the kernel lists them: part of the name of whatever is built for it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    for line in lines:
        if line.startswith(("flags", "Features")):
            return line.partition(":")[2].strip()
    return platform.processor()
