"""Parsers of typer's options, for values that must not be empty: `--install-dir ''` would be the current folder."""

from __future__ import annotations

from pathlib import Path

import typer


def text(value: str) -> str:
    if not value:
        raise typer.BadParameter("it is empty; leave the flag out for its default")
    return value


def path(value: str) -> Path:
    return Path(text(value))
