"""What the loader reads of an ELF file: machine, needed libraries, run path. Little-endian, 32 and 64 bits.

The file is read through a function, so that one on a device needs a few kilobytes to travel, not all of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

# (offset, size) -> at most that many bytes of the file.
Read = Callable[[int, int], bytes]

MACHINES = {40: "arm", 62: "x86_64", 164: "hexagon", 183: "aarch64", 243: "riscv"}
HEXAGON = "hexagon"
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_STRSZ, _DT_RPATH, _DT_RUNPATH = 1, 5, 10, 15, 29
_MAX_STRINGS = 1 << 20


@dataclass(frozen=True)
class Elf:
    """`machine` as `uname -m` calls it; `arch` of a Hexagon file is 73, 75 ..., otherwise 0.

    `run_path` is DT_RUNPATH; `rpath` is DT_RPATH, its forerunner, where there is no DT_RUNPATH to overrule it.
    """

    machine: str
    bits: int
    needed: tuple[str, ...] = ()
    run_path: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    interpreter: str = ""
    arch: int = 0


def machine_name(number: int) -> str:
    """As `uname -m` calls it."""
    return MACHINES.get(number, f"machine {number}")


def read_elf(read: Read) -> Elf | None:
    """None where the file is no ELF file. Raises ValueError where it is a broken one."""
    head = read(0, 64)
    if head[:4] != b"\x7fELF":
        return None
    wide = head[4:5] == b"\2"
    if len(head) < (64 if wide else 52) or head[4] not in (1, 2) or head[5] != 1:
        raise ValueError("a broken or big-endian ELF header")
    machine, flags_at = struct.unpack_from("<H", head, 18)[0], 48 if wide else 36
    (flags,) = struct.unpack_from("<I", head, flags_at)
    if wide:
        (table,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
    else:
        (table,) = struct.unpack_from("<I", head, 28)
        size, count = struct.unpack_from("<HH", head, 42)
    segments = _segments(read(table, size * count), size, wide)
    name = machine_name(machine)
    needed, run_path, rpath = _dynamic(read, segments, wide)
    interpreter = next((_text(read(at, n), 0) for kind, at, _, n in segments if kind == _PT_INTERP), "")
    arch = int(f"{flags & 0xFF:x}") if name == HEXAGON and f"{flags & 0xFF:x}".isdecimal() else 0
    return Elf(name, 64 if wide else 32, needed, run_path, rpath, interpreter, arch)


# (type, offset in the file, address in memory, bytes in the file)
Segment = tuple[int, int, int, int]


def _segments(table: bytes, size: int, wide: bool) -> list[Segment]:
    if not table:
        return []
    if size < (56 if wide else 32):
        raise ValueError("a program header that is too small")
    found = []
    for at in range(0, len(table) - size + 1, size):
        if wide:
            kind, _, offset, address, _, n = struct.unpack_from("<IIQQQQ", table, at)
        else:
            kind, offset, address, _, n = struct.unpack_from("<IIIII", table, at)
        found.append((kind, offset, address, n))
    return found


def _dynamic(read: Read, segments: list[Segment], wide: bool) -> tuple[tuple[str, ...], ...]:
    """The names of DT_NEEDED, the folders of DT_RUNPATH, those of DT_RPATH."""
    dynamic = next((s for s in segments if s[0] == _PT_DYNAMIC), None)
    if dynamic is None:
        return (), (), ()
    form = "<qQ" if wide else "<iI"
    data = read(dynamic[1], min(dynamic[3], _MAX_STRINGS))
    usable = len(data) // struct.calcsize(form) * struct.calcsize(form)
    entries = list(struct.iter_unpack(form, data[:usable]))
    values = dict(reversed(entries))
    if _DT_STRTAB not in values:
        return (), (), ()
    at = _offset(values[_DT_STRTAB], segments)
    strings = read(at, min(values.get(_DT_STRSZ, 0), _MAX_STRINGS))
    needed = tuple(_text(strings, value) for tag, value in entries if tag == _DT_NEEDED)
    tag = _DT_RUNPATH if _DT_RUNPATH in values else _DT_RPATH
    folders = tuple(p for p in _text(strings, values[tag]).split(":") if p) if tag in values else ()
    return (needed, folders, ()) if tag == _DT_RUNPATH else (needed, (), folders)


def _offset(address: int, segments: list[Segment]) -> int:
    for kind, offset, start, n in segments:
        if kind == _PT_LOAD and start <= address < start + n:
            return offset + address - start
    raise ValueError("its string table lies in no segment")


def _text(strings: bytes, at: int) -> str:
    if at >= len(strings):
        raise ValueError("a name lies outside of its string table")
    return strings[at : strings.find(b"\0", at) % (len(strings) + 1)].decode("utf-8", "replace")
