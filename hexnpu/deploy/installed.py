"""Files of a package that the last install did not put there: another preset's, or of sources that are gone.

`cmake --install` lists what it installs in the build folder, in install_manifest.txt, a path a line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePath

LIST = "install_manifest.txt"


@contextlib.contextmanager
def without_former(build_dir: Path, install_dir: Path, prefix: str) -> Iterator[None]:
    """Around an install into `install_dir`, which is `prefix` where CMake runs: what the one before put there and this
    one does not is removed, if this one succeeds. Files that no install put there stay."""
    former = _installed(build_dir, prefix)
    yield
    for path in former - _installed(build_dir, prefix):
        with contextlib.suppress(OSError):
            (install_dir / path).unlink()


def _installed(build_dir: Path, prefix: str) -> set[PurePath]:
    """Relative to the prefix."""
    try:
        text = (build_dir / LIST).read_text("utf-8", "surrogateescape")
    except OSError:
        return set()
    paths = {PurePath(line) for line in text.split("\n")}
    return {path.relative_to(prefix) for path in paths if path.is_relative_to(prefix) and ".." not in path.parts}
