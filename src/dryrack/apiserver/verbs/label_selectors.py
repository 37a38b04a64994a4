"""
Label selectors in their text form: `tier=web,zone in (a,b),!canary`.

The parser and its error texts are those of Kubernetes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from dryrack.kinds.text.quoting import quoted

_scan = re.compile(r"==|!=|[=!(),<>]|[^=!(),<>\s]+").findall
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))
_WORDS = frozenset(("in", "notin"))
# In the order in which the server lists them.
_BINARY = ("in", "notin", "=", "==", "!=", "gt", "lt")
_END = ""


class SelectorError(ValueError):
    """A selector that is not valid; the text is the server's."""


class Operator(Enum):
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER = "gt"
    LESS = "lt"


_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term; `values` are sorted and have no duplicates."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER:
                return _compares(value, lambda number: number > int(self.values[0]))
            case Operator.LESS:
                return _compares(value, lambda number: number < int(self.values[0]))


def _compares(value: str | None, test: Callable[[int], bool]) -> bool:
    return value is not None and _is_int64(value) and test(int(value))


@dataclass(frozen=True, slots=True)
class LabelSelection:
    """A selector of labels, all of whose requirements must hold."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(each.matches(labels) for each in self.requirements)


def parse(text: str) -> LabelSelection:
    """Return the selector of a text; "" selects everything."""
    return _Parser(text).parse_selection()


class _Parser:
    """Recursive descent over the words and symbols of a selector."""

    def __init__(self, text: str) -> None:
        # The server reads up to a NUL.
        self._tokens: list[str] = [*_scan(text.partition("\0")[0]), _END]
        self._position = 0

    def parse_selection(self) -> LabelSelection:
        requirements: list[Requirement] = []
        while (token := self._ahead()) != _END:
            if not _is_identifier(token) and token != "!":
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._parse_requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            token = self._take()
            if token == _END:
                break
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            after = self._ahead()
            if not _is_identifier(after) and after != "!":
                raise SelectorError(f"found '{after}', expected: identifier after ','")
        return LabelSelection(tuple(sorted(requirements, key=lambda each: each.key)))

    def _parse_requirement(self) -> Requirement:
        key = self._take()
        is_absent = key == "!"
        if is_absent:
            key = self._take()
        if not _is_identifier(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        _check_key("<nil>", key)
        if is_absent:
            return Requirement(key, Operator.DOES_NOT_EXIST)
        if self._ahead() in (_END, ","):
            return Requirement(key, Operator.EXISTS)
        token = self._take()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise SelectorError(f"found '{token}', expected: {', '.join(_BINARY)}")
        if token in _WORDS:
            values = self._parse_values()
        elif self._ahead() in (_END, ","):
            values = ("",)
        else:
            value = self._take()
            if not _is_identifier(value):
                raise SelectorError(f"found '{value}', expected: identifier")
            values = (value,)
        _check_values(key, operator, values)
        return Requirement(key, operator, values)

    def _parse_values(self) -> tuple[str, ...]:
        """Parse `(a,,b)`; an empty place is the empty value."""
        token = self._take()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        token = self._ahead()
        if token == ")":
            self._take()
            return ("",)
        if token != "," and not _is_identifier(token):
            raise SelectorError(f"found '{token}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            token = self._take()
            after = self._ahead()
            if _is_identifier(token):
                values.add(token)
                if after not in (",", ")"):
                    raise SelectorError(f"found '{after}', expected: ',' or ')'")
            elif token == ",":
                if not values or after in (",", ")"):
                    values.add("")
            else:
                raise SelectorError(f"found '{token}', expected: ',', or identifier")
            if after == ")":
                self._take()
                return tuple(sorted(values))

    def _ahead(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._tokens[self._position]
        if token != _END:
            self._position += 1
        return token


def _is_identifier(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _check_key(field: str, key: str) -> None:
    from dryrack.kinds.validation.names import label_key

    complaints = label_key(key)
    if complaints:
        raise SelectorError(f"{field}: Invalid value: {quoted(key)}: {'; '.join(complaints)}")


def _check_values(key: str, operator: Operator, values: tuple[str, ...]) -> None:
    from dryrack.kinds.validation.names import label_value

    problems = []
    if operator in (Operator.GREATER, Operator.LESS):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        problems += [
            f"values[{index}]: Invalid value: {quoted(value)}: {detail}"
            for index, value in enumerate(values)
            if not _is_int64(value)
        ]
    for index, value in enumerate(values):
        complaints = label_value(value)
        if complaints:
            shown = f"{quoted(value)}: {'; '.join(complaints)}"
            problems.append(f"values[{index}][{key}]: Invalid value: {shown}")
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _is_int64(text: str) -> bool:
    if not re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII):
        return False
    return len(text) <= 20 and -(2**63) <= int(text) < 2**63
