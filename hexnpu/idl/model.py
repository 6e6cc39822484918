"""What an interface file declares, ready to be written as C."""

from __future__ import annotations

from dataclasses import dataclass, field

from hexnpu.idl.place import Place
from hexnpu.idl.types import Type
from hexnpu.idl.wire import EXTENDED, Parameter, Record, lay_out


@dataclass(frozen=True)
class EnumDeclaration:
    c: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class StructDeclaration:
    type: Type


@dataclass(frozen=True)
class TypedefDeclaration:
    c: str
    type: Type


@dataclass(frozen=True)
class ConstDeclaration:
    c: str
    value: str  # as C


@dataclass(frozen=True)
class Method:
    name: str
    returns: str  # the C type
    parameters: tuple[Parameter, ...]
    place: Place


@dataclass(frozen=True)
class Interface:
    """`has_handle`: of the remote_handle64 kind, whose methods 0 and 1 are open and close."""

    c: str
    has_handle: bool
    methods: tuple[Method, ...]

    def function(self, method: Method) -> str:
        return f"{self.c}_{method.name}"

    def record(self, index: int) -> Record:
        return lay_out(self.methods[index].parameters, first=4 if index >= EXTENDED else 0)


Declaration = EnumDeclaration | StructDeclaration | TypedefDeclaration | ConstDeclaration | Interface


@dataclass
class Unit:
    """A compiled file: its own declarations in order, and the names of the files it includes."""

    name: str
    includes: tuple[str, ...] = ()
    declarations: list[Declaration] = field(default_factory=list)
    version: str = ""  # of const string IDL_VERSION

    @property
    def interfaces(self) -> list[Interface]:
        return [d for d in self.declarations if isinstance(d, Interface)]

    def uri(self, interface: Interface) -> str:
        version = f"&_idlver={self.version}" if self.version else ""
        return f"file:///lib{self.name}_skel.so?{interface.c}_skel_handle_invoke&_modver=1.0{version}"
