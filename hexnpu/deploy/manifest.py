"""What a package holds and what was pushed: paths, sizes, modes and sha256 sums.

The manifest is kept on the target as `.hexnpu/manifest.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.quoting import encode

STATE_DIR = ".hexnpu"
# What hexnpu.deploy.push says of them.
MANIFEST, UNFINISHED = f"{STATE_DIR}/manifest.json", f"{STATE_DIR}/next.json"
INCOMING, REST = f"{STATE_DIR}/incoming", f"{STATE_DIR}/rest"
COMMIT, LOCK = f"{STATE_DIR}/commit.sh", f"{STATE_DIR}/lock"
CHUNK = 256 * 1024
# The time that all transports and file systems can keep.
_MAX_TIME = 0xFFFFFFFF
# Of what a manifest has of a file.
_TYPES = {"sha256": str, "was": str, "link": str, "size": int, "mode": int, "mtime": int}


@dataclass(frozen=True)
class PackageFile:
    """A file or symlink of a package; `path` has slashes and is relative to the package."""

    path: str
    source: Path
    size: int
    mode: int
    mtime: int
    # What tells a changed file: size, inode, times of the last change of contents and of anything, in ns.
    stamp: tuple[int, int, int, int]
    link: str | None = None

    def chunks(self, start: int = 0) -> Iterator[bytes]:
        """The bytes from `start`. Raises DeployError where the file is not what it was when the package was listed."""
        if self.link is not None:
            yield os.fsencode(self.link)
            return
        left = self.size - start
        try:
            with self.source.open("rb", buffering=0) as file:
                file.seek(start)
                # One byte more than should be there tells a file that has grown.
                while chunk := file.read(min(CHUNK, left + 1)):
                    left -= len(chunk)
                    if left < 0:
                        break
                    yield chunk
                info = os.fstat(file.fileno())
        except OSError as error:
            raise DeployError(f"{self.source}: {error.strerror}; nothing was replaced on the target") from None
        # Its sum may be known from an earlier push: then nobody else would see other contents of the same size.
        if left != 0 or _stamp(info) != self.stamp:
            raise DeployError(f"{self.source} changed while it was pushed: push again when the build is done")

    def digest(self, end: int | None = None) -> str:
        """sha256 of the file, or of its first `end` bytes."""
        sha, left = hashlib.sha256(), self.size if end is None else end
        for chunk in self.chunks():
            sha.update(chunk[:left])
            left -= len(chunk)
            if left <= 0 and end is not None:
                break
        return sha.hexdigest()


@dataclass(frozen=True)
class Package:
    files: tuple[PackageFile, ...]
    # Relative, parents before children.
    folders: tuple[str, ...]


def read_package(root: Path) -> Package:
    """All of a package folder. Raises DeployError for what is neither file, folder nor symlink."""
    files: list[PackageFile] = []
    folders: list[str] = []

    def visit(folder: Path, prefix: str) -> None:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            path = prefix + entry.name
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                folders.append(path)
                visit(Path(entry.path), f"{path}/")
            elif stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode):
                files.append(_package_file(path, Path(entry.path), info))
            else:
                raise DeployError(f"{entry.path} is neither a file, a folder nor a link: remove it from the package")

    try:
        visit(root, "")
    except OSError as error:
        raise DeployError(f"{error.filename}: {error.strerror}; mend that: all of the package has to be read") from None
    if STATE_DIR in folders or any(file.path == STATE_DIR for file in files):
        raise DeployError(f"{root / STATE_DIR} has the name of push's own folder on the target: remove it")
    return Package(tuple(files), tuple(folders))


def _package_file(path: str, source: Path, info: os.stat_result) -> PackageFile:
    link = os.readlink(source) if stat.S_ISLNK(info.st_mode) else None  # noqa: PTH115 - Path would change the text
    mode = stat.S_IMODE(info.st_mode) & 0o777
    if os.name == "nt" and link is None:
        mode = executable_mode(source)
    mtime = min(max(int(info.st_mtime), 0), _MAX_TIME)
    size = info.st_size if link is None else len(os.fsencode(link))
    return PackageFile(path, source, size, mode, mtime, _stamp(info), link)


def _stamp(info: os.stat_result) -> tuple[int, int, int, int]:
    if os.name == "nt":
        # What lists a folder there knows no inode, and no time of the last change of anything.
        return info.st_size, 0, info.st_mtime_ns, info.st_mtime_ns
    return info.st_size, info.st_ino, info.st_mtime_ns, info.st_ctime_ns


def executable_mode(source: Path) -> int:
    """The mode for a file from a system without an execute bit: programs and scripts are told by their start."""
    with source.open("rb") as file:
        head = file.read(4)
    return 0o755 if head == b"\x7fELF" or head[:2] == b"#!" else 0o644


@dataclass
class Manifest:
    """`files`: path -> sha256, size, mode, mtime; of a symlink: link (its target). `folders`: paths.

    In next.json also `was`: the print of what an interrupted push had brought there (see survey.remote_prints).
    """

    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """One line of ASCII."""
        content = {"version": 1, "files": self.files, "folders": self.folders}
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """An unreadable one is as none: everything is compared anew. Who wrote it is not known, so that nothing in it
        leads out of the target directory, and nothing is of another type."""
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            return cls()
        if not isinstance(content, dict) or content.get("version") != 1:
            return cls()
        files, folders = content.get("files"), content.get("folders")
        if not isinstance(files, dict):
            return cls()
        return cls(
            {path: _sane_entry(entry) for path, entry in files.items() if _is_inside(path)},
            tuple(path for path in folders if _is_inside(path)) if isinstance(folders, list) else (),
        )

    @staticmethod
    def entry(file: PackageFile, sha256: str | None, mtime: int) -> dict[str, Any]:
        if file.link is not None:
            return {"link": file.link}
        return {"sha256": sha256, "size": file.size, "mode": file.mode, "mtime": mtime}


def _is_inside(path: Any) -> bool:
    """Whether it can be the path of a pushed file: relative, without detours, and not push's own."""
    if not isinstance(path, str) or "\0" in path or not _can_be_a_name(path):
        return False
    parts = path.split("/")
    return not {"", ".", ".."} & set(parts) and parts[0] != STATE_DIR


def _can_be_a_name(text: str) -> bool:
    try:
        encode(text)
    except UnicodeEncodeError:
        return False
    return True


def _sane_entry(entry: Any) -> dict[str, Any]:
    """What it knows of a file; no type stands for another."""
    known = entry.items() if isinstance(entry, dict) else ()
    sane = {name: value for name, value in known if type(value) is _TYPES.get(name)}
    return {name: value for name, value in sane.items() if not isinstance(value, str) or _can_be_a_name(value)}
