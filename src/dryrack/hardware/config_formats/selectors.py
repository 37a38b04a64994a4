"""
Which nodes a document means, in each of the ways in which documents say it.

`nodeSelectorTerms` are those of the API: terms are alternatives, expressions of a term must all
hold. `nodeSelector` is a label selector. The requirements of an overlay are one term, with two
operators of Karpenter's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.hardware import node_terms
from dryrack.hardware.config_formats.decoding import decoded
from dryrack.hardware.config_formats.fields import Given, entries, fields, folded, items, text
from dryrack.hardware.config_formats.fixes import fix_of
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.written import refused_at, resolved, steps_of
from dryrack.kinds import shape
from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.selectors import parse_node_selector
from dryrack.kinds.validation.names import label_key, label_value
from dryrack.kinds.validation.parts import node_selector
from dryrack.kinds.validation.problems import not_supported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.hardware.config_formats.report import Report

NO_TERM = "at least one node selector term must be defined"
_TERM = shape.of(NodeSelectorTerm)
_REQUIREMENT = shape.of(NodeSelectorRequirement)
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_OVERLAY_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt", "Gte", "Lte")
_STEPS = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}
_DIGITS_MAX = 19
_LABELS = "put labels under matchLabels"
_WHOLE_NUMBER = "write one whole number, in quotes"


def terms(given: Given, report: Report) -> tuple[NodeSelectorTerm, ...]:
    """Node selector terms, as the API has them."""
    found = []
    for each in items(given, report):
        term = decoded(
            Given(folded(each, _TERM, report), each.path), NodeSelectorTerm, each, report
        )
        if term is not None:
            _judge(each, term, report)
            found.append(term)
    return tuple(found)


def label_selector(given: Given, report: Report) -> tuple[NodeSelectorTerm, ...]:
    """A label selector, as terms."""
    found = fields(given, ("matchLabels", "matchExpressions"), report, hint=_LABELS)
    labels = _labels(found.get("matchLabels"), report)
    wanted = _requirements(found.get("matchExpressions"), _LABEL_OPERATORS, report)
    if not labels and not wanted:
        if isinstance(given.value, Mapping) and found.keys() == given.value.keys():
            report.refuse(given.path, "the selector names no label", _LABELS)
        return ()
    return tuple(
        replace(term, match_expressions=(*term.match_expressions, *wanted))
        for term in node_terms.of_labels(labels)
    )


def _labels(given: Given | None, report: Report) -> dict[str, str]:
    labels = {}
    for key, each in entries(given, report):
        labels[key] = value = text(each, report)
        for complaint in (*label_key(key), *label_value(value)):
            report.refuse(each.path, complaint, "write the label as the node has it")
    return labels


def requirements(given: Given | None, report: Report) -> tuple[NodeSelectorTerm, ...]:
    """The requirements of an overlay, as one term; without any, it is for every node."""
    wanted = _requirements(given, _OVERLAY_OPERATORS, report)
    return (NodeSelectorTerm(match_expressions=wanted) if wanted else node_terms.EVERY_NODE,)


def _requirements(
    given: Given | None, operators: Sequence[str], report: Report
) -> tuple[NodeSelectorRequirement, ...]:
    found = []
    for each in items(given, report):
        document = Given(folded(each, _REQUIREMENT, report), each.path)
        wanted = decoded(document, NodeSelectorRequirement, each, report)
        if wanted is None:
            continue
        if wanted.operator not in operators:
            problem = not_supported("operator", wanted.operator, operators)
            report.refuse(resolved(each, ("operator",)), problem.message, fix_of(problem))
            continue
        plain = _as_strict(wanted)
        before = report.refused
        _judge(Given({"matchExpressions": [each.value]}, each.path), _term(plain), report)
        if report.refused == before:
            found.append(plain)
    return tuple(found)


def _term(requirement: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(requirement,))


def _as_strict(wanted: NodeSelectorRequirement) -> NodeSelectorRequirement:
    """`Gte 4` is `Gt 3` among whole numbers."""
    if wanted.operator not in _STEPS:
        return wanted
    operator, step = _STEPS[wanted.operator]
    values = tuple(str(int(value) + step) if _is_whole(value) else value for value in wanted.values)
    return replace(wanted, operator=operator, values=values)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < _DIGITS_MAX


def _judge(given: Given, term: NodeSelectorTerm, report: Report) -> None:
    if not term.match_expressions and not term.match_fields:
        what = "an empty term selects no node"
        report.remark(Topic.SPELLING, given.path, what, "remove it, or name a label in it")
        return
    selector = NodeSelector(node_selector_terms=(term,))
    problems = list(node_selector("", selector))
    for problem in problems:
        steps = steps_of(problem.field)[2:]
        report.refuse(refused_at(given, steps, problem), problem.message, fix_of(problem))
    # Whether Gt and Lt have a number is asked only by whoever compares.
    for error in () if problems else parse_node_selector(selector).errors:
        field, _, message = error.partition(": ")
        report.refuse(resolved(given, steps_of(field)[2:]), message, _WHOLE_NUMBER)
