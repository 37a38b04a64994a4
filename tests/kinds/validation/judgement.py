"""
Our verdict in the form of the API server's, and where the two differ.

Messages are compared too, unless they show a composite value, which the server prints with the
names of its Go structs, or come from a compiler of expressions.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from tests.kinds.validation.mutators import BAD_EXPRESSIONS, COSTLY_EXPRESSIONS

from dryrack.apiserver import metadata
from dryrack.apiserver.answer.status import StatusError
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.strategies.devices import DeviceStrategy
from dryrack.apiserver.strategy import Write
from dryrack.client.transport import User
from dryrack.cluster import SeededChance
from dryrack.kinds import core
from dryrack.kinds.convert import to_v1
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, FeatureSet, Release
from dryrack.kinds.schemas import schema_of
from dryrack.kinds.schemas.strict_decode import conform
from dryrack.kinds.validation import Reason
from dryrack.kinds.validation.device_rules import empty_list_problems
from dryrack.kinds.validation.parts import TOO_COMPLEX, ExpressionProblem
from dryrack.kinds.validation.pods import pod_claims

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.registry import Kind
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.parts import ExpressionChecker

_KINDS = {
    (release, kind.kind, kind.api_version): kind
    for release in Release
    for kind in builtin_kinds(release)
}


class Cause(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong."""

    reason: str
    field: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to a question, by the server's code or ours."""

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

    def check_derived(self, expression: str) -> tuple[ExpressionProblem | None, int]:
        return self.check(expression, stored=False), 0


KNOWN_EXPRESSIONS = KnownExpressions()
NO_GATES: Mapping[str, bool] = MappingProxyType({})


def ours(
    question: Mapping[str, Any],
    checker: ExpressionChecker = KNOWN_EXPRESSIONS,
    release: Release = DEFAULT_RELEASE,
    gates: Mapping[str, bool] = NO_GATES,
) -> Answer:
    """
    Return the answer of dryrack's API server to a question.

    The object is written as it was sent: the server's decoder drops lists that are set and empty,
    and lint does not.
    """
    given = question["object"]
    kind = _KINDS[release, given["kind"], given["apiVersion"]]
    schema = schema_of(kind.group, kind.version, kind.kind, release)
    assert schema is not None, f"{kind.kind} is built in"
    for document in (given, question.get("old", {})):
        mismatch = conform(schema, document).mismatch
        if mismatch:
            return Answer(bad_request=mismatch)
    if kind.kind == "Pod":
        return _answer(tuple(pod_claims(decode(given, core.Pod))))
    strategy = DeviceStrategy(kind, checker, FeatureSet(release, gates))
    try:
        if "old" in question:
            problems = _update_problems(strategy, (kind, question), given, question["old"])
        else:
            problems = _create_problems(strategy, (kind, question), given)
    except StatusError as error:
        return Answer(bad_request=str(error))
    return _answer((*problems, *empty_list_problems(to_v1(given))))


def _create_problems(
    strategy: DeviceStrategy, asked: tuple[Kind, Mapping[str, Any]], given: Raw
) -> Sequence[FieldProblem]:
    """Return the problems of a new object, whose generated name has a fixed ending."""
    write, obj = _written(strategy, asked, given)
    meta = {**obj["metadata"], "uid": "u", "creationTimestamp": write.now}
    meta = {key: value for key, value in meta.items() if not key.startswith("deletion")}
    if not meta.get("name") and meta.get("generateName"):
        kept = meta["generateName"].encode()[:58].decode("utf-8", "replace")
        meta["name"] = f"{kept}xxxxx"
    new = strategy.prepare_create({**obj, "metadata": meta}, write)
    return strategy.rules.report(strategy.validate_create(new, write), new)


def _update_problems(
    strategy: DeviceStrategy, asked: tuple[Kind, Mapping[str, Any]], given: Raw, stored: Raw
) -> Sequence[FieldProblem]:
    """Return the problems of an update, prepared as `Writer` does it."""
    write, obj = _written(strategy, asked, given)
    old = strategy.default(stored, write)
    if not obj["metadata"].get("resourceVersion"):
        version = old["metadata"].get("resourceVersion", "")
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
    new = strategy.prepare_update(metadata.with_stored_generation(obj, old), old, write)
    new = metadata.with_stored_identity(new, old)
    return strategy.rules.report(strategy.validate_update(new, old, write), new, old)


def _written(
    strategy: DeviceStrategy, asked: tuple[Kind, Mapping[str, Any]], given: Raw
) -> tuple[Write, Raw]:
    """Return a write in the namespace of an object, and the object with defaults."""
    kind, question = asked
    namespace = get(given, "metadata.namespace", "") or "default" if kind.namespaced else ""
    write = Write(
        now="2026-01-01T00:00:00Z",
        user=User("oracle"),
        namespace=namespace,
        subresource=question.get("subresource", ""),
        dry_run=True,
        chance=SeededChance(0),
        lookup=_Namespaces(question.get("namespaceLabels", {})),
        warn=lambda text: None,
    )
    resource = Resource(
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
        plural=kind.plural,
        namespaced=kind.namespaced,
        strategy=strategy,
    )
    return write, strategy.default(metadata.for_update(given, resource, namespace), write)


class _Namespaces:
    """Every namespace has the labels of the question."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        return {"metadata": {"name": name, "labels": dict(self._labels)}}

    def list(self, resource: str, namespace: str | None) -> Sequence[Raw]:
        return ()


def _answer(problems: Sequence[FieldProblem]) -> Answer:
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
