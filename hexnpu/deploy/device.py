"""What a device can do for push, run, doctor and smoke; `open_device` gives the one behind a target.

A device runs programs (`open`: live streams, cancellation) and takes files (`upload`). Everything else on a POSIX
device - listing, free space, renaming, removing - is a shell script that `shell` runs, the same for all transports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from hexnpu.deploy.process import Process
from hexnpu.deploy.targets import Target
from hexnpu.errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class Command:
    """A program and its arguments, word for word: no shell of the target interprets any of it.

    `directory` is where it runs (a leading `~` is the user's home there; relative means relative to it);
    `merge` sends stderr into stdout, so that the order of what is printed is kept. Without `has_input` it reads end of
    file, also where a device has no way to tell it of one. `title` is how messages call it, if not by its arguments.
    """

    argv: tuple[str, ...]
    directory: str = "~"
    environment: Mapping[str, str] = field(default_factory=dict)
    core_dumps: bool = False
    merge: bool = False
    has_input: bool = True
    title: str | None = None


@dataclass(frozen=True)
class Result:
    """What a short program left: exit code (128 + n after signal n) and its output."""

    code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Upload:
    """One file or symlink on its way: `path` is relative to the upload's directory and may need folders made.

    `chunks` gives exactly `size` bytes, a symlink's being its target; `mtime` is in seconds.
    """

    path: str
    size: int
    mtime: int
    chunks: Callable[[], Iterator[bytes]]
    symlink: bool = False


class Device(Protocol):
    """A machine that programs can be put on and run on. Close it after use (it is a context manager)."""

    target: Target
    # "android:SERIAL", "linux:user@host", "this machine": how messages call it.
    name: str
    # False on Windows: no `shell`.
    posix: bool

    def open(self, command: Command) -> Process:
        """Starts a program; its streams are live. Raises DeployError where the connection or the directory fails."""

    def shell(self, script: str, *arguments: str, timeout_s: float = 60) -> Result:
        """Runs a POSIX sh script with `$1`... in the home directory, and waits for its end."""

    def checked_shell(self, what: str, script: str, *arguments: str, timeout_s: float = 60) -> bytes:
        """Its output. Where it fails, the error that fits what it printed, about `what`."""

    def upload(self, directory: str, files: Iterable[Upload], sent: Callable[[int], None]) -> None:
        """Writes files below `directory` (which may begin with ~), making folders; calls `sent(bytes)` as they go.

        Files are created or replaced in place: whoever needs them atomic uploads beside them and renames.
        """

    def pull(self, path: str, to: Path) -> None:
        """Copies one file of the target to this machine: there it is whole, or not at all."""

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None: ...


def printed_command(target: Target, command: Command) -> str:
    """What `open` hands to the target's shell, word for word; for this machine, how a shell would be told the same."""
    if target.here:
        from hexnpu.deploy.local import shell_line

        return shell_line(command)
    if target.kind == "windows":
        from hexnpu.deploy.windows import printed

        return printed(command)
    from hexnpu.deploy.posix import wrap
    from hexnpu.deploy.quoting import join

    return join(wrap(command))


def open_device(target: Target, *, accept_new_host_key: bool = False) -> Device:
    """Connects. Raises the errors of `hexnpu.deploy.errors`, one line each with its remedy."""
    if target.kind == "windows" and target.host is None and os.name != "nt":
        raise UsageError(f"{target}: this machine runs no Windows; name a host (windows:[user@]host)")
    if target.kind == "android":
        from hexnpu.deploy.adb import AdbDevice

        return AdbDevice.connect(target)
    if target.host is not None:
        return _ssh_device(target, accept_new_host_key)
    from hexnpu.deploy.local import LocalDevice

    return LocalDevice(target)


def _ssh_device(target: Target, accept_new_host_key: bool) -> Device:
    from hexnpu.deploy.ssh_config import ssh_host
    from hexnpu.deploy.ssh_master import MasterDevice

    assert target.host is not None
    host = ssh_host(target.host, target.user, target.port)
    if target.kind == "windows":
        from hexnpu.deploy.ssh_connect import connect
        from hexnpu.deploy.windows import WindowsDevice

        return WindowsDevice(target, connect(host, target, accept_new_host_key))
    master = MasterDevice.find(target, host)
    if master:
        return master
    # Only now: importing paramiko takes longer than all that a master connection is asked.
    from hexnpu.deploy.ssh import SshDevice
    from hexnpu.deploy.ssh_connect import connect

    return SshDevice(target, connect(host, target, accept_new_host_key))
