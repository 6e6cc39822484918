"""What `profile`, `trace`, `compare` and `audit` share: the way into the profiler."""

from __future__ import annotations

import ctypes
import os
import sys
from types import ModuleType

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def load() -> ModuleType:
    """hexnpu.profile.run, with numpy's arrays kept in the heap and its BLAS, which nothing here uses, without threads.

    Threads at import and large arrays handed back to the kernel one by one would take a fifth of a run.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it, musl does not
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, 1 << 30)
            mallopt(_M_TRIM_THRESHOLD, 1 << 30)
    from hexnpu.profile import run

    return run
