"""Push to a Windows host over SFTP: what hexnpu.deploy.push does elsewhere by shell scripts.

TARGET_DIR/.hexnpu has the manifest, and `incoming` the files on their way, named by contents and path: what an
interrupted push brought whole is known by its name. Windows has no modes, and its symlinks are for administrators.
"""

from __future__ import annotations

import hashlib
import re
import stat
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.manifest import INCOMING, STATE_DIR, Manifest, Package, PackageFile
from hexnpu.deploy.push import Report, Watcher
from hexnpu.deploy.source import Source
from hexnpu.deploy.survey import Survey
from hexnpu.deploy.windows import folder_path, sftp_path

if TYPE_CHECKING:
    from paramiko import SFTPAttributes

    from hexnpu.deploy.windows import WindowsDevice

_BAD_NAME = re.compile(
    r'[<>:"|?*\\\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)|[\ud800-\udfff]', re.IGNORECASE
)


@dataclass
class _Plan:
    unchanged: list[PackageFile] = field(default_factory=list)
    send: list[PackageFile] = field(default_factory=list)
    arrived: list[PackageFile] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)


def push_windows(device: WindowsDevice, source: Source, directory: str, dry_run: bool, watcher: Watcher) -> Report:
    base = folder_path(directory)
    _check_names(source.package)
    there = device.stat(base)
    if there is not None and not stat.S_ISDIR(there.st_mode):
        raise DeployError(f"{device.name}: {directory} is not a folder: remove it, or name another --target-dir")
    old = _read_manifest(device, base)
    plan = _plan(device, base, source, old)
    size = sum(file.size for file in plan.send)
    if not dry_run and (plan.send or plan.arrived or plan.remove or there is None):
        # A folder that is not there yet will be on its drive, or on that of the home.
        drive = base[:3] if ":" in base else "."
        free = device.free_bytes(base if there is not None else drive)
        Survey(there is not None, None, free, old, Manifest()).require(device.name, size)
        _carry_out(device, base, source, plan, old, watcher)
    return Report(tuple(file.path for file in plan.send), size, tuple(plan.remove), len(plan.unchanged))


def _check_names(package: Package) -> None:
    seen: dict[str, str] = {}
    for path in (*package.folders, *(file.path for file in package.files)):
        if not _is_name(path):
            raise DeployError(f"{path!r} is no name that Windows takes: rename it in the package")
        if other := seen.get(path.casefold()):
            raise DeployError(f"{other!r} and {path!r} are one name to Windows: rename one in the package")
        seen[path.casefold()] = path
    for file in package.files:
        if file.link is not None:
            raise DeployError(
                f"{file.source} is a symlink, which only administrators make on Windows: put a copy there"
            )


def _is_name(path: str) -> bool:
    return not any(_BAD_NAME.search(part) for part in path.split("/"))


def _read_manifest(device: WindowsDevice, base: str) -> Manifest:
    path = f"{base}/{STATE_DIR}/manifest.json"
    if device.stat(path) is None:
        return Manifest()
    with device.sftp_errors(path), device.sftp.open(sftp_path(path), "rb") as file:
        file.prefetch()
        read = Manifest.from_bytes(file.read())
    # A backslash or a drive could lead out of the directory.
    return Manifest({path: entry for path, entry in read.files.items() if _is_name(path)})


def _list(device: WindowsDevice, folder: str) -> dict[str, SFTPAttributes]:
    with device.sftp_errors(folder):
        try:
            return {entry.filename: entry for entry in device.sftp.listdir_attr(sftp_path(folder))}
        except FileNotFoundError:
            return {}


def _staged(file: PackageFile, source: Source) -> str:
    return hashlib.sha256(f"{source.sha256(file)} {file.path}".encode()).hexdigest()


def _plan(device: WindowsDevice, base: str, source: Source, old: Manifest) -> _Plan:
    package = source.package
    there: dict[str, SFTPAttributes] = {}
    for folder in ("", *package.folders):
        if folder and not (folder in there and stat.S_ISDIR(there[folder].st_mode or 0)):
            continue
        entries = _list(device, f"{base}/{folder}" if folder else base)
        there |= {f"{folder}/{name}" if folder else name: entry for name, entry in entries.items()}
    incoming = _list(device, f"{base}/{INCOMING}")
    plan = _Plan()
    for file in package.files:
        if _is_there(file, there.get(file.path), old.files.get(file.path, {}), source):
            plan.unchanged.append(file)
        elif (arrived := incoming.get(_staged(file, source))) and arrived.st_size == file.size:
            plan.arrived.append(file)
        else:
            plan.send.append(file)
    plan.remove = sorted(old.files.keys() - {file.path for file in package.files})
    return plan


def _is_there(file: PackageFile, found: SFTPAttributes | None, entry: dict[str, Any], source: Source) -> bool:
    if found is None or not stat.S_ISREG(found.st_mode or 0) or found.st_size != file.size:
        return False
    unchanged = (entry.get("size"), entry.get("mtime")) == (found.st_size, found.st_mtime)
    return unchanged and entry.get("sha256") == source.sha256(file)


def _carry_out(device: WindowsDevice, base: str, source: Source, plan: _Plan, old: Manifest, watcher: Watcher) -> None:
    package = source.package
    device.make_folder(f"{base}/{INCOMING}")
    watcher.start(len(plan.send), sum(file.size for file in plan.send))
    for file in plan.send:
        watcher.file(file.path)
        path = f"{base}/{INCOMING}/{_staged(file, source)}"
        device.write_file(path, file.chunks(), watcher.bytes)
        with device.sftp_errors(path):
            device.sftp.utime(sftp_path(path), (file.mtime, file.mtime))
    moves = plan.send + plan.arrived
    # Until all renames are done nothing is known of these but that they are ours.
    _write_manifest(device, base, Manifest({**old.files, **{file.path: {} for file in moves}}))
    _remove(device, base, package, plan.remove)
    for folder in package.folders:
        device.make_folder(f"{base}/{folder}")
    new = Manifest({file.path: old.files[file.path] for file in plan.unchanged})
    for file in moves:
        device.replace(f"{base}/{INCOMING}/{_staged(file, source)}", f"{base}/{file.path}")
        there = device.stat(f"{base}/{file.path}")
        new.files[file.path] = Manifest.entry(file, source.sha256(file), int(there.st_mtime) if there else 0)
    _write_manifest(device, base, new)
    for name in _list(device, f"{base}/{INCOMING}"):
        device.remove(f"{base}/{INCOMING}/{name}")
    device.remove_folder(f"{base}/{INCOMING}")


def _write_manifest(device: WindowsDevice, base: str, manifest: Manifest) -> None:
    device.write_file(f"{base}/{STATE_DIR}/manifest.json", [manifest.to_bytes()])


def _remove(device: WindowsDevice, base: str, package: Package, paths: list[str]) -> None:
    for path in paths:
        found = device.stat(f"{base}/{path}")
        if found is not None and not stat.S_ISDIR(found.st_mode):
            device.remove(f"{base}/{path}")
    parents = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {".", *package.folders}
    # Deepest first. What others put there stays, and so does its folder.
    for folder in sorted(parents, key=lambda folder: (-folder.count("/"), folder)):
        if not _list(device, f"{base}/{folder}"):
            device.remove_folder(f"{base}/{folder}")
