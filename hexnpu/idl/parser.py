"""Tokens -> declarations. What the language has and this compiler has not is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

from hexnpu.idl.constants import to_c
from hexnpu.idl.lexer import Kind, Token
from hexnpu.idl.model import (
    ConstDeclaration,
    Declaration,
    EnumDeclaration,
    Interface,
    Method,
    StructDeclaration,
    TypedefDeclaration,
    Unit,
)
from hexnpu.idl.place import IdlError, Place
from hexnpu.idl.scope import C_WORDS, Constant, Entity, Scope
from hexnpu.idl.types import Field, Handle, Scalar, Sequence, Struct, Type
from hexnpu.idl.typespec import TypeCursor, is_result, refuse_big
from hexnpu.idl.wire import Parameter, is_nested

VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){0,2}")


class Parser(TypeCursor):
    def __init__(self, tokens: list[Token], path: Path, includes: tuple[str, ...]) -> None:
        super().__init__(tokens)
        self.path = str(path)
        self.unit = Unit(path.stem, includes)
        self.declarations: list[Declaration] = []
        self.c_names: dict[str, Place] = {}

    def parse(self) -> Unit:
        while self.peek().kind is not Kind.END:
            # Only what the named file itself declares becomes C; included files have headers of their own.
            self.declarations = self.unit.declarations if self.peek().place.path == self.path else []
            self._declaration()
        return self.unit

    def _declaration(self) -> None:
        token = self.peek()
        if self.accept("module"):
            self._module()
        elif self.accept("interface"):
            self._interface()
        elif not self._type_or_const():
            self.refuse_unsupported()
            raise IdlError(
                token.place, f"{token.text} declares nothing; write interface, struct, enum, typedef, const or module"
            )
        self.expect(";", "after the declaration")

    def _type_or_const(self) -> bool:
        if self.accept("typedef"):
            self._typedef()
        elif self.accept("const"):
            self._const()
        elif self.peek().text in ("struct", "enum"):
            self._constructed()
        else:
            return False
        return True

    def _module(self) -> None:
        name = self.identifier("a module")
        known = self.scope.names.get(name.text)
        scope = known[0] if known and isinstance(known[0], Scope) and not known[0].is_interface else None
        if scope is None:
            scope = Scope(name.text, self.scope)
            self.scope.declare(name, scope)
        self.expect("{", f"after module {name.text}")
        outer, self.scope = self.scope, scope
        while not self.accept("}"):
            self._declaration()
        self.scope = outer

    # ---- types and constants ----

    def _constructed(self) -> Type:
        return self._struct() if self.take().text == "struct" else self._enum()

    def _enum(self) -> Type:
        name = self.identifier("an enum")
        kind = Type(self.scope.c(name.text), Scalar(4, "enum"))
        self._declare(name, kind)
        self.expect("{", f"after enum {name.text}")
        names: list[str] = []
        while True:
            label = self.identifier("an enumerator")
            self._claim(label.text, label.place)
            self.scope.declare(label, Constant(len(names), label.text))
            names.append(label.text)
            if self.peek().text == "=":
                raise IdlError(self.peek().place, "enumerators count from 0 and take no values; use const long")
            if not self.accept(",") or self.peek().text == "}":
                break
        self.expect("}", f"after the last name of enum {name.text}")
        self.declarations.append(EnumDeclaration(kind.c, tuple(names)))
        return kind

    def _struct(self) -> Type:
        name = self.identifier("a struct")
        outer, self.scope = self.scope, Scope(name.text, self.scope)
        self.expect("{", f"after struct {name.text}")
        fields: list[Field] = []
        taken: dict[str, Place] = {}
        while not self.accept("}"):
            inner = self.peek().text in ("struct", "enum")
            base = self._constructed() if inner else self.type(f"a member of struct {name.text}")
            while True:
                member, kind = self.declarator(base, "a member")
                if isinstance(kind.shape, Handle):
                    raise IdlError(member.place, "a handle cannot be a member; pass it as a parameter")
                self._take_names(member, kind, taken)
                fields.append(Field(member.text, kind))
                if not self.accept(","):
                    break
            self.expect(";", f"after member {member.text}")
        self.scope = outer
        if not fields:
            raise IdlError(name.place, f"struct {name.text} is empty; give it a member")
        struct = Type(self.scope.c(name.text), Struct(tuple(fields)))
        refuse_big(struct, name)
        self._declare(name, struct)
        self.declarations.append(StructDeclaration(struct))
        return struct

    def _typedef(self) -> None:
        inner = self.peek().text in ("struct", "enum")
        base = self._constructed() if inner else self.type("a typedef")
        while True:
            name, kind = self.declarator(base, "a typedef")
            alias = Type(self.scope.c(name.text), kind.shape)
            self._declare(name, alias)
            self.declarations.append(TypedefDeclaration(alias.c, kind))
            if not self.accept(","):
                break

    def _const(self) -> None:
        base = self.type("a const")
        name = self.identifier("a const")
        match base.shape:
            case Scalar(_, kind):
                pass
            case Sequence(_, terminated=True):
                kind = "string"
            case _:
                raise IdlError(name.place, "a const is a number, a character, a boolean, an enumerator or a string")
        self.expect("=", f"after const {name.text}")
        place = self.peek().place
        constant = self.expression()
        value = to_c(constant, kind, place)
        self._declare(name, constant)
        self.declarations.append(ConstDeclaration(self.scope.c(name.text), value))
        if name.text == "IDL_VERSION" and not self.scope.parent:
            self.unit.version = str(constant.value)
            if not VERSION.fullmatch(self.unit.version):
                raise IdlError(place, 'a version is up to three numbers of up to three digits; write "1.2.3"')

    # ---- interfaces ----

    def _interface(self) -> None:
        name = self.identifier("an interface")
        if self.peek().text == ";":  # declared here, defined further on or never
            return
        scope = Scope(name.text, self.scope, self._base(), is_interface=True)
        self.scope.declare(name, scope)
        if scope.base:
            scope.has_handle = scope.base.has_handle or scope.base.name == "remote_handle64"
            scope.methods = list(scope.base.methods)
        self.expect("{", f"after interface {name.text}")
        outer, self.scope = self.scope, scope
        while not self.accept("}"):
            if not self._type_or_const():
                self._method()
            self.expect(";", f"inside interface {name.text}")
        self.scope = outer
        interface = Interface(self.scope.c(name.text), scope.has_handle, tuple(scope.methods))
        for method in interface.methods:
            self._claim(interface.function(method), method.place)
        self.declarations.append(interface)

    def _base(self) -> Scope | None:
        if not self.accept(":"):
            return None
        place = self.peek().place
        name, base = self.named()
        if not isinstance(base, Scope) or not base.is_interface:
            hint = '#include "remote.idl"' if name == "remote_handle64" else "declare it before, or include its file"
            raise IdlError(place, f"unknown interface '{name}'; {hint}")
        if self.peek().text == ",":
            raise IdlError(self.peek().place, "an interface has one base; remove the others")
        return base

    def _method(self) -> None:
        place = self.peek().place
        if self.peek().text == "void":
            raise IdlError(place, "a method cannot return void, for the call itself can fail; return AEEResult or long")
        returns = self.type(f"a method of interface {self.scope.name}")
        name = self.identifier("a method")
        if not is_result(returns):
            raise IdlError(place, f"method {name.text} must return AEEResult or long; use rout parameters for values")
        self.expect("(", f"after method {name.text}")
        taken: dict[str, Place] = {}
        parameters: list[Parameter] = []
        while not self.accept(")"):
            if parameters:
                self.expect(",", f"between the parameters of {name.text}")
            parameters.append(self._parameter(name, taken))
        if self.peek().text in ("raises", "context"):
            raise IdlError(self.peek().place, f"{self.peek().text} is not supported; return an AEEResult")
        _refuse_mixed(parameters, name)
        _refuse_shadows(parameters, taken)
        method = Method(name.text, returns.c, tuple(parameters), name.place)
        if self.scope.find([name.text]) is not None and any(m.name == name.text for m in self.scope.methods):
            raise IdlError(name.place, f"method '{name.text}' is declared already; choose another name")
        self.scope.declare(name, method)
        self.scope.methods.append(method)

    def _parameter(self, method: Token, taken: dict[str, Place]) -> Parameter:
        mode = self.take()
        if mode.text not in ("in", "rout", "inrout"):
            meant = {"out": "rout", "inout": "inrout"}.get(mode.text)
            hint = f"write {meant}" if meant else f"before {mode.text}"
            raise IdlError(mode.place, f"a parameter of {method.text} needs in, rout or inrout; {hint}")
        kind = self.type(f"a parameter of {method.text}")
        name, _ = self.declarator(kind, "a parameter")
        if self.tokens[self.position - 1].text == "]":
            raise IdlError(name.place, "an array as a parameter needs a name; declare it with typedef and use that")
        if name.text in C_WORDS or name.text.startswith(("_", "idl_")):
            raise IdlError(name.place, f"'{name.text}' has a meaning in the generated C; choose another name")
        self._take_names(name, kind, taken)
        if mode.text == "inrout" and (is_nested(kind) or isinstance(kind.shape, Handle)):
            what = "a handle" if isinstance(kind.shape, Handle) else "a type with sequences inside"
            raise IdlError(name.place, f"{what} cannot be inrout; pass one in and one rout")
        return Parameter(name.text, kind, mode.text)

    def _take_names(self, name: Token, kind: Type, taken: dict[str, Place]) -> None:
        """A parameter or member takes its name and, if it has a length, that with Len behind."""
        for text in (name.text, f"{name.text}Len") if isinstance(kind.shape, Sequence) else (name.text,):
            if text in C_WORDS:
                raise IdlError(name.place, f"'{text}' has a meaning in C; choose another name")
            if text in taken:
                raise IdlError(name.place, f"'{text}' is taken already at {taken[text]}; choose another name")
            taken[text] = name.place

    def _declare(self, name: Token, entity: Entity) -> None:
        self.scope.declare(name, entity)
        self._claim(self.scope.c(name.text), name.place)

    def _claim(self, c: str, place: Place) -> None:
        """C has one room for all these names, whatever scope they come from."""
        if c in self.c_names:
            raise IdlError(place, f"'{c}' in C is declared already at {self.c_names[c]}; choose another name")
        self.c_names[c] = place


def _refuse_mixed(parameters: list[Parameter], method: Token) -> None:
    """Handles come behind all buffers, whose number such a method does not know beforehand."""
    if any(is_nested(p.type) for p in parameters) and any(isinstance(p.type.shape, Handle) for p in parameters):
        raise IdlError(
            method.place,
            f"{method.text} has a handle beside a type with sequences inside, which is not supported; use two methods",
        )


def _refuse_shadows(parameters: list[Parameter], names: dict[str, Place]) -> None:
    """A C parameter hides a type of its name from the parameters behind it."""
    for parameter in parameters:
        shape = parameter.type.shape
        used = shape.element.c if isinstance(shape, Sequence) else parameter.type.c
        if used in names:
            raise IdlError(names[used], f"a parameter hides the type '{used}' of this method; rename the parameter")
