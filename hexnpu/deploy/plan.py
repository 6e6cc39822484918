"""What a push has to do, told from the package and from what lies in the target directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from hexnpu.deploy.device import Device
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.manifest import INCOMING, STATE_DIR, Manifest, Package, PackageFile
from hexnpu.deploy.source import Source
from hexnpu.deploy.survey import Survey, remote_prints, remote_sums, symlink_print


@dataclass
class Plan:
    """`make_plan` asks the target nothing; `ask_sums` leaves nothing `unsure`, `begun` or `doubtful`."""

    unchanged: list[PackageFile] = field(default_factory=list)
    # (file, how many of its bytes are in `incoming` already)
    send: list[tuple[PackageFile, int]] = field(default_factory=list)
    # Arrived by an interrupted push.
    arrived: list[PackageFile] = field(default_factory=list)
    chmod: list[PackageFile] = field(default_factory=list)
    # Of the right size, but the manifest does not vouch for them: touched, or brought by other means.
    unsure: list[PackageFile] = field(default_factory=list)
    # All or some of them is in `incoming`.
    begun: list[PackageFile] = field(default_factory=list)
    # What former pushes brought and this package lacks: files, and folders if they are empty, the deepest first.
    remove: list[str] = field(default_factory=list)
    remove_folders: list[str] = field(default_factory=list)
    # Only a push that was interrupted in its commit knows them: what lies there may be its own, or somebody else's.
    doubtful: list[str] = field(default_factory=list)
    # Those of them that are its own, and their prints.
    own: dict[str, str] = field(default_factory=dict)
    # Of what the target will have; what is sent comes to it when its sum is known.
    manifest: Manifest = field(default_factory=Manifest)

    @property
    def send_bytes(self) -> int:
        return sum(file.size - have for file, have in self.send)

    def is_done(self, state: Survey) -> bool:
        if self.send or self.unsure or self.begun or self.chmod or self.remove or state.leftovers:
            return False
        return self.manifest == state.manifest and all(path in state.files for path in self.manifest.folders)


def make_plan(source: Source, state: Survey) -> Plan:
    package = source.package
    plan = Plan(manifest=Manifest(folders=tuple(package.folders)))
    for file in package.files:
        there, entry = state.files.get(file.path), state.manifest.files.get(file.path, {})
        if file.path in state.unfinished.files:
            # The manifest may tell of what was there before: only the sum counts.
            entry = {}
        if file.link is not None:
            same = there is not None and there.is_link and there.size == file.size and entry.get("link") == file.link
            _take(plan, file, None, 0) if same else plan.send.append((file, 0))
        elif there is None or not there.is_file or there.size != file.size:
            _fetch(plan, file, state)
        elif (entry.get("size"), entry.get("mtime")) != (there.size, there.mtime):
            plan.unsure.append(file)
        elif entry.get("sha256") != source.sha256(file):
            _fetch(plan, file, state)
        else:
            _take(plan, file, source.sha256(file), there.mtime, there.mode)
    former, wanted = (state.manifest, state.unfinished), {file.path for file in package.files}
    plan.remove = sorted(state.manifest.files.keys() - wanted)
    plan.doubtful = sorted(state.unfinished.files.keys() - state.manifest.files.keys())
    removed = {*plan.remove, *plan.doubtful} - wanted
    folders = {str(parent) for path in removed for parent in PurePosixPath(path).parents} - {"."}
    folders |= {path for manifest in former for path in manifest.folders}
    plan.remove_folders = sorted(folders - set(package.folders), key=lambda path: (-path.count("/"), path))
    return plan


def _take(plan: Plan, file: PackageFile, sha256: str | None, mtime: int, mode: int | None = None) -> None:
    """The target has this file."""
    plan.unchanged.append(file)
    plan.manifest.files[file.path] = Manifest.entry(file, sha256, mtime)
    if mode is not None and mode & 0o777 != file.mode:
        plan.chmod.append(file)


def _fetch(plan: Plan, file: PackageFile, state: Survey) -> None:
    """The file has to come."""
    arrived = state.files.get(f"{INCOMING}/{file.path}")
    if arrived and arrived.is_file and 0 < arrived.size <= file.size:
        plan.begun.append(file)
    else:
        plan.send.append((file, 0))


def ask_sums(device: Device, directory: str, source: Source, state: Survey, plan: Plan) -> None:
    """Settles what only the sums of the target's files can tell."""
    unsure, plan.unsure = plan.unsure, []
    sums = remote_sums(device, directory, (file.path for file in unsure))
    for file in unsure:
        there = state.files[file.path]
        if sums.get(file.path) == source.sha256(file):
            _take(plan, file, source.sha256(file), there.mtime, there.mode)
        else:
            _fetch(plan, file, state)
    begun, plan.begun = plan.begun, []
    sums = remote_sums(device, directory, (f"{INCOMING}/{file.path}" for file in begun))
    for file in begun:
        their_sum, have = sums.get(f"{INCOMING}/{file.path}"), state.files[f"{INCOMING}/{file.path}"].size
        if have == file.size and their_sum == source.sha256(file):
            plan.arrived.append(file)
            plan.manifest.files[file.path] = Manifest.entry(file, their_sum, file.mtime)
        elif have < file.size and their_sum == file.digest(have):
            plan.send.append((file, have))
        else:
            plan.send.append((file, 0))
    doubtful, plan.doubtful = plan.doubtful, []
    prints = remote_prints(device, directory, doubtful)
    plan.own = {path: prints[path] for path in prints if prints[path] in _prints(state.unfinished.files[path])}
    plan.remove = sorted({*plan.remove, *plan.own} - {file.path for file in source.package.files})


def _prints(entry: dict[str, Any]) -> set[str]:
    """Of what interrupted pushes may have brought."""
    prints = {entry[name] for name in ("sha256", "was") if name in entry}
    return prints | {symlink_print(entry["link"])} if "link" in entry else prints


def next_manifest(state: Survey, plan: Plan) -> Manifest:
    """All that the target's manifest will not tell truly while the commit of this plan is under way."""
    old, unfinished = state.manifest.files, state.unfinished.files
    files = {path: unfinished.get(path, {}) for path in plan.remove}
    for path, entry in plan.manifest.files.items():
        if path in unfinished or entry != old.get(path):
            files[path] = entry
    files |= {path: {**files[path], "was": known} for path, known in plan.own.items()}
    return Manifest(files, (*plan.manifest.folders, *plan.remove_folders))


def refuse_clashes(about: str, package: Package, state: Survey, plan: Plan) -> None:
    """Raises DeployError where what no push brought is in the way of a file or a folder of the package."""
    removed = {*plan.remove, *plan.doubtful, *plan.remove_folders}
    for path in (STATE_DIR, *package.folders):
        there = state.files.get(path)
        if there and not there.is_folder and path not in removed:
            what = "a symlink" if there.is_link else "a file"
            raise DeployError(f"{about}: {path!r} is {what} there, and has to be a folder: move it away")
    for file in package.files:
        there = state.files.get(file.path)
        if there and there.is_folder:
            inside = (path for path in state.files if path == file.path or path.startswith(f"{file.path}/"))
            foreign = next((path for path in inside if path not in removed), None)
            if foreign is not None:
                what = f"{file.path!r} is a folder there, and has to be a file"
                raise DeployError(f"{about}: {what}; move {foreign!r} away, which no push brought")
