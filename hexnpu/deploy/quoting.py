"""The one place that quotes for a shell of a target.

Users' login shells differ (sh, bash, zsh, fish, mksh on Android), so only what they all read alike is used: single
quotes around anything but `'` and `\\`, and those two behind a backslash outside of quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hexnpu.errors import UsageError

_SAFE = re.compile(r"[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*", re.ASCII)
# Of one command, in bytes: Linux takes 128 KiB, an adb service 64 KiB together with what wraps it.
_MAX_ARGUMENTS = 40_000
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


def batches(words: Iterable[str]) -> Iterator[list[str]]:
    """The words in groups that one command line can take."""
    batch: list[str] = []
    length = 0
    for word in words:
        size = len(encode(quote(word))) + 1
        if batch and length + size > _MAX_ARGUMENTS:
            yield batch
            batch, length = [], 0
        batch.append(word)
        length += size
    if batch:
        yield batch


def encode(text: str) -> bytes:
    """As the target gets it: UTF-8, and the bytes of file names that are not."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
