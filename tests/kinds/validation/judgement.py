"""
Our verdict in the form of the API server's, and where the two differ.

Messages are compared too, unless they show a composite value, which the server prints with the
names of its Go structs, or come from a compiler of expressions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from tests.kinds.validation.mutators import BAD_EXPRESSIONS, COSTLY_EXPRESSIONS

from dryrack.kinds import core, resource
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.validation import Reason, validate
from dryrack.kinds.validation.parts import TOO_COMPLEX, ExpressionProblem
from dryrack.kinds.validation.times import malformed_times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.parts import ExpressionChecker
    from dryrack.kinds.validation.writes import Validated

KINDS: dict[str, type[Validated | core.Pod]] = {
    "ResourceSlice": resource.ResourceSlice,
    "ResourceClaim": resource.ResourceClaim,
    "ResourceClaimTemplate": resource.ResourceClaimTemplate,
    "DeviceClass": resource.DeviceClass,
    "DeviceTaintRule": resource.DeviceTaintRule,
    "Pod": core.Pod,
}


class Cause(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong."""

    reason: str
    field: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was made of a question; by the server's code or ours."""

    causes: tuple[Cause, ...] | None = ()
    bad_request: str = ""
    panic: str = ""
    warnings: tuple[str, ...] = ()
    stored: dict[str, Any] | None = None


class KnownExpressions:
    """Stands in for a compiler: knows what the server says of the generator's expressions."""

    def check(self, expression: str, *, stored: bool) -> ExpressionProblem | None:
        if expression in COSTLY_EXPRESSIONS:
            return TOO_COMPLEX
        return ExpressionProblem("compilation failed") if expression in BAD_EXPRESSIONS else None


KNOWN_EXPRESSIONS = KnownExpressions()


def ours(question: Mapping[str, Any], expressions: ExpressionChecker = KNOWN_EXPRESSIONS) -> Answer:
    """Our answer to a question."""
    kind = KINDS[question["object"]["kind"]]
    try:
        obj = decode(question["object"], kind)
        old = decode(question["old"], kind) if "old" in question else None
    except DecodeError as error:
        return Answer(bad_request=str(error))
    assert not isinstance(old, core.Pod)
    if old is not None and any(malformed_times(old)):
        return Answer(bad_request="what is stored cannot be read")
    problems = validate(
        obj,
        old=old,
        subresource=question.get("subresource", ""),
        expressions=expressions,
        namespace_labels=question.get("namespaceLabels", {}),
        document=question["object"],
    )
    return _answer(problems)


def _answer(problems: tuple[FieldProblem, ...]) -> Answer:
    if any(problem.reason is Reason.TYPE_INVALID for problem in problems):
        return Answer(bad_request=problems[0].message)
    for problem in problems:
        if problem.reason is Reason.INTERNAL and problem.field.endswith(".step"):
            return Answer(panic=problem.message)
    return Answer(
        causes=tuple(Cause(each.reason.value, each.field, each.message) for each in problems)
    )


def difference(theirs: Answer, our: Answer) -> str:
    """Empty if both say the same."""
    if theirs.panic or our.panic or theirs.bad_request or our.bad_request:
        same = (bool(theirs.panic), bool(theirs.bad_request)) == (
            bool(our.panic),
            bool(our.bad_request),
        )
        return "" if same else f"theirs {_outcome(theirs)}, ours {_outcome(our)}"
    expected = _comparable(theirs)
    got = _comparable(our)
    lines = [f"  missing: {each}" for each in sorted((expected - got).elements())]
    lines += [f"  too much: {each}" for each in sorted((got - expected).elements())]
    return "\n".join(lines)


def _outcome(answer: Answer) -> str:
    return answer.panic or answer.bad_request or str(answer.causes)


def _comparable(answer: Answer) -> Counter[Cause]:
    return Counter(map(_without_composites, answer.causes or ()))


def _without_composites(cause: Cause) -> Cause:
    shown = cause.message.partition(": ")[2].replace("[]:", "null:")
    is_composite = shown.startswith(("{", "[")) and cause.reason != "FieldValueForbidden"
    if is_composite or _is_compiled(cause):
        return Cause(cause.reason, cause.field, "")
    return Cause(cause.reason, cause.field, cause.message.replace(": []:", ": null:"))


def _is_compiled(cause: Cause) -> bool:
    return cause.field.endswith(".expression") and cause.reason == Reason.INVALID.value
