"""
The node selectors of each document format, as node selector terms of the API.

`nodeSelectorTerms` are those of the API: a node must match one of the terms, and all expressions of
that term. `nodeSelector` is a label selector. The requirements of an overlay are one term, with two
further operators of Karpenter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.hardware import node_terms
from dryrack.hardware.config_formats.fields import (
    SourceValue,
    normalize_keys,
    read_entries,
    read_fields,
    read_items,
    read_text,
)
from dryrack.hardware.config_formats.remedies import find_remedy
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.source_paths import (
    decode_value,
    find_path,
    find_refused_path,
)
from dryrack.kinds import shape
from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.selectors import parse_node_selector
from dryrack.kinds.text.source_positions import parse_path
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


def read_terms(source: SourceValue, report: Report) -> tuple[NodeSelectorTerm, ...]:
    """Return node selector terms in the form of the API."""
    terms = []
    for each in read_items(source, report):
        document = SourceValue(normalize_keys(each, _TERM, report), each.path)
        term = decode_value(document, NodeSelectorTerm, each, report)
        if term is not None:
            _validate_term(each, term, report)
            terms.append(term)
    return tuple(terms)


def read_label_selector(source: SourceValue, report: Report) -> tuple[NodeSelectorTerm, ...]:
    """Return a label selector, as terms."""
    fields = read_fields(source, ("matchLabels", "matchExpressions"), report, hint=_LABELS)
    labels = {}
    for key, each in read_entries(fields.get("matchLabels"), report):
        labels[key] = value = read_text(each, report)
        for complaint in (*label_key(key), *label_value(value)):
            report.refuse(each.path, complaint, "write the label as the node has it")
    expressions = _read_requirements(fields.get("matchExpressions"), _LABEL_OPERATORS, report)
    if not labels and not expressions:
        if isinstance(source.value, Mapping) and fields.keys() == source.value.keys():
            report.refuse(source.path, "the selector names no label", _LABELS)
        return ()
    return tuple(
        replace(term, match_expressions=(*term.match_expressions, *expressions))
        for term in node_terms.of_labels(labels)
    )


def read_overlay_requirements(
    source: SourceValue | None, report: Report
) -> tuple[NodeSelectorTerm, ...]:
    """Return the requirements of an overlay, as one term; without any, it is for every node."""
    expressions = _read_requirements(source, _OVERLAY_OPERATORS, report)
    if not expressions:
        return (node_terms.EVERY_NODE,)
    return (NodeSelectorTerm(match_expressions=expressions),)


def _read_requirements(
    source: SourceValue | None, operators: Sequence[str], report: Report
) -> tuple[NodeSelectorRequirement, ...]:
    requirements = []
    for each in read_items(source, report):
        document = SourceValue(normalize_keys(each, _REQUIREMENT, report), each.path)
        requirement = decode_value(document, NodeSelectorRequirement, each, report)
        if requirement is None:
            continue
        if requirement.operator not in operators:
            problem = not_supported("operator", requirement.operator, operators)
            path = find_path(each, ("operator",))
            report.refuse(path, problem.message, find_remedy(problem))
            continue
        if requirement.operator in _STEPS:
            # Among whole numbers, `Gte 4` is `Gt 3`.
            operator, step = _STEPS[requirement.operator]
            values = tuple(
                str(int(value) + step) if _is_whole_number(value) else value
                for value in requirement.values
            )
            requirement = replace(requirement, operator=operator, values=values)
        refused = report.refused
        written = SourceValue({"matchExpressions": [each.value]}, each.path)
        term = NodeSelectorTerm(match_expressions=(requirement,))
        _validate_term(written, term, report)
        if report.refused == refused:
            requirements.append(requirement)
    return tuple(requirements)


def _is_whole_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < _DIGITS_MAX


def _validate_term(source: SourceValue, term: NodeSelectorTerm, report: Report) -> None:
    if not term.match_expressions and not term.match_fields:
        what = "an empty term selects no node"
        report.remark(Topic.SPELLING, source.path, what, "remove it, or name a label in it")
        return
    selector = NodeSelector(node_selector_terms=(term,))
    problems = list(node_selector("", selector))
    for problem in problems:
        path = find_refused_path(source, parse_path(problem.field)[2:], problem)
        report.refuse(path, problem.message, find_remedy(problem))
    if problems:
        return
    # The API checks only at comparison whether Gt and Lt have a number.
    for error in parse_node_selector(selector).errors:
        field, _, message = error.partition(": ")
        report.refuse(find_path(source, parse_path(field)[2:]), message, _WHOLE_NUMBER)
