"""Text of an interface file -> tokens, comments gone, every token with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from hexnpu.idl.place import IdlError, Place


class Kind(Enum):
    NAME = auto()
    NUMBER = auto()
    STRING = auto()
    CHAR = auto()
    SIGN = auto()
    END = auto()


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str
    place: Place

    def at(self, place: Place) -> Token:
        return replace(self, place=place)


_QUOTED = r'"(?:[^"\\\n]|\\.)*"', r"'(?:[^'\\\n]|\\.)+'"
_COMMENT = re.compile(rf"(?P<quoted>{'|'.join(_QUOTED)})|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<open>/\*)", re.DOTALL)
_TOKEN = re.compile(
    r"(?P<space>[ \t\r\f\v]+)"
    r"|(?P<number>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|0[xX][0-9a-fA-F]+|\d+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    rf"|(?P<string>{_QUOTED[0]})|(?P<char>{_QUOTED[1]})"
    r"|(?P<sign>::|<<|>>|[][{}()<>;:,=+\-*/%|&^~!#])"
)
_KINDS = {"number": Kind.NUMBER, "name": Kind.NAME, "string": Kind.STRING, "char": Kind.CHAR, "sign": Kind.SIGN}


def strip_comments(text: str, path: str) -> str:
    """The text with a space for each comment; line breaks stay, so that every place stays."""

    def blank(match: re.Match[str]) -> str:
        if match["open"]:
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            raise IdlError(Place(path, line, column), "this comment is never closed; add */")
        return match["quoted"] or re.sub(r"[^\n]", " ", match["comment"])

    return _COMMENT.sub(blank, text)


def tokens_of_line(text: str, path: str, line: int) -> list[Token]:
    """The tokens of one line without comments."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        place = Place(path, line, position + 1)
        match = _TOKEN.match(text, position)
        if match is None:
            raise IdlError(place, _stray(text[position]))
        position = match.end()
        if match.lastgroup == "space":
            continue
        if match.lastgroup == "number" and re.match(r"[\w.]", text[position : position + 1]):
            raise IdlError(place, f"{match[0]}{text[position]}... is not a number; write digits without a suffix")
        tokens.append(Token(_KINDS[str(match.lastgroup)], match[0], place))
    return tokens


def _stray(character: str) -> str:
    if character in "\"'":
        return f"this {character} has no end on its line; close it"
    return f"{character!r} means nothing here; remove it"
