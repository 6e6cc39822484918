"""Constant expressions, and their values as C."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from hexnpu.idl.lexer import Kind, Token
from hexnpu.idl.place import IdlError, Place
from hexnpu.idl.scope import Constant

Value = int | float | str
MAX_DIGITS = 40

_LEVELS = (("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
_INTEGER: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b, "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}  # fmt: skip
_ESCAPES = dict(zip("ntrabfv\\'\"?", "\n\t\r\a\b\f\v\\'\"?", strict=True))
_REAL: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b
}  # fmt: skip


class Expression:
    """Evaluates the tokens that `take` gives; `name` finds the constant of a name."""

    def __init__(self, peek: Callable[[], Token], take: Callable[[], Token], name: Callable[[], Constant]) -> None:
        self.peek, self.take, self.name = peek, take, name

    def evaluate(self) -> Constant:
        return self._level(0)

    def _level(self, level: int) -> Constant:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self.peek().text in _LEVELS[level]:
            sign = self.take()
            left = Constant(_combine(sign, left.value, self._level(level + 1).value))
        return left

    def _unary(self) -> Constant:
        if self.peek().text not in ("-", "+", "~"):
            return self._primary()
        sign = self.take()
        value = self._unary().value
        if isinstance(value, str) or (sign.text == "~" and isinstance(value, float)):
            raise IdlError(sign.place, f"{sign.text} needs a number after it")
        return Constant(-value if sign.text == "-" else ~int(value) if sign.text == "~" else value)

    def _primary(self) -> Constant:
        token = self.peek()
        if token.text == "(":
            self.take()
            inner = self.evaluate()
            if self.take().text != ")":
                raise IdlError(token.place, "this ( is never closed; add )")
            return inner
        if token.text in ("TRUE", "FALSE"):
            return Constant(int(self.take().text == "TRUE"))
        if token.kind is Kind.NAME or token.text == "::":
            return self.name()
        self.take()
        match token.kind:
            case Kind.NUMBER:
                return Constant(_number(token))
            case Kind.STRING:
                text = _unquote(token)
                while self.peek().kind is Kind.STRING:
                    text += _unquote(self.take())
                return Constant(text)
            case Kind.CHAR:
                if len(text := _unquote(token)) != 1:
                    raise IdlError(token.place, f'{token.text} is not one character; write one, or a string in ""')
                return Constant(ord(text))
        raise IdlError(token.place, f"a value is missing before {token.text}")


def _number(token: Token) -> int | float:
    text = token.text
    if len(text) > MAX_DIGITS:
        raise IdlError(token.place, f"a number of {len(text)} digits does not fit into any type")
    if text.lower().startswith("0x"):
        return int(text, 16)
    if not text.isdecimal():
        return float(text)
    if text.startswith("0") and len(text) > 1:
        try:
            return int(text, 8)
        except ValueError:
            raise IdlError(token.place, f"{text} starts with 0, so it is octal, and has no octal digits") from None
    return int(text)


def _unquote(token: Token) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _ESCAPES:
            return _ESCAPES[escape]
        if escape[0] == "x" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape[0] in "01234567":
            return chr(int(escape, 8))
        raise IdlError(token.place, f"\\{escape} is an unknown escape; write \\n, \\t, \\x41 ...")

    return re.sub(r"\\([0-7]{1,3}|x[0-9a-fA-F]{0,2}|.)", character, token.text[1:-1])


def _combine(sign: Token, left: Value, right: Value) -> Value:
    try:
        if isinstance(left, int) and isinstance(right, int):
            if sign.text in ("<<", ">>") and not 0 <= right < 64:
                raise IdlError(sign.place, f"a shift by {right} is not within 0..63")
            return _INTEGER[sign.text](left, right)
        if not isinstance(left, str) and not isinstance(right, str):
            return _REAL[sign.text](left, right)
    except ZeroDivisionError:
        raise IdlError(sign.place, "division by zero") from None
    except (KeyError, OverflowError):
        pass
    raise IdlError(sign.place, f"{sign.text} cannot be applied to these values; use numbers")


def to_c(constant: Constant, kind: str, place: Place) -> str:
    """The value as C for a const of `kind` (that of a Scalar, or string); IdlError where it does not fit."""
    value = constant.value
    if kind == "string":
        if not isinstance(value, str):
            raise IdlError(place, f'{value} is not a string; write it in ""')
        return '"' + "".join(map(_escape, value.encode(errors="replace"))) + '"'
    if isinstance(value, str):
        raise IdlError(place, "a string needs the type string; write const string")
    if kind in ("float", "double"):
        if abs(value) > (3.4e38 if kind == "float" else 1.7e308) or math.isnan(value):
            raise IdlError(place, f"{value} does not fit into a {kind}")
        return _parenthesize(repr(float(value)) + ("f" if kind == "float" else ""))
    if isinstance(value, float):
        raise IdlError(place, f"{value} is not an integer; write const double")
    if constant.enumerator:
        return constant.enumerator
    if kind == "enum":
        raise IdlError(place, f"{value} is not an enumerator; write the name of one")
    low, high = RANGES[kind]
    if not low <= value <= high:
        raise IdlError(place, f"{value} does not fit into {low}..{high}; use a wider type")
    if value == -(1 << 63):
        return "(-9223372036854775807LL - 1)"
    suffix = "ULL" if value >= 1 << 63 else "LL" if value >= 1 << 32 or value < -(1 << 31) + 1 else ""
    if not suffix and value >= 1 << 31:
        suffix = "U"
    return _parenthesize(f"{value}{suffix}")


RANGES = {
    **{f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}


def _parenthesize(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _escape(byte: int) -> str:
    if chr(byte) in '"\\':
        return "\\" + chr(byte)
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
