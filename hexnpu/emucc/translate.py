"""Translates a whole preprocessed file: every asm statement of the DSP becomes C on the same line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hexnpu.emucc.errors import AsmError
from hexnpu.emucc.forms import translate_form
from hexnpu.emucc.intrinsics import translate_intrinsic
from hexnpu.emucc.matrix import is_matrix, translate_matrix
from hexnpu.emucc.packets import Label, Packet, parse_template
from hexnpu.emucc.registers import U64, Registers
from hexnpu.emucc.scan import Finding, Statement, find_statements
from hexnpu.emucc.statement import Operand, Parsed, parse
from hexnpu.emucc.values import bits_of, of_bits

_CONDITION = re.compile(r"if(?:\((!?)(@\d+|p[0-3])(\.new)?\)|(!?)(p[0-3])(\.new)?(?=jump))(.*)", re.DOTALL)
_JUMP = re.compile(r"jump(?::n?t)?([a-z_.$\d][\w.$]*)")
_NEWLINES = re.compile(r"\n(?:#[^\n]*(?=\n))?")
_statements = itertools.count(1)


@dataclass(frozen=True)
class Diagnostic:
    """An error of the translation."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: error: {self.text}"


def translate(
    text: str, cplusplus: bool, ours: Sequence[Path] = (), user_system: Sequence[str] = ()
) -> tuple[str, list[Diagnostic]]:
    """The translated text and the errors in it."""
    pieces: list[str] = []
    errors: list[Diagnostic] = []
    done = 0
    for found in find_statements(text, ours, user_system):
        if isinstance(found, Finding):
            errors.append(Diagnostic(found.file, found.line, found.text))
            continue
        try:
            code = translate_statement(found, cplusplus)
        except AsmError as error:
            errors.append(Diagnostic(found.file, found.line, str(error)))
            continue
        # The lines and line markers within the statement stay, behind it.
        lines = "".join(m[0] for m in _NEWLINES.finditer(text[found.start : found.end]))
        pieces += [text[done : found.start], code, lines]
        done = found.end
    return "".join([*pieces, text[done:]]), errors


def translate_statement(statement: Statement, cplusplus: bool) -> str:
    """C for one asm statement, on one line, without the semicolon behind it."""
    parsed = parse(statement.body)
    parts = parse_template(parsed)
    if not parts:
        return _barrier(parsed)
    registers = Registers(parsed)
    labels = _labels(parts, next(_statements))
    body: list[str] = []
    for i, part in enumerate(parts):
        if isinstance(part, Label):
            body.append(f"{labels[i, part.name]}: __attribute__((unused));")
            continue
        registers.lines = []
        _packet(registers, part, i, labels)
        body.append(f"{{ {' '.join(registers.lines)} }}")
    lines = [*_before(parsed, cplusplus), *registers.declarations(), *body, *_after(parsed, cplusplus)]
    return f"do {{ {' '.join(' '.join(lines).split())} }} while (0)"


def _packet(registers: Registers, packet: Packet, place: int, labels: dict[tuple[int, str], str]) -> None:
    try:
        if is_matrix(packet):
            if not translate_matrix(registers, packet):
                raise AsmError("a form of the matrix unit that is not emulated")
        else:
            # What loads for the packet's other instructions comes before them.
            for instruction in sorted(packet.instructions, key=lambda i: not re.match(r"[@v]\d+\.(cur|tmp)=", i.text)):
                _instruction(registers, instruction.text, place, labels)
        registers.end_packet()
    except AsmError as error:
        text = "; ".join(i.source for i in packet.instructions)
        raise AsmError(f"cannot translate the instruction '{text}' for the emulator: {error}") from None


