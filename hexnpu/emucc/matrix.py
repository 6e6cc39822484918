"""Packets of the matrix unit (HMX) as calls of platform/emu/hmx.h."""

from __future__ import annotations

import re

from hexnpu.emucc.errors import AsmError
from hexnpu.emucc.packets import Packet
from hexnpu.emucc.registers import Registers

_S = r"(@\d+|r\d+)"
_HALF = re.compile(rf"(activation|weight)\.(\w+)=mxmem\({_S},{_S}\)((?::\w+)*)")
_BIAS = re.compile(rf"bias=mxmem(2?)\({_S}\)")
_CLEAR = re.compile(r"mx(clr|swap)acc\.hf")
_STORE = re.compile(rf"mxmem\({_S},{_S}\)((?::\w+)*)\.hf=acc")
_CONVERT = re.compile(rf"cvt\.hf=acc\({_S}\)")
_STORE_CONVERTED = re.compile(rf"mxmem\({_S},{_S}\)=cvt")
_STORE_FORMS = {"before": "EMU_HMX_BEFORE", "retain": "EMU_HMX_RETAIN", "pos": "EMU_HMX_POS"}


def is_matrix(packet: Packet) -> bool:
    """Whether a packet is the matrix unit's."""
    return any("mxmem" in i.text or i.text.startswith("mx") or "=acc" in i.text for i in packet.instructions)


def translate_matrix(registers: Registers, packet: Packet) -> bool:
    """Writes the C of a matrix packet; False: the unit that is emulated has no such form."""
    halves = [_HALF.fullmatch(i.text) for i in packet.instructions]
    if any(halves):
        return _multiply(registers, packet, halves)
    return all(_one(registers, i.text) for i in packet.instructions)


def _multiply(registers: Registers, packet: Packet, halves: list[re.Match[str] | None]) -> bool:
    found = {half[1]: half for half in halves if half}
    if len(packet.instructions) != 2 or set(found) != {"activation", "weight"}:
        raise AsmError("activation and weight must stand in one packet, alone")
    activation, weight = found["activation"], found["weight"]
    forms = {"": "0", ":deep": "1"}
    if activation[2] != "hf" or weight[2] != "hf" or activation[5] not in forms or weight[5] not in forms:
        return False
    form = {"": [], ":deep": ["EMU_HMX_DEEP"]}[activation[5]]
    form = form + {"": [], ":deep": ["EMU_HMX_WEIGHT_DEEP"]}[weight[5]]
    values = [registers.r(token) for token in (activation[3], activation[4], weight[3], weight[4])]
    registers.run(f"emu_hmx_mac({', '.join(values)}, {' | '.join(form) or '0'});")
    return True


def _one(registers: Registers, text: str) -> bool:
    if m := _BIAS.fullmatch(text):
        registers.run(f"emu_hmx_bias{'' if m[1] else '_low'}({registers.r(m[2])});")
    elif m := _CLEAR.fullmatch(text):
        registers.run("emu_hmx_clear();" if m[1] == "clr" else "emu_hmx_swap();")
    elif m := _STORE.fullmatch(text):
        words = m[3].split(":")[1:]
        if len({"after", "before"} & set(words)) != 1 or set(words) - {"after", *_STORE_FORMS}:
            return False
        form = " | ".join(_STORE_FORMS[word] for word in words if word in _STORE_FORMS)
        registers.run(f"emu_hmx_store({registers.r(m[1])}, {registers.r(m[2])}, {form or '0'});")
    elif m := _CONVERT.fullmatch(text):
        registers.run(f"emu_hmx_convert({registers.r(m[1])}, 0);")
    elif m := _STORE_CONVERTED.fullmatch(text):
        registers.run(f"emu_hmx_store_converted({registers.r(m[1])}, {registers.r(m[2])});")
    else:
        return False
    return True
