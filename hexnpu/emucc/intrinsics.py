"""Instructions that have an intrinsic, by the list of assembly syntax that clang's own headers carry.

hexagon_protos.h and hvx_hexagon_protos.h of the ziglang package say of each intrinsic how its instruction is written;
the emulator has the intrinsics under the same names. An operand %k may be a register or a pair: where both exist, the
size of its C type decides, when the translated source is compiled.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from hexnpu.emucc.errors import AsmError
from hexnpu.emucc.registers import Registers, register_class
from hexnpu.emucc.values import is_pair
from hexnpu.native import kernels_dir

_ENTRY = re.compile(r"Assembly Syntax:\s*(.+?)\n\s*C Intrinsic Prototype:\s*(\w+) (\w+)\(([^)]*)\)")
# A register of the syntax: Rs32, Rss32, Vu32, Vvv32, Qs4, Pd4, Mu2, Rt8; or an immediate: #s8, #U6
_PLACE = re.compile(r"\b(?:([RVQP])([a-z])(\2)?\d+)|#([usmUSM]\d+)")
_TOKEN = re.compile(r"@[HL]?\d+|\b[rv]\d+:\d+|\b[rvqp]\d+\b|\b(?:sp|fp|lr)\b|##?(?:@\d+|-?(?:0x[0-9a-f]+|\d+))")
_CLASSES = {("R", False): "r", ("R", True): "pair", ("V", False): "v", ("V", True): "w"}
_SKIPPED = re.compile(r"\+\+|\bM[a-z]2\b|\.new|:circ|:brev|vgather")


@dataclass(frozen=True)
class Intrinsic:
    """An intrinsic and, for each place of its syntax in order, its class and name (of its argument)."""

    name: str
    places: tuple[tuple[str, str], ...]  # (class, name as in the prototype)
    arguments: tuple[tuple[str, str], ...]  # (C type, name)
    is_void: bool


@functools.lru_cache
def _table() -> dict[str, list[Intrinsic]]:
    """Shape -> intrinsics; in a shape every place is `?`."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return {}
    include = Path(next(iter(spec.submodule_search_locations))) / "lib/include"
    table: dict[str, list[Intrinsic]] = {}
    for header in ("hexagon_protos.h", "hvx_hexagon_protos.h"):
        for syntax, result, name, prototype in _ENTRY.findall((include / header).read_text()):
            if _SKIPPED.search(syntax):
                continue
            arguments = tuple(_argument(words) for words in prototype.split(",") if words.strip())
            shape = _PLACE.sub("?", syntax).lower().replace(" ", "")
            intrinsic = Intrinsic(name, tuple(map(_place, _PLACE.finditer(syntax))), arguments, result == "void")
            table.setdefault(shape, []).append(intrinsic)
    return table


def _argument(words: str) -> tuple[str, str]:
    """C type and name of a prototype's argument; HVX_Vector is a macro, which a preprocessed source has no longer."""
    ctype, _, name = words.replace("*", "* ").strip().rpartition(" ")
    ctype = ctype.replace(" ", "").replace("Address", "void*").replace("HVX_VectorPred", "emu_asm_predicate")
    return ctype.replace("HVX_Vector", "emu_asm_vector"), name


@functools.lru_cache
def _emulated() -> frozenset[str]:
    """The intrinsics that the emulator has."""
    headers = (kernels_dir() / "platform/emu").rglob("*.h")
    return frozenset(name for header in headers for name in re.findall(r"\bQ6_\w+", header.read_text()))


def _place(match: re.Match[str]) -> tuple[str, str]:
    letter, index, double, immediate = match.groups()
    if immediate:
        return "immediate", f"I{immediate}"
    kind = {"Q": "q", "P": "p"}.get(letter) or _CLASSES[letter, bool(double)]
    return kind, f"{letter}{index}{double or ''}"


def translate_intrinsic(registers: Registers, text: str) -> bool:
    """Writes the C of an instruction that has an intrinsic; False: it has none."""
    tokens = _TOKEN.findall(text)
    candidates = [i for i in _table().get(_TOKEN.sub("?", text), ()) if _fits(registers, i, tokens)]
    if not candidates:
        return False
    there = [i for i in candidates if i.name in _emulated()]
    if not there:
        raise AsmError(f"the intrinsic {candidates[0].name} is not emulated")
    if len(there) == 1:
        _call(registers, there[0], tokens)
        if len(candidates) > 1:
            for token, kind in dict(zip(tokens, (kind for kind, _ in there[0].places), strict=True)).items():
                _insist(registers, token, kind)
        return True
    candidates = there
    # The same text for registers and for pairs: an operand's C type tells
    for place, token in enumerate(tokens):
        kinds = [i.places[place][0] for i in candidates]
        if len(set(kinds)) == len(candidates) and token.startswith("@"):
            _choose(registers, candidates, tokens, place)
            return True
    raise AsmError("which registers are meant cannot be told from its operands")


