"""A device behind SSH, over a connection of our own: programs run in exec channels of paramiko."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from hexnpu.deploy.device import Command
from hexnpu.deploy.errors import ConnectionLost, DeployError
from hexnpu.deploy.posix import ssh_line
from hexnpu.deploy.process import STDERR, STDOUT, start_thread
from hexnpu.deploy.stream import StreamDevice, StreamProcess
from hexnpu.deploy.targets import Target

if TYPE_CHECKING:
    from paramiko import Channel, SSHClient, Transport

# The largest payload of one SSH packet that every server takes (32 KiB less what paramiko keeps for itself).
_PACKET = 32768 - 64
_SESSION_S = 15


class SshProcess(StreamProcess):
    def __init__(self, command: Command, device: SshDevice, channel: Channel) -> None:
        super().__init__(command, device)
        self._channel = channel
        self._writing = threading.Lock()
        start_thread(self._follow)

    def _follow(self) -> None:
        # Both streams are drained at once: the window is shared, and a full one stops the other.
        stderr = start_thread(lambda: self._copy(STDERR, self._channel.recv_stderr))
        self._copy(STDOUT, self._channel.recv)
        stderr.join()
        # Also set when the connection breaks; the code is -1 then.
        self._channel.status_event.wait()
        code = self._channel.exit_status
        self._finished(code if code >= 0 else None)

    def _copy(self, stream: int, receive: Callable[[int], bytes]) -> None:
        try:
            while data := receive(1 << 18):
                self._arrived(stream, data)
        except (OSError, EOFError):
            return

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._writing:
            try:
                for start in range(0, len(view), _PACKET):
                    piece = bytes(view[start : start + _PACKET])
                    while piece:
                        piece = piece[self._channel.send(piece) :]
            except (OSError, EOFError):
                return

    @property
    def writable(self) -> bool:
        return not (self._channel.closed or self._channel.exit_status_ready())

    def close_stdin(self) -> None:
        try:
            self._channel.shutdown_write()
        except (OSError, EOFError):
            return

    def close(self) -> None:
        self._channel.close()


class SshDevice(StreamDevice):
    def __init__(self, target: Target, clients: list[SSHClient]) -> None:
        """`clients`: the connection to the target first, then those to the jump hosts that it goes through."""
        self.target = target
        self.name = str(target)
        self._clients = clients

    def open(self, command: Command) -> SshProcess:
        return SshProcess(command, self, self._execute(ssh_line(self.name, command)))

    def _execute(self, line: str | bytes) -> Channel:
        import paramiko

        transport = self._clients[0].get_transport()
        if transport is None or not transport.is_active():
            raise ConnectionLost(f"the connection to {self.name} was lost")
        try:
            channel = _open_session(transport)
            channel.exec_command(line)
        except paramiko.ChannelException as error:
            raise DeployError(
                f"{self.name} opens no further session on this connection ({error.text}): push and run need 2; "
                "raise MaxSessions in its sshd_config"
            ) from None
        except (paramiko.SSHException, EOFError, OSError) as error:
            why = str(error) or type(error).__name__
            raise ConnectionLost(
                f"{self.name} did not start a program ({why}): check cable or network, and repeat"
            ) from None
        return channel

    def close(self) -> None:
        from hexnpu.deploy.ssh_connect import close

        for client in self._clients:
            close(client)


def _open_session(transport: Transport) -> Channel:
    import paramiko

    try:
        return transport.open_session(timeout=_SESSION_S)
    except paramiko.ChannelException:
        # sshd may count one that we have just closed until it has answered this.
        return transport.open_session(timeout=_SESSION_S)
