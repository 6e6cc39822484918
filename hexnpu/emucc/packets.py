"""The template of an asm statement: labels, packets, instructions.

An instruction becomes a string without blanks, in small letters; `@` stands before an operand's number, and before that
number H or L where a half of a register pair is meant: "%0 = memw(%1 + #4)" is "@0=memw(@1+#4)".
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from hexnpu.emucc.errors import AsmError
from hexnpu.emucc.statement import Parsed

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPERAND = re.compile(r"%(?:([HLI]?)(\d+)|([HLI]?)\[(\w+)\]|(%)|(=))")
_LABEL = re.compile(r"\s*(\d+|[A-Za-z_.$][\w.$]*)\s*:(?![\d<])")
_unique = itertools.count(1)


@dataclass(frozen=True)
class Instruction:
    """`text` is the canonical form, `source` what errors quote."""

    text: str
    source: str


@dataclass(frozen=True)
class Packet:
    """Instructions that read before any of them writes."""

    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Label:
    """A place to jump to."""

    name: str


def parse_template(parsed: Parsed) -> list[Packet | Label]:
    """The packets and labels of a statement, in order."""
    found: list[Packet | Label] = []
    packet: list[Instruction] | None = None
    unique = next(_unique)
    text = _COMMENT.sub(" ", parsed.template.replace("\t", " "))
    for part in re.findall(r"[{}]|[^{};\n]+", text):
        if part == "{":
            if packet is not None:
                raise AsmError("a packet within a packet")
            packet = []
        elif part == "}":
            if packet is None:
                raise AsmError("a '}' that closes no packet")
            if packet:
                found.append(Packet(tuple(packet)))
            packet = None
        else:
            while label := _LABEL.match(part):
                if packet is not None:
                    raise AsmError(f"the label {label[1]} within a packet")
                found.append(Label(label[1].lower()))
                part = part[label.end() :]
            if not part.strip():
                continue
            instruction = _instruction(part, parsed, unique)
            if packet is None:
                found.append(Packet((instruction,)))
            else:
                packet.append(instruction)
    if packet is not None:
        raise AsmError("a packet is not closed")
    return found


def _instruction(source: str, parsed: Parsed, unique: int) -> Instruction:
    def operand(match: re.Match[str]) -> str:
        if match[5] or match[6]:
            return "%" if match[5] else str(unique)
        number = int(match[2]) if match[2] else parsed.number(match[4])
        if number >= len(parsed.operands):
            raise AsmError(f"'{source.strip()}' uses operand %{number}, of {len(parsed.operands)}")
        if re.match(r"\s+\d", source[match.end() :]):
            raise AsmError(f"'{source.strip()}' has a number behind %{number}")
        half = match[1] or match[3] or ""
        return f"@{half if half != 'I' else ''}{number}"

    pieces, done = [], 0
    for match in _OPERAND.finditer(source):
        pieces += [source[done : match.start()].lower(), operand(match)]
        done = match.end()
    pieces.append(source[done:].lower())
    return Instruction("".join("".join(pieces).split()), " ".join(source.split()))