def _instruction(registers: Registers, text: str, place: int, labels: dict[tuple[int, str], str]) -> None:
    if (condition := _CONDITION.fullmatch(text)) and _is_scalar(registers, condition[2] or condition[5]):
        negated, token, new = (condition[i] or condition[j] for i, j in ((1, 4), (2, 5), (3, 6)))
        value = registers.new_value(token) if new else registers.predicate(token)
        registers.under(f"{'!' if negated else ''}({value} & 1)")
        _instruction(registers, condition[7], place, labels)
        registers.done_under()
    elif jump := _JUMP.fullmatch(text):
        registers.jump(_target(labels, jump[1], place))
    elif not translate_form(registers, text) and not translate_intrinsic(registers, text):
        raise AsmError("it is unknown")


def _is_scalar(registers: Registers, token: str) -> bool:
    return not token.startswith("@") or registers.operand(int(token[1:])).kind == "scalar"


def _labels(parts: Sequence[Packet | Label], number: int) -> dict[tuple[int, str], str]:
    """(place, name) of each label -> the C label."""
    return {(i, part.name): f"emu_l{number}_{i}" for i, part in enumerate(parts) if isinstance(part, Label)}


def _target(labels: dict[tuple[int, str], str], name: str, place: int) -> str:
    """The C label that a jump from `place` means: 1b the last `1:` before it, 1f the next one."""
    if name[:-1].isdigit() and name[-1] in "bf":
        wanted = [i for i, label in labels if label == name[:-1] and (i < place) == (name[-1] == "b")]
        wanted = wanted[-1:] if name[-1] == "b" else wanted[:1]
        name = name[:-1]
    else:
        wanted = [i for i, label in labels if label == name]
    if not wanted:
        raise AsmError(f"the label {name} is not in the statement")
    return labels[wanted[0], name]


def _before(parsed: Parsed, cplusplus: bool) -> list[str]:
    """The operands' variables with what they hold at first."""
    lines = []
    for i, operand in enumerate(parsed.operands):
        if operand.matches >= 0:
            continue
        lines.append(f"{_declaration(i, operand, cplusplus)} (void)emu_{i};")
    for operand in parsed.operands:
        if operand.matches >= 0:
            of = parsed.operands[operand.matches]
            plain = of.kind in ("vector", "predicate")
            value = operand.expression if plain else bits_of(operand.expression, cplusplus)
            lines.append(f"emu_{operand.matches} = {value};")
    return lines


def _declaration(number: int, operand: Operand, cplusplus: bool) -> str:
    expression = operand.expression
    if operand.kind in ("vector", "predicate"):
        return f"__typeof__({expression}) emu_{number}{f' = ({expression})' if operand.is_read else ' = {0}'};"
    if operand.kind == "memory":
        return f"{U64} emu_{number} = (__UINTPTR_TYPE__)&({expression});"
    return f"{U64} emu_{number} = {bits_of(expression, cplusplus) if operand.is_read else '0'};"


def _after(parsed: Parsed, cplusplus: bool) -> list[str]:
    """What outputs become; "memory" among the clobbers keeps accesses on their side."""
    lines = ["__atomic_signal_fence(__ATOMIC_SEQ_CST);"] if "memory" in parsed.clobbers else []
    for i, operand in enumerate(parsed.operands):
        if not operand.is_output or operand.kind == "memory":
            continue
        plain = operand.kind in ("vector", "predicate")
        value = f"emu_{i}" if plain else of_bits(operand.expression, f"emu_{i}", cplusplus)
        lines.append(f"{operand.expression} = {value};")
    return lines


def _barrier(parsed: Parsed) -> str:
    """An asm without instructions: the compiler may not see through it."""
    outputs = [o for o in parsed.operands if o.is_output]
    inputs = [o for o in parsed.operands if not o.is_output]
    lines = [f'__asm__ __volatile__("" : "+m"({o.expression}) : : "memory");' for o in outputs]
    lines += [f"(void)({o.expression});" for o in inputs]
    return f'do {{ {" ".join(" ".join(lines).split())} __asm__ __volatile__("" ::: "memory"); }} while (0)'

