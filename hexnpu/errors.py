"""Errors that a user can mend. The command line prints their text as one line and exits with `exit_code`."""

from __future__ import annotations

import errno

# A full disk, or a quota that is.
DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class HexnpuError(Exception):
    """Something outside the program is wrong; the text says what, where and what to do."""

    exit_code = 1

    def shown(self) -> str:
        """The text as a command line prints it: one line, and harmless to a terminal."""
        return one_line(str(self))


def one_line(text: str) -> str:
    """Names, and what targets print, can hold anything: what would break the line or steer a terminal comes escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


class UsageError(HexnpuError):
    """A flag, a name or an argument that cannot be taken."""

    exit_code = 2


class BuildError(HexnpuError):
    """The native parts could not be built. The only text of several lines: what the compiler said follows."""

    def shown(self) -> str:
        return str(self)


class DeviceError(HexnpuError):
    """The device server refused a request or a batch; the text is its own sentence."""


class SessionLost(HexnpuError):
    """The server behind a session died or went silent. `stderr` holds the end of what it printed."""

    def __init__(self, text: str, stderr: str = "") -> None:
        super().__init__(text)
        self.stderr = stderr


class GroupLost(SessionLost):
    """A rank of a group died, was refused an op or waited in vain; the group is closed. The text names the rank."""
