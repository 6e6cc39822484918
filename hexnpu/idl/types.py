"""Types of an interface, as C spells them and as the wire carries them.

A flat type has one size on either side and is copied as it stands. A type that holds a sequence or a string somewhere
is nested: on the wire it is a record of its flat members and of lengths, and each sequence is a buffer of its own.
Sizes and alignments are those of C on both sides: every scalar aligned to its size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scalar:
    """A number, character, boolean or enumerator of `size` bytes; `kind` is int8 ... uint64, float, double or enum."""

    size: int
    kind: str


@dataclass(frozen=True)
class Array:
    element: Type
    count: int


@dataclass(frozen=True)
class Sequence:
    """A pointer and a length; `terminated`: a string, whose last element is 0."""

    element: Type
    terminated: bool = False


@dataclass(frozen=True)
class Field:
    name: str
    type: Type


@dataclass(frozen=True)
class Struct:
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Handle:
    """A remote handle; not part of any buffer."""

    bits: int


Shape = Scalar | Array | Sequence | Struct | Handle


@dataclass(frozen=True)
class Type:
    """`c` is the name of the type in C, empty for an array or sequence without a typedef."""

    c: str
    shape: Shape

    @property
    def is_flat(self) -> bool:
        match self.shape:
            case Array(element):
                return element.is_flat
            case Struct(fields):
                return all(field.type.is_flat for field in fields)
            case Scalar():
                return True
            case _:
                return False

    def declare(self, name: str) -> str:
        """A C declaration of one `name`, without the semicolon."""
        if isinstance(self.shape, Array) and not self.c:
            return self.shape.element.declare(f"{name}[{self.shape.count}]")
        return f"{self.c} {name}"


Size = tuple[int, int]  # bytes and alignment


def size_of(kind: Type) -> Size:
    """Bytes and alignment of a flat type, in C and on the wire."""
    match kind.shape:
        case Scalar(size, _):
            return size, size
        case Array(element, count):
            size, alignment = size_of(element)
            return size * count, alignment
        case Struct(fields):
            _, size, alignment = pack(size_of(field.type) for field in fields)
            return round_up(size, alignment), alignment
        case _:
            raise AssertionError(f"{kind} is not flat")


def pack(sizes: Iterable[Size]) -> tuple[list[int], int, int]:
    """Offsets of parts laid one after the other, the bytes up to the end of the last, and the greatest alignment."""
    offsets: list[int] = []
    end, greatest = 0, 1
    for size, alignment in sizes:
        offsets.append(round_up(end, alignment))
        end = offsets[-1] + size
        greatest = max(greatest, alignment)
    return offsets, end, greatest


def round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def members(kind: Type) -> tuple[Field, ...]:
    """The fields of a nested C struct; a named sequence is a struct of `data` and `dataLen`."""
    if isinstance(kind.shape, Struct):
        return kind.shape.fields
    return (Field("data", Type("", kind.shape)),)
