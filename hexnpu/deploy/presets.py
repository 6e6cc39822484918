"""CMake preset files of a tree: which presets there are, and the copy that llama.cpp wants in its root."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from hexnpu.deploy.errors import DeployError

FILES = ("CMakePresets.json", "CMakeUserPresets.json")
# Where llama.cpp keeps the presets for Snapdragon, newest place first; its build wants them copied into the root.
SHIPPED = ("docs/backend/snapdragon/CMakeUserPresets.json", "docs/backend/hexagon/CMakeUserPresets.json")


class PresetMissing(DeployError):
    """The tree has no such preset, or a preset file that cannot be read."""

    exit_code = 26


def refresh_presets(tree: Path) -> None:
    """Copies the presets that a tree ships into its root where they are newer; the old file is kept as .bak, and an
    older .bak as .bak.1, .bak.2 ...: it may be somebody's own work. Raises DeployError."""
    shipped = next((tree / name for name in SHIPPED if (tree / name).is_file()), None)
    if shipped is None:
        return
    used = tree / shipped.name
    new = used.with_name(used.name + ".new")
    try:
        there = used.is_file()
        if there and (used.stat().st_mtime >= shipped.stat().st_mtime or used.read_bytes() == shipped.read_bytes()):
            return
        shutil.copy2(shipped, new)
        if there:
            _back_up(used)
        new.replace(used)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise DeployError(f"cannot refresh {used} from {shipped}: {error.strerror}; copy it yourself") from None
    if there:
        print(
            f"{used.name} is refreshed from {shipped.relative_to(tree)}; the old one is {used.name}.bak",
            file=sys.stderr,
        )


def _back_up(used: Path) -> None:
    """A copy: the file itself stays until the new one takes its place."""
    backup = used.with_name(used.name + ".bak")
    if backup.exists():
        free = next(n for n in count(1) if not backup.with_name(f"{backup.name}.{n}").exists())
        backup.replace(backup.with_name(f"{backup.name}.{free}"))
    shutil.copy2(used, backup)


def check_preset(tree: Path, preset: str) -> None:
    """Raises PresetMissing, which lists what there is."""
    names = sorted(set(preset_names(tree)))
    if preset not in names:
        there = (
            f"choose one by --preset ({', '.join(names)})" if names
            else f"it has neither {' nor '.join(FILES)} with a preset to use; give another tree by --source"
        )  # fmt: skip
        raise PresetMissing(f"{tree} has no preset {preset!r}: {there}")


def preset_names(tree: Path) -> Iterator[str]:
    """The configure presets that can be used, of the tree's files and of what they include."""
    return (preset["name"] for preset in _presets(tree) if not preset.get("hidden"))


def variables_read(tree: Path, preset: str) -> set[str]:
    """The caller's variables that a preset, or what it inherits, reads (`$env{X}`) and does not set itself.

    Values of the wrong shape are CMake's to complain of.
    """
    presets = {p["name"]: p for p in _presets(tree)}
    names = [preset]
    for name in names:
        inherited = presets.get(name, {}).get("inherits")
        others = inherited if isinstance(inherited, list) else [inherited]
        names += [other for other in others if isinstance(other, str) and other not in names]
    taken = [presets[name] for name in names if name in presets]
    environments = [p["environment"] for p in taken if isinstance(p.get("environment"), dict)]
    return set(re.findall(r"\$env\{(\w+)\}", json.dumps(taken))).difference(*environments)


def _presets(tree: Path) -> Iterator[dict[str, Any]]:
    for name in FILES:
        if (tree / name).is_file():
            yield from _presets_of(tree / name, ())


def _presets_of(file: Path, includers: tuple[Path, ...]) -> Iterator[dict[str, Any]]:
    """`includers`: the files that led here. Raises PresetMissing for what CMake would not take either."""
    file = file.resolve()
    if file in includers:
        raise PresetMissing(f"the presets in {file} include themselves, through {includers[-1]}: mend its include")
    content = _read(file)
    for other in _list(file, content, "include"):
        if not isinstance(other, str) or "\0" in other:
            raise PresetMissing(f"the presets in {file}: include has {other!r}, which is no file name")
        if "$" not in other:  # a name with macros is CMake's to expand
            yield from _presets_of(file.parent / other, (*includers, file))
    for preset in _list(file, content, "configurePresets"):
        if not isinstance(preset, dict) or not isinstance(preset.get("name"), str):
            raise PresetMissing(f"the presets in {file}: configurePresets has one without a name")
        yield preset


def _read(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise PresetMissing(f"cannot read the presets in {file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise PresetMissing(f"the presets in {file} are not UTF-8: {error.reason} at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise PresetMissing(f"the presets in {file} are no JSON: {error}") from None
    if not isinstance(content, dict):
        raise PresetMissing(f"the presets in {file} are no JSON object")
    return content


def _list(file: Path, content: dict[str, Any], key: str) -> list[Any]:
    value = content.get(key, [])
    if not isinstance(value, list):
        raise PresetMissing(f"the presets in {file}: {key} is no list")
    return value
