"""The script that ends a push: what has arrived gets its mode and, by one rename each, its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from hexnpu.deploy.manifest import COMMIT, INCOMING, MANIFEST, REST, STATE_DIR, UNFINISHED, Package, PackageFile
from hexnpu.deploy.plan import Plan
from hexnpu.deploy.quoting import batches, join, quote

# No symlink that somebody put in place of a folder leads a removal out of the directory.
_REMOVALS = """\
inside() { p=${1%/*}; while [ "$p" != . ]; do [ ! -h "$p" ] || return 1; p=${p%/*}; done; }
drop() { for f; do if inside "$f" && { [ -h "$f" ] || [ ! -d "$f" ]; }; then rm -f "$f"; fi; done; }
drop_empty() { for f; do if inside "$f" && [ ! -h "$f" ]; then rmdir "$f" 2>/dev/null || :; fi; done; }"""


def commit_script(package: Package, plan: Plan) -> str:
    """Runs in the target directory, with the lock held."""
    lines = ["set -e", f"mv -f {STATE_DIR}/next.new {UNFINISHED}"]
    for file, have in plan.send:
        if have:
            lines += _join_checked(file, plan.manifest.files[file.path]["sha256"])
    moves = [file for file, _ in plan.send] + plan.arrived
    by_mode: dict[int, list[str]] = {}
    for file in moves:
        if file.link is None:
            by_mode.setdefault(file.mode, []).append(f"{INCOMING}/{file.path}")
    for file in plan.chmod:
        by_mode.setdefault(file.mode, []).append(f"./{file.path}")
    for mode, paths in sorted(by_mode.items()):
        lines += _batches(f"chmod {mode:o}", paths)
    lines.append(_REMOVALS)
    lines += _batches("drop", [f"./{path}" for path in plan.remove])
    # What others put there stays, and so does its folder.
    lines += _batches("drop_empty", [f"./{path}" for path in plan.remove_folders])
    lines += _batches("mkdir -p", [f"./{folder}" for folder in package.folders])
    by_folder: dict[str, list[str]] = {}
    for file in moves:
        by_folder.setdefault(str(PurePosixPath(file.path).parent), []).append(f"{INCOMING}/{file.path}")
    for folder, paths in by_folder.items():
        lines += _batches("mv -f", paths, f"./{folder}/")
    lines += [
        f"mv -f {STATE_DIR}/manifest.new {MANIFEST}",
        f"rm -rf {INCOMING} {REST} {UNFINISHED} {COMMIT}",
    ]
    return "\n".join(lines) + "\n"


def _join_checked(file: PackageFile, sha256: str) -> list[str]:
    whole, rest = quote(f"{INCOMING}/{file.path}"), quote(f"{REST}/{file.path}")
    broken = quote(f"{file.path} did not arrive whole: push again")
    return [
        # The mode may be set, by a commit that was interrupted.
        f"chmod u+rw {whole}",
        f"cat {rest} >> {whole}",
        f"rm -f {rest}",
        f"case $(sha256sum < {whole}) in {sha256}*) ;; *) rm -f {whole}; echo {broken} >&2; exit 1;; esac",
        f"touch -d @{file.mtime} {whole}",
    ]


def _batches(command: str, paths: list[str], *last: str) -> Iterator[str]:
    """The command with all paths, as often as the length of a command line asks for."""
    for batch in batches(paths):
        yield f"{command} {join([*batch, *last])}"
