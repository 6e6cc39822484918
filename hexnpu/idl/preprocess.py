"""Directives: #include, include guards, #define of plain names, #if of what is defined.

A file is found beside the one that includes it, then in the folders of -I; AEEStdDef.idl and remote.idl are always
this package's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hexnpu.errors import UsageError
from hexnpu.idl.lexer import Kind, Token, strip_comments, tokens_of_line
from hexnpu.idl.place import IdlError, Place
from hexnpu.native import kernels_dir

OWN_FILES = ("AEEStdDef.idl", "remote.idl")
MAX_DEPTH = 32
_INCLUDE = re.compile(r"""\s*#\s*(?P<word>include)\s*["<](?P<name>[^"<>]+)[">]\s*$""")


@dataclass
class Branch:
    """An #if that is open."""

    place: Place
    taken: bool  # one of its parts has been read
    active: bool  # this part is being read
    has_else: bool = False


@dataclass
class Preprocessor:
    """Reads files into one list of tokens. `included` holds the names of the files that were read on the way."""

    folders: Sequence[Path]
    tokens: list[Token] = field(default_factory=list)
    macros: dict[str, list[Token]] = field(default_factory=dict)
    included: dict[str, None] = field(default_factory=dict)
    _once: set[Path] = field(default_factory=set)
    _open: list[Path] = field(default_factory=list)

    def read(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        self._open.append(path)
        branches: list[Branch] = []
        lines = strip_comments(text, str(path)).split("\n")
        number = 0
        while number < len(lines):
            first = number
            line = lines[number].rstrip("\r")
            while line.endswith("\\") and number + 1 < len(lines):
                number += 1
                line = line[:-1] + " " + lines[number].rstrip("\r")
            number += 1
            if include := _INCLUDE.match(line):
                if _is_live(branches):
                    self._include(include["name"], Place(str(path), first + 1, include.start("word") + 1), path)
            elif line.lstrip().startswith("#"):
                self._directive(tokens_of_line(line, str(path), first + 1), line, branches)
            elif _is_live(branches):
                for token in tokens_of_line(line, str(path), first + 1):
                    self.tokens += self._expand(token, ())
        if branches:
            raise IdlError(branches[-1].place, "this #if has no #endif; add one")
        self._open.pop()
        if not self._open:
            last = self.tokens[-1] if self.tokens else Token(Kind.END, "", Place(str(path), 1, 1))
            end = replace(last.place, column=last.place.column + len(last.text))
            self.tokens.append(Token(Kind.END, "the end of the file", end))

    def _directive(self, tokens: list[Token], line: str, branches: list[Branch]) -> None:
        if len(tokens) == 1:
            return
        name, rest, place = tokens[1].text, tokens[2:], tokens[1].place
        if name in ("if", "ifdef", "ifndef"):
            live = _is_live(branches)
            holds = live and self._holds(name, rest, place)
            branches.append(Branch(place, taken=holds or not live, active=holds))
        elif name in ("elif", "else", "endif"):
            self._next_part(name, rest, place, branches)
        elif not _is_live(branches):
            return
        elif name == "include":
            raise IdlError(place, '#include needs a file name; write #include "NAME.idl"')
        elif name == "define":
            self._define(rest, place)
        elif name == "undef":
            self.macros.pop(_one_name(rest, place, name), None)
        elif name == "pragma":
            if [token.text for token in rest] == ["once"]:
                self._once.add(self._open[-1].resolve())
        elif name == "error":
            raise IdlError(place, f"the file says: {line.split('error', 1)[1].strip()}")
        else:
            raise IdlError(place, f"#{name} is not supported; remove it")

    def _next_part(self, name: str, rest: list[Token], place: Place, branches: list[Branch]) -> None:
        if not branches:
            raise IdlError(place, f"#{name} without an #if; remove it")
        if name == "endif":
            branches.pop()
            return
        branch = branches[-1]
        if branch.has_else:
            raise IdlError(place, f"#{name} after #else; there can be only one")
        branch.has_else = name == "else"
        branch.active = not branch.taken and (name == "else" or self._holds("if", rest, place))
        branch.taken |= branch.active

    def _holds(self, name: str, rest: list[Token], place: Place) -> bool:
        if name != "if":
            return (_one_name(rest, place, name) in self.macros) == (name == "ifdef")
        words = [token.text for token in rest if token.text not in ("(", ")")]
        wanted = True
        if words[:1] == ["!"]:
            words, wanted = words[1:], False
        if len(words) == 2 and words[0] == "defined":
            return (words[1] in self.macros) == wanted
        if len(words) == 1 and words[0].isdecimal():
            return (int(words[0]) != 0) == wanted
        raise IdlError(place, "this #if is not supported; write a number, defined(NAME) or !defined(NAME)")

    def _define(self, rest: list[Token], place: Place) -> None:
        if not rest or rest[0].kind is not Kind.NAME:
            raise IdlError(place, "#define needs a name")
        name = rest[0]
        if len(rest) > 1 and rest[1].text == "(" and rest[1].place.column == name.place.column + len(name.text):
            raise IdlError(name.place, f"{name.text}(...) is a macro with arguments, which is not supported; use const")
        self.macros[name.text] = rest[1:]

    def _include(self, name: str, place: Place, path: Path) -> None:
        found = self._find(name, place, path)
        self.included[name] = None
        if found.resolve() in self._once:
            return
        if len(self._open) > MAX_DEPTH:
            raise IdlError(place, f'"{name}" includes itself without end; guard it with #ifndef and #define')
        self.read(found)

    def _find(self, name: str, place: Place, path: Path) -> Path:
        if name in OWN_FILES:
            return kernels_dir() / "platform/hexagon/sdk" / name
        folders = [path.parent, *self.folders]
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        looked = ", ".join(map(str, dict.fromkeys(folders)))
        raise IdlError(place, f'"{name}" is not in {looked}; give its folder with -I')

    def _expand(self, token: Token, inside: tuple[str, ...]) -> list[Token]:
        """The token, or what its name is defined as, at the token's own place."""
        if token.kind is not Kind.NAME or token.text not in self.macros or token.text in inside:
            return [token]
        parts = (part.at(token.place) for part in self.macros[token.text])
        return [t for part in parts for t in self._expand(part, (*inside, token.text))]


def _is_live(branches: list[Branch]) -> bool:
    return all(branch.active for branch in branches)


def _one_name(rest: list[Token], place: Place, directive: str) -> str:
    if not rest or rest[0].kind is not Kind.NAME:
        raise IdlError(place, f"#{directive} needs a name")
    return rest[0].text
