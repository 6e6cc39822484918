"""Options of the commands that find a package and a target: push and run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hexnpu.cli import nonempty

Target = Annotated[
    str | None, typer.Option(help=r"android\[:serial], linux:\[user@]host\[:port] ...; this machine if absent.")
]
Source = Annotated[
    Path | None,
    typer.Option(
        parser=nonempty.path,
        help="The tree whose package it is.",
        show_default="here, if a llama.cpp checkout or with pkg-*; else hexnpu's own",
    ),
]
AcceptNewHostKey = Annotated[
    bool, typer.Option("--accept-new-host-key", help="Take an unknown SSH host's key into known_hosts.")
]
