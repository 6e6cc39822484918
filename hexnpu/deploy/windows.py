"""A Windows host behind OpenSSH: files by SFTP, programs by a runner of ours that takes its orders on its input.

sshd there hands a command line to cmd.exe, whose quoting cannot carry every argument. So the line only names the runner
(windows_runner.c tells how it is spoken to), and the same line works whatever is run. Both SFTP and programs start in
the user's home, where relative target directories begin.
"""

from __future__ import annotations

import contextlib
import errno
import re
import stat
import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from hexnpu.deploy.device import Command, Result, Upload
from hexnpu.deploy.download import download
from hexnpu.deploy.errors import ConnectionLost, DeployError, NotStarted, TargetReadOnly
from hexnpu.deploy.posix import lost_while
from hexnpu.deploy.quoting import decode
from hexnpu.deploy.ssh import SshDevice, SshProcess
from hexnpu.deploy.windows_install import MACHINES, built_runner, runner_name
from hexnpu.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from paramiko import Channel, SFTPClient, SSHClient

    from hexnpu.deploy.targets import Target

HOME = ".hexnpu"
# Of CreateProcess, in UTF-16 units, with the NUL.
MAX_LINE = 32767
MAX_REQUEST_BYTES = 1 << 20
_SFTP_TIMEOUT_S, _ASK_TIMEOUT_S = 60.0, 30.0
# What one answer holds.
_SFTP_PIECE = 32768
_NOT_FOUND = (2, 3, 123)
_ANSWER = re.compile(rb"(?:^|\n)hexnpu-runner:(\w+) (\d+)\r?\n")


def quote_argument(text: str) -> str:
    """One word of a command line, as CommandLineToArgvW and the C libraries of Windows read it."""
    if text and not re.search(r'[\s"]', text):
        return text  # cmd and others that read the line themselves want their /flags bare
    return '"' + re.sub(r'(\\*)("|\Z)', lambda found: found[1] * 2 + ('\\"' if found[2] else ""), text) + '"'


def command_line(argv: Iterable[str]) -> str:
    program, *arguments = argv
    if '"' in program:
        raise UsageError(f"{program!r} has a quote, which no file of Windows has in its name")
    if program.rstrip(". ").lower().endswith((".bat", ".cmd")):
        raise UsageError(f"{program}: cmd.exe reads the arguments of batch files its own way: run cmd /c yourself")
    line = " ".join((f'"{program}"', *map(quote_argument, arguments)))
    if len(line.encode("utf-16-le", "surrogatepass")) // 2 >= MAX_LINE:
        raise UsageError(f"the command line is longer than the {MAX_LINE - 1} characters that Windows takes")
    return line


def request(*words: str) -> bytes:
    """What the runner is told. Raises UsageError for what its UTF-16 cannot hold."""
    for word in words:
        if "\0" in word:
            raise UsageError(f"{word!r} has a NUL character, which no program can take as an argument")
    try:
        text = "".join(f"{word}\0" for word in words).encode("utf-16-le")
    except UnicodeEncodeError:
        raise UsageError("an argument or variable is not UTF-8, and Windows takes nothing else") from None
    if len(text) > MAX_REQUEST_BYTES:
        raise UsageError("the environment variables are longer than Windows takes")
    return struct.pack("<I", len(text)) + text


def folder_path(directory: str) -> str:
    """A target directory with slashes: relative to the home, or with a drive as in C:/x."""
    path = directory.replace("\\", "/")
    path = "." if path == "~" else path.removeprefix("~/")
    path = path[1:] if re.match("/[A-Za-z]:", path) else path
    if path.startswith("/") or re.match("[A-Za-z]:(?!/)", path):
        raise UsageError(f"target directory {directory!r}: name its drive (C:/x), or start it at the home (~/x)")
    return path if path.endswith(":/") else path.rstrip("/") or "."


def sftp_path(path: str) -> str:
    return f"/{path}" if re.match("[A-Za-z]:", path) else path


