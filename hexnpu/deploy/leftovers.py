"""What an interrupted push left in TARGET_DIR/.hexnpu is made ready for the next one."""

from __future__ import annotations

from hexnpu.deploy.device import Device
from hexnpu.deploy.manifest import INCOMING, LOCK, MANIFEST, REST, STATE_DIR, UNFINISHED, Package
from hexnpu.deploy.posix import EXPAND
from hexnpu.deploy.quoting import batches
from hexnpu.deploy.survey import Survey

_REMOVE = f'd=$1; shift; {EXPAND}; cd "$d" && rm -rf "$@"'

# If this is interrupted the sum will tell. A commit that was interrupted has set modes already.
_JOIN = f"""
d=$1; {EXPAND}; cd "$d/{REST}" || exit 1
find . -type f -exec sh -c '
    for f; do chmod u+rw "../incoming/$f" && cat "$f" >> "../incoming/$f" && rm -f "$f" || exit 1; done
' sh {{}} + || exit 1
cd ../.. && rm -rf {REST}
"""


def tidy(device: Device, directory: str, package: Package, state: Survey) -> bool:
    """Removes what this package has no use for, and appends what came of the rest of a file to its beginning.

    Returns whether there was anything to do; then `state` holds no longer.
    """
    strays = _strays(package, state)
    for paths in batches(f"./{path}" for path in strays):
        device.checked_shell(directory, _REMOVE, directory, *paths, timeout_s=600)
    rests = any(path.startswith(f"{REST}/") and path not in strays for path in state.files)
    if rests:
        device.checked_shell(directory, _JOIN, directory, timeout_s=600)
    return rests or bool(strays)


def _strays(package: Package, state: Survey) -> set[str]:
    """All in push's own folder that this push neither reads nor goes on with. Symlinks are always sent anew."""
    files = {file.path for file in package.files if file.link is None}
    folders = {"", *package.folders}
    strays = set()
    for path, there in state.files.items():
        if not path.startswith(f"{STATE_DIR}/"):
            continue
        place = next((place for place in (INCOMING, REST) if path == place or path.startswith(f"{place}/")), "")
        name = path[len(place) + 1 :]
        if not place:
            wanted = there.is_file and path in (LOCK, MANIFEST, UNFINISHED)
        elif there.is_folder:
            wanted = name in folders
        else:
            wanted = there.is_file and name in files
            if place == REST:
                begun = state.files.get(f"{INCOMING}/{name}")
                wanted = wanted and begun is not None and begun.is_file
        if not wanted:
            strays.add(path)
    return strays