def _fits(registers: Registers, intrinsic: Intrinsic, tokens: list[str]) -> bool:
    if len(intrinsic.places) != len(tokens):
        return False
    named: dict[str, str] = {}
    for (kind, name), token in zip(intrinsic.places, tokens, strict=True):
        if named.setdefault(name, token) != token:  # Rx stands twice in an accumulating form
            return False
        if token.startswith("#"):
            if kind != "immediate":
                return False
        elif token.startswith("@"):
            of = registers.operand(int(token.lstrip("@HL"))).kind
            wanted = {"v": "vector", "w": "vector", "q": "predicate", "immediate": "immediate"}.get(kind, "scalar")
            if of != wanted:
                return False
        elif (register_class(token) or "r") != kind:
            return False
    return True


def _arguments(registers: Registers, intrinsic: Intrinsic, tokens: list[str]) -> str:
    values = dict(zip((name for _, name in intrinsic.places), tokens, strict=True))
    kinds = {name: kind for kind, name in intrinsic.places}
    read = {
        "r": registers.r, "pair": registers.pair, "v": registers.vector, "w": registers.vector_pair,
        "q": registers.predicate_vector, "p": registers.predicate, "immediate": registers.immediate,
    }  # fmt: skip
    names = {name for _, name in intrinsic.arguments}
    left = [name for _, name in intrinsic.places[not intrinsic.is_void :] if name not in names]
    # The intrinsic of vmem(Rt+#s4) takes no offset: a vector each, it goes into the address.
    offset = "".join(f" + 128 * (__INTPTR_TYPE__){registers.immediate(values[name])}" for name in left)
    n_pointers = sum(ctype.endswith("*") for ctype, _ in intrinsic.arguments)
    if any(name not in values for name in names) or (left and (left != ["Is4"] or n_pointers != 1)):
        raise AsmError(f"the intrinsic {intrinsic.name} has other operands")
    found = []
    for ctype, argument in intrinsic.arguments:
        if ctype.endswith("*"):
            found.append(f"({ctype})({registers.address(values[argument])}{offset})")
        else:
            found.append(read[kinds[argument]](values[argument]))
    return ", ".join(found)


def _insist(registers: Registers, token: str, kind: str) -> None:
    """The operand must be as wide as the one intrinsic that there is takes it; the compiler says where it is not."""
    if not re.fullmatch(r"@\d+", token):
        return
    expression = registers.operand(int(token[1:])).expression
    holds = {
        "r": f"!{is_pair(expression)}", "pair": is_pair(expression),
        "v": f"sizeof({expression}) == 128", "w": f"sizeof({expression}) == 256",
    }.get(kind)  # fmt: skip
    if holds:
        registers.lines.append(f'_Static_assert({holds}, "this instruction is not emulated for operands so wide");')


def _value(registers: Registers, intrinsic: Intrinsic, tokens: list[str]) -> str:
    return f"{intrinsic.name}({_arguments(registers, intrinsic, tokens)})"


def _call(registers: Registers, intrinsic: Intrinsic, tokens: list[str]) -> None:
    if intrinsic.is_void:
        registers.run(f"{_value(registers, intrinsic, tokens)};")
    else:
        registers.write(tokens[0], intrinsic.places[0][0], _value(registers, intrinsic, tokens))


def _choose(registers: Registers, candidates: list[Intrinsic], tokens: list[str], place: int) -> None:
    """Both calls, of which the C type of the operand at `place` takes one."""
    wide, narrow = sorted(candidates, key=lambda i: i.places[place][0] not in ("pair", "w"))
    operand = registers.operand(int(tokens[place].lstrip("@HL"))).expression
    is_wide = f"sizeof({operand}) == 256" if wide.places[place][0] == "w" else is_pair(operand)
    yes, no = _value(registers, wide, tokens), _value(registers, narrow, tokens)
    kinds = {wide.places[0][0], narrow.places[0][0]}
    if wide.is_void:
        registers.run(f"if ({is_wide}) {yes}; else {no};")
    elif len(kinds) == 1:
        registers.write(tokens[0], wide.places[0][0], f"({is_wide}) ? {yes} : {no}")
    elif kinds == {"pair", "r"}:
        registers.write(tokens[0], "pair", f"({is_wide}) ? (__UINT64_TYPE__){yes} : (__UINT32_TYPE__){no}")
    else:
        both = f"if ({is_wide}) emu_p = {yes}; else *(emu_asm_vector *)&emu_p = {no};"
        registers.write(tokens[0], "either", f"__extension__({{ emu_asm_vector_pair emu_p = {{0}}; {both} emu_p; }})")