def run_request(command: Command) -> bytes:
    variables = [f"{name}={value}" for name, value in command.environment.items()]
    folder = folder_path(command.directory).replace("/", "\\")
    return request("run", folder, command.argv[0], command_line(command.argv), *variables)


def printed(command: Command) -> str:
    """What the runner is told, one a line: directory, command line, variables."""
    words = run_request(command)[4:].decode("utf-16-le").split("\0")
    return "\n".join((f"in {words[1]}", words[3], *words[4:-1]))


class WindowsProcess(SshProcess):
    def __init__(self, command: Command, device: WindowsDevice, channel: Channel, told: bytes) -> None:
        self._program = command.argv[0]
        super().__init__(command, device, channel)
        super().write(told)

    def write(self, data: bytes) -> None:
        if data:
            super().write(struct.pack("<I", len(data)) + data)

    def close_stdin(self) -> None:
        """The channel stays open: its end would end the program."""
        super().write(struct.pack("<I", 0))

    def _preamble(self, data: bytes) -> bytes:
        self._head += data
        found = _ANSWER.search(self._head)
        if not found or found[1] != b"started":
            return b""
        self.group = int(found[2])
        return self._head[found.end() :]

    def _not_started(self) -> DeployError:
        name, found = self._device.name, _ANSWER.search(self._head)
        if not found:
            said = decode(self._head).strip().partition("\n")[0] or "nothing"
            return DeployError(
                f"{name} did not start {HOME}/{runner_name()} (it said: {said}): is it kept from running?"
            )
        about, number = found[1].decode(), int(found[2])
        if about == "directory":
            return DeployError(f"no folder {self._directory} on {name}: push first, or name another --target-dir")
        if about == "program" and number in _NOT_FOUND:
            return NotStarted(f"no program {self._program!r} on {name}: neither in the package nor in PATH", 127)
        return NotStarted(f"{name} could not start {self._program!r}: {about}, Windows error {number}", 126)

    def kill(self) -> None:
        """Ends the job of the program and all its children, by a second runner."""
        if self.group is not None and not self._channel.exit_status_ready():
            assert isinstance(self._device, WindowsDevice)
            self._device.tell("kill", f"Local\\hexnpu-{self.group:010}")


