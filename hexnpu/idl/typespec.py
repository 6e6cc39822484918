"""Type specifications: plain types, strings, sequences, names, and the arrays that declarators make of them."""

from __future__ import annotations

from hexnpu.idl.constants import Expression
from hexnpu.idl.cursor import Cursor
from hexnpu.idl.lexer import Kind, Token
from hexnpu.idl.place import IdlError
from hexnpu.idl.scope import Constant, Entity, Scope
from hexnpu.idl.types import Array, Handle, Scalar, Sequence, Type, size_of

# IDL words -> what C calls the type, its bytes, and its kind.
PLAIN = {
    "octet": ("unsigned char", 1, "uint8"), "char": ("char", 1, "uint8"), "wchar": ("_wchar_t", 2, "uint16"),
    "boolean": ("boolean", 1, "uint8"), "float": ("float", 4, "float"), "double": ("double", 8, "double"),
    "short": ("short", 2, "int16"), "long": ("int", 4, "int32"), "long long": ("int64", 8, "int64"),
    "unsigned short": ("unsigned short", 2, "uint16"), "unsigned long": ("unsigned int", 4, "uint32"),
    "unsigned long long": ("uint64", 8, "uint64"),
    **{f"{sign}int{bits}{end}": (f"{sign}int{bits}{end}", bits // 8, f"{sign}int{bits}")
       for sign in ("", "u") for bits in (8, 16, 32, 64) for end in ("", "_t")},
}  # fmt: skip
# Strings as elements or members of something are a C struct of pointer and length.
STRINGS = {"string": ("_cstring1_t", "char"), "wstring": ("_wstring1_t", "wchar")}
MAX_VALUE_BYTES = 1 << 20  # values stand on the stack of either side


def plain(words: str) -> Type:
    c, size, kind = PLAIN[words]
    return Type(c, Scalar(size, kind))


class TypeCursor(Cursor):
    """A cursor that knows the names in scope."""

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.scope = Scope()
        self.scope.names["remote_handle"] = Type("remote_handle", Handle(32)), tokens[-1].place

    def type(self, what: str) -> Type:
        self.refuse_unsupported()
        token = self.peek()
        if token.text in ("unsigned", "long", "short"):
            return self._integer()
        if token.kind is Kind.NAME and token.text in PLAIN:
            return plain(self.take().text)
        if token.text in STRINGS:
            c, element = STRINGS[self.take().text]
            self._refuse_bound("<", token)
            return Type(c, Sequence(plain(element), terminated=True))
        if self.accept("sequence"):
            return self._sequence(token)
        if token.kind is Kind.NAME or token.text == "::":
            return self._named_type()
        raise IdlError(token.place, f"{what} needs a type, not {token.text}")

    def _integer(self) -> Type:
        place = self.peek().place
        words = [self.take().text]
        while self.peek().text in ("short", "long") and len(words) < 3:
            words.append(self.take().text)
        token = self.peek()
        if " ".join(words) not in PLAIN or token.text in ("char", "double", "int"):
            raise IdlError(
                place,
                f"{' '.join(words)} {token.text} is no type; there are short, long and long long, each with or without "
                "unsigned, and int8 ... uint64",
            )
        return plain(" ".join(words))

    def _sequence(self, token: Token) -> Type:
        self.expect("<", "after sequence")
        element = self.type("a sequence")
        self._refuse_bound(",", token)
        self.expect(">", "after the type of the sequence")
        if isinstance(element.shape, Handle):
            raise IdlError(token.place, "a sequence of handles is not supported; pass each as a parameter")
        if isinstance(element.shape, Sequence) and not element.c:
            raise IdlError(token.place, "the inner sequence needs a name; declare it with typedef and use that")
        return Type("", Sequence(element))

    def _refuse_bound(self, sign: str, token: Token) -> None:
        if self.peek().text == sign:
            raise IdlError(
                self.peek().place, f"a bound of a {token.text} is not supported; check its length in the method"
            )

    def _named_type(self) -> Type:
        first = self.peek().place
        name, entity = self.named()
        if isinstance(entity, Type):
            return entity
        if isinstance(entity, Scope) and entity.is_interface:
            if name == "remote_handle64":
                return Type(name, Handle(64))
            raise IdlError(first, f"interface {name} as a type is not supported; pass a remote_handle64")
        if entity is None:
            hint = self.scope.similar(name, Type) or "; declare it before, or include its file"
            include = '; #include "remote.idl"'
            raise IdlError(first, f"unknown type '{name}'{include if name == 'remote_handle64' else hint}")
        raise IdlError(first, f"'{name}' is not a type")

    def named(self) -> tuple[str, Entity | None]:
        """A name, plain or A::B or ::A, and what it stands for."""
        scope = self.scope.root() if self.accept("::") else self.scope
        path = [self.identifier("this").text]
        while self.accept("::"):
            path.append(self.identifier("::").text)
        return "::".join(path), scope.find(path)

    def declarator(self, base: Type, what: str) -> tuple[Token, Type]:
        """A name and its type: the base, or an array of it."""
        name = self.identifier(what)
        counts: list[int] = []
        while self.accept("["):
            place = self.peek().place
            count = self.expression().value
            if not isinstance(count, int) or count <= 0:
                raise IdlError(place, f"an array of {count} elements is not possible; write a positive integer")
            counts.append(count)
            self.expect("]", "after the size of the array")
        kind = base
        for count in reversed(counts):
            kind = Type("", Array(kind, count))
        if counts and not base.is_flat:
            raise IdlError(name.place, "an array of sequences or strings is not supported; use a sequence of them")
        refuse_big(kind, name)
        return name, kind

    def expression(self) -> Constant:
        return Expression(self.peek, self.take, self._constant).evaluate()

    def _constant(self) -> Constant:
        place = self.peek().place
        name, entity = self.named()
        if isinstance(entity, Constant):
            return entity
        hint = self.scope.similar(name, Constant) or "; declare it with const before"
        raise IdlError(place, f"unknown constant '{name}'{hint}" if entity is None else f"'{name}' is not a constant")


def refuse_big(kind: Type, name: Token) -> None:
    if kind.is_flat and size_of(kind)[0] > MAX_VALUE_BYTES:
        raise IdlError(name.place, f"{name.text} is a value of {size_of(kind)[0]} bytes, too big; use a sequence")


def is_result(kind: Type) -> bool:
    """What a method may return: 32 bits, as a call itself does."""
    return isinstance(kind.shape, Scalar) and kind.shape.kind in ("int32", "uint32")
