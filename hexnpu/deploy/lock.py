"""A push keeps others away from its directory until it ends, however it ends.

A process on the target holds a lock (flock) on TARGET_DIR/.hexnpu/lock, and waits for a word of ours. `commit` has it
run the renames that end a push; the end of its input, which is also how our death looks from there, ends it. So nothing
is renamed without the lock, and no dead push keeps it.
"""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING

from hexnpu.deploy.device import Command, Device
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.manifest import COMMIT, LOCK, STATE_DIR
from hexnpu.deploy.posix import EXPAND, remote_error
from hexnpu.deploy.process import STDOUT
from hexnpu.deploy.quoting import decode

if TYPE_CHECKING:
    from typing_extensions import Self

# What a process whose push was killed is given to notice it, in steps of 50 ms.
_PATIENCE_STEPS = 100
_END_S = 10.0

# `flock -n` says nothing where another has the lock. Where there is no flock, or a file system without locks, something
# is said, and pushes are not kept apart. The file is opened for a group of commands, as mksh keeps what `exec` opens
# from its children.
_HOLD = f"""
d=$1; {EXPAND}
mkdir -p "$d/{STATE_DIR}" && cd "$d" || exit 1
# What is no file was not made by a push; it would be written through, or not opened at all.
if [ -h {LOCK} ] || {{ [ -e {LOCK} ] && [ ! -f {LOCK} ]; }}; then rm -rf {LOCK} || exit 1; fi
{{
    n=0
    until said=$(flock -n 9 2>&1); do
        [ -z "$said" ] || break
        n=$((n + 1))
        if [ $n -ge $2 ]; then echo "busy $(cat {LOCK})"; exit 1; fi
        sleep 0.05
    done
    echo $$ > {LOCK}
    echo locked
    read -r word
    [ "$word" != commit ] || sh {COMMIT}
}} 9<>{LOCK}
"""


class Lock:
    """Use as a context manager. Raises DeployError where another push has the directory."""

    def __init__(self, device: Device, directory: str) -> None:
        self._about = f"{device.name}: {directory}"
        hold = ("sh", "-c", _HOLD, "sh", directory, str(_PATIENCE_STEPS))
        self._process = device.open(Command(hold, title=f"the push to {directory}"))
        try:
            self._wait()
        except BaseException:
            self._release()
            raise

    def _wait(self) -> None:
        answer = errors = b""
        while not answer.endswith(b"locked\n"):
            piece = self._process.read()
            if piece is None:
                raise self._refusal(decode(answer), decode(errors))
            if piece[0] == STDOUT:
                answer += piece[1]
            else:
                errors += piece[1]

    def _refusal(self, answer: str, errors: str) -> DeployError:
        word, _, process = answer.strip().partition(" ")
        if word != "busy":
            return remote_error(self._about, errors or answer)
        return DeployError(
            f"{self._about}: another push to it is under way: wait for its end, or end its process {process} there"
        )

    def check(self) -> None:
        """Raises DeployError where the lock was lost: somebody has ended its process."""
        try:
            lost = self._process.read(timeout_s=0) is None
        except TimeoutError:
            return
        if lost:
            raise self._ended()

    def _ended(self) -> DeployError:
        return DeployError(f"{self._about}: the push was ended there: push again")

    def commit(self) -> None:
        """Runs the commit script that has been uploaded; the lock ends with it."""
        self.check()
        code, output, errors = self._process.communicate(b"commit\n")
        if code != 0:
            by_signal = code > 128
            raise self._ended() if by_signal else remote_error(self._about, decode(errors or output))

    def _release(self) -> None:
        """Waits for the end of the process, so that the next push need not."""
        self._process.write(b"end\n")
        with contextlib.suppress(DeployError, TimeoutError):
            while self._process.read(_END_S):
                pass
        self._process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._release()
