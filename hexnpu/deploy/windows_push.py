"""Push to a Windows host over SFTP: what hexnpu.deploy.push does elsewhere by shell scripts.

TARGET_DIR/.hexnpu has the manifest, and `incoming` the files on their way, named by contents and path: what an
interrupted push brought whole is known by its name. Windows has no modes, and its symlinks are for administrators.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.manifest import INCOMING, STATE_DIR, Manifest, Package, PackageFile
from hexnpu.deploy.plan import Plan, refuse_clashes
from hexnpu.deploy.push import Report, Watcher
from hexnpu.deploy.source import Source
from hexnpu.deploy.survey import RemoteFile, Survey
from hexnpu.deploy.windows import folder_path, sftp_path

if TYPE_CHECKING:
    from paramiko import SFTPAttributes

    from hexnpu.deploy.windows import WindowsDevice

_BAD_NAME = re.compile(
    r'[<>:"|?*\\\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(\.|$)|[\ud800-\udfff]', re.IGNORECASE
)


def push_windows(device: WindowsDevice, source: Source, directory: str, dry_run: bool, watcher: Watcher) -> Report:
    base = folder_path(directory)
    _check_names(source.package)
    there = device.stat(base)
    if there is not None and not stat.S_ISDIR(there.st_mode):
        raise DeployError(f"{device.name}: {directory} is not a folder: remove it, or name another --target-dir")
    files = _look(device, base, source.package)
    state = Survey(there is not None, None, None, _read_manifest(device, base), Manifest(), files)
    plan = _plan(device, base, source, state)
    refuse_clashes(f"{device.name}: {directory}", source.package, state, plan)
    if not dry_run and (plan.send or plan.arrived or plan.remove or not state.present):
        # A folder that is not there yet will be on its drive, or on that of the home.
        drive = base[:3] if ":" in base else "."
        free = device.free_bytes(base if state.present else drive)
        dataclasses.replace(state, free_bytes=free).require(device.name, plan.send_bytes)
        _carry_out(device, base, source, plan, state.manifest, watcher)
    return Report(tuple(file.path for file, _ in plan.send), plan.send_bytes, tuple(plan.remove), len(plan.unchanged))


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


def _look(device: WindowsDevice, base: str, package: Package) -> dict[str, RemoteFile]:
    """What lies in the package's folders, and all below what lies where it has a file; as the package spells it."""
    folders = {"", *package.folders}
    spelling = {path.casefold(): path for path in (*package.folders, *(file.path for file in package.files))}
    files: dict[str, RemoteFile] = {}
    unseen = [""]
    while unseen:
        folder = unseen.pop()
        for name, entry in _list(device, f"{base}/{folder}" if folder else base).items():
            path = f"{folder}/{name}" if folder else name
            path = spelling.get(path.casefold(), path)
            files[path] = RemoteFile(entry.st_mode or 0, entry.st_size or 0, entry.st_mtime or 0)
            if files[path].is_folder and (path.casefold() in spelling or folder not in folders):
                unseen.append(path)
    return files


def _plan(device: WindowsDevice, base: str, source: Source, state: Survey) -> Plan:
    package, old = source.package, state.manifest.files
    incoming = _list(device, f"{base}/{INCOMING}")
    plan = Plan()
    for file in package.files:
        if _is_there(file, state.files.get(file.path), old.get(file.path, {}), source):
            plan.unchanged.append(file)
        elif (arrived := incoming.get(_staged(file, source))) and arrived.st_size == file.size:
            plan.arrived.append(file)
        else:
            plan.send.append((file, 0))
    plan.remove = sorted(old.keys() - {file.path for file in package.files})
    folders = {str(parent) for path in plan.remove for parent in PurePosixPath(path).parents} - {".", *package.folders}
    plan.remove_folders = sorted(folders, key=lambda path: (-path.count("/"), path))
    return plan


def _is_there(file: PackageFile, found: RemoteFile | None, entry: dict[str, Any], source: Source) -> bool:
    if found is None or not found.is_file or found.size != file.size:
        return False
    unchanged = (entry.get("size"), entry.get("mtime")) == (found.size, found.mtime)
    return unchanged and entry.get("sha256") == source.sha256(file)


def _carry_out(device: WindowsDevice, base: str, source: Source, plan: Plan, old: Manifest, watcher: Watcher) -> None:
    device.make_folder(f"{base}/{INCOMING}")
    watcher.start(len(plan.send), plan.send_bytes)
    for file, _ in plan.send:
        watcher.file(file.path)
        path = f"{base}/{INCOMING}/{_staged(file, source)}"
        device.write_file(path, file.chunks(), watcher.bytes)
        with device.sftp_errors(path):
            device.sftp.utime(sftp_path(path), (file.mtime, file.mtime))
    moves = [file for file, _ in plan.send] + plan.arrived
    # Until all renames are done nothing is known of these but that they are ours.
    _write_manifest(device, base, Manifest({**old.files, **{file.path: {} for file in moves}}))
    _remove(device, base, plan)
    for folder in source.package.folders:
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


def _remove(device: WindowsDevice, base: str, plan: Plan) -> None:
    for path in plan.remove:
        found = device.stat(f"{base}/{path}")
        if found is not None and not stat.S_ISDIR(found.st_mode):
            device.remove(f"{base}/{path}")
    # What others put there stays, and so does its folder.
    for folder in plan.remove_folders:
        if not _list(device, f"{base}/{folder}"):
            device.remove_folder(f"{base}/{folder}")
