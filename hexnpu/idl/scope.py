"""Names: what is declared where, and how a name is found."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

from hexnpu.idl.lexer import Token
from hexnpu.idl.model import Method
from hexnpu.idl.place import IdlError, Place
from hexnpu.idl.types import Type

C_WORDS = frozenset(
    {
        "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
        "extern", "false", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
        "short", "signed", "sizeof", "static", "struct", "switch", "true", "typedef", "union", "unsigned", "void",
        "volatile",
        "while", "asm", "typeof", "NULL", "memcpy",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Constant:
    """A value of a const, or an enumerator (`enumerator` is its name in C)."""

    value: int | float | str
    enumerator: str = ""


@dataclass
class Scope:
    """A module, interface or struct, or the file (no parent)."""

    name: str = ""
    parent: Scope | None = None
    base: Scope | None = None  # the interface this one derives from
    names: dict[str, tuple[Entity, Place]] = field(default_factory=dict)
    methods: list[Method] = field(default_factory=list)
    has_handle: bool = False
    is_interface: bool = False

    def c(self, name: str) -> str:
        """`name`, declared here, as C spells it: after the names of the scopes around it."""
        return self.parent.c(f"{self.name}_{name}") if self.parent else name

    def declare(self, name: Token, entity: Entity) -> None:
        if name.text in C_WORDS:
            raise IdlError(name.place, f"'{name.text}' has a meaning in C; choose another name")
        if name.text.startswith("_"):
            raise IdlError(name.place, f"'{name.text}' starts with _, as generated names do; choose another name")
        if name.text in self.names:
            raise IdlError(
                name.place, f"'{name.text}' is declared already at {self.names[name.text][1]}; choose another name"
            )
        self.names[name.text] = entity, name.place

    def find(self, path: list[str]) -> Entity | None:
        """The thing of that name here, in a base, or further out; `path` is A::B in parts."""
        found = self._own(path[0])
        if found is None:
            return self.parent.find(path) if self.parent else None
        for part in path[1:]:
            found = found._own(part) if isinstance(found, Scope) else None
        return found

    def _own(self, name: str) -> Entity | None:
        if name in self.names:
            return self.names[name][0]
        return self.base._own(name) if self.base else None

    def root(self) -> Scope:
        return self.parent.root() if self.parent else self

    def similar(self, name: str, kind: type) -> str:
        """' (did you mean ...?)' where a thing of that kind has nearly the name."""
        known: list[str] = []
        scope: Scope | None = self
        while scope:
            known += [n for n, (entity, _) in scope.names.items() if isinstance(entity, kind)]
            scope = scope.parent
        near = difflib.get_close_matches(name, known, 1)
        return f" (did you mean '{near[0]}'?)" if near else ""


Entity = Type | Constant | Scope | Method
