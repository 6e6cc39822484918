"""C expressions between an operand's C type and the bits of a register, with the functions of platform/emu/asm.h."""

from __future__ import annotations


def bits_of(expression: str, cplusplus: bool) -> str:
    """The bits of an integer, a pointer or a float, as 64 of them."""
    if cplusplus:
        return f"emu_asm_in({expression})"
    names = {"_Float16": "half", "float": "float", "double": "double"}
    kinds = ", ".join(f"{ctype}: emu_asm_{name}_bits(&emu_x)" for ctype, name in names.items())
    value = f"_Generic(emu_x, {kinds}, default: (__UINT64_TYPE__)emu_x)"
    return f"__extension__({{ __auto_type emu_x = ({expression}); {value}; }})"


def of_bits(expression: str, bits: str, cplusplus: bool) -> str:
    """`bits` as a value of the C type of an lvalue."""
    if cplusplus:
        return f"emu_asm_out<typename emu_asm_plain<__typeof__({expression})>::type>::of({bits})"
    kinds = f"_Float16: emu_asm_half({bits}), float: emu_asm_float({bits}), double: emu_asm_double({bits})"
    return f"_Generic(({expression}), {kinds}, default: (__typeof__({expression}))({bits}))"


def is_pair(expression: str) -> str:
    """Whether it stands in a register pair: a 64-bit number does, a pointer, 64 bits wide here, does not."""
    return f"(sizeof({expression}) == 8 && __builtin_classify_type({expression}) != 5)"
