"""
Label selectors, node selectors, and tolerations of taints.

A selector is parsed once and matched many times. As in Kubernetes, an invalid requirement is an
error of its term, and a term with an error never matches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dryrack.base.errors import DryrackError
from dryrack.kinds.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Taint,
    Toleration,
)
from dryrack.kinds.meta import LabelSelector, LabelSelectorRequirement
from dryrack.kinds.quantity import INT64_MAX, INT64_MIN
from dryrack.kinds.resource import DeviceTaint, DeviceToleration
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.names import label_key, label_value
from dryrack.kinds.validation.problems import FieldProblem, invalid, not_supported

NAME_FIELD = "metadata.name"

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_NOT_A_NUMBER = "for 'Gt', 'Lt' operators, the value must be an integer"
# Python refuses to read more digits than this; no label value comes near.
_INT64_TEXT_MAX = 4300


class SelectorError(DryrackError, ValueError):
    """A selector that cannot be used; the message says which part and why."""


class _Requirement(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class LabelMatcher:
    """A parsed label selector: requirements, all of which must hold; None selects nothing."""

    requirements: tuple[_Requirement, ...] | None

    @property
    def is_empty(self) -> bool:
        """Return whether the selector is empty, which selects everything."""
        return self.requirements == ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.requirements is not None and all(_meets(r, labels) for r in self.requirements)

    def narrowed(self, labels: Mapping[str, str]) -> "LabelMatcher":
        """Return a selector that requires these labels too."""
        if self.requirements is None:
            return self
        return LabelMatcher((*self.requirements, *_exactly(labels)))


def parse_label_selector(selector: LabelSelector | None) -> LabelMatcher:
    """
    Parse a label selector; None selects nothing, an empty selector everything.

    Raise `SelectorError` if the selector is invalid.
    """
    if selector is None:
        return LabelMatcher(None)
    _check(selector)
    return LabelMatcher((*_exactly(selector.match_labels), *selector.match_expressions))


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether the selector matches the labels."""
    return parse_label_selector(selector).matches(labels)


def _exactly(labels: Mapping[str, str]) -> Iterator[LabelSelectorRequirement]:
    for key, value in labels.items():
        yield LabelSelectorRequirement(key=key, operator="In", values=(value,))


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One alternative of a node selector: all its requirements, or an error."""

    labels: tuple[NodeSelectorRequirement, ...]
    fields: tuple[NodeSelectorRequirement, ...]
    errors: tuple[str, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with the labels and the name meets every requirement."""
        if self.errors or not all(_meets(r, labels) for r in self.labels):
            return False
        # A node without a name has no fields, and then they are not looked at.
        return not name or all(_meets_field(r, name) for r in self.fields)


@dataclass(frozen=True, slots=True)
class NodeMatcher:
    """A parsed node selector: alternatives, of which one must hold."""

    terms: tuple[NodeTerm, ...]

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, node: Node) -> bool:
        """
        Return whether the selector matches the node.

        A good term may match before or after a bad one; `SelectorError` is raised only when
        no term matches and at least one is bad.
        """
        labels = node.metadata.labels
        name = node.metadata.name
        if any(term.matches(labels, name) for term in self.terms):
            return True
        if self.errors:
            raise SelectorError(_aggregate(self.errors))
        return False


