"""
Field selectors: `spec.nodeName=n1,status.phase!=Running`.

Which fields there are is the kind's to say; how they are compared is the same for all: as text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dryrack.apiserver.verbs.label_selectors import SelectorError

# As the server looks for them: the longer ones first at every position.
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
    """All terms hold."""

    terms: tuple[Term, ...]

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(term.matches(fields) for term in self.terms)

    def exact(self, field: str) -> str | None:
        """The one value that a field must have, if the selector says so."""
        found = (term.value for term in self.terms if term.is_equal and term.field == field)
        return next(found, None)


def parse(text: str, check: Callable[[str], None] | None = None) -> FieldSelection:
    """The selector of a text; `check` raises for a field that the kind does not have."""
    terms = [_term(part, text) for part in sorted(_parts(text)) if part]
    for term in terms:
        if check:
            check(term.field)
    return FieldSelection(tuple(terms))


def _parts(text: str) -> list[str]:
    """Separated by commas that no backslash escapes."""
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


def _term(part: str, selector: str) -> Term:
    for position in range(len(part)):
        for operator in _OPERATORS:
            if part.startswith(operator, position):
                value = _unescape(part[position + len(operator) :])
                return Term(part[:position], value, operator != "!=")
    raise SelectorError(f"invalid selector: '{selector}'; can't understand '{part}'")


def _unescape(value: str) -> str:
    found = []
    escaped = False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(_bad_escape(f"\\{char}"))
            found.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(char)}"
            )
        else:
            found.append(char)
    if escaped:
        raise SelectorError(_bad_escape("\\"))
    return "".join(found)


def _bad_escape(sequence: str) -> str:
    return f"invalid field selector: invalid escape sequence: {sequence}"
