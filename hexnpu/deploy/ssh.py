"""A device behind SSH: programs in exec channels, files as one tar stream (SFTP would wait for an answer per file)."""

from __future__ import annotations

import contextlib
import socket
import tarfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from hexnpu.deploy.device import Command, Upload
from hexnpu.deploy.errors import ConnectionLost, DeployError
from hexnpu.deploy.posix import EXPAND, PosixDevice, PosixProcess, remote_error, wrap
from hexnpu.deploy.process import STDERR, STDOUT, Process, start_thread
from hexnpu.deploy.quoting import decode, encode, join
from hexnpu.deploy.targets import Target

if TYPE_CHECKING:
    from paramiko import Channel, SSHClient

# GNU tar reads 10 KiB at a time unless told otherwise; others take what comes.
_RECEIVE = f"""
d=$1; {EXPAND}
case $(tar --version 2>/dev/null) in *GNU*) b='-b 128';; *) b=;; esac
mkdir -p "$d" && cd "$d" && tar $b -xof - || exit 1
[ $# = 1 ] || exec sh "./$2"
"""

# The largest payload of one SSH packet that every server takes (32 KiB less what paramiko keeps for itself).
_PACKET = 32768 - 64
_TAR_BLOCK = 512


class SshProcess(PosixProcess):
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
        except OSError:
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
        """False once the program has closed its input, or is gone."""
        return not (self._channel.closed or self._channel.exit_status_ready())

    def close_stdin(self) -> None:
        try:
            self._channel.shutdown_write()
        except (OSError, EOFError):
            return

    def close(self) -> None:
        self._channel.close()


class SshDevice(PosixDevice):
    def __init__(self, target: Target, clients: list[SSHClient]) -> None:
        """`clients`: the connection to the target first, then those to the jump hosts that it goes through."""
        self.target = target
        self.name = str(target)
        self._clients = clients

    @classmethod
    def connect(cls, target: Target, *, accept_new_host_key: bool = False) -> SshDevice:
        from hexnpu.deploy.ssh_config import ssh_host
        from hexnpu.deploy.ssh_connect import connect

        assert target.host is not None
        return cls(target, connect(ssh_host(target.host, target.user, target.port), target, accept_new_host_key))

    def open(self, command: Command) -> Process:
        return SshProcess(command, self, self._execute(join(wrap(command))))

    def _execute(self, line: str) -> Channel:
        import paramiko

        transport = self._clients[0].get_transport()
        if transport is None or not transport.is_active():
            raise ConnectionLost(f"the connection to {self.name} was lost")
        try:
            channel = transport.open_session(timeout=15)
            # Bytes: file names need not be UTF-8.
            channel.exec_command(encode(line))
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise ConnectionLost(f"{self.name} did not start a program: {error or 'connection closed'}") from None
        return channel

    def upload(
        self, directory: str, files: Iterable[Upload], sent: Callable[[int], None], then: str | None = None
    ) -> None:
        process = self.open(Command(("sh", "-c", _RECEIVE, "sh", directory, *([then] if then else []))))
        assert isinstance(process, SshProcess)
        try:
            for piece, of_file in _tar(files):
                if not process.writable:
                    break
                process.write(piece)
                sent(of_file)
            process.close_stdin()
            errors = b"".join(piece[1] for piece in iter(process.read, None))
            if process.exit_code() != 0:
                raise _upload_error(self.name, directory, decode(errors))
        except BaseException:
            # It must not go on writing what it has already read while the next push looks.
            with contextlib.suppress(DeployError):
                process.kill()
            raise
        finally:
            process.close()

    def pull(self, path: str, to: Path) -> None:
        process = self.open(Command(("sh", "-c", f'd=$1; {EXPAND}; exec cat "$d"', "sh", path)))
        process.close_stdin()
        errors = b""
        with to.open("wb") as out:
            while piece := process.read():
                if piece[0] == STDOUT:
                    out.write(piece[1])
                else:
                    errors += piece[1]
        if process.exit_code() != 0:
            to.unlink()
            raise remote_error(f"{self.name}: {path}", decode(errors))

    def close(self) -> None:
        for client in self._clients:
            transport = client.get_transport()
            with contextlib.suppress(OSError, AttributeError):
                # Wakes paramiko's thread, which else looks ten times a second; a ProxyCommand has no such call.
                transport.sock.shutdown(socket.SHUT_RDWR)
            client.close()


def _upload_error(name: str, directory: str, errors: str) -> DeployError:
    if "tar: " in errors and "not found" in errors:
        return DeployError(f"{name} has no tar, which push needs: install tar or busybox there")
    return remote_error(f"{name}: {directory}", errors)


def _tar(files: Iterable[Upload]) -> Iterable[tuple[bytes, int]]:
    """A tar stream in pieces of some size, each with how many bytes of files it holds."""
    pending, of_file = bytearray(), 0
    for file in files:
        pending += _tar_header(file)
        if not file.symlink:
            for chunk in file.chunks():
                pending += chunk
                of_file += len(chunk)
                if len(pending) >= 8 * _PACKET:
                    yield bytes(pending), of_file
                    pending, of_file = bytearray(), 0
            pending += bytes(-file.size % _TAR_BLOCK)
    yield bytes(pending) + bytes(2 * _TAR_BLOCK), of_file


def _tar_header(file: Upload) -> bytes:
    info = tarfile.TarInfo(f"./{file.path}")
    info.mode, info.mtime = 0o600, file.mtime
    if file.symlink:
        info.type, info.linkname = tarfile.SYMTYPE, decode(b"".join(file.chunks()))
    else:
        info.size = file.size
    # GNU headers: long names and files above 8 GiB, which busybox and toybox read too.
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