def parse_node_selector(selector: NodeSelector) -> NodeMatcher:
    """Parse a node selector; empty terms select nothing and are dropped."""
    return NodeMatcher(
        tuple(
            _term(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if term.match_expressions or term.match_fields
        )
    )


def strict_node_selector(selector: NodeSelector) -> NodeMatcher:
    """Parse a node selector; raise `SelectorError` if any term has an error."""
    matcher = parse_node_selector(selector)
    if matcher.errors:
        raise SelectorError(_aggregate(matcher.errors))
    return matcher


def tolerates_taint(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a pod's toleration tolerates a node taint (Gt and Lt are an alpha gate)."""
    return _tolerates(toleration, taint)


def tolerates_device_taint(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a request's toleration tolerates a device taint."""
    return _tolerates(toleration, taint)


def untolerated_taint(
    taints: Sequence[Taint], tolerations: Sequence[Toleration], effects: Sequence[str]
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(_tolerates(t, taint) for t in tolerations):
            return taint
    return None


def _tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _check(selector: LabelSelector) -> None:
    for key, value in selector.match_labels.items():
        _raise_first(_key_problems("key", key), _value_syntax("values", key, (value,)))
    for requirement in selector.match_expressions:
        if requirement.operator not in _LABEL_OPERATORS:
            raise SelectorError(
                f"{quoted(requirement.operator)} is not a valid label selector operator"
            )
        _raise_first(_problems(requirement, ""))


def _raise_first(*problems: Iterable[FieldProblem]) -> None:
    found = tuple(str(problem) for group in problems for problem in group)
    if found:
        raise SelectorError(_aggregate(found))


def _term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    errors = [
        str(problem)
        for index, requirement in enumerate(term.match_expressions)
        for problem in _node_problems(requirement, f"{path}.matchExpressions[{index}].")
    ]
    errors += [
        str(problem)
        for index, requirement in enumerate(term.match_fields)
        for problem in _field_problems(requirement, f"{path}.matchFields[{index}].")
    ]
    return NodeTerm(term.match_expressions, term.match_fields, tuple(errors))


def _node_problems(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldProblem]:
    if requirement.operator in _NODE_OPERATORS:
        yield from _problems(requirement, path)
    else:
        yield not_supported(f"{path}operator", requirement.operator, _NODE_OPERATORS)


def _field_problems(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldProblem]:
    if requirement.operator not in _FIELD_OPERATORS:
        yield not_supported(f"{path}operator", requirement.operator, _FIELD_OPERATORS)
    elif len(requirement.values) != 1:
        yield invalid(f"{path}values", requirement.values or None, "must have one element")


def _problems(requirement: _Requirement, path: str) -> Iterator[FieldProblem]:
    """Yield the problems of a requirement whose operator is known."""
    key = requirement.key
    values = requirement.values
    field = f"{path}values"
    yield from _key_problems(f"{path}key", key)
    detail = _count_complaint(requirement.operator, values)
    if detail:
        yield invalid(field, values or None, detail)
    if requirement.operator in ("Gt", "Lt"):
        for index, value in enumerate(values):
            if _int64(value) is None:
                yield invalid(f"{field}[{index}]", value, _NOT_A_NUMBER)
    yield from _value_syntax(field, key, values)


def _key_problems(field: str, key: str) -> Iterator[FieldProblem]:
    complaints = label_key(key)
    if complaints:
        yield invalid(field, key, "; ".join(complaints))


def _value_syntax(field: str, key: str, values: Sequence[str]) -> Iterator[FieldProblem]:
    for index, value in enumerate(values):
        complaints = label_value(value)
        if complaints:
            yield invalid(f"{field}[{index}][{key}]", value, "; ".join(complaints))


def _count_complaint(operator: str, values: Sequence[str]) -> str | None:
    if operator in ("In", "NotIn") and not values:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist") and values:
        return "values set must be empty for exists and does not exist"
    if operator in ("Gt", "Lt") and len(values) != 1:
        return "for 'Gt', 'Lt' operators, exactly one value is required"
    return None


def _meets(requirement: _Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return value is not None and _compares(requirement, value)


def _compares(requirement: _Requirement, value: str) -> bool:
    number = _int64(value)
    bound = _int64(requirement.values[0])
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def _meets_field(requirement: NodeSelectorRequirement, name: str) -> bool:
    value = name if requirement.key == NAME_FIELD else ""
    return (value == requirement.values[0]) == (requirement.operator == "In")


def _int64(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isascii() or not digits.isdigit() or len(text) > _INT64_TEXT_MAX:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def _aggregate(errors: Sequence[str]) -> str:
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
