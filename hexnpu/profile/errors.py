"""Errors of the profiler that a user can mend."""

from __future__ import annotations

from hexnpu.errors import HexnpuError


class LogError(HexnpuError):
    """The log cannot be used: missing, not a log, or without one usable line. Exit code 1."""
