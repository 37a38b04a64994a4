"""
The parts of a selector that a device does not meet, and the values of the device.

A selector is mostly a chain of conditions with `&&`. Each condition is judged by itself, and one
that compares an attribute or a capacity with a constant is reported with the value of the device.
The distance says how far the device is from meeting it, so that the nearest device comes first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING

from dryrack.cel.device_reads import (
    COMPARISONS,
    comparisons_of,
    nodes_of,
    presence_of,
    read_of,
)
from dryrack.cel.evaluation.values import Err, Version
from dryrack.cel.parsing.ast import Call, Expr, ListLiteral, Literal
from dryrack.cel.parsing.lexer import tokenize
from dryrack.cel.parsing.parser import parse
from dryrack.cel.parsing.source import Issues
from dryrack.cel.selectors import SelectorFailure
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.releases import CEL, NEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.cel.device import Device
    from dryrack.cel.device_reads import Read
    from dryrack.cel.evaluation.values import Value
    from dryrack.cel.selectors import SelectorTable

_WORDS = {
    "_==_": "",
    "_!=_": "another value than ",
    "_<_": "less than ",
    "_<=_": "at most ",
    "_>_": "more than ",
    "_>=_": "at least ",
}
_FLIPPED = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_"}
_METHODS = {"isGreaterThan": "_>_", "isLessThan": "_<_"}
# Functions that make a value of a text.
_MAKERS = ("quantity", "semver")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
# A condition that is not met is never as good as met.
_DISTANCE_MIN = 0.01


@dataclass(frozen=True, slots=True)
class UnmetPart:
    """A condition that a device does not meet."""

    # What the device has and what the selector requires.
    fact: str
    # From just above 0, for nearly met, to 1.
    distance: float


@dataclass(frozen=True, slots=True)
class _Condition:
    """A comparison of a value of the device with a constant."""

    read: Read
    operator: str
    # The constant as a value and as it is shown.
    value: Value
    text: str


def unmet_parts(
    expressions: Sequence[str], shape: Device, table: SelectorTable
) -> tuple[UnmetPart, ...]:
    """Return the conditions of the selectors that the device does not meet."""
    unmet: list[UnmetPart] = []
    failed: list[UnmetPart] = []
    for part in (part for each in expressions for part in split(each)):
        verdict = table.judge_one(part, shape)
        if verdict is True:
            continue
        tree = _tree(part)
        if tree is None:
            continue
        parts = failed if isinstance(verdict, SelectorFailure) else unmet
        parts.append(_describe(part, tree, shape))
    # A condition fails where one before it asks whether the attribute exists.
    return tuple(dict.fromkeys(unmet or failed))


# Many devices are reported with the same parts.
@lru_cache(maxsize=1024)
def _tree(part: str) -> Expr | None:
    # The selector compiles in its release, so the syntax of the newest one reads every part.
    parsed = parse(part, CEL[NEWEST])
    return None if isinstance(parsed, Issues) else parsed


@lru_cache(maxsize=1024)
def split(expression: str) -> tuple[str, ...]:
    """Return the conditions that `&&` joins on the outermost level."""
    tokens, problems = tokenize(expression)
    depth = 0
    starts = [0]
    previous = ""
    for token in tokens:
        kind = token.kind
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        elif depth == 0 and (kind == "||" or (kind == "?" and previous not in (".", "["))):
            return (expression.strip(),)
        elif depth == 0 and kind == "&&":
            starts.append(token.position)
        previous = kind
    if problems or len(starts) == 1:
        return (expression.strip(),)
    ends = [*starts[1:], len(expression)]
    cut = (expression[start:end] for start, end in zip(starts, ends, strict=True))
    return tuple(each.removeprefix("&&").strip() for each in cut)


def compared_texts(expression: str) -> tuple[tuple[Read, Literal], ...]:
    """Return what the expression compares with a text, and the text."""
    tree = _tree(expression)
    return () if tree is None else tuple(comparisons_of(tree))


def with_text(expression: str, literal: Literal, text: str) -> str:
    """Return the expression with another text in the place of a literal."""
    tokens, _ = tokenize(expression)
    old = next(each.text for each in tokens if each.position == literal.position)
    quoted = json.dumps(text) if set("'\\\n") & set(text) else f"'{text}'"
    return expression[: literal.position] + quoted + expression[literal.position + len(old) :]


def value_of(read: Read, shape: Device) -> Value:
    """Return what the device has where the expression reads; None if it has nothing there."""
    if read.kind == "driver":
        return shape.driver
    variable = shape.variable(lists=True)
    domains = {} if isinstance(variable, Err) else dict(variable[read.kind])
    return domains.get(read.domain, {}).get(read.name)


def _describe(part: str, tree: Expr, shape: Device) -> UnmetPart:
    condition = _condition(tree)
    reads = [condition.read] if condition else list(dict.fromkeys(_reads(tree)))
    missing = [read for read in reads if value_of(read, shape) is None]
    if missing:
        names = " and ".join(_name(read, shape) for read in missing)
        return UnmetPart(f"has no {missing[0].kind.removesuffix('s')} {names}", 1.0)
    if condition is None:
        values = ", ".join(f"{_name(r, shape)} is {_text_of(value_of(r, shape))}" for r in reads)
        requires = f"the selector requires {part}"
        return UnmetPart(f"{values}, {requires}" if values else requires, 1.0)
    value = value_of(condition.read, shape)
    requires = f"the selector requires {_WORDS[condition.operator]}{condition.text}"
    fact = f"{_name(condition.read, shape)} is {_text_of(value)}, {requires}"
    # Names of drivers say nothing of how much their devices are alike.
    is_driver = condition.read.kind == "driver"
    return UnmetPart(fact, 1.0 if is_driver else _distance(value, condition.value))


def _condition(tree: Expr) -> _Condition | None:
    """The tree as a comparison of a read with a constant, if it is one."""
    match tree:
        case Call(function=function, args=(left, right)) if function in COMPARISONS:
            match left, right:
                case Call(function="compareTo", target=target, args=(other,)), Literal(value=0):
                    return _comparison(target, function, other) if target is not None else None
            return _comparison(left, function, right)
        case Call(function=function, target=target, args=(other,)) if (
            function in _METHODS and target is not None
        ):
            return _comparison(target, _METHODS[function], other)
        case Call(function="!_", args=(operand,)) if (read := read_of(operand)) is not None:
            return _Condition(read, "_==_", False, "false")
        case Call(function="@in", args=(operand, ListLiteral(elements=elements))):
            read = read_of(operand)
            constants = [_constant(each) for each in elements]
            if read is not None and all(each is not None for each in constants):
                known = [each for each in constants if each is not None]
                texts = " or ".join(text for _, text in known)
                return _Condition(read, "_==_", known[0][0] if known else None, texts)
    read = read_of(tree)
    return _Condition(read, "_==_", True, "true") if read is not None else None


def _comparison(left: Expr, operator: str, right: Expr) -> _Condition | None:
    for side, other, shown in (
        (left, right, operator),
        (right, left, _FLIPPED.get(operator, operator)),
    ):
        read = read_of(side)
        constant = _constant(other)
        if read is not None and constant is not None:
            return _Condition(read, shown, *constant)
    return None


def _constant(node: Expr) -> tuple[Value, str] | None:
    """The value of a literal, or of `quantity("…")` and `semver("…")`, with its text."""
    if isinstance(node, Literal):
        return node.value, _text_of(node.value)
    if isinstance(node, Call) and node.function in _MAKERS and node.args:
        inner = node.args[0]
        if isinstance(inner, Literal) and isinstance(inner.value, str):
            return _make(node.function, inner.value), inner.value
    return None


def _make(function: str, text: str) -> Value:
    try:
        return Quantity.parse(text) if function == "quantity" else text
    except ValueError:
        return text


def _reads(tree: Expr) -> Iterator[Read]:
    for node in nodes_of(tree):
        read = presence_of(node) or read_of(node)
        if read is not None:
            yield read


def _name(read: Read, shape: Device) -> str:
    if read.kind == "driver":
        return "driver"
    is_own = read.domain == shape.driver
    return read.name if is_own else f"{read.domain}/{read.name}"


def _text_of(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Version):
        return str(value.semver)
    if isinstance(value, list):
        return f"[{', '.join(map(_text_of, value))}]"
    return repr(value) if isinstance(value, str) else str(value)


def _distance(has: Value, wanted: Value) -> float:
    if isinstance(has, str) and isinstance(wanted, str):
        return max(_DISTANCE_MIN, 1 - SequenceMatcher(None, has, wanted).ratio())
    numbers = [_number(has), _number(wanted)]
    if numbers[0] is None or numbers[1] is None:
        return 1.0
    most = max(abs(numbers[0]), abs(numbers[1]))
    return min(1.0, max(_DISTANCE_MIN, abs(numbers[0] - numbers[1]) / most)) if most else 1.0


def _number(value: Value) -> int | None:
    if isinstance(value, Quantity):
        return value.nanos
    return value if isinstance(value, int) and not isinstance(value, bool) else None
