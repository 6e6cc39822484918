"""One asm statement: its template, its operands and its clobbers."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from hexnpu.emucc.errors import AsmError
from hexnpu.emucc.scan import split

_LITERAL = re.compile(r'(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"')
_OPERAND = re.compile(
    r'\s*(?:\[\s*(?P<name>\w+)\s*\]\s*)?(?P<constraint>(?:"(?:[^"\\]|\\.)*"\s*)+)\((?P<expression>.*)\)\s*\Z', re.DOTALL
)
_MARKER_LINE = re.compile(r"^#[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class Operand:
    """`[name] "constraint" (expression)`; kind: scalar, vector, predicate (of vectors), immediate or memory."""

    name: str
    constraint: str
    expression: str
    kind: str
    is_output: bool
    is_read: bool
    matches: int = -1  # an input that shares the register of this output


@dataclass(frozen=True)
class Parsed:
    """A statement as its parts."""

    template: str
    operands: tuple[Operand, ...]
    clobbers: tuple[str, ...]

    def number(self, name: str) -> int:
        """The number of the operand called `name`."""
        for i, operand in enumerate(self.operands):
            if operand.name == name:
                return i
        raise AsmError(f"no operand is called [{name}]")


def parse(body: str) -> Parsed:
    """The parts of what stands between asm's parentheses."""
    sections = split(_MARKER_LINE.sub("", body), ":")
    if len(sections) > 4:
        raise AsmError("too many ':' in asm")
    sections += [""] * (4 - len(sections))
    outputs = [_operand(part, True) for part in _list(sections[1])]
    inputs = [_operand(part, False) for part in _list(sections[2])]
    operands = outputs + inputs
    for operand in inputs:
        if operand.matches >= len(outputs):
            raise AsmError(f'constraint "{operand.constraint}" names no output')
    clobbers = tuple(_string(part) for part in _list(sections[3]))
    return Parsed(_string(sections[0]), tuple(operands), clobbers)


def _list(text: str) -> list[str]:
    return [part for part in split(text, ",") if part.strip()] if text.strip() else []


def _string(text: str) -> str:
    """The value of C string literals side by side."""
    literals = _LITERAL.findall(text)
    if _LITERAL.sub("", text).strip():
        raise AsmError(f"{' '.join(text.split())} is not a string literal")
    return "".join(_value(literal) for literal in literals)


def _value(literal: str) -> str:
    inner = literal[literal.index('"') :]
    try:
        value = ast.literal_eval(inner)
    except (SyntaxError, ValueError):
        raise AsmError(f"the literal {literal} cannot be read") from None
    return str(value)


def _operand(text: str, is_output: bool) -> Operand:
    match = _OPERAND.match(text)
    if not match:
        raise AsmError(f"the operand {' '.join(text.split())} cannot be read")
    constraint = _string(match["constraint"])
    letters = constraint.strip("=+&%* ").replace("&", "")
    is_read = not is_output or "+" in constraint
    matches = int(letters) if letters.isdigit() else -1
    if is_output and not constraint.startswith(("=", "+")):
        raise AsmError(f'the output constraint "{constraint}" lacks = or +')
    if is_output and re.search(r"\+\+|--", match["expression"]):
        raise AsmError(f"the output {match['expression'].strip()} changes something: it would do so twice")
    name = match["name"] or ""
    return Operand(name, constraint, match["expression"].strip(), _kind(letters), is_output, is_read, matches)


def _kind(letters: str) -> str:
    """What kind of thing the letters of a constraint ask for; of several the register."""
    if not letters:
        raise AsmError("an operand without a constraint")
    if letters.isdigit():
        return "match"
    for kind, wanted in (("vector", "v"), ("predicate", "q"), ("scalar", "rgaX"), ("immediate", "insIJKLMNOP")):
        if any(letter in wanted for letter in letters):
            return kind
    if any(letter in "moVQ" for letter in letters):
        return "memory"
    raise AsmError(f'the constraint "{letters}" is unknown')
