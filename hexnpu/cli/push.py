"""`hexnpu push`: the package folder onto a target, only what changed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hexnpu.cli import nonempty, package_options

if TYPE_CHECKING:
    from hexnpu.deploy.push import Report, Watcher
    from hexnpu.deploy.targets import Target


def push(
    target: package_options.Target = None,
    source: package_options.Source = None,
    install_dir: Annotated[
        Path | None, typer.Option(parser=nonempty.path, help="The package folder.", show_default="pkg-TARGET")
    ] = None,
    target_dir: Annotated[str | None, typer.Option(parser=nonempty.text, help="Where it goes on the target.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="The -dbg package.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would travel and change nothing.")] = False,
    accept_new_host_key: package_options.AcceptNewHostKey = False,
) -> None:
    """Push the built package to the target: changed files only, each replaced by one rename."""
    from hexnpu.deploy import package
    from hexnpu.deploy.targets import parse_target

    where = parse_target(target)
    if install_dir is None:
        tree, local = package.package_tree(source), where.kind in ("local", "emu", "qemu")
        install_dir = package.local_package(tree, debug) if local else package.install_dir(where, tree, debug)
    if target_dir is None:
        target_dir = package.target_dir(where, package.package_tree(source))
    push_package(where, install_dir, target_dir, dry_run, accept_new_host_key)


def push_package(
    target: Target, folder: Path, directory: str, dry_run: bool = False, accept_new_host_key: bool = False
) -> None:
    """Also what `hexnpu build --push` does. Prints one line at the end, or the list of a dry run."""
    from hexnpu.deploy import package
    from hexnpu.deploy.device import open_device
    from hexnpu.deploy.push import Watcher
    from hexnpu.deploy.push import push as push_to
    from hexnpu.deploy.source import Source

    started = time.monotonic()
    root = package.package_root(folder)
    with Source(root) as source, open_device(target, accept_new_host_key=accept_new_host_key) as device:
        watcher = _bar() if sys.stderr.isatty() and not dry_run else Watcher()
        with watcher:
            report = push_to(device, source, directory, dry_run=dry_run, watcher=watcher)
        if dry_run:
            for path in report.sent:
                print(f"send    {_on_one_line(path)}")
            for path in report.removed:
                print(f"remove  {_on_one_line(path)}")
        where = f"{device.name}:{_on_one_line(directory)}"
        print(_summary(report, where, dry_run, time.monotonic() - started), file=sys.stderr)


def _on_one_line(path: str) -> str:
    return path if path.isprintable() else repr(path)


def _summary(report: Report, where: str, dry_run: bool, seconds: float) -> str:
    verb = "would send" if dry_run else "sent"
    files = "1 file" if len(report.sent) == 1 else f"{len(report.sent)} files"
    return (
        f"{where}: {verb} {files} ({report.sent_bytes / 2**20:.1f} MiB), "
        f"removed {len(report.removed)}, unchanged {report.unchanged}; {seconds:.2f} s"
    )


def _bar() -> Watcher:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from hexnpu.deploy.push import Watcher

    class Bar(Watcher):
        """Bytes and files on stderr."""

        def __init__(self) -> None:
            columns: list[Any] = [
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                DownloadColumn(True),
                TransferSpeedColumn(),
            ]
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task("comparing", total=None)
            self._files = self._all = 0

        def start(self, n_files: int, n_bytes: int) -> None:
            self._all = n_files
            self._progress.update(self._task, total=n_bytes)

        def file(self, path: str) -> None:
            self._files += 1
            self._progress.update(self._task, description=f"{self._files}/{self._all} {Path(path).name[-30:]}")

        def bytes(self, n_bytes: int) -> None:
            self._progress.advance(self._task, n_bytes)

        def __enter__(self) -> Bar:
            self._progress.start()
            return self

        def __exit__(self, *_: object) -> None:
            self._progress.stop()

    return Bar()
