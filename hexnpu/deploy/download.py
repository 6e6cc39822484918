"""A file that comes from a target: its bytes go to NAME.part, which gets its name when all of them are here."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from hexnpu.deploy.errors import DeployError


@contextlib.contextmanager
def download(to: Path) -> Iterator[Callable[[bytes], None]]:
    """Gives what writes the next bytes; where the block fails, nothing is left of them and `to` is what it was.

    What goes wrong on this machine is a DeployError, so that any OSError in the block is one of the transport.
    """
    part = to.with_name(f"{to.name}.part")
    with _told(to):
        if to.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        out = part.open("wb")

    def write(data: bytes) -> None:
        with _told(to):
            out.write(data)

    try:
        yield write
        with _told(to):
            out.close()
            part.replace(to)
    finally:
        with contextlib.suppress(OSError):
            out.close()
        with contextlib.suppress(OSError):
            part.unlink()


@contextlib.contextmanager
def _told(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DeployError(
            f"{to} cannot be written on this machine ({error.strerror}): see its folder and the space there, or name "
            "another file"
        ) from None
