"""Operands and registers of one asm statement as C variables.

A packet's instructions all read before any of them writes: a write goes into a temporary of its own, and the packet's
end copies the temporaries. `.new` reads a temporary. A register by name (r0, r1:0, p0, v0, q0) is a variable of the
statement; one that is read before the statement writes it holds what nobody knows, and is refused.
"""

from __future__ import annotations

import re

from hexnpu.emucc.errors import AsmError
from hexnpu.emucc.statement import Operand, Parsed

U32 = "__UINT32_TYPE__"
U64 = "__UINT64_TYPE__"
_BY_NAME = {
    "r": re.compile(r"r([0-9]|[12][0-9]|3[01])\Z"),
    "pair": re.compile(r"r([0-9]|[12][0-9]|3[01]):([0-9]|[12][0-9]|30)\Z"),
    "p": re.compile(r"p[0-3]\Z"),
    "v": re.compile(r"v([0-9]|[12][0-9]|3[01])\Z"),
    "w": re.compile(r"v([0-9]|[12][0-9]|3[01]):([0-9]|[12][0-9]|30)\Z"),
    "q": re.compile(r"q[0-3]\Z"),
}
_NAMED_TYPES = {"r": U32, "p": "unsigned char", "v": "emu_asm_vector", "q": "emu_asm_predicate"}
_ALIASES = {"sp": "r29", "fp": "r30", "lr": "r31"}


def register_class(token: str) -> str:
    """r, pair, p, v, w or q for a register by name; "" otherwise."""
    token = _ALIASES.get(token, token)
    return next((kind for kind, pattern in _BY_NAME.items() if pattern.match(token)), "")


