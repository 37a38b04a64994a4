"""
Events, of which there are two kinds that are one.

They are stored as the older kind; the newer one has other names for most fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategy import Strategy, field_text, object_meta
from dryrack.kinds.paths import get
from dryrack.kinds.rules import checks
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.meta import (
    SUBDOMAIN,
    common_metadata,
    common_metadata_change,
    metadata,
)
from dryrack.kinds.validation.problems import invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_NEW = "events.k8s.io/v1"
# By the name of the newer kind.
_OLD_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_NEW_NAMES = {old: new for new, old in _OLD_NAMES.items()}
# The fields that the core kind always writes and events.k8s.io leaves out if they are empty.
_WRITTEN = {"reportingComponent": "", "reportingInstance": ""}
_OBJECT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_CHARS_MAX = 128
_MESSAGE_CHARS_MAX = 1024
_ELSEWHERE = "does not match event.namespace"
_SERIES_MIN = 2


class EventStrategy(Strategy):
    """The older kind, and what is stored."""

    creates_on_update = True
    selectable_fields = (
        *(f"involvedObject.{name}" for name in _OBJECT),
        "reason",
        "reportingComponent",
        "source",
        "type",
    )
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(KindRules(namespaced=True))

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        found = list(_problems(obj, "reportingComponent"))
        return found or tuple(
            common_metadata(object_meta(obj), namespaced=True, behaviour=self.rules.behaviour)
        )

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        meta = object_meta(obj)
        before = object_meta(old)
        return [
            *common_metadata_change(meta, before, namespaced=True, behaviour=self.rules.behaviour),
            *_problems(self.to_storage(obj), "reportingComponent"),
        ]

    def fields(self, obj: Raw) -> Mapping[str, str]:
        found = {path: field_text(obj, path) for path in self.selectable_fields}
        source = get(obj, "source.component") or ""
        found["source"] = source or found["reportingComponent"]
        return found


class NewEventStrategy(EventStrategy):
    """The newer kind, which asks more of its events."""

    selectable_fields = (
        *(f"regarding.{name}" for name in _OBJECT),
        "reason",
        "reportingController",
        "type",
    )

    def to_storage(self, obj: Raw) -> Raw:
        renamed = {_OLD_NAMES.get(key, key): value for key, value in obj.items()}
        return {**_WRITTEN, **renamed, "apiVersion": "v1"}

    def from_storage(self, obj: Raw) -> Raw:
        if obj.get("apiVersion") == _NEW:
            return obj
        kept = {key: value for key, value in obj.items() if not (key in _WRITTEN and value == "")}
        renamed = {_NEW_NAMES.get(key, key): value for key, value in kept.items()}
        return {**renamed, "apiVersion": _NEW}

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        meta = object_meta(obj)
        event = self.to_storage(obj)
        found = [
            *_problems(event, "reportingController"),
            *metadata(meta, SUBDOMAIN, namespaced=True, behaviour=self.rules.behaviour),
            *_strict(event),
        ]
        return found or tuple(
            common_metadata(meta, namespaced=True, behaviour=self.rules.behaviour)
        )

    def fields(self, obj: Raw) -> Mapping[str, str]:
        return {path: field_text(obj, path) for path in self.selectable_fields}


def _problems(event: Raw, controller_field: str) -> Iterator[FieldProblem]:
    """Yield the problems of any event; one with an eventTime counts as an events.k8s.io Event."""
    namespace = event["metadata"].get("namespace") or ""
    about = get(event, "involvedObject.namespace") or ""
    if not event.get("eventTime"):
        if namespace != about and (about or namespace != "default"):
            yield invalid("involvedObject.namespace", about, _ELSEWHERE)
        return
    if not about and namespace not in ("default", "kube-system"):
        yield invalid("involvedObject.namespace", about, _ELSEWHERE)
    controller = event.get("reportingComponent") or ""
    if not controller:
        yield required(controller_field)
    yield from checks.qualified_name(controller_field, controller)
    for key in ("reportingInstance", "action", "reason"):
        value = event.get(key) or ""
        if not value:
            yield required(key)
        if len(value) > _CHARS_MAX:
            yield invalid(key, "", f"can have at most {_CHARS_MAX} characters")
    if len(event.get("message") or "") > _MESSAGE_CHARS_MAX:
        yield invalid("message", "", f"can have at most {_MESSAGE_CHARS_MAX} characters")


def _strict(event: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of an event of events.k8s.io."""
    yield from _series(event)
    if not event.get("eventTime"):
        yield required("eventTime")
    if event.get("type") not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {event.get('type') or ''}")
    for key in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(key):
            yield invalid(key, "", "needs to be unset")


def _series(event: Raw) -> Iterator[FieldProblem]:
    series = event.get("series")
    if series is None:
        return
    if series.get("count", 0) < _SERIES_MIN:
        yield invalid("series.count", "", f"should be at least {_SERIES_MIN}")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")
