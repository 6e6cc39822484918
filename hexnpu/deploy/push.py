"""Push: the target directory gets what the package has, and only changed files travel.

On the target, in TARGET_DIR/.hexnpu:

    manifest.json     what was pushed: size, mode, time and sha256 of every file, and the folders
    next.json         what pushes bring and remove whose commit is under way, or was interrupted
    incoming/...      files on their way, under the paths they will have
    rest/...          the rest of a file of which `incoming` had a beginning
    commit.sh         the renames that end a push
    lock              is held by a push from its last look at the directory on

An interrupted push leaves its files in `incoming`; the next one compares their sums and sends what is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from hexnpu.deploy.commit import commit_script
from hexnpu.deploy.device import Device, Upload
from hexnpu.deploy.leftovers import tidy
from hexnpu.deploy.lock import Lock
from hexnpu.deploy.manifest import COMMIT, INCOMING, REST, STATE_DIR, Manifest
from hexnpu.deploy.plan import Plan, ask_sums, make_plan, next_manifest, refuse_clashes
from hexnpu.deploy.quoting import encode
from hexnpu.deploy.source import Source
from hexnpu.deploy.survey import Survey, survey
from hexnpu.errors import UsageError


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
    if not directory:
        raise UsageError("the target directory is empty: name one, such as ~/hexnpu")
    if device.target.kind == "windows" and not device.target.here:
        from hexnpu.deploy.windows import WindowsDevice
        from hexnpu.deploy.windows_push import push_windows

        assert isinstance(device, WindowsDevice)
        return push_windows(device, source, directory, dry_run, watcher)
    if not device.posix:
        raise UsageError("push needs a POSIX target; on Windows `hexnpu run` takes the package folder where it is")
    directory = _from_home(directory)
    state, plan = _look(device, directory, source)
    if dry_run:
        _settle(device, directory, source, state, plan)
    else:
        # What an interrupted push left may be a part of it, or in its place.
        state.require(device.name, 0 if state.leftovers else plan.send_bytes)
        if not plan.is_done(state):
            with Lock(device, directory) as lock:
                plan = _carry_out(device, directory, source, watcher, lock)
    sent = tuple(file.path for file, _ in plan.send)
    return Report(sent, plan.send_bytes, tuple(plan.remove), len(plan.unchanged))


def _from_home(directory: str) -> str:
    """The same directory, as everything reads it alike: `~x` is a name, and nobody's home."""
    directory = directory.rstrip("/") or "/"
    return directory if directory == "~" or directory.startswith(("/", "~/")) else f"~/{directory}"


def _look(device: Device, directory: str, source: Source) -> tuple[Survey, Plan]:
    package = source.package
    names = sorted({path.partition("/")[0] for path in (*package.folders, *(file.path for file in package.files))})
    state = survey(device, directory, names)
    plan = make_plan(source, state)
    refuse_clashes(f"{device.name}: {directory}", package, state, plan)
    return state, plan


def _settle(device: Device, directory: str, source: Source, state: Survey, plan: Plan) -> None:
    ask_sums(device, directory, source, state, plan)
    # What was doubtful may have turned out to be somebody's own.
    refuse_clashes(f"{device.name}: {directory}", source.package, state, plan)


def _carry_out(device: Device, directory: str, source: Source, watcher: Watcher, lock: Lock) -> Plan:
    # Until the lock was ours, another push could change everything.
    state, plan = _look(device, directory, source)
    if tidy(device, directory, source.package, state):
        state, plan = _look(device, directory, source)
    _settle(device, directory, source, state, plan)
    state.require(device.name, plan.send_bytes)

    def sent(n_bytes: int) -> None:
        watcher.bytes(n_bytes)
        lock.check()

    watcher.start(len(plan.send), plan.send_bytes)
    device.upload(directory, _uploads(source, state, plan, watcher), sent)
    lock.commit()
    return plan


def _uploads(source: Source, state: Survey, plan: Plan, watcher: Watcher) -> Iterator[Upload]:
    for file, have in plan.send:
        watcher.file(file.path)
        place = f"{REST if have else INCOMING}/{file.path}"
        chunks = functools.partial(file.chunks, have)
        yield Upload(place, file.size - have, file.mtime, chunks, file.link is not None)
    for file, _ in plan.send:
        sha256 = None if file.link is not None else source.sha256(file)
        plan.manifest.files[file.path] = Manifest.entry(file, sha256, file.mtime)
    yield _small(f"{STATE_DIR}/next.new", next_manifest(state, plan).to_bytes())
    yield _small(f"{STATE_DIR}/manifest.new", plan.manifest.to_bytes())
    yield _small(COMMIT, encode(commit_script(source.package, plan)))


def _small(path: str, data: bytes) -> Upload:
    return Upload(path, len(data), 0, lambda: iter((data,)))
