"""Files written whole or not at all: to a temporary name beside the target, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hexnpu.errors import HexnpuError


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under its name only when the block ends well. HexnpuError if it cannot be written."""
    if path.is_dir():
        raise HexnpuError(f"{path} is a directory: give a file name to write to")
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
    except OSError as error:
        raise HexnpuError(f"{path} cannot be written ({error.strerror})") from None
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()
