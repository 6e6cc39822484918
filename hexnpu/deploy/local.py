"""This machine as a device: programs are children, files are written by Python. Also a local Windows host."""

from __future__ import annotations

import functools
import os
import secrets
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from hexnpu.deploy.device import Command, Upload
from hexnpu.deploy.download import download
from hexnpu.deploy.errors import DeployError, NotStarted
from hexnpu.deploy.manifest import CHUNK
from hexnpu.deploy.posix import PosixDevice, end, remote_error, what
from hexnpu.deploy.process import STDERR, STDOUT, Process, start_thread
from hexnpu.deploy.targets import LOCAL, Target


class LocalProcess(Process):
    """`mark`: the variable that the child and all its descendants have (see hexnpu.deploy.posix)."""

    def __init__(self, command: Command, device: LocalDevice, child: subprocess.Popen[bytes], mark: str) -> None:
        super().__init__(what(command))
        self._device = device
        self._child = child
        self._mark = mark
        self._writing = threading.Lock()
        streams = [(STDOUT, child.stdout), (STDERR, child.stderr)]
        readers = [start_thread(functools.partial(self._copy, n, s)) for n, s in streams if s is not None]
        start_thread(functools.partial(self._wait, readers))

    def _copy(self, number: int, stream: IO[bytes]) -> None:
        while data := os.read(stream.fileno(), 65536):
            self._put(number, data)

    def _wait(self, readers: list[threading.Thread]) -> None:
        for reader in readers:
            reader.join()
        code = self._child.wait()
        self._end(code if code >= 0 else 128 - code)

    def write(self, data: bytes) -> None:
        assert self._child.stdin
        with self._writing:
            try:
                self._child.stdin.write(data)
                self._child.stdin.flush()
            except (OSError, ValueError):
                return

    def close_stdin(self) -> None:
        assert self._child.stdin
        try:
            self._child.stdin.close()
        except OSError:
            return

    def kill(self) -> None:
        if os.name == "nt":
            self._child.kill()
        else:
            end(self._device, -self._child.pid, self._mark)
        self._child.wait()

    def close(self) -> None:
        self.close_stdin()


class LocalDevice(PosixDevice):
    posix = os.name != "nt"

    def __init__(self, target: Target = LOCAL) -> None:
        self.target = target
        self.name = "this machine"

    def open(self, command: Command) -> LocalProcess:
        options: dict[str, Any] = {}
        if os.name == "nt":
            options["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP  # type: ignore[attr-defined, unused-ignore]
        else:
            options["start_new_session"] = True
            if command.core_dumps:
                _allow_core_dumps()
        directory = _path(command.directory)
        if not os.access(f"{directory}/.", os.X_OK):
            raise DeployError(
                f"no folder {str(directory)!r} on this machine that may be entered: push first, or name another "
                "--target-dir"
            )
        mark = f"HEXNPU_RUN_{secrets.token_hex(8)}"
        environment = {**os.environ, **command.environment, mark: ""}
        program = command.argv[0]
        if "/" in program:
            # Else Popen looks for it from our own directory (on Windows).
            program = str(directory / program)
        try:
            child = subprocess.Popen(
                [program, *command.argv[1:]], cwd=directory, env=environment, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT if command.merge else subprocess.PIPE, **options,
            )  # fmt: skip
        except OSError as error:
            raise _not_started(program, error) from None
        except ValueError as error:
            raise DeployError(f"{program} could not be started: {error}") from None
        return LocalProcess(command, self, child, mark)

    def upload(self, directory: str, files: Iterable[Upload], sent: Callable[[int], None]) -> None:
        root = _path(directory)
        try:
            for file in files:
                _write(root / file.path, file, sent)
        except OSError as error:
            raise remote_error(f"{error.filename or root}", os.strerror(error.errno or 0)) from None

    def pull(self, path: str, to: Path) -> None:
        with download(to) as write:
            try:
                with _path(path).open("rb") as file:
                    while data := file.read(CHUNK):
                        write(data)
            except OSError as error:
                raise DeployError(f"{path}: {error.strerror}") from None

    def close(self) -> None:
        return


def _not_started(program: str, error: OSError) -> NotStarted:
    if "/" not in program and isinstance(error, FileNotFoundError):
        return NotStarted(f"no program {program!r} on this machine: neither in the package nor in PATH", 127)
    if not os.access(program, os.F_OK):
        way_out = "build the package (hexnpu build), or name its folder (--install-dir, --target-dir)"
        return NotStarted(f"no program {program} on this machine: {way_out}", 127)
    way_out = "see its permissions, and that it is built for this machine"
    # What is not found may be its interpreter or loader.
    code = 127 if isinstance(error, FileNotFoundError) else 126
    return NotStarted(f"{program} could not be started: {error.strerror}; {way_out}", code)


def shell_line(command: Command) -> str:
    """The command as one would type it."""
    variables = "".join(f"{name}={shlex.quote(value)} " for name, value in command.environment.items())
    return f"cd {shlex.quote(str(_path(command.directory)))} && {variables}{shlex.join(command.argv)}"


def _path(text: str) -> Path:
    """As on any target: a leading ~ is the home, and so is where a relative path starts."""
    return Path.home() if text == "~" else Path.home() / text.removeprefix("~/")


def _allow_core_dumps() -> None:
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


def _write(path: Path, file: Upload, sent: Callable[[int], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # It may be a symlink, or read-only.
    path.unlink(missing_ok=True)
    if file.symlink:
        path.symlink_to(os.fsdecode(b"".join(file.chunks())))
        return
    with path.open("wb") as out:
        for chunk in file.chunks():
            out.write(chunk)
            sent(len(chunk))
    os.utime(path, (file.mtime, file.mtime))
