"""The integer arithmetic of `$((…))`."""

import operator
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~&|^?:()])"
)
# By precedence, the weakest first.
_LEVELS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
    },
    {"<<": lambda a, b: a << min(b, 63), ">>": lambda a, b: a >> min(b, 63)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: _divide(a, b)[0], "%": lambda a, b: _divide(a, b)[1]},
)
_UNARY: Mapping[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda a: int(not a),
}


def calculate(text: str, variables: Mapping[str, str]) -> int:
    """Return the value of an expression; raise a ValueError if it is not valid."""
    text = text.strip()
    tokens: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(text)
        tokens.append(match[1])
        at = match.end()
    # Tokens are taken from the end.
    tokens = ["", *reversed(tokens)]
    value = _choice(tokens, variables) if text else 0
    if tokens != [""] and text:
        raise ValueError(text)
    return value


def _choice(tokens: list[str], variables: Mapping[str, str]) -> int:
    value = _binary(tokens, variables, 0)
    if tokens[-1] != "?":
        return value
    tokens.pop()
    first = _choice(tokens, variables)
    if tokens.pop() != ":":
        raise ValueError("a choice without ':'")
    second = _choice(tokens, variables)
    return first if value else second


def _binary(tokens: list[str], variables: Mapping[str, str], level: int) -> int:
    if level == len(_LEVELS):
        return _operand(tokens, variables)
    value = _binary(tokens, variables, level + 1)
    while tokens[-1] in _LEVELS[level]:
        function = _LEVELS[level][tokens.pop()]
        value = _wrap(function(value, _binary(tokens, variables, level + 1)))
    return value


def _wrap(value: int) -> int:
    """Return the value in 64 bits, as the shells compute."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _operand(tokens: list[str], variables: Mapping[str, str]) -> int:
    token = tokens.pop()
    if token in _UNARY:
        return _UNARY[token](_operand(tokens, variables))
    if token == "(":
        value = _choice(tokens, variables)
        if tokens.pop() != ")":
            raise ValueError("a parenthesis is open")
        return value
    if token.isidentifier():
        return int(variables.get(token, "").strip() or "0", 0)
    return int(token, 16 if token[:2].lower() == "0x" else 10)


def _divide(a: int, b: int) -> tuple[int, int]:
    if b == 0:
        raise ValueError("division by zero")
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient, a - quotient * b
