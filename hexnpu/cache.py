"""Where built parts are kept, and for which processor. Light, so that finding a built part costs no start-up time."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path


def cache_dir() -> Path:
    """`HEXNPU_CACHE`, or ~/.cache/hexnpu."""
    return Path(os.environ.get("HEXNPU_CACHE") or Path.home() / ".cache" / "hexnpu")


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
