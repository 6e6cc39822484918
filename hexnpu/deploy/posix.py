"""What all POSIX targets share: the shell wrapper of a program, its process id, how it is ended, and remote errors.

A program runs under a small `sh` script in a process group of its own (sshd and adbd start one per command). The script
prints the group's id as a first line, which never reaches the user; it is what `kill` needs. It waits for the program,
so that a death by signal n comes back as 128 + n over every transport.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from hexnpu.deploy.device import Command, Result, Upload
from hexnpu.deploy.errors import ConnectionLost, DeployError, NoSpace, TargetReadOnly
from hexnpu.deploy.process import STDOUT, Process
from hexnpu.deploy.quoting import decode, join
from hexnpu.deploy.targets import Target

if TYPE_CHECKING:
    from typing_extensions import Self

# Of a directory argument only a leading ~ means something.
EXPAND = 'case $d in "~") d=$HOME;; "~/"*) d=$HOME/${d#"~/"};; esac'

_MARK = b"hexnpu-process:"
_NO_DIRECTORY = b"hexnpu-no-directory"

# The login shell can stand between sshd or adbd and the script, and lead the group. Where it is neither's (an adbd that
# makes no groups), only the script itself is killed.
_GROUP = "read -r a b c e g f < /proc/$$/stat; case $g in $$|$PPID) g=-$g;; *) g=$$;; esac"

_KILL = """
kill -TERM $1 2>/dev/null
n=0
while kill -0 $1 2>/dev/null; do
    n=$((n + 1))
    [ $n = 40 ] && kill -KILL $1 2>/dev/null
    # What KILL leaves are zombies, of a system whose init is slow to reap.
    [ $n = 46 ] && exit 0
    sleep 0.05
done
exit 0
"""


def wrap(command: Command) -> list[str]:
    """The argument list of the wrapper."""
    program = command.argv
    # `env` would take a name with = for a variable.
    if "=" in program[0] or program[0].startswith("-"):
        program = ("sh", "-c", 'exec "$0" "$@"', *program)
    script = "; ".join(
        (
            f"d=$0; {EXPAND}",
            f'cd "$d" 2>/dev/null || {{ echo {_NO_DIRECTORY.decode()}; exit 1; }}',
            _GROUP,
            f"echo {_MARK.decode()}$g",
            *(["ulimit -c unlimited 2>/dev/null"] if command.core_dumps else []),
            *(["exec 2>&1"] if command.merge else []),
            'env "$@"',
            "exit $?",
        )
    )
    directory = command.directory if command.directory.startswith(("/", "~")) else f"./{command.directory}"
    variables = (f"{name}={value}" for name, value in command.environment.items())
    return ["sh", "-c", script, directory, *variables, *program]


def what(command: Command) -> str:
    """How messages call it."""
    line = join(command.argv)
    return line if len(line) < 200 else f"{line[:200]}..."


def remote_error(about: str, text: str) -> DeployError:
    """The error for what a program of the target complained of."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
    if "No space left" in text or "Disk quota exceeded" in text:
        return NoSpace(f"{about}: no space left ({line}); remove files there, or use another --target-dir")
    if re.search("Read-only file system|Permission denied|Operation not permitted", text):
        return TargetReadOnly(f"{about}: not writable ({line}); choose another --target-dir, or mend its permissions")
    return DeployError(f"{about}: {line}")


def lost_while(name: str, what: str) -> ConnectionLost:
    return ConnectionLost(f"the connection to {name} was lost while it ran {what}: check cable or network, and repeat")


class PosixProcess(Process):
    """A wrapped program. Transports give what arrives to `_arrived`; the first line is held back and read here."""

    def __init__(self, command: Command, device: PosixDevice) -> None:
        super().__init__(what(command))
        self._directory = command.directory
        self._device = device
        self._head = b""
        # What `kill` takes: a group's id is negative.
        self.group: int | None = None

    def _arrived(self, stream: int, data: bytes) -> None:
        if self.group is None and stream == STDOUT:
            data = self._preamble(data)
        if data:
            self._put(stream, data)

    def _preamble(self, data: bytes) -> bytes:
        """Takes the line with the group; what a login script printed before it is dropped."""
        self._head += data
        found = re.search(rb"(?:^|\n)" + _MARK + rb"(-?\d+)\r?\n", self._head)
        if not found:
            return b""
        self.group = int(found[1])
        return self._head[found.end() :]

    def _finished(self, code: int | None) -> None:
        """The connection to the program has ended, with its exit code if that came."""
        if code is None:
            self._end(None, lost_while(self._device.name, self.what))
        elif self.group is None:
            self._end(None, self._not_started())
        else:
            self._end(code)

    def _not_started(self) -> DeployError:
        name = self._device.name
        if _NO_DIRECTORY in self._head:
            return DeployError(f"no folder {self._directory} on {name}: push first, or name another --target-dir")
        said = decode(self._head).strip().partition("\n")[0] or "nothing"
        return DeployError(f"{name} started no shell (its login said: {said}): check the user's login shell there")

    def kill(self) -> None:
        if self.group is not None:
            self._device.shell(_KILL, str(self.group), timeout_s=15)


class PosixDevice:
    """`shell` in terms of `open`, and what goes with it."""

    target: Target
    name: str
    posix = True

    @abstractmethod
    def open(self, command: Command) -> Process: ...

    @abstractmethod
    def upload(
        self, directory: str, files: Iterable[Upload], sent: Callable[[int], None], then: str | None = None
    ) -> None: ...

    @abstractmethod
    def pull(self, path: str, to: Path) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def run_uploaded(self, directory: str, script: str) -> None:
        line = f'd=$1; {EXPAND}; cd "$d" && exec sh "./$2"'
        self.checked_shell(directory, line, directory, script, timeout_s=3600)

    def shell(self, script: str, *arguments: str, timeout_s: float = 60) -> Result:
        with_tail = Command(("sh", "-c", script, "sh", *arguments))
        process = self.open(with_tail)
        try:
            return Result(*process.communicate(timeout_s=timeout_s))
        except TimeoutError:
            raise DeployError(f"{self.name}: a shell command did not end within {timeout_s:g} s") from None

    def checked_shell(self, what: str, script: str, *arguments: str, timeout_s: float = 60) -> bytes:
        """Its output. Raises the error that fits what it printed where it fails."""
        result = self.shell(script, *arguments, timeout_s=timeout_s)
        if result.code != 0:
            raise remote_error(f"{self.name}: {what}", decode(result.stderr or result.stdout))
        return result.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
