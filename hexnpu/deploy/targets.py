"""Targets: where a package goes and where its programs run. One table of forms, one parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hexnpu.errors import UsageError

# Word -> kind. The word that the user typed also names the build and package folders.
WORDS = {
    "android": "android",
    "adb": "android",
    "linux": "linux",
    "lnx": "linux",
    "ubuntu": "linux",
    "windows": "windows",
    "wos": "windows",
    "emu": "emu",
    "qemu": "qemu",
}

FORMS = (
    "android[:serial] (or adb), linux:[user@]host[:port] (or lnx:, ubuntu:), windows (or wos), "
    "windows:[user@]host[:port], emu, qemu, or nothing for this machine"
)

# Neither may begin with a dash, and none of these characters needs care anywhere.
_HOST = re.compile(r"\[(?P<v6>[0-9A-Fa-f:.]+(%[\w.-]+)?)\]|(?P<name>[^\W-][\w.-]*)")
_USER = re.compile(r"[^\s:\x00-\x1f-][^\s:\x00-\x1f]*")
_SERIAL = re.compile(r"[^\s\x00-\x1f]+")


@dataclass(frozen=True)
class Target:
    """`kind` is android, linux, windows, emu, qemu or local; `word` is the alias that was typed ("local" if none)."""

    kind: str
    word: str
    serial: str | None = None
    user: str | None = None
    host: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        if self.serial is not None:
            return f"{self.word}:{self.serial}"
        if self.host is None:
            return self.word
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f":{self.port}"
        return f"{self.word}:{user}{host}{port}"

    @property
    def here(self) -> bool:
        """Whether programs run on this machine."""
        return self.serial is None and self.host is None and self.kind != "android"


LOCAL = Target("local", "local")


def parse_target(text: str | None) -> Target:
    """The target of a `--target` value; None is this machine. Raises UsageError, which lists the forms."""
    if text is None:
        return LOCAL
    word, colon, rest = text.partition(":")
    kind = WORDS.get(word)
    if kind == "android" and (not colon or _SERIAL.fullmatch(rest)):
        return Target(kind, word, serial=rest if colon else None)
    if kind in ("windows", "emu", "qemu") and not colon:
        return Target(kind, word)
    if kind in ("linux", "windows") and colon:
        target = _parse_host(kind, word, rest)
        if target:
            return target
    raise UsageError(f"target {text!r} is none of: {FORMS}")


def _parse_host(kind: str, word: str, rest: str) -> Target | None:
    user, at, address = rest.rpartition("@")
    if at and not _USER.fullmatch(user):
        return None
    host = _HOST.match(address)
    if not host:
        return None
    tail = address[host.end() :]
    port = re.fullmatch(r":([0-9]{1,5})", tail, re.ASCII)
    if tail and (not port or not 1 <= int(port[1]) <= 65535):
        return None
    return Target(
        kind, word, user=user if at else None, host=host["v6"] or host["name"], port=int(port[1]) if port else None
    )
