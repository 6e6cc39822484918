"""Push: the target directory gets what the package has, and only changed files travel.

On the target, in TARGET_DIR/.hexnpu:

    manifest.json     what was pushed: size, mode, time and sha256 of every file
    next.json         the paths of a push whose renames are under way
    incoming/...      files on their way, under the paths they will have
    rest/...          the rest of a file of which `incoming` had a beginning
    commit.sh         the renames that end a push

An interrupted push leaves its files in `incoming`; the next one compares their sums and sends what is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hexnpu.deploy.device import Device, Upload
from hexnpu.deploy.manifest import STATE_DIR, Manifest, Package, PackageFile
from hexnpu.deploy.posix import EXPAND
from hexnpu.deploy.quoting import batches, encode, join, quote
from hexnpu.deploy.source import Source
from hexnpu.deploy.survey import Survey, remote_sums, survey
from hexnpu.errors import UsageError

INCOMING, REST = f"{STATE_DIR}/incoming", f"{STATE_DIR}/rest"


@dataclass
class Plan:
    """What a push has to do. `digests` has the sums known so far, by path."""

    unchanged: list[PackageFile] = field(default_factory=list)
    # (file, how many of its bytes are in `incoming` already)
    send: list[tuple[PackageFile, int]] = field(default_factory=list)
    # Arrived by an interrupted push.
    arrived: list[PackageFile] = field(default_factory=list)
    chmod: list[PackageFile] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    manifest: Manifest = field(default_factory=Manifest)

    @property
    def send_bytes(self) -> int:
        return sum(file.size - have for file, have in self.send)


@dataclass(frozen=True)
class Report:
    sent: tuple[str, ...]
    sent_bytes: int
    removed: tuple[str, ...]
    unchanged: int


class Watcher:
    """Is told how a push goes; the command line draws a bar."""

    def start(self, n_files: int, n_bytes: int) -> None: ...

    def file(self, path: str) -> None: ...

    def bytes(self, n_bytes: int) -> None: ...

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None: ...


def push(device: Device, source: Source, directory: str, *, dry_run: bool = False, watcher: Watcher) -> Report:
    """Raises the errors of hexnpu.deploy.errors; then nothing under its real name is half-written."""
    if device.target.kind == "windows" and not device.target.here:
        from hexnpu.deploy.windows import WindowsDevice
        from hexnpu.deploy.windows_push import push_windows

        assert isinstance(device, WindowsDevice)
        return push_windows(device, source, directory, dry_run, watcher)
    if not device.posix:
        raise UsageError("push needs a POSIX target; on Windows `hexnpu run` takes the package folder where it is")
    directory = directory.rstrip("/") or "/"
    package = source.package
    names = sorted({path.partition("/")[0] for path in (*package.folders, *(file.path for file in package.files))})
    state = survey(device, directory, names)
    if not dry_run and any(path.startswith(f"{REST}/") for path in state.files):
        _join_rests(device, directory)
        state = survey(device, directory, names)
    plan = _plan(device, directory, source, state)
    if not dry_run:
        state.require(device.name, plan.send_bytes)
        _carry_out(device, directory, source, plan, state, watcher)
    sent = tuple(file.path for file, _ in plan.send)
    return Report(sent, plan.send_bytes, tuple(plan.remove), len(plan.unchanged))


def _plan(device: Device, directory: str, source: Source, state: Survey) -> Plan:
    plan = Plan()
    unsure: list[PackageFile] = []
    for file in source.package.files:
        there, entry = state.files.get(file.path), state.manifest.files.get(file.path, {})
        if file.link is not None:
            same = there is not None and there.is_link and there.size == file.size and entry.get("link") == file.link
            _take(plan, file, None, 0) if same else plan.send.append((file, 0))
        elif there is None or not there.is_file or there.size != file.size:
            _plan_incoming(plan, file, state, source)
        elif (entry.get("size"), entry.get("mtime")) != (there.size, there.mtime):
            unsure.append(file)
        elif entry.get("sha256") != source.sha256(file):
            _plan_incoming(plan, file, state, source)
        else:
            _take(plan, file, source.sha256(file), there.mtime, there.mode)
    # Files with the right size that the manifest does not vouch for: touched, or brought by other means.
    sums = remote_sums(device, directory, [file.path for file in unsure]) if unsure else {}
    for file in unsure:
        there = state.files[file.path]
        if sums.get(file.path) == source.sha256(file):
            _take(plan, file, source.sha256(file), there.mtime, there.mode)
        else:
            _plan_incoming(plan, file, state, source)
    mine = {file.path for file in source.package.files}
    plan.remove = sorted((state.manifest.files.keys() | state.unfinished.files.keys()) - mine)
    return plan


def _take(plan: Plan, file: PackageFile, sha256: str | None, mtime: int, mode: int | None = None) -> None:
    """The target has this file."""
    plan.unchanged.append(file)
    plan.manifest.files[file.path] = Manifest.entry(file, sha256, mtime)
    if mode is not None and mode & 0o777 != file.mode:
        plan.chmod.append(file)


def _plan_incoming(plan: Plan, file: PackageFile, state: Survey, source: Source) -> None:
    """The file has to come; all or some of it may have arrived already."""
    arrived, their_sum = state.files.get(f"{INCOMING}/{file.path}"), state.sums.get(file.path)
    have = arrived.size if arrived and arrived.is_file and their_sum else 0
    if have and have == file.size and their_sum == source.sha256(file):
        plan.arrived.append(file)
        plan.manifest.files[file.path] = Manifest.entry(file, their_sum, file.mtime)
    elif 0 < have < file.size and their_sum == file.digest(have):
        plan.send.append((file, have))
    else:
        plan.send.append((file, 0))


def _join_rests(device: Device, directory: str) -> None:
    """Appends what came of the rest of a file to its beginning. If this is interrupted the sum will tell."""
    script = f"""
