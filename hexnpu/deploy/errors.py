"""What can be wrong between here and a device. Each has an exit code of its own (docs/deploy.md, "Exit codes")."""

from __future__ import annotations

from hexnpu.errors import HexnpuError


class DeployError(HexnpuError):
    """Anything else that went wrong on the way to a device."""


class NoAdbServer(DeployError):
    exit_code = 10


class NoDevice(DeployError):
    exit_code = 11


class DeviceNotReady(DeployError):
    """The device is attached but unauthorized, offline or not booted."""

    exit_code = 12


class SeveralDevices(DeployError):
    exit_code = 13


class HostNotFound(DeployError):
    exit_code = 14


class PortRefused(DeployError):
    """Nobody answers at host:port, or what answers is no SSH server."""

    exit_code = 15


class AuthFailed(DeployError):
    exit_code = 16


class HostKeyRefused(DeployError):
    """The host key is unknown, or not the one of known_hosts."""

    exit_code = 17


class ConnectionLost(DeployError):
    exit_code = 18


class NoSpace(DeployError):
    exit_code = 20


class TargetReadOnly(DeployError):
    exit_code = 21


class PackageMissing(DeployError):
    """The package folder does not exist, or holds nothing."""

    exit_code = 22


class NotStarted(DeployError):
    """A program that is not there (127), or that the system does not take (126): a shell's exit codes."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class TimedOut(DeployError):
    """`--timeout` passed; the code is that of timeout(1)."""

    exit_code = 124
