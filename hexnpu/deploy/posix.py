"""What all POSIX targets share: the shell wrapper of a program, its process id, how it is ended, and remote errors.

A program runs under a small `sh` script in a process group of its own (sshd and adbd start one per command). The script
gives it a variable whose name no other run has, and all its descendants have that in their environment, whatever groups
and sessions they make. Group and variable are the script's first line, which never reaches the user: `kill` needs them.
The script waits for the program, so that a death by signal n comes back as 128 + n over every transport.
"""

from __future__ import annotations

import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from hexnpu.deploy.device import Command, Result, Upload
from hexnpu.deploy.elf import machine_name
from hexnpu.deploy.errors import ConnectionLost, DeployError, NoSpace, NotStarted, TargetReadOnly
from hexnpu.deploy.process import STDOUT, Process, fulfil_in_thread
from hexnpu.deploy.quoting import decode, encode, join, quote
from hexnpu.deploy.targets import Target

if TYPE_CHECKING:
    from typing_extensions import Self

# Of a directory argument only a leading ~ means something. What is relative starts at the home too.
EXPAND = 'case $d in /*) ;; "~") d=$HOME;; "~/"*) d=$HOME/${d#"~/"};; *) d=$HOME/$d;; esac'

_MARK = b"hexnpu-process:"
_NO_DIRECTORY = b"hexnpu-no-directory"
_FOREIGN = b"hexnpu-foreign:"

# The login shell can stand between the server and the script, and lead the group. But that can be the server itself too
# (dropbear makes no group for a command): then only the script is killed.
# The fifth field of the line is the group, the 22nd the time of its start, with which its id is nobody else's.
_IDENTITY = (
    "read -r x x x x g x x x x x x x x x x x x x x x x t x < /proc/$$/stat; "
    "if [ $g = $$ ] || { [ $g = $PPID ] && [ /proc/$g/exe -ef /proc/$$/exe ]; }; then g=-$g; else g=$$; fi; "
    "m=HEXNPU_RUN_$$_$t"
)

# `env` has sh read a program that the kernel does not take, and a program for another machine is no script. Its machine
# stands in bytes 18 and 19 of an ELF file. What runs nevertheless: 32-bit programs of the same family, and those that
# binfmt_misc has a handler for.
_REFUSE_FOREIGN = (
    'machine() ( set -- $(od -An -tx1 -N20 "$1" 2>/dev/null); [ "$1$2$3$4" != 7f454c46 ] || echo ${{19}}${{20}} )',
    "theirs=$(machine {program}); ours=$(machine /proc/$$/exe)",
    "handlers=$(ls /proc/sys/fs/binfmt_misc 2>/dev/null | grep -v -x -e register -e status)",
    "case $theirs,$ours,$handlers in "
    ",*|*,,*|*,*,?*|2800,b700,|0300,3e00,) ;; "
    f'*) [ $theirs = $ours ] || {{{{ echo "{_FOREIGN.decode()}$theirs,$ours "; exit 1; }}}};; esac',
)

# $1: group or process, $2: variable. The first line tells that the target answers. Besides what has the variable, the
# group and all children count, as a program may clear its environment.
_KILL = r"""
echo
find_marked() {
    marked=
    for f in $(grep -l "$1=" /proc/[0-9]*/environ 2>/dev/null); do
        f=${f%/environ}
        marked="$marked ${f#/proc/}"
    done
}
find_family() {
    group=$1
    table=
    for f in /proc/[0-9]*/stat; do
        { read -r line < "$f"; } 2>/dev/null || continue
        rest=${line##*\) }
        set -- $rest
        f=${f%/stat}
        table="$table ${f#/proc/}:$2"
        [ "-$3" != "$group" ] || family="$family ${f#/proc/}"
    done
    grown=1
    while [ -n "$grown" ]; do
        grown=
        for entry in $table; do
            case " $family " in
                *" ${entry%:*} "*) ;;
                *" ${entry#*:} "*) family="$family ${entry%:*}"; grown=1;;
            esac
        done
    done
}
alive() {
    for p in $family; do
        { read -r line < "/proc/$p/stat"; } 2>/dev/null || continue
        rest=${line##*\) }
        case $rest in Z*|X*) ;; *) return 0;; esac
    done
    return 1
}
find_marked "$2"
family="${1#-} $marked"
find_family "$1"
kill -TERM $1 $family 2>/dev/null
n=0
while sleep 0.05; find_marked "$2"; [ -n "$marked" ] || alive; do
    n=$((n + 1))
    [ $n -lt 40 ] || kill -KILL $1 $family $marked 2>/dev/null
    [ $n -lt 46 ] || break
done
[ -z "$marked" ] && ! alive
"""
# A target that answers at all does so in the first.
ANSWER_S, _KILL_S = 5.0, 15.0

# Of Linux, for a single argument; the login shell gets the whole line as one.
_LONG_LINE_BYTES = 128 << 10
# An SSH server drops the connection over a packet that is longer than 256 KiB.
_LONG_PACKET_BYTES = 255 << 10


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
            *(line.format(program=quote(program[0])) for line in _REFUSE_FOREIGN if "/" in program[0]),
            _IDENTITY,
            # Where nobody reads any more, nothing is started.
            f'echo "{_MARK.decode()}$g $m" || exit 1',
            *(["ulimit -c unlimited 2>/dev/null"] if command.core_dumps else []),
            *(["exec 2>&1"] if command.merge else []),
            *([] if command.has_input else ["exec </dev/null"]),
            'env "$m=" "$@"',
            "exit $?",
        )
    )
    variables = (f"{name}={value}" for name, value in command.environment.items())
    return ["sh", "-c", script, command.directory, *variables, *program]