class Registers:
    """Turns the operand texts of instructions into C expressions, and collects a statement's C lines."""

    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.lines: list[str] = []
        self._named: dict[str, str] = {}  # variable of a register by name -> its type
        self._written: set[str] = set()
        self._pending: dict[str, tuple[str, str]] = {}  # destination -> temporary, line that copies it
        self._current: dict[str, str] = {}  # vector -> what this packet has loaded into it by .cur or .tmp
        self._jumps: list[str] = []
        self._temporaries = 0
        self._conditions: list[str] = []

    # What instructions read

    def r(self, token: str) -> str:
        """A 32-bit value."""
        if token.startswith("@"):
            variable, half = self._operand(token, ("scalar", "immediate", "memory"))
            return f"(({U32})({variable}{' >> 32' if half == 'H' else ''}))"
        return self._read(_ALIASES.get(token, token), "r")

    def pair(self, token: str) -> str:
        """A 64-bit value."""
        if token.startswith("@"):
            return f"(({U64}){self._operand(token, ('scalar', 'immediate'))[0]})"
        match = _BY_NAME["pair"].match(token)
        if not match or int(match[1]) != int(match[2]) + 1:
            raise AsmError(f"{token} is not a register pair")
        high, low = self._read(f"r{match[1]}", "r"), self._read(f"r{match[2]}", "r")
        return f"((({U64}){high} << 32) | {low})"

    def address(self, token: str) -> str:
        """An address, as a number; a pointer operand with all its bits."""
        if token.startswith("@") and token[1:].isdigit():
            return f"((__UINTPTR_TYPE__){self._operand(token, ('scalar', 'immediate', 'memory'))[0]})"
        return f"((__UINTPTR_TYPE__){self.r(token)})"

    def vector(self, token: str) -> str:
        """An HVX vector."""
        if token in self._current:
            return self._current[token]
        if token.startswith("@"):
            return f"(*(emu_asm_vector *)&{self._operand(token, ('vector',))[0]})"
        return self._read(token, "v")

    def vector_pair(self, token: str) -> str:
        """A pair of HVX vectors."""
        if token.startswith("@"):
            return f"(*(emu_asm_vector_pair *)&{self._operand(token, ('vector',))[0]})"
        match = _BY_NAME["w"].match(token)
        if not match or int(match[1]) != int(match[2]) + 1:
            raise AsmError(f"{token} is not a pair of vectors")
        return f"emu_asm_combine({self._read(f'v{match[1]}', 'v')}, {self._read(f'v{match[2]}', 'v')})"

    def predicate_vector(self, token: str) -> str:
        """A vector predicate."""
        if token.startswith("@"):
            return f"(*(emu_asm_predicate *)&{self._operand(token, ('predicate',))[0]})"
        return self._read(token, "q")

    def predicate(self, token: str) -> str:
        """A scalar predicate, of which an operand's low byte counts."""
        if token.startswith("@"):
            return f"((unsigned char){self._operand(token, ('scalar',))[0]})"
        return self._read(token, "p")

    def immediate(self, token: str) -> str:
        """`#N`, `##N` or `#%k`."""
        text = token.lstrip("#")
        if text.startswith("@"):
            return f"((int){self._operand(text, ('immediate',))[0]})"
        try:
            return f"((int)0x{int(text, 0) & 0xFFFFFFFF:x}u)"
        except ValueError:
            raise AsmError(f"{token} is not a number") from None

    # What they write

    def write(self, token: str, kind: str, value: str) -> None:
        """Sends `value` to a register of class r, pair, p, v, w or q when the packet ends.

        Class either: a vector or a pair, as the operand's C type is; the value is a pair.
        """
        target, ctype, copy = self._target(token, kind)
        pending = self._pending.get(target)
        temporary = self._temporary()
        if self._conditions:
            old = pending[0] if pending else self._old(token, kind)
            self.lines.append(f"{ctype} {temporary} = {old}; if ({self._conditions[-1]}) {temporary} = {value};")
        else:
            self.lines.append(f"{ctype} {temporary} = {value};")
        self._pending[target] = (temporary, copy.replace("$", temporary))

    def load_current(self, token: str, value: str, keep: bool) -> None:
        """`v0.cur = ...`: the packet's other instructions read the value already; `v0.tmp = ...`: only they do."""
        self._current[token] = temporary = self._temporary()
        self.lines.append(f"emu_asm_vector {temporary} = {value};")
        if keep:
            self.write(token, "v", temporary)

    def run(self, statement: str) -> None:
        """A C statement with an effect of its own."""
        self.lines.append(f"if ({self._conditions[-1]}) {{ {statement} }}" if self._conditions else statement)

    def under(self, condition: str) -> None:
        """What follows, up to done_under(), happens where `condition` holds."""
        self._conditions.append(condition)

    def done_under(self) -> None:
        self._conditions.pop()

    def jump(self, label: str) -> None:
        """A jump when the packet has ended."""
        condition = f"if ({self._conditions[-1]}) " if self._conditions else ""
        self._jumps.append(f"{condition}goto {label};")

    def new_value(self, token: str) -> str:
        """`p0.new`, `r0.new`, `v0.new`: what this packet gives a register."""
        if token not in self._pending:
            raise AsmError(f"{token}.new, but nothing in the packet before it writes {token}")
        return self._pending[token][0]

    def end_packet(self) -> None:
        """Copies what the packet wrote, then jumps."""
        for target, (_, copy) in self._pending.items():
            self.lines.append(copy)
            self._written.update(target.split())
        self.lines += self._jumps
        self._pending, self._current, self._jumps = {}, {}, []

    def declarations(self) -> list[str]:
        """Of the registers by name."""
        return [f"{ctype} emu_{name} = {{0}}; (void)emu_{name};" for name, ctype in sorted(self._named.items())]

    # Inside

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"emu_t{self._temporaries}"

    def _operand(self, token: str, kinds: tuple[str, ...]) -> tuple[str, str]:
        """The variable of operand @k, and H or L for a half."""
        half, number = ("", token[1:]) if token[1].isdigit() else (token[1], token[2:])
        operand = self.operand(int(number))
        if operand.kind not in kinds:
            raise AsmError(f'operand %{number} ("{operand.constraint}") is no {kinds[0]}')
        return f"emu_{self._shared(int(number))}", half

    def operand(self, number: int) -> Operand:
        """Operand number k; of a matching one the output that it shares a register with."""
        return self.parsed.operands[self._shared(number)]

    def _shared(self, number: int) -> int:
        if number >= len(self.parsed.operands):
            raise AsmError(f"there is no operand %{number}")
        matches = self.parsed.operands[number].matches
        return number if matches < 0 else matches

    def _read(self, name: str, kind: str) -> str:
        if register_class(name) != kind:
            raise AsmError(f"{name} cannot stand here")
        if name not in self._written:
            raise AsmError(f"reads register {name}, which the statement has not written")
        return f"emu_{name}"

    def _old(self, token: str, kind: str) -> str:
        """What a register holds that a condition may leave alone."""
        if token.startswith("@"):
            return {
                "r": self.r, "pair": self.pair, "v": self.vector, "w": self.vector_pair,
                "q": self.predicate_vector, "p": self.predicate, "either": self.vector_pair,
            }[kind](token)  # fmt: skip
        names = [f"r{n}" for n in re.findall(r"\d+", token)] if kind == "pair" else [token]
        self._written.update(names)
        return self.pair(token) if kind == "pair" else self._read(token, kind)

    def _target(self, token: str, kind: str) -> tuple[str, str, str]:
        """Of a destination: its name, its C type, and the line that copies the temporary `$` into it."""
        token = _ALIASES.get(token, token)
        ctypes = _NAMED_TYPES | {"pair": U64, "w": "emu_asm_vector_pair", "either": "emu_asm_vector_pair"}
        if token.startswith("@"):
            wanted = {"v": "vector", "w": "vector", "either": "vector", "q": "predicate"}.get(kind, "scalar")
            variable, half = self._operand(token, (wanted,))
            number = int(token.lstrip("@HL"))
            if not self.operand(number).is_output:
                raise AsmError(f"writes operand %{number}, which is an input")
            if half:
                mask, shift = ("0xffffffffu", " << 32") if half == "H" else (f"~({U64})0xffffffffu", "")
                return token, ctypes[kind], f"{variable} = ({variable} & {mask}) | (({U64})$){shift};"
            if wanted == "scalar":
                return token, ctypes[kind], f"{variable} = $;"
            if kind == "either":
                return token, ctypes[kind], f"__builtin_memcpy(&{variable}, &$, sizeof({variable}));"
            return token, ctypes[kind], f"*({ctypes[kind]} *)&{variable} = $;"
        if register_class(token) != kind:
            raise AsmError(f"{token} cannot be written here")
        if kind in ("pair", "w"):
            letter, high, low = token[0], *token[1:].split(":")
            if int(high) != int(low) + 1 or int(low) % 2:
                raise AsmError(f"{token} cannot be written: it is no pair")
            for name in (f"{letter}{high}", f"{letter}{low}"):
                self._named[name] = _NAMED_TYPES[letter]
            halves = ("$ >> 32", "$") if kind == "pair" else ("emu_asm_high($)", "emu_asm_low($)")
            copy = f"emu_{letter}{high} = ({_NAMED_TYPES[letter]})({halves[0]}); "
            copy += f"emu_{letter}{low} = ({_NAMED_TYPES[letter]})({halves[1]});"
            return f"{letter}{high} {letter}{low}", ctypes[kind], copy
        self._named[token] = _NAMED_TYPES[kind]
        return token, ctypes[kind], f"emu_{token} = $;"
