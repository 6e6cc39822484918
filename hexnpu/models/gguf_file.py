"""Reads GGUF files: metadata, the tensor table, and one tensor's bytes at a time.

The format is the one of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
The `gguf` package reads the same (and is what tests compare with), but takes 2 s and 130 MiB for a vocabulary of
49,152 tokens, which is most of what a start may cost. Every length and offset is checked against the file's size.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hexnpu.errors import HexnpuError
from hexnpu.tensor import BLOCKS, Shape, Type, row_bytes

Value = int | float | bool | str | list["Value"]

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9


class GgufError(HexnpuError):
    """The file is no GGUF file, is cut short, or holds something this version cannot read."""


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor of a file. `ne` is ggml's order, fastest dimension first."""

    name: str
    type: Type
    ne: Shape
    offset: int
    n_bytes: int
    path: Path

    def read(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """The tensor's bytes, read from the file now (nothing stays mapped)."""
        data = np.fromfile(self.path, dtype=np.uint8, count=self.n_bytes, offset=self.offset)
        if data.size != self.n_bytes:
            raise GgufError(f"{self.path}: tensor {self.name} is cut short; download the file again")
        return data


@dataclass(frozen=True, slots=True)
class GgufFile:
    path: Path
    size: int
    fields: dict[str, Value]
    tensors: dict[str, GgufTensor]

    def tensor(self, name: str) -> GgufTensor:
        if name not in self.tensors:
            raise GgufError(f"{self.path}: the tensor {name} is missing; the file is incomplete or of another model")
        return self.tensors[name]

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.fields.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise GgufError(f"{self.path}: the field {key} is {'missing' if value is None else 'not an integer'}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.fields.get(key, default)
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise GgufError(f"{self.path}: the field {key} is {'missing' if value is None else 'no finite number'}")
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.fields.get(key, default)
        if not isinstance(value, str):
            raise GgufError(f"{self.path}: the field {key} is {'missing' if value is None else 'not a text'}")
        return value

    def texts(self, key: str) -> list[str]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise GgufError(f"{self.path}: the field {key} is {'missing' if value is None else 'no list of texts'}")
        return [str(v) for v in value]


def read_gguf(path: str | Path) -> GgufFile:
    """Parses a file's header. Raises GgufError with the file, the place and the reason."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            # Only the pages of the header are touched, and they go with the map.
            data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""
            return _Cursor(path, memoryview(data), size).parse()
    except IsADirectoryError:
        raise GgufError(f"{path} is a folder; name the .gguf file in it") from None
    except FileNotFoundError:
        raise GgufError(f"no such file: {path}") from None
    except OSError as error:
        raise GgufError(f"cannot read {path}: {error.strerror}") from None


class _Cursor:
    def __init__(self, path: Path, data: memoryview, size: int) -> None:
        self.path, self.data, self.size, self.at = path, data, size, 0

    def fail(self, what: str) -> GgufError:
        return GgufError(f"{self.path}: {what} (at byte {self.at} of {self.size})")

    def scalar(self, code: str) -> int | float | bool:
        end = self.at + struct.calcsize(code)
        if end > self.size:
            raise self.fail("the file is cut short; download it again")
        value: int | float | bool = struct.unpack_from(code, self.data, self.at)[0]
        self.at = end
        return value

    def count(self, code: str, what: str, at_least: int) -> int:
        """A count of things that take `at_least` bytes each, so that a wild one is refused before it costs memory."""
        n = int(self.scalar(code))
        if n * at_least > self.size - self.at:
            raise self.fail(f"{n} {what} cannot fit; the file is cut short or damaged")
        return n

    def string(self) -> str:
        n = self.count("<Q", "bytes of text", 1)
        self.at += n
        return bytes(self.data[self.at - n : self.at]).decode("utf-8", "replace")

    def value(self, kind: int) -> Value:
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self.array()
        if kind not in _SCALARS:
            raise self.fail(f"unknown metadata type {kind}")
        return self.scalar(_SCALARS[kind])

    def array(self) -> Value:
        kind = int(self.scalar("<I"))
        if kind in _SCALARS:
            code = _SCALARS[kind]
            width = struct.calcsize(code)
            n = self.count("<Q", "array elements", width)
            self.at += n * width
            items: list[Value] = np.frombuffer(self.data[self.at - n * width : self.at], dtype=code).tolist()
            return items
        if kind not in (_STRING, _ARRAY):
            raise self.fail(f"unknown array type {kind}")
        return [self.value(kind) for _ in range(self.count("<Q", "array elements", 8))]

    def parse(self) -> GgufFile:
        if bytes(self.data[:4]) != b"GGUF":
            raise GgufError(f"{self.path} is not a GGUF file (it does not begin with GGUF)")
        self.at = 4
        version = int(self.scalar("<I"))
        if version not in (2, 3):
            raise self.fail(f"GGUF version {version} is not known here (2 and 3 are); convert the file again")
        n_tensors = self.count("<Q", "tensors", 24)
        n_fields = self.count("<Q", "metadata fields", 12)
        fields = {}
        for _ in range(n_fields):
            key = self.string()
            fields[key] = self.value(int(self.scalar("<I")))
        infos = [self.tensor_info() for _ in range(n_tensors)]
        alignment = fields.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise self.fail(f"general.alignment is {alignment}; it must be a power of two")
        base = -(-self.at // alignment) * alignment
        tensors: dict[str, GgufTensor] = {}
        for name, kind, ne, offset in infos:
            if name in tensors:
                raise self.fail(f"two tensors are named {name}")
            tensors[name] = self.placed(name, kind, ne, base + offset)
        return GgufFile(self.path, self.size, fields, tensors)

    def tensor_info(self) -> tuple[str, int, Shape, int]:
        name = self.string()
        n_dims = int(self.scalar("<I"))
        if not 1 <= n_dims <= 4:
            raise self.fail(f"tensor {name} has {n_dims} dimensions; 1 to 4 can be read")
        ne = [int(self.scalar("<Q")) for _ in range(n_dims)] + [1] * (4 - n_dims)
        kind = int(self.scalar("<I"))
        return name, kind, (ne[0], ne[1], ne[2], ne[3]), int(self.scalar("<Q"))

    def placed(self, name: str, kind: int, ne: Shape, offset: int) -> GgufTensor:
        if kind not in Type._value2member_map_ or kind not in {int(t) for t in BLOCKS if t < 200}:
            raise GgufError(f"{self.path}: tensor {name} has the ggml type {kind}, which is not supported")
        try:
            n_bytes = row_bytes(Type(kind), ne[0]) * ne[1] * ne[2] * ne[3]
        except ValueError as error:
            raise GgufError(f"{self.path}: tensor {name}: {error}") from None
        if offset + n_bytes > self.size:
            raise GgufError(
                f"{self.path} is cut short: tensor {name} ends at byte {offset + n_bytes}, the file has {self.size}; "
                "download it again"
            )
        return GgufTensor(name, Type(kind), ne, offset, n_bytes, self.path)
