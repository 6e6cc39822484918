"""The place in a list of tokens, and the small steps that every rule of the grammar is made of."""

from __future__ import annotations

from hexnpu.idl.lexer import Kind, Token
from hexnpu.idl.place import IdlError

UNSUPPORTED = {
    "union": "unions are not supported; use a struct with all the members",
    "any": "any is not supported; use sequence<octet>",
    "Object": "objects are not supported; pass data, or a remote_handle64",
    "native": "native types are not supported; use an integer of that size",
    "dmahandle": "dmahandle is not supported; pass the file descriptor, the offset and the length as integers",
    "fixed": "fixed-point numbers are not supported; use long long or double",
    "exception": "exceptions are not supported; return an AEEResult",
    "attribute": "attributes are not supported; declare methods that get and set",
    "readonly": "attributes are not supported; declare methods that get and set",
    "async": "async methods are not supported; declare the method without async",
    "oneway": "oneway methods are not supported; remove oneway",
    "abstract": "abstract interfaces are not supported; remove abstract",
    "local": "local interfaces are not supported; remove local",
    "valuetype": "value types are not supported; use a struct",
    "namespace": "namespaces are called modules here; write module",
}


class Cursor:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.position = tokens, 0

    def peek(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += token.kind is not Kind.END
        return token

    def accept(self, text: str) -> Token | None:
        """The next token where it is this word or sign."""
        token = self.peek()
        return self.take() if token.text == text and token.kind in (Kind.NAME, Kind.SIGN) else None

    def expect(self, text: str, where: str) -> Token:
        token = self.peek()
        if text == ">" and token.text == ">>":  # two closing brackets that the lexer took for a shift
            self.tokens[self.position] = Token(Kind.SIGN, ">", token.place)
            return token
        found = self.accept(text)
        if found is None:
            raise IdlError(token.place, f"'{text}' is missing {where}, before {token.text}")
        return found

    def identifier(self, what: str) -> Token:
        self.refuse_unsupported()
        token = self.peek()
        if token.kind is not Kind.NAME:
            raise IdlError(token.place, f"{what} needs a name, not {token.text}")
        return self.take()

    def refuse_unsupported(self) -> None:
        token = self.peek()
        if token.kind is Kind.NAME and token.text in UNSUPPORTED:
            raise IdlError(token.place, UNSUPPORTED[token.text])