class WindowsDevice(SshDevice):
    posix = False

    def __init__(self, target: Target, clients: list[SSHClient]) -> None:
        super().__init__(target, clients)
        try:
            with self.sftp_errors("SFTP"):
                self.sftp: SFTPClient = clients[0].open_sftp()
            self.sftp.get_channel().settimeout(_SFTP_TIMEOUT_S)
            self._install()
        except BaseException:
            self.close()
            raise

    def open(self, command: Command) -> WindowsProcess:
        told = run_request(command)
        return WindowsProcess(command, self, self._execute(self._line()), told)

    def _line(self) -> str:
        return f"{HOME}\\{runner_name()}"

    def tell(self, *words: str) -> bytes:
        """What a runner answers to anything but `run`."""
        return self._answer(self._line(), request(*words), words[0])

    def _answer(self, line: str, told: bytes, what: str) -> bytes:
        channel = self._execute(line)
        channel.settimeout(_ASK_TIMEOUT_S)
        try:
            channel.sendall(told)
            return b"".join(iter(lambda: channel.recv(4096), b""))
        except (OSError, EOFError):
            raise lost_while(self.name, what) from None
        finally:
            channel.close()

    def free_bytes(self, path: str) -> int | None:
        found = _ANSWER.search(self.tell("free", path.replace("/", "\\")))
        return int(found[2]) if found and found[1] == b"free" else None

    @contextlib.contextmanager
    def sftp_errors(self, about: str) -> Iterator[None]:
        import paramiko

        try:
            yield
        except (paramiko.SSHException, EOFError, TimeoutError) as error:
            raise ConnectionLost(f"the SFTP connection to {self.name} was lost ({about}): {error}") from None
        except OSError as error:
            transport = self._clients[0].get_transport()
            if transport is None or not transport.is_active():
                raise ConnectionLost(f"the connection to {self.name} was lost ({about})") from None
            if error.errno == errno.EACCES:
                raise TargetReadOnly(
                    f"{self.name}: {about} is not writable: is a program of it running? Else mend its permissions"
                ) from None
            # SFTP has one "Failure" for all the rest.
            said = error.strerror or f"{error}; is there space, and is none of its programs running?"
            raise DeployError(f"{self.name}: {about}: {said}") from None

    def stat(self, path: str) -> Any:
        """size, mtime and mode as SFTP tells; None where there is no such file."""
        with self.sftp_errors(path), contextlib.suppress(FileNotFoundError):
            return self.sftp.stat(sftp_path(path))
        return None

    def replace(self, old: str, new: str) -> None:
        """A rename over what is there; where the server has no such thing, what is there is removed first."""
        old, new = sftp_path(old), sftp_path(new)
        with self.sftp_errors(new):
            try:
                self.sftp.posix_rename(old, new)
            except OSError:
                with contextlib.suppress(FileNotFoundError):
                    self.sftp.remove(new)
                self.sftp.rename(old, new)

    def remove(self, path: str) -> None:
        with self.sftp_errors(path):
            self.sftp.remove(sftp_path(path))

    def remove_folder(self, path: str) -> None:
        """One that is empty."""
        with self.sftp_errors(path), contextlib.suppress(FileNotFoundError):
            self.sftp.rmdir(sftp_path(path))

    def make_folder(self, path: str) -> None:
        """And its parents."""
        with self.sftp_errors(path):
            done = ""
            for part in path.split("/"):
                done = f"{done}/{part}" if done else part
                if done.endswith(":"):
                    continue
                there = self.stat(done)
                if there is None:
                    self.sftp.mkdir(sftp_path(done))
                elif not stat.S_ISDIR(there.st_mode):
                    raise DeployError(f"{self.name}: {done} is not a folder: move it away")

    def write_file(self, path: str, chunks: Iterable[bytes], sent: Callable[[int], None] = lambda _: None) -> int:
        """How many bytes the target says it has. Beside its name first: it appears whole or not at all."""
        beside = f"{path}.part"
        with self.sftp_errors(path):
            # Not waiting for each answer; what goes wrong shows in the size.
            with self.sftp.open(sftp_path(beside), "wb") as out:
                out.set_pipelined(True)
                total = 0
                for chunk in chunks:
                    out.write(chunk)
                    sent(len(chunk))
                    total += len(chunk)
            there = self.sftp.stat(sftp_path(beside)).st_size
            if there != total:
                raise DeployError(
                    f"{self.name}: {path} did not arrive whole ({there} of {total} bytes): is there space?"
                )
        self.replace(beside, path)
        return total

    def _install(self) -> None:
        path = f"{HOME}/{runner_name()}"
        if self.stat(path) is not None:
            return
        said = self._answer("echo %PROCESSOR_ARCHITECTURE%", b"", "echo").decode(errors="replace").strip()
        if said not in MACHINES:
            raise DeployError(
                f"{self.name} is not Windows on {' or '.join(MACHINES)} with cmd.exe as sshd's shell (it says "
                f"{said!r}): set that shell there, or use linux: for another system"
            )
        self.make_folder(HOME)
        self.write_file(path, [built_runner(MACHINES[said]).read_bytes()])

    def pull(self, path: str, to: Path) -> None:
        there = sftp_path(folder_path(path))
        with self.sftp_errors(path), download(to) as write, self.sftp.open(there, "rb") as file:
            # Without prefetch, whose thread prints a traceback where the connection is lost.
            while data := file.read(_SFTP_PIECE):
                write(data)

    def shell(self, script: str, *arguments: str, timeout_s: float = 60) -> Result:
        raise UsageError(f"{self.name} is a Windows host, and this takes a POSIX shell")

    def upload(self, directory: str, files: Iterable[Upload], sent: Callable[[int], None]) -> None:
        raise UsageError(f"{self.name} is a Windows host: hexnpu.deploy.windows_push writes files there")