d=$1; {EXPAND}; cd "$d/{REST}" || exit 1
find . -type f -exec sh -c 'for f; do cat "$f" >> "../incoming/$f" && rm -f "$f" || exit 1; done' sh {{}} + || exit 1
cd ../.. && rm -rf {REST}
"""
    device.checked_shell(directory, script, directory, timeout_s=600)


def _carry_out(device: Device, directory: str, source: Source, plan: Plan, state: Survey, watcher: Watcher) -> None:
    package = source.package
    moves = [file for file, _ in plan.send] + plan.arrived
    complete = len(plan.manifest.files) == len(package.files)
    folders_there = all(folder in state.files for folder in package.folders)
    if not (moves or plan.chmod or plan.remove) and complete and plan.manifest == state.manifest and folders_there:
        return
    watcher.start(len(plan.send), plan.send_bytes)
    uploads = _uploads(source, plan, watcher)
    device.upload(directory, uploads, watcher.bytes, then=f"{STATE_DIR}/commit.sh")


def _uploads(source: Source, plan: Plan, watcher: Watcher) -> Iterator[Upload]:
    yield _small("next.new", Manifest({file.path: {} for file in source.package.files}).to_bytes())
    for file, have in plan.send:
        watcher.file(file.path)
        place = f"{REST if have else INCOMING}/{file.path}"
        chunks = functools.partial(file.chunks, have)
        yield Upload(place, file.size - have, file.mtime, chunks, file.link is not None)
    for file, _ in plan.send:
        sha256 = None if file.link is not None else source.sha256(file)
        plan.manifest.files[file.path] = Manifest.entry(file, sha256, file.mtime)
    yield _small("manifest.new", plan.manifest.to_bytes())
    yield _small("commit.sh", encode(_commit_script(source.package, plan)))


def _small(name: str, data: bytes) -> Upload:
    return Upload(f"{STATE_DIR}/{name}", len(data), 0, lambda: iter((data,)))


def _commit_script(package: Package, plan: Plan) -> str:
    """Runs in the target directory. Each file appears under its name by one rename."""
    lines = ["set -e", f"mv -f {STATE_DIR}/next.new {STATE_DIR}/next.json"]
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
    lines += _removals(package, plan)
    lines += _batches("mkdir -p", [f"./{folder}" for folder in package.folders])
    by_folder: dict[str, list[str]] = {}
    for file in moves:
        by_folder.setdefault(str(PurePosixPath(file.path).parent), []).append(f"{INCOMING}/{file.path}")
    for folder, paths in by_folder.items():
        lines += _batches("mv -f", paths, f"./{folder}/")
    lines += [
        f"mv -f {STATE_DIR}/manifest.new {STATE_DIR}/manifest.json",
        f"rm -rf {INCOMING} {REST} {STATE_DIR}/next.json {STATE_DIR}/commit.sh",
    ]
    return "\n".join(lines) + "\n"


def _join_checked(file: PackageFile, sha256: str) -> list[str]:
    whole, rest = quote(f"{INCOMING}/{file.path}"), quote(f"{REST}/{file.path}")
    broken = quote(f"{file.path} did not arrive whole: push again")
    return [
        f"cat {rest} >> {whole}",
        f"rm -f {rest}",
        f"case $(sha256sum < {whole}) in {sha256}*) ;; *) rm -f {whole}; echo {broken} >&2; exit 1;; esac",
        f"touch -d @{file.mtime} {whole}",
    ]


def _removals(package: Package, plan: Plan) -> list[str]:
    if not plan.remove:
        return []
    keep = set(package.folders)
    parents = {str(parent) for path in plan.remove for parent in PurePosixPath(path).parents} - keep - {"."}
    # Deepest first. What others put there stays, and so does its folder.
    emptied = sorted(parents, key=lambda path: (-path.count("/"), path))
    lines = ['drop() { for f; do if [ -h "$f" ] || [ ! -d "$f" ]; then rm -f "$f"; fi; done; }']
    lines += _batches("drop", [f"./{path}" for path in plan.remove])
    return [*lines, *(f"rmdir {quote(f'./{path}')} 2>/dev/null || :" for path in emptied)]


def _batches(command: str, paths: list[str], *last: str) -> Iterator[str]:
    """The command with all paths, as often as the length of a command line asks for."""
    for batch in batches(paths):
        yield f"{command} {join([*batch, *last])}"
