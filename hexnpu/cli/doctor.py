"""`hexnpu doctor`: what is wrong here and on a target, and what an error code means."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hexnpu.cli import nonempty

if TYPE_CHECKING:
    from hexnpu.deploy.checks import Finding
    from hexnpu.deploy.targets import Target

MARKS = {"ok": "[green]ok  [/green]", "note": "[yellow]note[/yellow]", "wrong": "[red]WRONG[/red]"}


def doctor(
    codes: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CODE]...", help="Error codes to explain (0x80000414); a negative one after --."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help=r"Look into this target too: android\[:serial], linux:\[user@]host\[:port]."),
    ] = None,
    target_dir: Annotated[
        str | None,
        typer.Option(
            "--target-dir", parser=nonempty.text, help="Where the package is.", show_default="where push puts it"
        ),
    ] = None,
) -> None:
    """Check this machine and a target, with a remedy for what is wrong; or explain AEE and FastRPC error codes."""
    from hexnpu.deploy.checks import State, run_checks
    from hexnpu.deploy.device import open_device
    from hexnpu.deploy.doctor_here import checks
    from hexnpu.deploy.targets import parse_target
    from hexnpu.errors import UsageError

    if codes:
        if target is not None or target_dir is not None:
            raise UsageError("error codes are the same on every target: leave --target out, or the codes")
        _explain(codes)
        return
    where = parse_target(target)
    if where.here:
        open_device(where).close()  # refuses a Windows that this machine is not
        if target_dir is not None:
            raise UsageError("--target-dir is where the package is on another machine; name that by --target")
    findings = []
    for finding in run_checks(checks()):
        _show(finding)
        findings.append(finding)
    if not where.here:
        findings += _look_into(where, target_dir)
    n = sum(f.state is State.WRONG for f in findings)
    if n:
        print(f"{n} of {len(findings)} findings are wrong")
        raise typer.Exit(1)
    print("nothing is wrong")


def _look_into(where: Target, target_dir: str | None) -> list[Finding]:
    from hexnpu.deploy import package
    from hexnpu.deploy.checks import run_checks
    from hexnpu.deploy.device import open_device
    from hexnpu.deploy.doctor_there import TargetDoctor

    directory = target_dir or package.target_dir(where, package.package_tree(None))
    there = TargetDoctor(lambda: open_device(where), directory)
    findings = []
    try:
        for finding in run_checks(there.checks()):
            _show(finding)
            findings.append(finding)
    finally:
        there.close()
    return findings


def _show(finding: Finding) -> None:
    from rich.console import Console
    from rich.markup import escape

    from hexnpu.errors import one_line

    console = Console(soft_wrap=True, highlight=False, emoji=False)  # tcp:x:y has none
    # With names of the target in them.
    text, remedy = escape(one_line(finding.text)), escape(one_line(finding.remedy))
    console.print(f"{MARKS[finding.state.value]} {escape(finding.what)}: {text}")
    if remedy:
        console.print(f"     -> {remedy}")
    sys.stdout.flush()


def _explain(codes: list[str]) -> None:
    from hexnpu.deploy.errorcodes import SOURCE, explain

    found = [(code, explain(code)) for code in codes]
    for code, meanings in found:
        for meaning in meanings:
            print(f"{code}: {meaning}")
        if not meanings:
            print(f"{code}: no code of this number in {SOURCE}")
    print(f"names: {SOURCE}")
    if not all(meanings for _, meanings in found):
        raise typer.Exit(1)
