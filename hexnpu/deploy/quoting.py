"""The one place that quotes for a shell of a target.

Users' login shells differ (sh, bash, zsh, fish, mksh on Android), so only what they all read alike is used: single
quotes around anything but `'` and `\\`, and those two behind a backslash outside of quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hexnpu.errors import UsageError

_SAFE = re.compile(r"[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*", re.ASCII)
_SPECIAL = re.compile(r"(['\\])")


def quote(text: str) -> str:
    """One word, exactly `text` after the shell has read it. Raises UsageError for a NUL, which no argument can hold."""
    if "\0" in text:
        raise UsageError(f"{text!r} has a NUL character, which no program can take as an argument")
    if _SAFE.fullmatch(text):
        return text
    parts = (f"\\{part}" if part in "'\\" else f"'{part}'" for part in _SPECIAL.split(text) if part)
    return "".join(parts) or "''"


def join(words: Iterable[str]) -> str:
    return " ".join(map(quote, words))


def encode(text: str) -> bytes:
    """As the target gets it: UTF-8, and the bytes of file names that are not."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
