"""Which preset a build folder was configured with: CMake keeps compilers and options of the first one it was given.

All presets of a target share its folder. A change of preset therefore configures it afresh (`cmake --fresh`), and a
file in the folder, next to CMakeCache.txt, tells of the change: `hexnpu-preset.txt`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

NOTE = "hexnpu-preset.txt"


@contextlib.contextmanager
def configured(build_dir: Path, preset: str) -> Iterator[list[str]]:
    """What to tell `cmake --preset` for `build_dir`: `--fresh` if that was configured with another preset.

    A folder of which nothing is known, configured by hand perhaps, is left to CMake as it is.
    """
    note, cache = build_dir / NOTE, build_dir / "CMakeCache.txt"
    fresh = _read(note) not in (None, preset)
    if fresh:
        # Empty while it is neither's, so that an interruption leads to another fresh start.
        _write(note, "")
        with contextlib.suppress(OSError):
            cache.unlink()
    try:
        yield ["--fresh"] if fresh else []
    finally:
        # Also after a failure: CMake writes the cache whenever it was at work.
        with contextlib.suppress(OSError):
            if cache.is_file():
                _write(note, preset)


def _read(note: Path) -> str | None:
    try:
        return note.read_text("utf-8", "replace")
    except OSError:
        return None


def _write(note: Path, text: str) -> None:
    # A folder that cannot be written is CMake's to complain of.
    with contextlib.suppress(OSError):
        note.write_text(text, "utf-8")
