"""
DR1xx: what the API server refuses, and what it takes and forgets.

The verdict is that of `kinds.validation`, with the server's reason, field and words. A code
stands for a reason; mistakes that people make often have a code, and a fix, of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.hardware import names
from dryrack.kinds.convert import to_v1
from dryrack.kinds.migrations import misplaced_in
from dryrack.kinds.releases import find_gated
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kinds.validation import FieldProblem, Reason
from dryrack.kinds.validation.slices import slice_warnings
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry
from dryrack.linter.rules.reading import right_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dryrack.linter.finding import Path
    from dryrack.linter.refusals import Refusal
    from dryrack.linter.world import UnknownField, World

RULES = Registry()

_BY_REASON = {
    Reason.REQUIRED: "DR101",
    Reason.NOT_SUPPORTED: "DR103",
    Reason.DUPLICATE: "DR104",
    Reason.FORBIDDEN: "DR105",
    Reason.TOO_LONG: "DR106",
    Reason.TOO_MANY: "DR107",
}
_OTHER = "DR102"
# The first pattern that fits decides; what fits none goes by its reason.
_SPECIAL: tuple[tuple[str, Reason, re.Pattern[str]], ...] = (
    ("DR111", Reason.INVALID, re.compile(r"(.*\.)?driver")),
    ("DR112", Reason.INVALID, re.compile(r".*\.(attributes|capacity)")),
    ("DR113", Reason.INVALID, re.compile(r".*\.cel\.expression")),
    ("DR114", Reason.FORBIDDEN, re.compile(r".*\.cel\.expression")),
    ("DR115", Reason.TOO_MANY, re.compile(r"spec\.devices")),
    ("DR116", Reason.FORBIDDEN, re.compile(r".*\.adminAccess")),
    ("DR117", Reason.NOT_FOUND, re.compile(r".*\.resources\.claims\[[0-9]+\]")),
    ("DR118", Reason.REQUIRED, re.compile(r"spec(\.devices\[[0-9]+\])?")),
    ("DR118", Reason.INVALID, re.compile(r"spec(\.devices\[[0-9]+\])?")),
)


def code_of(problem: FieldProblem) -> str:
    """Return the code of the rule that reports a rejected field."""
    for code, reason, pattern in _SPECIAL:
        if problem.reason is reason and pattern.fullmatch(problem.field):
            return code
    return _BY_REASON.get(problem.reason, _OTHER)


_CORRECTED: Mapping[str, Callable[[str], str]] = {
    "DR111": names.driver_name,
    "DR112": names.identifier,
}
_DEFAULT_FIXES = {
    "DR101": "set it",
    "DR102": "change it as the message describes",
    "DR103": "use one of the supported values",
    "DR104": "keep one of them",
    "DR105": "remove it",
    "DR106": "shorten it",
    "DR107": "split it into several objects",
    "DR113": "correct the expression",
    "DR114": "test cheap conditions first, and limit loops",
    "DR115": "split the slice and raise resourceSliceCount",
    "DR116": 'label the namespace resource.kubernetes.io/admin-access: "true"',
    "DR117": "add it to spec.resourceClaims",
    "DR118": "set exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection",
}


_DEFAULTS = frozenset({*_DEFAULT_FIXES.values(), ""})


def _fixes(world: World) -> Mapping[tuple[int, Path], str]:
    """Return one fix for each rejected field, which can have several problems."""
    chosen: dict[tuple[int, Path], str] = {}
    unknown: dict[int, list[UnknownField]] = {}
    for field in world.unknown_fields:
        unknown.setdefault(id(field.document), []).append(field)
    for refusal in world.refusals:
        document = refusal.entry.document
        key = (id(document), refusal.path)
        if chosen.get(key, "") in _DEFAULTS:
            beside = unknown.get(id(document), ())
            fix = _fix(code_of(refusal.problem), refusal)
            chosen[key] = (_find_rename(refusal, beside) if fix in _DEFAULTS else "") or fix
    return chosen


def _find_rename(refusal: Refusal, unknown: Sequence[UnknownField]) -> str:
    """Return the fix if an unknown field is a misspelling of the missing field."""
    path = refusal.path
    for field in unknown:
        parent = field.path[:-1]
        name = field.path[-1]
        fix = right_place(field)
        is_renamed = fix.startswith("did you mean")
        if parent == path[:-1] and f"under `{path[-1]}`" in fix:
            return f"move `{name}` under `{path[-1]}`"
        if is_renamed and (parent == path or fix == f"did you mean {path[-1]!r}?"):
            return f"rename `{name}`; {fix}"
    return ""


def _fix(code: str, refusal: Refusal) -> str:
    if "sharedCounters" in refusal.problem.detail:
        return "put the counters into a separate slice of the same pool"
    if code in _CORRECTED:
        return f"write {_CORRECTED[code](refusal.key or str(refusal.problem.value))!r}"
    if code == "DR113" and "token recognition error at: '=" in refusal.problem.detail:
        return "compare with =="
    older = misplaced_in(refusal.entry.document.raw, refusal.path)
    return older or refusal.problem.fix or _DEFAULT_FIXES[code]


def _check_for(code: str) -> Callable[[World], Iterator[Problem]]:
    def check(world: World) -> Iterator[Problem]:
        refused = [each for each in world.refusals if code_of(each.problem) == code]
        fixes = _fixes(world) if refused else {}
        for refusal in refused:
            yield Problem(
                refusal.entry,
                refusal.path,
                refusal.problem.message,
                fixes[id(refusal.entry.document), refusal.path],
                reason=refusal.problem.reason.value,
                line=refusal.line,
            )

    return check


def _api_rule(code: str, slug: str, summary: str, *, why: str) -> None:
    check = _check_for(code)
    check.__doc__ = why
    RULES.rule(code, slug, Severity.ERROR, summary=summary)(check)


_api_rule(
    "DR101",
    "value-required",
    "A field that the API requires is not set.",
    why="The API server rejects the object.",
)
_api_rule(
    "DR102",
    "value-invalid",
    "A field has a value that the API does not allow.",
    why="The API server rejects the object with the same message.",
)
_api_rule(
    "DR103",
    "value-not-supported",
    "A field has a value that the API does not support.",
    why="The API server rejects the object. Write such values exactly, in camel case.",
)
_api_rule(
    "DR104",
    "value-duplicate",
    "A value that must be unique occurs more than once.",
    why="The API server rejects the object.",
)
_api_rule(
    "DR105",
    "value-forbidden",
    "A field is set where the API forbids it.",
    why="The API server rejects the object.",
)
_api_rule(
    "DR106",
    "value-too-long",
    "A string is longer than the API allows.",
    why="The API server rejects the object. A string attribute has at most 64 bytes.",
)
_api_rule(
    "DR107",
    "value-too-many",
    "A list is longer than the API allows.",
    why="The API server rejects the object. A request has at most eight alternatives.",
)
_api_rule(
    "DR111",
    "driver-name",
    "A driver has a name that the API does not allow.",
    why="""
    The name of a driver is a DNS name of at most 63 characters. Unlike the names of labels and
    CDI kinds, it contains no slash.
    """,
)
_api_rule(
    "DR112",
    "attribute-name",
    "An attribute or capacity has a name that the API does not allow.",
    why="""
    Selectors use the name as a field name, so it must be a C identifier: at most 32 letters,
    digits and underscores. A domain and a slash can precede it.
    """,
)
_api_rule(
    "DR113",
    "expression-invalid",
    "A selector does not compile.",
    why="The API server rejects the object with the same message of the CEL compiler.",
)
_api_rule(
    "DR114",
    "expression-too-costly",
    "A selector can cost more than the API allows.",
    why="""
    The API server estimates the cost of the worst case before it accepts an expression. The cost
    of a loop inside another loop is the product of both.
    """,
)
_api_rule(
    "DR115",
    "too-many-devices",
    "A slice has more devices than the API allows.",
    why="""
    A slice has at most 128 devices, or at most 64 if a device has taints, consumes counters or
    has lists as attributes. A pool can have many slices.
    """,
)
_api_rule(
    "DR116",
    "admin-access-forbidden",
    "A claim requests admin access in a namespace that does not allow it.",
    why="""
    Admin access includes devices of other claims, so the API server rejects it unless the
    namespace has the label with the value "true" in lower case.
    """,
)
_api_rule(
    "DR117",
    "claim-name-unknown",
    "A container uses a claim that its pod does not have.",
    why="""
    The API server rejects the pod. The name must be the name of an entry of
    `spec.resourceClaims`, not the name of the claim or template in that entry.
    """,
)
_api_rule(
    "DR118",
    "node-placement",
    "A slice does not select its nodes in exactly one way.",
    why="""
    Set exactly one of `nodeName`, `nodeSelector`, `allNodes: true` and
    `perDeviceNodeSelection: true`. Do not put counters into the same slice as devices.
    """,
)


@RULES.rule(
    "DR121",
    "field-dropped",
    Severity.WARNING,
    summary="A field belongs to a disabled feature, so the API server drops it.",
)
def field_dropped(world: World) -> Iterator[Problem]:
    """
    The API server does not reject a field of a disabled feature: it stores the object without the
    field and reports nothing. The rule assumes the default feature gates of the release.
    """
    for document in world.documents:
        for path, field in find_gated(to_v1(document.raw)):
            if field.is_in(world.release) and not field.is_on(world.release):
                yield Problem(
                    world.entry_of(document),
                    path,
                    "the API server drops the field: its feature gate "
                    f"{field.gate} is off by default",
                    f"leave the field out, or enable {field.gate}",
                )


@RULES.rule(
    "DR122",
    "api-warning",
    Severity.WARNING,
    summary="The API server accepts the object with a warning.",
)
def api_warning(world: World) -> Iterator[Problem]:
    """kubectl prints the warning only once, when it creates the object."""
    for entry in world.written_slices:
        for text in slice_warnings(entry.value.spec.driver):
            field, _, what = text.partition(": ")
            yield Problem(entry, parse_path(field), what, "write it in lower case")
