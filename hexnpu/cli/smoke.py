"""`hexnpu smoke`: every kernel on a target against numpy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

WIDE = 1000
# For one graph's answer. On a device it takes milliseconds, under a sanitizer seconds.
ANSWER_TIMEOUT_S = 60.0

if TYPE_CHECKING:
    from hexnpu.smoke import Outcome


def smoke(
    target: Annotated[str, typer.Option("--target", help="emu, npu, linux:host, android, unix:PATH, tcp:H:P.")] = "emu",
) -> None:
    """Run every kernel, weight type and count of columns on a target's server, twice, against numpy in float64."""
    import hexnpu
    from hexnpu.smoke import run, uncovered

    _redraw(f"waiting for the server: {target}")
    try:
        session = hexnpu.open(target, fusion=0, strict=True)
    finally:
        _redraw("")
    with session:
        session.connection.wait_at_most(ANSWER_TIMEOUT_S)
        with _progress() as show:
            report = run(session, show)
        forgotten, hello = uncovered(session.device), session.connection.hello
    where = f"{target} (v{hello.arch}, {hello.flavour}, {hello.n_threads} threads)"
    failures, n = report.failures, len(report.outcomes)
    if failures:
        _print_failures(failures)
    if forgotten:
        print(f"ops with a kernel that smoke has no case for: {', '.join(forgotten)}")
    if failures:
        print(f"{len(failures)} of {n} checks failed on {where}, in {report.seconds:.1f} s")
        raise typer.Exit(1)
    print(f"{n} checks passed on {where}, each twice with the same bits, in {report.seconds:.1f} s")


def _print_failures(failures: list[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("op", "type", "columns", "kernel", "what is wrong", box=None, header_style="bold", pad_edge=False)
    for o in failures:
        table.add_row(o.op, o.type.lower(), str(o.columns or "all"), o.kernel, Text(o.error))
    # A pipe has no width to fit into.
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


def _redraw(text: str) -> None:
    """A line on stderr where that is a terminal; the emulator's build draws over it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("smoke")
        yield lambda done, total: bar.update(task, completed=done, total=total)
