"""Finds the asm statements of a preprocessed C or C++ file.

A word `asm` is one of three things: a statement (translated), a label on a declaration (`int f(void) asm("g");`, left
alone) or assembly outside of functions (refused). What comes from the compiler's own headers and from the emulator's
is for this machine and left alone.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hexnpu.emucc.errors import AsmError

# Comments (of -C), literals, numbers with C++ digit separators, line markers, and what gives a place its depth.
_TOKEN = re.compile(
    r"""
      (?P<skip> //[^\n]* | /\*.*?\*/
        | (?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?\)(?P=delim)"
        | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*'
        | \b\d[\w.]*(?:'[\w.]+)*
        | ^\#[^\n]* )
    | (?P<transparent> \bextern\s*"C(?:\+\+)?"\s*\{ | \bnamespace\b[^;{}()="]*\{ )
    | (?P<open> \{ ) | (?P<close> \} )
    | \b(?P<asm> asm | __asm__ | __asm )\b
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\\n]|\\.)*)"((?: \d)*)[ \t]*$', re.MULTILINE)
_QUALIFIERS = re.compile(r"\s*(?:(?:volatile|__volatile__|__volatile|inline|__inline__|__inline|goto)\b\s*)*")
_LAST_WORD = re.compile(r"([A-Za-z_]\w*|[^\s\w])\s*\Z")
_CONTROL = re.compile(r"\b(if|while|for|switch)\s*(constexpr\s*)?\Z")
_HAS_ASM = re.compile(r"\basm\b|\b__asm(?:__)?\b")


@dataclass(frozen=True)
class Statement:
    """One asm statement: where it stands in the text (without its semicolon), and in the source."""

    start: int
    end: int
    body: str  # between the parentheses
    file: str
    line: int


@dataclass(frozen=True)
class Finding:
    """An asm that cannot be taken at all, for the list of errors."""

    file: str
    line: int
    text: str


class Places:
    """File and line of a place in the text, by its line markers."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._markers = [
            (m.end(), int(m[1]), m[2].replace("\\\\", "\\").replace('\\"', '"'), " 3" in m[3])
            for m in _MARKER.finditer(text)
        ]
        self._ends = [m[0] for m in self._markers]

    def at(self, offset: int) -> tuple[str, int, bool]:
        """File, line, and whether the marker calls it a system header."""
        i = bisect.bisect_right(self._ends, offset) - 1
        if i < 0:
            return "<input>", 1 + self._text.count("\n", 0, offset), False
        end, line, file, system = self._markers[i]
        return file, line - 1 + self._text.count("\n", end, offset), system


def find_statements(
    text: str, ours: Iterable[Path] = (), user_system: Iterable[str] = ()
) -> Iterator[Statement | Finding]:
    """The asm statements of `text` that are the DSP's.

    `ours`: folders of the emulator, whose assembly is for this machine. `user_system`: folders that the user included
    as system headers, which are DSP sources all the same.
    """
    if not _HAS_ASM.search(text):
        return
    places = Places(text)
    our_folders = tuple(f"{folder}/" for folder in ours)
    user_folders = tuple(f"{folder.rstrip('/')}/" for folder in user_system)
    depth = 0
    braces: list[bool] = []  # of each open brace, whether it counts
    done = 0
    for token in _TOKEN.finditer(text):
        if token.start() < done:
            continue
        if token["open"] or token["transparent"]:
            braces.append(bool(token["open"]))
            depth += braces[-1]
        elif token["close"]:
            depth -= braces.pop() if braces else False
        elif token["asm"]:
            file, line, system = places.at(token.start())
            if file.startswith(our_folders) or (system and not file.startswith(user_folders)):
                continue
            try:
                found = _statement(text, token.start(), token.end(), depth, file, line)
            except AsmError as error:
                yield Finding(file, line, str(error))
                continue
            if found:
                done = found.end
                yield found


def _statement(text: str, start: int, word_end: int, depth: int, file: str, line: int) -> Statement | None:
    """The statement at the word asm; None: a label."""
    qualifiers = _QUALIFIERS.match(text, word_end)
    assert qualifiers is not None
    at = qualifiers.end()
    if text[at : at + 1] != "(":
        if text[at : at + 1] == "{":
            raise AsmError("asm { ... } is Microsoft's form and not translated")
        return None
    end = closing(text, at)
    if not qualifiers[0].strip() and _is_label(text[max(0, start - 400) : start]):
        return None
    if depth == 0:
        raise AsmError("assembly outside of functions cannot be translated: write it in C")
    if re.search(r"\bgoto\b", qualifiers[0]):
        raise AsmError("asm goto is not translated")
    return Statement(start, end + 1, text[at + 1 : end], file, line)


def _is_label(before: str) -> bool:
    """Whether what stands before the word asm is a declarator."""
    before = re.sub(r"^#[^\n]*$", "", before, flags=re.MULTILINE)
    last = _LAST_WORD.search(before)
    if not last:
        return False
    word = last[1]
    if word == ")":
        depth = 0
        for i in range(last.start(1), -1, -1):
            depth += {")": 1, "(": -1}.get(before[i], 0)
            if depth == 0:
                return not _CONTROL.search(before[:i].rstrip())
        return True
    return word == "]" or ((word[0].isalpha() or word[0] == "_") and word not in ("else", "do"))


_NESTED = re.compile(r'(?P<skip>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|^#[^\n]*)|[()\[\]{},:?]', re.MULTILINE)


def closing(text: str, at: int) -> int:
    """The place of the parenthesis that closes the one at `at`."""
    depth = 0
    for token in _NESTED.finditer(text, at):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
            if depth == 0:
                return token.start()
    raise AsmError("a parenthesis of asm is not closed")


def split(text: str, separator: str) -> list[str]:
    """The parts between separators that stand outside of parentheses and literals."""
    parts, depth, begin = [], 0, 0
    for token in _NESTED.finditer(text):
        if token["skip"]:
            continue
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        elif token[0] == separator and depth == 0:
            # `::` is C++'s scope only between names; in an asm it is an empty list
            parts.append(text[begin : token.start()])
            begin = token.end()
    return [*parts, text[begin:]]
