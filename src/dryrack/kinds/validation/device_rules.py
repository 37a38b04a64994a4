"""
Defaults and validation of the kinds of resource.k8s.io.

Objects come in the version that they were written in. They are converted to v1 and decoded, and
the checks of `slices`, `claims`, `allocations` and `classes` run on the models.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from dryrack.kinds import registry, resource
from dryrack.kinds.convert import GROUP, to_v1
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.defaults import with_defaults
from dryrack.kinds.meta import kind_of
from dryrack.kinds.paths import metadata_of, spec_of
from dryrack.kinds.releases import FeatureSet
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.go_time import GoTimeError, parse_time
from dryrack.kinds.validation import allocations, claims, classes, slices
from dryrack.kinds.validation.gates import drop_disabled
from dryrack.kinds.validation.meta import (
    common_metadata,
    common_metadata_change,
    not_in_template,
)
from dryrack.kinds.validation.parts import Expressions, Judging
from dryrack.kinds.validation.problems import FieldProblem, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dryrack.kinds.meta import ObjectMeta
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation.parts import ExpressionChecker

DeviceObject: TypeAlias = (
    resource.ResourceSlice
    | resource.ResourceClaim
    | resource.ResourceClaimTemplate
    | resource.DeviceClass
    | resource.DeviceTaintRule
)


class _Checks(NamedTuple):
    model: type[DeviceObject]
    created: Callable[[Any, Judging], Iterator[FieldProblem]]
    updated: Callable[[Any, Any, Judging], Iterator[FieldProblem]]
    status_updated: Callable[[Any, Any, Judging], Iterator[FieldProblem]] | None = None


_CHECKS = {
    "ResourceSlice": _Checks(resource.ResourceSlice, slices.created, slices.updated),
    "ResourceClaim": _Checks(
        resource.ResourceClaim, claims.created, claims.updated, allocations.status_updated
    ),
    "ResourceClaimTemplate": _Checks(
        resource.ResourceClaimTemplate, claims.template_created, claims.template_updated
    ),
    "DeviceClass": _Checks(resource.DeviceClass, classes.created, classes.updated),
    "DeviceTaintRule": _Checks(
        resource.DeviceTaintRule,
        classes.rule_created,
        classes.rule_updated,
        classes.rule_status_updated,
    ),
}
_ROWS = {kind.kind: kind for kind in registry.KINDS if kind.group == GROUP}


_DEFAULT_FEATURES = FeatureSet()
# In v1beta1, a request has the fields of `exactly` itself, and a device has a part `basic`.
_V1BETA1 = f"{GROUP}/v1beta1"
_EXACTLY = re.compile(r"^(spec(?:\.spec)?\.devices\.requests\[\d+\])\.exactly\.")
_IN_DEVICE = re.compile(r"^(spec\.devices\[\d+\])\.")


class DeviceRules(KindRules):
    """
    One kind of resource.k8s.io in a namespace.

    Admission of admin access depends on the labels of the namespace; None if they are unknown.
    Without a checker only the length of expressions is checked.
    """

    def __init__(
        self,
        kind: str,
        checker: ExpressionChecker | None = None,
        namespace_labels: Mapping[str, str] | None = None,
        features: FeatureSet = _DEFAULT_FEATURES,
    ) -> None:
        row = _ROWS[kind]
        super().__init__(namespaced=row.namespaced, has_status=row.has_status)
        self.follow(features, row.group, kind)
        self._checks = _CHECKS[kind]
        expressions = Expressions(checker, checks_stored=self.behaviour.checks_stored_expressions)
        self._judging = Judging(expressions, namespace_labels, self.behaviour, features)

    def default(self, obj: Raw) -> Raw:
        return with_defaults(obj)

    def as_new(self, obj: Raw) -> Raw:
        new = drop_disabled(to_v1(super().as_new(obj)), features=self._judging.features).document
        if self.namespaced:
            return new
        return {**new, "metadata": {**new["metadata"], "generation": 1}}

    def new_problems(self, obj: Raw, meta: ObjectMeta) -> Sequence[FieldProblem]:
        document = to_v1(obj)
        new = decode(document, self._checks.model)
        problems = tuple(self._checks.created(new, self._judging))
        if not problems:
            problems = tuple(
                common_metadata(meta, namespaced=self.namespaced, behaviour=self.behaviour)
            )
        return problems

    def change_problems(self, obj: Raw, old: Raw, subresource: str) -> Sequence[FieldProblem]:
        """Return the problems of an update of the stored object, or of its status."""
        document = to_v1(obj)
        new = decode(document, self._checks.model)
        stored = decode(to_v1(with_defaults(old)), self._checks.model)
        check = self._checks.status_updated if subresource == "status" else self._checks.updated
        assert check is not None, f"a {kind_of(self._checks.model)} has no {subresource}"
        return (
            *common_metadata_change(
                new.metadata,
                stored.metadata,
                namespaced=self.namespaced,
                behaviour=self.behaviour,
            ),
            *check(new, stored, self._judging),
        )

    def declared_problems(self, obj: Raw, old: Raw | None) -> Sequence[FieldProblem]:
        """Return the problems of the declared checks, with values as Go writes them."""
        before = None if old is None else to_v1(with_defaults(old))
        document = to_v1(obj)
        if not super().declared_problems(document, before):
            return ()
        model = self._checks.model
        ordered = to_builtins(decode(document, model))
        stored = None if before is None else to_builtins(decode(before, model))
        return super().declared_problems(ordered, stored)

    def written_path(self, api_version: str, field: str) -> str:
        if api_version != _V1BETA1:
            return field
        return _IN_DEVICE.sub(r"\1.basic.", _EXACTLY.sub(r"\1.", field))


def empty_list_problems(document: Raw) -> Iterator[FieldProblem]:
    """Yield problems of lists in v1 that are set and empty, which decoding does not keep."""
    spec = spec_of(document)
    if document.get("kind") == "ResourceSlice":
        lists = (spec.get("devices"), spec.get("sharedCounters"))
        if [] in lists and None not in lists:
            yield slices.devices_and_counters()
    elif document.get("kind") == "ResourceClaimTemplate":
        meta = metadata_of(spec)
        for name in ("ownerReferences", "finalizers", "managedFields"):
            if meta.get(name) == []:
                yield not_in_template(f"spec.metadata.{name}")


def validate(
    obj: DeviceObject,
    *,
    checker: ExpressionChecker | None = None,
    namespace_labels: Mapping[str, str] | None = None,
    document: Raw | None = None,
    features: FeatureSet = _DEFAULT_FEATURES,
) -> tuple[FieldProblem, ...]:
    """
    Return what an API server with these features has against creating an object, in its order.

    A time that Go cannot read is the whole answer, with the reason `TYPE_INVALID`: the server
    does not decode such an object. `document` is what the object was decoded from, if there is
    one: the server refuses some lists that are set and empty.
    """
    unreadable = tuple(_malformed_times(obj, ""))
    if unreadable:
        return unreadable
    rules = DeviceRules(kind_of(type(obj)), checker, namespace_labels, features)
    raw = to_builtins(obj) if document is None else document
    problems = rules.creation_problems(raw, obj.metadata.namespace)
    return (*problems, *empty_list_problems(raw))


_TIMES = frozenset(
    (
        *("allocation_timestamp", "creation_timestamp", "deletion_timestamp"),
        *("last_transition_time", "time_added"),
    )
)


def _malformed_times(part: object, at: str) -> Iterator[FieldProblem]:
    if isinstance(part, tuple):
        for position, item in enumerate(part):
            yield from _malformed_times(item, f"{at}[{position}]")
    elif isinstance(part, msgspec.Struct):
        for name, shown in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
            value = getattr(part, name)
            field = f"{at}.{shown}" if at else shown
            if name in _TIMES and value is not None:
                try:
                    parse_time(value)
                except GoTimeError:
                    detail = "must be an RFC 3339 time, such as 2026-01-02T03:04:05Z"
                    yield FieldProblem(Reason.TYPE_INVALID, field, value, detail)
            else:
                yield from _malformed_times(value, field)