def ssh_line(name: str, command: Command) -> bytes:
    """What the login shell is given over SSH. Bytes: file names need not be UTF-8."""
    line = encode(join(wrap(command)))
    if len(line) > _LONG_PACKET_BYTES:
        raise _too_long(name, len(line))
    return line


def _too_long(name: str, n_bytes: int) -> DeployError:
    return DeployError(f"the command line has {n_bytes} bytes, too many for {name}: put arguments into a file")


def what(command: Command) -> str:
    """How messages call it, on one line."""
    line = " ".join((command.title or join(command.argv)).split())
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


def end(device: PosixDevice, group: int, mark: str) -> None:
    """Ends a process group (negative) or process, and whatever has the variable `mark`. Raises DeployError."""
    command = Command(("sh", "-c", _KILL, "sh", str(group), mark), has_input=False, title="the end of a program")
    # In a thread, as opening takes long over a connection that hangs.
    opening: Future[Process] = Future()
    fulfil_in_thread(opening, lambda: device.open(command))
    wait([opening], ANSWER_S)
    if not opening.done():
        raise _no_answer(device)
    killer = opening.result()
    try:
        killer.read(ANSWER_S)
        while killer.read(_KILL_S):
            pass
    except TimeoutError:
        raise _no_answer(device) from None
    finally:
        killer.close()
    if killer.exit_code() != 0:
        raise DeployError(f"{device.name} did not end all of its processes")


def _no_answer(device: PosixDevice) -> DeployError:
    return DeployError(f"{device.name} does not answer")


class PosixProcess(Process):
    """A wrapped program. Transports give what arrives to `_arrived`; the first line is held back and read here."""

    def __init__(self, command: Command, device: PosixDevice) -> None:
        super().__init__(what(command))
        self._command = command
        self._directory = command.directory
        self._device = device
        self._head = b""
        # What `end` takes, once it has come; and that it has, or never will.
        self.group: int | None = None
        self._mark = ""
        self._known = threading.Event()

    def _arrived(self, stream: int, data: bytes) -> None:
        if self.group is None and stream == STDOUT:
            data = self._preamble(data)
        if data:
            self._put(stream, data)

    def _preamble(self, data: bytes) -> bytes:
        """Takes the line with the group; what a login script printed before it is dropped."""
        self._head += data
        found = re.search(rb"(?:^|\n)" + _MARK + rb"(-?\d+) (\w+)\r?\n", self._head)
        if not found:
            return b""
        self.group, self._mark = int(found[1]), found[2].decode()
        self._known.set()
        return self._head[found.end() :]

    def _finished(self, code: int | None) -> None:
        """The connection to the program has ended, with its exit code if that came."""
        self._known.set()
        if code is None:
            self._end(None, lost_while(self._device.name, self.what))
        elif self.group is None:
            self._end(None, self._not_started())
        else:
            self._end(code)

    def _not_started(self) -> DeployError:
        name = self._device.name
        if _NO_DIRECTORY in self._head:
            return DeployError(
                f"no folder {self._directory!r} on {name} that may be entered: push first, or name another --target-dir"
            )
        if found := re.search(_FOREIGN + rb"(\w{4}),(\w{4}) ", self._head):
            # The lower byte comes first.
            theirs, ours = (int.from_bytes(bytes.fromhex(text.decode()), "little") for text in found.groups())
            return NotStarted(
                f"{self._command.argv[0]!r} in {self._directory!r} is for {machine_name(theirs)}, and {name} is "
                f"{machine_name(ours)}: build the package for it (hexnpu doctor --target tells more)", 126,
            )  # fmt: skip
        n_bytes = len(encode(join(wrap(self._command))))
        if n_bytes >= _LONG_LINE_BYTES:
            return _too_long(name, n_bytes)
        said = decode(self._head).strip().partition("\n")[0] or "nothing"
        return DeployError(f"{name} started no shell (its login said: {said}): check the user's login shell there")

    def kill(self) -> None:
        if not self._known.wait(ANSWER_S):
            raise _no_answer(self._device)
        if self.group is not None:
            end(self._device, self.group, self._mark)


class PosixDevice:
    """`shell` in terms of `open`, and what goes with it."""

    target: Target
    name: str
    posix = True

    @abstractmethod
    def open(self, command: Command) -> Process: ...

    @abstractmethod
    def upload(self, directory: str, files: Iterable[Upload], sent: Callable[[int], None]) -> None: ...

    @abstractmethod
    def pull(self, path: str, to: Path) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def shell(self, script: str, *arguments: str, timeout_s: float = 60) -> Result:
        return self._shell("a script of ours", script, arguments, timeout_s)

    def _shell(self, title: str, script: str, arguments: tuple[str, ...], timeout_s: float) -> Result:
        process = self.open(Command(("sh", "-c", script, "sh", *arguments), has_input=False, title=title))
        try:
            return Result(*process.communicate(timeout_s=timeout_s))
        except TimeoutError:
            raise DeployError(f"{self.name}: {title} did not end within {timeout_s:g} s") from None

    def checked_shell(self, what: str, script: str, *arguments: str, timeout_s: float = 60) -> bytes:
        """Its output. Raises the error that fits what it printed where it fails."""
        result = self._shell(f"a script of ours for {what}", script, arguments, timeout_s)
        if result.code != 0:
            raise remote_error(f"{self.name}: {what}", decode(result.stderr or result.stdout))
        return result.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
