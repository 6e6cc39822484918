"""Where each value of a call goes: the layout of the two primitive buffers, and what is a buffer or a handle by itself.

Primitive in buffer, in declared order: flat values that go in, and the length of every sequence or string, whichever
way it goes. Primitive out buffer: flat values that come back. Then in buffers, then out buffers, then handles. A
method with index 31 or more has 31 in its scalars and its index as the first word of the primitive in buffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hexnpu.idl.types import Handle, Sequence, Size, Type, pack, round_up, size_of
from hexnpu.idl.types import members as members_of

EXTENDED = 31  # the method index that says: look into the first word
LENGTH: Size = (4, 4)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method, or a member of a nested struct that goes `mode`: in, rout or inrout."""

    name: str
    type: Type
    mode: str

    @property
    def goes_in(self) -> bool:
        return self.mode != "rout"

    @property
    def comes_out(self) -> bool:
        return self.mode != "in"


@dataclass
class Slot:
    """A parameter and its offsets: value, record or length going in; length, value or record coming out."""

    parameter: Parameter
    in_at: int = 0
    room_at: int = 0
    out_at: int = 0
    handle: int = 0


@dataclass
class Record:
    """The layout of a parameter list or of a nested struct."""

    slots: list[Slot]
    in_bytes: int = 0
    in_alignment: int = 1
    out_bytes: int = 0
    out_alignment: int = 1
    in_buffers: int = 0
    out_buffers: int = 0
    in_handles: int = 0
    out_handles: int = 0

    @property
    def in_size(self) -> int:
        return round_up(self.in_bytes, self.in_alignment)

    @property
    def out_size(self) -> int:
        return round_up(self.out_bytes, self.out_alignment)

    @property
    def is_nested(self) -> bool:
        """The number of buffers is known only when the call is made."""
        return any(is_nested(slot.parameter.type) for slot in self.slots)


@dataclass
class _Side:
    """One primitive buffer while it is laid out."""

    parts: list[tuple[Slot, str, Size]] = field(default_factory=list)

    def add(self, slot: Slot, attribute: str, size: Size) -> None:
        self.parts.append((slot, attribute, size))

    def place(self, first: int) -> tuple[int, int]:
        leading = [(first, first)] if first else []
        offsets, end, alignment = pack([*leading, *(size for _, _, size in self.parts)])
        for (slot, attribute, _), offset in zip(self.parts, offsets[len(leading) :], strict=True):
            setattr(slot, attribute, offset)
        return end, alignment


def is_nested(kind: Type) -> bool:
    """A struct, or a sequence of things, with sequences inside."""
    if kind.is_flat or isinstance(kind.shape, Handle):
        return False
    return not (isinstance(kind.shape, Sequence) and kind.shape.element.is_flat)


def lay_out(parameters: Iterable[Parameter], first: int = 0) -> Record:
    """The layout of these parameters behind `first` bytes (0 or 4) at the start of the primitive in buffer."""
    record = Record([Slot(parameter) for parameter in parameters])
    ins, outs = _Side(), _Side()
    for slot in record.slots:
        parameter = slot.parameter
        kind = parameter.type
        if isinstance(kind.shape, Handle):
            slot.handle = record.out_handles if parameter.comes_out else record.in_handles
            record.in_handles += parameter.goes_in
            record.out_handles += parameter.comes_out
        elif kind.is_flat:
            if parameter.goes_in:
                ins.add(slot, "in_at", size_of(kind))
            if parameter.comes_out:
                outs.add(slot, "out_at", size_of(kind))
        elif isinstance(kind.shape, Sequence):
            if parameter.goes_in:
                ins.add(slot, "in_at", LENGTH)
                record.in_buffers += 1
            if parameter.comes_out:
                ins.add(slot, "room_at", LENGTH)
                record.out_buffers += 1
        else:
            inner = record_of(kind, parameter.mode)
            ins.add(slot, "in_at", (inner.in_size, inner.in_alignment))
            if inner.out_bytes:
                outs.add(slot, "out_at", (inner.out_size, inner.out_alignment))
    record.in_bytes, record.in_alignment = ins.place(first)
    record.out_bytes, record.out_alignment = outs.place(0)
    return record


def record_of(kind: Type, mode: str) -> Record:
    """The record that one value of a nested type is on the wire."""
    return lay_out(Parameter(member.name, member.type, mode) for member in members_of(kind))
