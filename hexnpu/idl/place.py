"""Where something stands in an interface file, and the error that says so."""

from __future__ import annotations

from dataclasses import dataclass

from hexnpu.errors import HexnpuError


@dataclass(frozen=True)
class Place:
    """A file as the user named it, with line and column counted from 1."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class IdlError(HexnpuError):
    """Something in an interface file that cannot be taken."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(f"{place}: {text}")
        self.place = place
