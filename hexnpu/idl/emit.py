"""What stubs and skels have in common: the top of the file, and the walk through types that hold sequences."""

from __future__ import annotations

from hexnpu.idl import runtime
from hexnpu.idl.model import Interface, Unit
from hexnpu.idl.types import Array, Handle, Scalar, Sequence, Struct, Type, members, size_of
from hexnpu.idl.wire import EXTENDED, Record, is_nested


def preamble(unit: Unit, interface: Interface, helpers: str) -> str:
    """Includes, sizes that both sides must agree on, and those helpers that the methods need."""
    records = [interface.record(index) for index in range(len(interface.methods))]
    parts = [
        f"/* Written by hexnpu idl from {unit.name}.idl; edit that. */\n"
        f'#include "{unit.name}.h"\n\n#include "AEEStdErr.h"\n\n'
        "#include <limits.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n"
    ]
    if sizes := _size_asserts(interface):
        parts.append(sizes)
    if any(record.in_bytes or record.out_bytes for record in records):
        parts.append(helpers)
    if any(record.is_nested for record in records):
        parts.append(runtime.NESTED)
    return "\n".join(parts)


def _size_asserts(interface: Interface) -> str:
    """Flat structs and enums are copied as they stand, so the compiler must lay them out as the wire does."""
    sizes: dict[str, int] = {}

    def visit(kind: Type) -> None:
        if kind.is_flat and kind.c and not (isinstance(kind.shape, Scalar) and kind.shape.kind != "enum"):
            sizes[kind.c] = size_of(kind)[0]
        elif isinstance(kind.shape, Sequence | Array):
            visit(kind.shape.element)
        elif isinstance(kind.shape, Struct):
            for member in kind.shape.fields:
                visit(member.type)

    for method in interface.methods:
        for parameter in method.parameters:
            visit(parameter.type)
    unlike = "has another layout than on the wire"
    return "".join(f'_Static_assert(sizeof({c}) == {size}, "{c} {unlike}");\n' for c, size in sizes.items())


def nested_types(interface: Interface) -> list[tuple[Type, str]]:
    """The types that need a function of their own, each with the mode it is used in, inner ones first."""
    found: dict[tuple[str, str], Type] = {}

    def visit(kind: Type, mode: str) -> None:
        if not is_nested(kind):
            return
        inner = kind.shape.element if isinstance(kind.shape, Sequence) else kind
        if (inner.c, mode) in found:
            return
        for member in members(inner):
            visit(member.type, mode)
        found[inner.c, mode] = inner

    for method in interface.methods:
        for parameter in method.parameters:
            visit(parameter.type, parameter.mode)
    return [(kind, mode) for (_, mode), kind in found.items()]


def buffer_counts(record: Record) -> tuple[int, int]:
    """In and out buffers of a call whose number of buffers is fixed."""
    return bool(record.in_bytes) + record.in_buffers, bool(record.out_bytes) + record.out_buffers


def method_number(index: int) -> int:
    return min(index, EXTENDED)


def handle_member(kind: Type) -> str:
    return "h64" if isinstance(kind.shape, Handle) and kind.shape.bits == 64 else "h"


def at(base: str, offset: int) -> str:
    return f"{base} + {offset}" if offset else base


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
