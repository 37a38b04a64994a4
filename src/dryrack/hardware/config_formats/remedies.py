"""
Remedies for problems that the API's validation or the YAML parser reports.

Some problems have a remedy of their own. For the others the text of the message decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.validation import Reason

if TYPE_CHECKING:
    from dryrack.kinds.validation import FieldProblem

_BY_REASON = {
    Reason.REQUIRED: "add it",
    Reason.TOO_LONG: "shorten it",
    Reason.TOO_MANY: "remove some",
    Reason.FORBIDDEN: "remove it",
    Reason.NOT_SUPPORTED: "use one of the supported values",
    Reason.NOT_FOUND: "use a name that exists",
    Reason.DUPLICATE: "give each entry a different name",
}
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
# The first text that is part of the message decides.
_BY_WORDS = (
    ("exactly one value must be specified", "keep one of string, int, bool and version"),
    ("must specify exactly one of: `int`", "keep one of string, int, bool and version"),
    ("must not exceed", "remove some"),
    ("bindingFailureConditions are required", "add bindingFailureConditions"),
    ("bindingConditions are required", "add bindingConditions"),
    ("must not overlap", "keep it in one of the two lists"),
    ("must not be larger than", "use a smaller value"),
    ("larger than", "use a value that is not larger than the capacity"),
    ("is less than min", "raise the default, or lower min"),
    ("is more than max", "lower the default, or raise max"),
    ("not a multiple", "use min plus a multiple of step"),
    ("is required when `perDevice", "add one of nodeName, nodeSelector and allNodes"),
    ("perDeviceNodeSelection", "set perDeviceNodeSelection: true on the slice, or remove it"),
    ("not a valid field selector key", "use metadata.name"),
    ("not a valid selector operator", f"use one of {', '.join(_OPERATORS)}"),
    ("exactly one node selector term", "keep one term"),
    ("must be no more than", "shorten it"),
    ("RFC 3339", "write a time such as 2026-01-02T03:04:05Z, or remove it"),
    ("must be non-empty", "give it a name"),
    ("must consist of", "write it with letters, digits and '-' only"),
    ("must be either unset or set to true", "remove it"),
    ("must not be empty", "add a value, or remove it"),
    ("must be positive", "write a number above zero"),
    ("must be greater than zero", "write a number above zero"),
    ("mapping values are not allowed", "put a text with a colon in quotes, or indent the line"),
    ("contains itself", "write the value out"),
    ("has no anchor", "write the value out"),
    ("control character", "remove the character"),
    ("levels deep", "nest less deeply"),
    ("must be a word", "write a word before the colon"),
)
_ANY = "correct it"
_ANY_TEXT = "check the indentation, quotes and brackets up to this line"


def find_remedy(problem: FieldProblem) -> str:
    """Return the remedy for a problem of the API's validation."""
    if problem.fix:
        return problem.fix
    if problem.value == "" and problem.reason is Reason.INVALID and problem.field.endswith("name"):
        return "give it a name"
    if problem.field.endswith("operator"):
        for operator in _OPERATORS:
            if operator.lower() == str(problem.value).lower():
                return f"write {operator!r}"
    return _find_by_words(problem.detail) or _BY_REASON.get(problem.reason, _ANY)


def find_text_remedy(message: str) -> str:
    """Return the remedy for a text that is not valid YAML."""
    return _find_by_words(message) or _ANY_TEXT


def _find_by_words(message: str) -> str:
    return next((fix for words, fix in _BY_WORDS if words in message), "")
