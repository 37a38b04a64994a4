"""
Field selectors: `spec.nodeName=n1,status.phase!=Running`.

The kind decides which fields are selectable; values are compared as text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dryrack.apiserver.verbs.label_selectors import SelectorError

# In the order of the server: at every position the longer ones first.
_OPERATORS = ("!=", "==", "=")


@dataclass(frozen=True, slots=True)
class Term:
    field: str
    value: str
    is_equal: bool

    def matches(self, fields: Mapping[str, str]) -> bool:
        return (fields.get(self.field, "") == self.value) is self.is_equal


@dataclass(frozen=True, slots=True)
class FieldSelection:
    """A selector of fields, all of whose terms must hold."""

    terms: tuple[Term, ...]

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(term.matches(fields) for term in self.terms)

    def exact(self, field: str) -> str | None:
        """Return the value that a field must equal, or None."""
        values = (term.value for term in self.terms if term.is_equal and term.field == field)
        return next(values, None)


def parse(text: str, check: Callable[[str], None] | None = None) -> FieldSelection:
    """Return the selector of a text; `check` raises for a field that is not selectable."""
    terms = [_parse_term(part, text) for part in sorted(_split(text)) if part]
    for term in terms:
        if check:
            check(term.field)
    return FieldSelection(tuple(terms))


def _split(text: str) -> list[str]:
    """Split a selector at the commas without a backslash before them."""
    parts = []
    start = 0
    escaped = False
    for position, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _parse_term(part: str, selector: str) -> Term:
    for position in range(len(part)):
        for operator in _OPERATORS:
            if part.startswith(operator, position):
                value = _unescape(part[position + len(operator) :])
                return Term(part[:position], value, operator != "!=")
    raise SelectorError(f"invalid selector: '{selector}'; can't understand '{part}'")


def _unescape(value: str) -> str:
    characters = []
    escaped = False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(_bad_escape(f"\\{char}"))
            characters.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(char)}"
            )
        else:
            characters.append(char)
    if escaped:
        raise SelectorError(_bad_escape("\\"))
    return "".join(characters)


def _bad_escape(sequence: str) -> str:
    return f"invalid field selector: invalid escape sequence: {sequence}"
