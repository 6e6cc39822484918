"""CMake preset files of a tree: which presets there are, and the copy that llama.cpp wants in its root."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hexnpu.deploy.errors import DeployError

FILES = ("CMakePresets.json", "CMakeUserPresets.json")
# Where llama.cpp keeps the presets for Snapdragon, newest place first; its build wants them copied into the root.
SHIPPED = ("docs/backend/snapdragon/CMakeUserPresets.json", "docs/backend/hexagon/CMakeUserPresets.json")


class PresetMissing(DeployError):
    """The tree has no such preset."""

    exit_code = 26


def refresh_presets(tree: Path) -> None:
    """Copies the presets that a tree ships into its root where they are newer; the old file is kept as .bak."""
    shipped = next((tree / name for name in SHIPPED if (tree / name).is_file()), None)
    if shipped is None:
        return
    used = tree / shipped.name
    if used.is_file():
        if used.stat().st_mtime >= shipped.stat().st_mtime or used.read_bytes() == shipped.read_bytes():
            return
        used.replace(used.with_name(used.name + ".bak"))
        print(
            f"{used.name} is refreshed from {shipped.relative_to(tree)}; the old one is {used.name}.bak",
            file=sys.stderr,
        )
    shutil.copy2(shipped, used)


def check_preset(tree: Path, preset: str) -> None:
    """Raises PresetMissing, which lists what there is."""
    names = sorted(set(preset_names(tree)))
    if preset not in names:
        there = f"it has {', '.join(names)}" if names else f"it has neither {' nor '.join(FILES)} with a preset to use"
        raise PresetMissing(f"{tree} has no preset {preset!r}: {there}")


def preset_names(tree: Path) -> Iterator[str]:
    """The configure presets that can be used, of the tree's files and of what they include."""
    for name in FILES:
        if (tree / name).is_file():
            yield from _names(tree / name, set())


def _names(file: Path, seen: set[Path]) -> Iterator[str]:
    file = file.resolve()
    if file in seen:
        return
    seen.add(file)
    try:
        content: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise PresetMissing(f"cannot read the presets in {file}: {error}") from None
    for other in content.get("include", []):
        if "$" not in other:  # a name with macros is CMake's to expand
            yield from _names(file.parent / other, seen)
    yield from (p["name"] for p in content.get("configurePresets", []) if not p.get("hidden"))
