"""Instructions with a C form of their own: transfers, arithmetic of loops, memory, locks, counters, caches, DMA.

Each entry is a pattern of the canonical text (packets.py) and the function that writes its C. Entries that do nothing
here say why.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hexnpu.emucc.registers import U32, U64, Registers, register_class
from hexnpu.emucc.values import is_pair

_S = r"(@[HL]?\d+|r\d+|sp|fp|lr)"  # a register
_P = r"(@\d+|r\d+:\d+)"  # a register pair
_A = r"(@\d+|r\d+|sp|fp|lr)"  # an address
_I = r"(##?(?:@\d+|-?(?:0x[0-9a-f]+|\d+)))"
_SI = rf"({_S[1:-1]}|{_I[1:-1]})"
_V = r"(@\d+|v\d+)"
_PRED = r"(@\d+|p[0-3])"
_OFFSET = rf"(?:\+{_I})?"

Form = Callable[[Registers, re.Match[str]], None]
_FORMS: list[tuple[re.Pattern[str], Form]] = []


def translate_form(registers: Registers, text: str) -> bool:
    """Writes the C of an instruction that has a form here; False: it has none."""
    for pattern, form in _FORMS:
        if match := pattern.fullmatch(text):
            form(registers, match)
            return True
    return False


def _form(pattern: str) -> Callable[[Form], Form]:
    def add(form: Form) -> Form:
        _FORMS.append((re.compile(pattern), form))
        return form

    return add


def _either(registers: Registers, token: str) -> str:
    return registers.immediate(token) if token.startswith("#") else registers.r(token)


def _sum(registers: Registers, base: str, offset: str | None) -> str:
    address = registers.address(base)
    return f"({address} + (__INTPTR_TYPE__){registers.immediate(offset)})" if offset else address


# Transfers and arithmetic


@_form(rf"(@\d+|r\d+:\d+|{_S[1:-1]})=(@\d+|r\d+:\d+|{_S[1:-1]})")
def _transfer(registers: Registers, m: re.Match[str]) -> None:
    both = all(re.fullmatch(r"@\d+", token) and _kind(registers, token) != "vector" for token in m.groups())
    if both or "pair" in (register_class(m[1]), register_class(m[2])):
        registers.write(m[1], "pair", registers.pair(m[2]))  # an operand with all its bits: it may be a pointer
    elif "vector" in (_kind(registers, m[1]), _kind(registers, m[2])):
        registers.write(m[1], "v", registers.vector(m[2]))
    else:
        registers.write(m[1], "r", registers.r(m[2]))


@_form(r"(@\d+|v\d+)=(@\d+|v\d+)")
def _transfer_vector(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "v", registers.vector(m[2]))


@_form(rf"{_S}={_I}")
def _constant(registers: Registers, m: re.Match[str]) -> None:
    if _is_wide(m[1]):
        registers.write(m[1], "pair", _narrow(registers, m[1], f"({U64})(__INT64_TYPE__){registers.immediate(m[2])}"))
    else:
        registers.write(m[1], "r", f"({U32}){registers.immediate(m[2])}")


@_form(rf"(@\d+|r\d+:\d+|{_S[1:-1]})=(add|sub|and|or|xor)\((@\d+|r\d+:\d+|{_SI[1:-1]}),(@\d+|r\d+:\d+|{_SI[1:-1]})\)")
def _arithmetic(registers: Registers, m: re.Match[str]) -> None:
    operator = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[m[2]]
    pair = register_class(m[1]) == "pair"
    wide = pair or _is_wide(m[1])

    def value(token: str) -> str:
        if token.startswith("#"):
            return f"({U64})(__INT64_TYPE__){registers.immediate(token)}"
        return registers.pair(token) if register_class(token) == "pair" or _is_wide(token) else registers.r(token)

    result = f"{value(m[3])} {operator} {value(m[4])}"
    if not wide:
        registers.write(m[1], "r", f"({U32})({result})")
    else:
        registers.write(m[1], "pair", f"({result})" if pair else _narrow(registers, m[1], f"({result})"))


@_form(rf"{_S}=(neg|not)\({_S}\)")
def _unary(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "r", f"{'-' if m[2] == 'neg' else '~'}{registers.r(m[3])}")


@_form(rf"{_S}=(asl|lsl|lsr|asr)\({_S},{_I}\)")
def _shift(registers: Registers, m: re.Match[str]) -> None:
    ctype = "__INT32_TYPE__" if m[2] == "asr" else U32
    operator = ">>" if m[2].endswith("sr") else "<<"
    registers.write(m[1], "r", f"({U32})(({ctype}){registers.r(m[3])} {operator} ({registers.immediate(m[4])} & 31))")


@_form(rf"{_PRED}=(!?)cmp\.(eq|gt|gtu|ge|geu)\({_S},{_SI}\)")
def _compare(registers: Registers, m: re.Match[str]) -> None:
    ctype = U32 if m[3].endswith("u") or m[3] == "eq" else "__INT32_TYPE__"
    operator = {"eq": "==", "gt": ">", "gtu": ">", "ge": ">=", "geu": ">="}[m[3]]
    compared = f"({ctype}){registers.r(m[4])} {operator} ({ctype}){_either(registers, m[5])}"
    yes, no = ("0", "255") if m[2] else ("255", "0")
    kind = "r" if m[1].startswith("@") else "p"
    registers.write(m[1], kind, f"({compared}) ? {yes} : {no}")


@_form(rf"{_S}=mux\({_PRED},{_SI},{_SI}\)")
def _mux(registers: Registers, m: re.Match[str]) -> None:
    condition, yes, no = registers.predicate(m[2]), _either(registers, m[3]), _either(registers, m[4])
    registers.write(m[1], "r", f"({condition} & 1) ? ({U32}){yes} : ({U32}){no}")


@_form(r"(p[0-3])=(and|or|xor)\((p[0-3]),(!?)(p[0-3])\)")
def _predicate_logic(registers: Registers, m: re.Match[str]) -> None:
    operator = {"and": "&", "or": "|", "xor": "^"}[m[2]]
    right = f"{'~' if m[4] else ''}{registers.predicate(m[5])}"
    registers.write(m[1], "p", f"(unsigned char)({registers.predicate(m[3])} {operator} {right})")


@_form(r"(p[0-3])=not\((p[0-3])\)")
def _predicate_not(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "p", f"(unsigned char)~{registers.predicate(m[2])}")


@_form(rf"(p[0-3])={_S}")
def _to_predicate(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "p", f"(unsigned char){registers.r(m[2])}")


@_form(rf"{_S}=(p[0-3])")
def _from_predicate(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "r", registers.predicate(m[2]))


# Memory

_TYPES = {
    "b": "__INT8_TYPE__", "ub": "__UINT8_TYPE__", "h": "__INT16_TYPE__", "uh": "__UINT16_TYPE__", "w": U32, "d": U64,
}  # fmt: skip


@_form(rf"(@\d+|r\d+:\d+|{_S[1:-1]})=mem(b|ub|h|uh|w|d)\({_A}{_OFFSET}\)")
def _load(registers: Registers, m: re.Match[str]) -> None:
    ctype, address = _TYPES[m[2]], _sum(registers, m[3], m[4])
    registers.write(m[1], *_loaded(m[2], f"*(const volatile {ctype} *){address}"))


@_form(rf"(@\d+|r\d+:\d+|{_S[1:-1]})=mem(b|ub|h|uh|w|d)\({_A}\+\+{_I}\)")
def _load_and_step(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], *_loaded(m[2], f"*(const volatile {_TYPES[m[2]]} *){registers.address(m[3])}"))
    _step(registers, m[3], m[4])


@_form(rf"mem(b|h|w|d)\({_A}{_OFFSET}\)=(@\d+|r\d+:\d+|r\d+\.new|{_SI[1:-1]})")
def _store(registers: Registers, m: re.Match[str]) -> None:
    _put(registers, m[1], _sum(registers, m[2], m[3]), m[4])


@_form(rf"mem(b|h|w|d)\({_A}\+\+{_I}\)=(@\d+|r\d+:\d+|r\d+\.new|{_SI[1:-1]})")
def _store_and_step(registers: Registers, m: re.Match[str]) -> None:
    _put(registers, m[1], registers.address(m[2]), m[4])
    _step(registers, m[2], m[3])


@_form(rf"{_V}(\.cur|\.tmp)?=vmem(u?)\({_A}{_OFFSET}\)(?::nt)?")
def _load_vector(registers: Registers, m: re.Match[str]) -> None:
    offset = f" + 128 * (__INTPTR_TYPE__){registers.immediate(m[5])}" if m[5] else ""
    _put_vector(registers, m, f"{registers.address(m[4])}{offset}")


def _put_vector(registers: Registers, m: re.Match[str], address: str) -> None:
    value = f"{'emu_asm_load_unaligned' if m[3] else 'emu_asm_load'}({address})"
    if m[2]:
        registers.load_current(m[1], value, m[2] == ".cur")
    else:
        registers.write(m[1], "v", value)


@_form(rf"vmem(u?)\({_A}{_OFFSET}\)(?::nt)?=(@\d+|v\d+|v\d+\.new)")
def _store_vector(registers: Registers, m: re.Match[str]) -> None:
    offset = f" + 128 * (__INTPTR_TYPE__){registers.immediate(m[3])}" if m[3] else ""
    store = "emu_asm_store_unaligned" if m[1] else "emu_asm_store"
    value = registers.new_value(m[4][:-4]) if m[4].endswith(".new") else registers.vector(m[4])
    registers.run(f"{store}({registers.address(m[2])}{offset}, {value});")


@_form(rf"{_V}(\.cur|\.tmp)?=vmem(u?)\({_A}\+\+{_I}\)(?::nt)?")
def _load_vector_and_step(registers: Registers, m: re.Match[str]) -> None:
    _put_vector(registers, m, registers.address(m[4]))
    _step(registers, m[4], m[5], 128)


@_form(rf"vmem(u?)\({_A}\+\+{_I}\)(?::nt)?=(@\d+|v\d+|v\d+\.new)")
def _store_vector_and_step(registers: Registers, m: re.Match[str]) -> None:
    store = "emu_asm_store_unaligned" if m[1] else "emu_asm_store"
    value = registers.new_value(m[4][:-4]) if m[4].endswith(".new") else registers.vector(m[4])
    registers.run(f"{store}({registers.address(m[2])}, {value});")
    _step(registers, m[2], m[3], 128)


@_form(rf"(@\d+|r\d+:\d+|r\d+)=mem(w|d)_aq\({_A}\)")
def _load_acquire(registers: Registers, m: re.Match[str]) -> None:
    load = f"__atomic_load_n((const volatile {_TYPES[m[2]]} *){registers.address(m[3])}, __ATOMIC_ACQUIRE)"
    registers.write(m[1], *_loaded(m[2], load))


@_form(rf"mem(w|d)_rl\({_A}\):(?:at|st)=(@\d+|r\d+:\d+|r\d+)")
def _store_release(registers: Registers, m: re.Match[str]) -> None:
    value = registers.pair(m[3]) if m[1] == "d" else registers.r(m[3])
    place = f"(volatile {_TYPES[m[1]]} *){registers.address(m[2])}"
    registers.run(f"__atomic_store_n({place}, ({_TYPES[m[1]]}){value}, __ATOMIC_RELEASE);")


@_form(rf"(@\d+|r\d+:\d+|r\d+)=mem(w|d)_locked\({_A}\)")
def _load_locked(registers: Registers, m: re.Match[str]) -> None:
    bits, kind = ("32", "r") if m[2] == "w" else ("64", "pair")
    registers.write(m[1], kind, f"emu_asm_load_locked{bits}({registers.address(m[3])})")


@_form(rf"mem(w|d)_locked\({_A},{_PRED}\)=(@\d+|r\d+:\d+|r\d+)")
def _store_locked(registers: Registers, m: re.Match[str]) -> None:
    bits, value = ("32", registers.r(m[4])) if m[1] == "w" else ("64", registers.pair(m[4]))
    kind = "r" if m[3].startswith("@") else "p"
    registers.write(m[3], kind, f"emu_asm_store_locked{bits}({registers.address(m[2])}, {value})")


# Counters

_COUNTERS = {"c15:14": "pcycles", "c19:18": "packets", "c31:30": "utimer"}
_COUNTER_NAMES = {
    "upcycle": "c15:14", "pcycle": "c15:14", "upktcount": "c19:18", "pktcount": "c19:18", "utimer": "c31:30",
}  # fmt: skip


@_form(rf"{_P}=(c15:14|c19:18|c31:30|{'|'.join(_COUNTER_NAMES)})")
def _counter(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "pair", f"emu_asm_{_COUNTERS[_COUNTER_NAMES.get(m[2], m[2])]}()")


@_form(rf"{_S}=(?:c(14|15|18|19|30|31)|({'|'.join(_COUNTER_NAMES)})(lo|hi))")
def _half_counter(registers: Registers, m: re.Match[str]) -> None:
    if m[2]:
        pair = next(pair for pair in _COUNTERS if m[2] in re.findall(r"\d+", pair))
        high = int(m[2]) % 2 == 1
    else:
        pair, high = _COUNTER_NAMES[m[3]], m[4] == "hi"
    registers.write(m[1], "r", f"({U32})(emu_asm_{_COUNTERS[pair]}(){' >> 32' if high else ''})")


@_form(rf"{_S}=(?:upmucnt([0-7])|c(2[0-7]))")
def _pmu(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "r", f"emu_asm_pmu({int(m[2]) if m[2] else int(m[3]) - 20})")


# Order, waiting, caches


@_form(r"syncht|barrier|isync|l2gclean(?:inv)?(?:\((?:@\d+|r\d+:\d+)\))?|l2gunlock")
def _barrier(registers: Registers, m: re.Match[str]) -> None:
    registers.run("emu_asm_barrier();")  # host memory is coherent: of caches only the order remains


@_form(rf"release\({_A}\):(?:at|st)")
def _release(registers: Registers, m: re.Match[str]) -> None:
    registers.run(f"(void){registers.address(m[1])}; emu_asm_release();")


@_form(rf"pause\({_I}\)")
def _pause(registers: Registers, m: re.Match[str]) -> None:
    registers.run("emu_asm_pause();")


@_form(r"nop")
def _nop(registers: Registers, m: re.Match[str]) -> None:
    registers.run(";")


@_form(rf"(dccleana|dcinva|dccleaninva|dczeroa|icinva|dcfetch)\({_A}{_OFFSET}\)")
def _cache(registers: Registers, m: re.Match[str]) -> None:
    registers.run(f"emu_asm_{m[1]}({_sum(registers, m[2], m[3])});")


@_form(rf"l2fetch\({_A},(@\d+|r\d+:\d+|r\d+)\)")
def _l2fetch(registers: Registers, m: re.Match[str]) -> None:
    registers.run(f"emu_asm_dcfetch({registers.address(m[1])});")


@_form(rf"vmem\({_A}{_OFFSET}\):scatter_release")
def _scatter_release(registers: Registers, m: re.Match[str]) -> None:
    registers.run(f"(void){registers.address(m[1])}; emu_asm_scatter_release();")


# User DMA


@_form(rf"(dmstart|dmresume)\({_A}\)")
def _dma_start(registers: Registers, m: re.Match[str]) -> None:
    registers.run(f"emu_asm_{m[1]}((void *){registers.address(m[2])});")


@_form(rf"dmlink\({_A},{_A}\)")
def _dma_link(registers: Registers, m: re.Match[str]) -> None:
    registers.run(f"emu_asm_dmlink((void *){registers.address(m[1])}, (void *){registers.address(m[2])});")


@_form(rf"{_S}=(dmpoll|dmwait|dmpause|dmsyncht|dmtlbsynch)")
def _dma_state(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "r", f"({U32})emu_asm_{m[2]}()")


@_form(rf"{_S}=dmcfgrd\({_S}\)")
def _dma_config_read(registers: Registers, m: re.Match[str]) -> None:
    registers.write(m[1], "r", f"emu_asm_dmcfgrd({registers.r(m[2])})")


@_form(rf"dmcfgwr\({_S},{_S}\)")
def _dma_config_write(registers: Registers, m: re.Match[str]) -> None:
    registers.run(f"emu_asm_dmcfgwr({registers.r(m[1])}, {registers.r(m[2])});")


def _kind(registers: Registers, token: str) -> str:
    return registers.operand(int(token[1:])).kind if re.fullmatch(r"@\d+", token) else ""


def _is_wide(token: str) -> bool:
    """Whether the token is a whole operand, of which only the C type tells how wide it is."""
    return bool(re.fullmatch(r"@\d+", token))


def _narrow(registers: Registers, token: str, value: str) -> str:
    """`value`, cut to 32 bits where the operand is a 32-bit register."""
    expression = registers.operand(int(token[1:])).expression
    return f"({is_pair(expression)} ? {value} : ({U64})({U32}){value})"


def _loaded(size: str, value: str) -> tuple[str, str]:
    return ("pair", value) if size == "d" else ("r", f"({U32})({value})")


def _put(registers: Registers, size: str, address: str, token: str) -> None:
    if token.endswith(".new"):
        value = registers.new_value(token[:-4])
    elif token.startswith("#"):
        value = registers.immediate(token)
    else:
        value = registers.pair(token) if size == "d" else registers.r(token)
    registers.run(f"*(volatile {_TYPES[size]} *){address} = ({_TYPES[size]}){value};")


def _step(registers: Registers, base: str, by: str, unit: int = 1) -> None:
    value = f"{registers.address(base)} + {unit} * (__INTPTR_TYPE__){registers.immediate(by)}"
    registers.write(base, "pair" if base.startswith("@") else "r", f"({U64 if base.startswith('@') else U32})({value})")
