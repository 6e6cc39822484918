"""Files written whole or not at all, to a temporary name beside the target, then renamed; and never over the input."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hexnpu.errors import HexnpuError, UsageError


def spare(inputs: Iterable[str | Path], outputs: Iterable[Path | None]) -> None:
    """UsageError where an output is an input, by whatever path: a file, an exported folder or one of its files."""
    read = [part for source in inputs for part in (source, *Path(source).glob("*.parquet"))]
    for output in outputs:
        if output is not None and any(_same(part, output) for part in read):
            raise UsageError(f"{output} is read: give another name to write to")


def _same(source: str | Path, output: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(0) if source == "-" else Path(source).stat(), output.stat())
    except OSError:  # one of them is not there
        return False


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends well. HexnpuError if it cannot be written.

    A pipe or a device, such as /dev/null, is written into, and a symlink, such as /dev/stdout, is followed.
    """
    if path.is_dir():
        raise HexnpuError(f"{path} is a directory: give a file name to write to")
    is_special = path.exists() and not path.is_file()
    with _with_its_name(path), path.open("wb") if is_special else _renamed(path.resolve()) as stream:
        yield stream


@contextmanager
def _with_its_name(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HexnpuError(f"{path} cannot be written ({error.strerror})") from None


@contextmanager
def _renamed(path: Path) -> Iterator[IO[bytes]]:
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise HexnpuError(f"{path} cannot be written ({error.strerror}): is its folder there and writable?") from None
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as stream:
            yield stream
        mode = os.umask(0)
        os.umask(mode)
        Path(name).chmod(0o666 & ~mode)
        Path(name).replace(path)
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()
