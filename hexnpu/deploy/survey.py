"""What lies in the target directory now: one shell command, for any number of files."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field

from hexnpu.deploy.device import Device
from hexnpu.deploy.errors import NoSpace, TargetReadOnly
from hexnpu.deploy.manifest import LOCK, MANIFEST, STATE_DIR, UNFINISHED, Manifest
from hexnpu.deploy.posix import EXPAND
from hexnpu.deploy.quoting import batches, decode, encode

_LIST = "-exec stat -c '%f %s %Y %n//' {} + 2>/dev/null"
# A record of `stat` ends by // and a newline, and no path from `find` has // in it: file names may have newlines.
_SCRIPT = f"""
d=$1; shift; {EXPAND}
for p in find stat sha256sum; do
    command -v $p >/dev/null || {{ echo "no $p there, which push needs: install coreutils or busybox" >&2; exit 1; }}
done
there=present
while [ ! -d "$d" ]; do
    if [ -e "$d" ] || [ -h "$d" ]; then
        echo "$d is not a folder: move it away, or use another --target-dir" >&2
        exit 1
    fi
    case $d in */*) d=${{d%/*}}; d=${{d:-/}};; *) d=.;; esac
    there=absent
done
# Shells differ in what they say of it.
cd "$d" 2>/dev/null || {{ echo "$d: Permission denied" >&2; exit 1; }}
echo $there
if [ -w . ]; then echo writable; else echo "read-only $d"; fi
df -Pk . 2>/dev/null
# Else this is a folder above it, whose contents are none of ours.
[ $there = present ] || exit 0
printf '\\n///\\n'
find "$@" ./{STATE_DIR} {_LIST}
# Last, as anything may be in them.
printf '\\n///\\n'
cat {MANIFEST} 2>/dev/null
printf '\\n///\\n'
cat {UNFINISHED} 2>/dev/null
exit 0
"""
# A line for each path, whatever its name.
_PRINTS = f"""
d=$1; shift; {EXPAND}; cd "$d" || exit 1
for f; do
    if [ -h "$f" ]; then readlink "$f" | sha256sum
    elif [ -f "$f" ] && [ -r "$f" ]; then sha256sum < "$f"
    else echo; fi
done
"""
_MORE = f'd=$1; shift; {EXPAND}; cd "$d" && find "$@" {_LIST}; exit 0'

_RECORD = re.compile(rb"([0-9a-f]+) (\d+) (-?\d+) (.*)", re.DOTALL)
_SUM = re.compile(rb"([0-9a-f]{64}) [ *]\./(.*)")
_PRINT = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True)
class RemoteFile:
    mode: int
    size: int
    mtime: int

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


@dataclass(frozen=True)
class Survey:
    """`files`: by path in the target directory."""

    present: bool
    unwritable: str | None
    free_bytes: int | None
    manifest: Manifest
    # Of pushes that were interrupted in their commit (see plan.next_manifest).
    unfinished: Manifest
    files: dict[str, RemoteFile] = field(default_factory=dict)

    @property
    def leftovers(self) -> bool:
        """Whether a push was interrupted here, or anything else is in push's own folder than what it keeps there."""
        return any(
            path.startswith(f"{STATE_DIR}/") and not (path in (LOCK, MANIFEST) and there.is_file)
            for path, there in self.files.items()
        )

    def require(self, name: str, n_bytes: int) -> None:
        """Raises the error of a target that `n_bytes` cannot be written to."""
        if self.unwritable is not None:
            raise TargetReadOnly(
                f"{name}: {self.unwritable} is not writable: choose another --target-dir, or mend its permissions"
            )
        if self.free_bytes is not None and n_bytes > self.free_bytes:
            raise NoSpace(
                f"{name}: the push needs {_mib(n_bytes)}, but {_mib(self.free_bytes)} are free: "
                "remove files there, or use another --target-dir"
            )


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.1f} MiB"


def survey(device: Device, directory: str, names: Iterable[str]) -> Survey:
    """`names`: what to look for in `directory`; folders with all that is in them."""
    first, *others = [*batches(f"./{name}" for name in names)] or [[]]
    output = device.checked_shell(directory, _SCRIPT, directory, *first, timeout_s=300)
    head, *parts = output.split(b"\n///\n", 3)
    present, writable, free = head.split(b"\n", 2)
    listing, manifest, unfinished = parts or (b"",) * 3
    if present == b"present":
        for more in others:
            listing += device.checked_shell(directory, _MORE, directory, *more, timeout_s=300)
    return Survey(
        present=present == b"present",
        unwritable=decode(writable.partition(b" ")[2]) if writable.startswith(b"read-only") else None,
        free_bytes=_free(free),
        manifest=Manifest.from_bytes(manifest),
        unfinished=Manifest.from_bytes(unfinished),
        files=dict(_records(listing)),
    )


def _free(output: bytes) -> int | None:
    """The `Available` of what `df -Pk` prints; the device's name before it may hold anything."""
    found = re.search(rb"\s\d+\s+\d+\s+(\d+)\s+\d+%", output.rstrip().rpartition(b"\n")[2])
    return int(found[1]) * 1024 if found else None


def _records(listing: bytes) -> Iterable[tuple[str, RemoteFile]]:
    for record in (listing + b"\n").split(b"//\n"):
        if found := _RECORD.fullmatch(record):
            mode, size, mtime, path = int(found[1], 16), int(found[2]), int(found[3]), decode(found[4])
            yield path.removeprefix("./"), RemoteFile(mode, size, mtime)


def remote_sums(device: Device, directory: str, paths: Iterable[str]) -> dict[str, str]:
    """sha256 of files of the target, but for names that `sha256sum` prints escaped."""
    sums: dict[str, str] = {}
    script = f'd=$1; shift; {EXPAND}; cd "$d" && sha256sum "$@" 2>/dev/null; exit 0'
    for names in batches(f"./{path}" for path in paths):
        for line in device.shell(script, directory, *names, timeout_s=600).stdout.split(b"\n"):
            if found := _SUM.fullmatch(line):
                sums[decode(found[2])] = found[1].decode()
    return sums


def remote_prints(device: Device, directory: str, paths: Iterable[str]) -> dict[str, str]:
    """sha256 of the files that are there, and of symlinks what `symlink_print` says of their targets."""
    prints: dict[str, str] = {}
    for names in batches(f"./{path}" for path in paths):
        lines = device.checked_shell(directory, _PRINTS, directory, *names, timeout_s=600).split(b"\n")
        for name, line in zip(names, lines, strict=False):
            if found := _PRINT.match(line):
                prints[name.removeprefix("./")] = found[0].decode()
    return prints


def symlink_print(target: str) -> str:
    """As `readlink LINK | sha256sum` prints it."""
    return hashlib.sha256(encode(f"{target}\n")).hexdigest()
