"""Errors that a user can mend. The command line prints their text as one line and exits with `exit_code`."""

from __future__ import annotations


class HexnpuError(Exception):
    """Something outside the program is wrong; the text says what, where and what to do."""

    exit_code = 1


class UsageError(HexnpuError):
    """A flag, a name or an argument that cannot be taken."""

    exit_code = 2


class BuildError(HexnpuError):
    """The native parts could not be built."""
