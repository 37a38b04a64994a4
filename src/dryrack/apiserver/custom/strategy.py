"""
How objects of a custom kind are completed, checked and kept.

Everything comes from one version of a definition: the schema, the rules, and which subresources
there are. Objects are stored in the version that the definition names; between versions nothing
but the name of the version changes, and what the stored version's schema does not know is lost.
A definition with a conversion webhook has it convert them. If no program can be reached there, an
object that is the same in both versions is read and written as without a webhook, and any other is
refused, because fields would be lost.

What is stored is as the schema of its version has it: with its defaults, also those of a status
that nobody has written yet, and without what it does not know. A schema may change after that, so
whoever reads an object gets it pruned and with defaults again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.answer.status import Status, StatusError, bad_request
from dryrack.apiserver.custom.rule_evaluation import find_broken_rules
from dryrack.apiserver.strategy import (
    Strategy,
    Write,
    keep_status,
    object_meta,
    status_only,
)
from dryrack.apiserver.webhooks.conversion_reviews import without_answers
from dryrack.extension.definitions import (
    NO_OLD,
    NOWHERE,
    duplicates,
    embedded_error,
    embedded_problems,
    mentions_key,
    prune,
    value_problems,
    whole_numbers,
    with_defaults,
)
from dryrack.kinds.paths import get
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.text.go_json import compact
from dryrack.kinds.validation.meta import (
    SUBDOMAIN,
    common_metadata,
    common_metadata_change,
    metadata,
    metadata_change,
)
from dryrack.kinds.validation.problems import FieldProblem, Reason, invalid

if TYPE_CHECKING:
    from dryrack.apiserver.verbs.scale import ScalePaths
    from dryrack.apiserver.webhooks.conversion_reviews import Converter
    from dryrack.extension.definitions import JsonPath, Ruled
    from dryrack.kinds.raw import Raw
    from dryrack.store import Stored

Schema = Mapping[str, Any]

# Rules are not tried on objects that a rule could not rely on.
_BLOCKING = {
    Reason.NOT_SUPPORTED,
    Reason.REQUIRED,
    Reason.TOO_LONG,
    Reason.TOO_MANY,
    Reason.TYPE_INVALID,
}
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """The version in which objects are stored."""

    api_version: str
    schema: Schema
    versions: Mapping[str, Schema] = field(default_factory=dict)
    """By apiVersion: all versions; objects may still be stored in a former one."""


class CustomStrategy(Strategy):
    """The strategy of one version of a custom kind."""

    updates_unconditionally = False
    field_refusal = "field label not supported: {label}"

    def __init__(
        self,
        *,
        api_version: str,
        kind: str,
        namespaced: bool,
        schema: Schema,
        kept: Kept,
        rules: Ruled | None,
        has_status: bool,
        converter: Converter | None = None,
        scale: ScalePaths | None = None,
        selectable: Mapping[str, JsonPath] | None = None,
    ) -> None:
        super().__init__(KindRules(namespaced=namespaced, has_status=has_status))
        self._api_version = api_version
        self._kind = kind
        self._schema = schema
        self._embeds = mentions_key(schema, "x-kubernetes-embedded-resource")
        self._tells_apart = mentions_key(schema, "x-kubernetes-list-type")
        self._kept = kept
        self._rules = rules
        self._converter = converter
        self.converts = converter is not None
        self._scale = scale
        self._selectable = dict(selectable or {})
        self.selectable_fields = tuple(self._selectable)

    def default(self, obj: Raw, write: Write) -> Raw:
        if self._embeds and (told := embedded_error(self._schema, obj)):
            version = self._api_version.rpartition("/")[2]
            mishandled = f'{self._kind} in version "{version}" cannot be handled as a {self._kind}'
            raise bad_request(f"{mishandled}: {told}")
        filled: Raw = with_defaults(self._schema, obj)
        return filled

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = super().prepare_create(obj, write)
        return {**made, "metadata": {**made["metadata"], "generation": 1}}

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        if self.has_status and write.subresource == "status":
            return status_only(obj, old)
        kept = keep_status(obj, old) if self.has_status else obj
        if _without_metadata(kept) == _without_metadata(old):
            return kept
        generation = (old["metadata"].get("generation") or 0) + 1
        return {**kept, "metadata": {**kept["metadata"], "generation": generation}}

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        named = list(self._identity(obj))
        if named:
            return named
        meta = object_meta(obj)
        found = [
            *metadata(meta, SUBDOMAIN, namespaced=self.namespaced),
            *self._problems(obj, NO_OLD),
        ]
        return found or tuple(common_metadata(meta, namespaced=self.namespaced))

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        named = list(self._identity(obj))
        if named:
            return named
        meta = object_meta(obj)
        before = object_meta(old)
        found = [
            *common_metadata_change(meta, before, namespaced=self.namespaced),
            *metadata_change(meta, before),
        ]
        if write.subresource == "status":
            return [*found, *self._status_problems(obj, old)]
        return [*found, *self._problems(obj, old)]

    def _identity(self, obj: Raw) -> Iterator[FieldProblem]:
        for name, wanted in (("kind", self._kind), ("apiVersion", self._api_version)):
            if obj.get(name) != wanted:
                yield invalid(name, obj.get(name) or "", f"must be {wanted}")

    def _problems(self, obj: Raw, old: Any) -> list[FieldProblem]:
        found = [
            *value_problems(self._schema, obj, old=old),
            *(self._scale.problems(obj) if self._scale else ()),
            *(embedded_problems(self._schema, obj) if self._embeds else ()),
            *(duplicates(self._schema, obj) if self._tells_apart else ()),
        ]
        return [*found, *self._ruled(found, obj, old)]

    def _status_problems(self, obj: Raw, old: Raw) -> list[FieldProblem]:
        status = get(self._schema, "properties.status")
        if "status" not in obj or status is None:
            return []
        before = old.get("status", NO_OLD)
        found = [
            *value_problems(status, obj["status"], old=before, prefix="status"),
            *(self._scale.problems(obj, status_alone=True) if self._scale else ()),
            *duplicates(status, obj["status"], "status"),
        ]
        return [*found, *self._ruled(found, obj, old)]

    def _ruled(self, found: list[FieldProblem], obj: Raw, old: Any) -> Iterator[FieldProblem]:
        if self._rules is None:
            return
        if any(problem.reason in _BLOCKING for problem in found):
            yield invalid(NOWHERE, None, _UNCHECKED)
        else:
            yield from find_broken_rules(self._rules, obj, old)

    def to_storage(self, obj: Raw) -> Raw:
        whole: Raw = whole_numbers(obj)
        if self._kept.api_version != self._api_version:
            return _coerced(self._kept.schema, self._converted(whole, self._kept.api_version))
        filled: Raw = with_defaults(self._schema, whole)
        return filled

    def from_storage(self, obj: Raw) -> Raw:
        """The defaults are those of the version in which the object is stored."""
        stored_in = obj["apiVersion"]
        coerced = _coerced(self._kept.versions.get(stored_in, self._kept.schema), obj)
        if stored_in == self._api_version:
            return coerced
        shown: Raw = prune(self._schema, self._converted(coerced, self._api_version))
        return shown

    def read(self, stored: Stored) -> Raw:
        """Return an object in this version; a stored object is converted by a webhook once."""
        converter = self._converter
        if converter is None or without_answers():
            return self.from_storage(stored.object)
        mark = f"converted to {self._api_version}"
        strategy, known = stored.marks.get(mark, (None, None))
        if known is None or strategy is not self:
            known = self.from_storage(stored.object)
            if converter.is_reachable():
                stored.marks[mark] = (self, known)
        shown: Raw = known
        return shown

    def read_metadata(self, stored: Stored) -> Raw:
        # Controllers that only look at owners and names go on while no webhook can be reached.
        if self._converter is not None and not self._converter.is_reachable():
            return {**stored.object, "apiVersion": self._api_version}
        return self.read(stored)

    def ready_all(self, items: Iterable[Stored]) -> None:
        converter = self._converter
        if converter is None or without_answers() or not converter.is_reachable():
            return
        mark = f"converted to {self._api_version}"
        sources = []
        for each in items:
            obj = each.object
            is_done = each.marks.get(mark, (None,))[0] is self
            if not is_done and obj["apiVersion"] != self._api_version:
                schema = self._kept.versions.get(obj["apiVersion"], self._kept.schema)
                sources.append(_coerced(schema, obj))
        converter.convert(sources, self._api_version)

    def _converted(self, obj: Raw, desired: str) -> Raw:
        """Return an object in another version."""
        converter = self._converter
        renamed = {**obj, "apiVersion": desired}
        if converter is None or without_answers():
            return renamed
        if converter.is_reachable():
            converted: Raw = whole_numbers(converter.convert([obj], desired)[0])
            return converted
        schema = self._kept.versions.get(desired, self._schema)
        lost = list(_missing(renamed, prune(schema, renamed)))
        if lost:
            told = f"{desired} has no {', '.join(lost)}"
            raise StatusError(Status(500, "", f"{converter.unreachable(obj)} ({told})"))
        return renamed

    def fields(self, obj: Raw) -> Mapping[str, str]:
        found = {name: path.first(obj) for name, path in self._selectable.items()}
        return {name: "" if value is None else compact(value[0]) for name, value in found.items()}


def _coerced(schema: Schema, obj: Raw) -> Raw:
    """An object as its schema has it."""
    filled: Raw = with_defaults(schema, prune(schema, obj))
    return filled


def _missing(whole: Any, part: Any, path: str = "") -> Iterator[str]:
    """The fields of an object that what was left of it does not have."""
    if isinstance(whole, dict) and isinstance(part, dict):
        for key, value in whole.items():
            place = f"{path}.{key}" if path else key
            yield from _missing(value, part[key], place) if key in part else (place,)
    elif isinstance(whole, list) and isinstance(part, list):
        for index, (value, left) in enumerate(zip(whole, part, strict=True)):
            yield from _missing(value, left, f"{path}[{index}]")


def _without_metadata(obj: Raw) -> Raw:
    return {key: value for key, value in obj.items() if key != "metadata"}
