"""
The strategy of a custom kind: defaults, validation, and conversion to the stored version.

One version of a definition gives the schema, the rules, and the subresources. Objects are stored
in the version that the definition names; between versions only the name of the version changes,
and fields that the stored version's schema does not have are lost. A conversion webhook converts
the objects if the definition has one. If the webhook has no address, an object that is equal in
both versions is read and written as without a webhook, and any other is refused, because fields
would be lost.

An object is stored with the defaults of its schema, also those of a status that was not written
yet, and without unknown fields. The schema may change later, so a read prunes the object and sets
defaults again.
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
    common_metadata,
    common_metadata_change,
    custom_metadata,
    custom_metadata_change,
)
from dryrack.kinds.validation.problems import FieldProblem, Reason, invalid

if TYPE_CHECKING:
    from dryrack.apiserver.verbs.scale import ScalePaths
    from dryrack.apiserver.webhooks.conversion_reviews import Converter
    from dryrack.extension.definitions import JsonPath, Ruled
    from dryrack.kinds.raw import Raw
    from dryrack.store import Stored

Schema = Mapping[str, Any]

# Rules are not evaluated on objects with one of these problems.
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
class StoredVersion:
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
        stored_version: StoredVersion,
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
        self._stored_version = stored_version
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
        new = keep_status(obj, old) if self.has_status else obj
        if _without_metadata(new) == _without_metadata(old):
            return new
        generation = (old["metadata"].get("generation") or 0) + 1
        return {**new, "metadata": {**new["metadata"], "generation": generation}}

    def validate_create(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        named = list(self._identity(obj))
        if named:
            return named
        meta = object_meta(obj)
        found = [
            *custom_metadata(meta, namespaced=self.namespaced, behaviour=self.rules.behaviour),
            *self._problems(obj, NO_OLD),
        ]
        return found or tuple(
            common_metadata(meta, namespaced=self.namespaced, behaviour=self.rules.behaviour)
        )

    def validate_update(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        named = list(self._identity(obj))
        if named:
            return named
        meta = object_meta(obj)
        before = object_meta(old)
        found = [
            *common_metadata_change(
                meta, before, namespaced=self.namespaced, behaviour=self.rules.behaviour
            ),
            *custom_metadata_change(meta, before, self.rules.behaviour),
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
        return [*found, *self._rule_problems(found, obj, old)]

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
        return [*found, *self._rule_problems(found, obj, old)]

    def _rule_problems(
        self, found: list[FieldProblem], obj: Raw, old: Any
    ) -> Iterator[FieldProblem]:
        if self._rules is None:
            return
        if any(problem.reason in _BLOCKING for problem in found):
            yield invalid(NOWHERE, None, _UNCHECKED)
        else:
            yield from find_broken_rules(self._rules, obj, old)

    def to_storage(self, obj: Raw) -> Raw:
        whole: Raw = whole_numbers(obj)
        if self._stored_version.api_version != self._api_version:
            return _coerce(
                self._stored_version.schema, self._convert(whole, self._stored_version.api_version)
            )
        filled: Raw = with_defaults(self._schema, whole)
        return filled

    def from_storage(self, obj: Raw) -> Raw:
        """Return a stored object in this version, with the defaults of the stored version."""
        stored_in = obj["apiVersion"]
        coerced = _coerce(
            self._stored_version.versions.get(stored_in, self._stored_version.schema), obj
        )
        if stored_in == self._api_version:
            return coerced
        shown: Raw = prune(self._schema, self._convert(coerced, self._api_version))
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
                schema = self._stored_version.versions.get(
                    obj["apiVersion"], self._stored_version.schema
                )
                sources.append(_coerce(schema, obj))
        converter.convert(sources, self._api_version)

    def _convert(self, obj: Raw, desired: str) -> Raw:
        """Return an object in another version."""
        converter = self._converter
        renamed = {**obj, "apiVersion": desired}
        if converter is None or without_answers():
            return renamed
        if converter.is_reachable():
            converted: Raw = whole_numbers(converter.convert([obj], desired)[0])
            return converted
        schema = self._stored_version.versions.get(desired, self._schema)
        lost = list(_missing(renamed, prune(schema, renamed)))
        if lost:
            told = f"{desired} has no {', '.join(lost)}"
            raise StatusError(Status(500, "", f"{converter.unreachable(obj)} ({told})"))
        return renamed

    def fields(self, obj: Raw) -> Mapping[str, str]:
        found = {name: path.first(obj) for name, path in self._selectable.items()}
        return {name: "" if value is None else compact(value[0]) for name, value in found.items()}


def _coerce(schema: Schema, obj: Raw) -> Raw:
    """Return an object pruned by its schema and with defaults."""
    filled: Raw = with_defaults(schema, prune(schema, obj))
    return filled


def _missing(whole: Any, part: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that are missing in a part of an object."""
    if isinstance(whole, dict) and isinstance(part, dict):
        for key, value in whole.items():
            place = f"{path}.{key}" if path else key
            yield from _missing(value, part[key], place) if key in part else (place,)
    elif isinstance(whole, list) and isinstance(part, list):
        for index, (value, left) in enumerate(zip(whole, part, strict=True)):
            yield from _missing(value, left, f"{path}[{index}]")


def _without_metadata(obj: Raw) -> Raw:
    return {key: value for key, value in obj.items() if key != "metadata"}
