"""
Owners of fields and patches, plugged into the pipeline.

`managing` and `patching` are pure functions over an object and the schema of its kind; here they
are given the schema, and their refusals become those of the server.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dryrack.apiserver.answer.status import Status, StatusError, bad_request, conflict
from dryrack.apiserver.decode import bodies
from dryrack.apiserver.extension_points import Manager, Patch, Patched
from dryrack.apiserver.ownership.patching import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchProblem,
    patched,
)
from dryrack.apiserver.ownership.patching.refusals import invalid_patch
from dryrack.apiserver.ownership.server_side_apply import (
    ApplyConflicts,
    ApplyProblem,
    Tracked,
    applied,
    keep_times,
    managed_after_update,
)
from dryrack.apiserver.registry import Registry, Resource
from dryrack.kinds import schemas
from dryrack.kinds.raw import Raw
from dryrack.kinds.schemas import Schema
from dryrack.kinds.schemas.strict_decode import conform
from dryrack.kinds.text import go_json
from dryrack.kinds.text.go_json import compact

APPLY_PATCH = "application/apply-patch+yaml"
_MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
_CUSTOM_MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)

# What each endpoint never writes, so that nobody owns it by it.
_NOT_STATUS = (("status",),)
_STATUS_ALONE = (("metadata",), ("spec",))
_ALL_BY_PART = (("pods", "ephemeralcontainers"), ("pods", "resize"))


class SchemaSource:
    """Finds the schema of a resource; those of custom ones are read once for each."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._custom: dict[str, tuple[object, Schema]] = {}

    def of(self, resource: Resource) -> Schema | None:
        if resource.schema is None:
            return schemas.schema_of(resource.group, resource.version, resource.kind)
        place = f"{resource.plural}.{resource.api_version}"
        read, made = self._custom.get(place, (None, None))
        if made is None or read is not resource.schema:
            made = schemas.custom(dict(resource.schema))
            self._custom[place] = (resource.schema, made)
        return made

    def in_version(self, resource: Resource, api_version: str) -> Resource | None:
        """The same resource in another version."""
        if api_version == resource.api_version:
            return resource
        group, _, version = api_version.rpartition("/")
        if group != resource.group:
            return None
        return self._registry.recognised(group, version, resource.plural)

    def tracked(self, resource: Resource, subresource: str) -> Tracked:
        reset: tuple[tuple[str, ...], ...] = ()
        if subresource == "status":
            reset = _STATUS_ALONE if resource.is_custom else resource.kept_by_status
        elif (resource.storage, subresource) in _ALL_BY_PART:
            # The server leaves out what such a part does not write, and yet notes who sent it.
            reset = ()
        elif "status" in resource.subresources:
            reset = _NOT_STATUS
        versions = _Versions(self, resource)
        return Tracked(resource.api_version, resource.kind, versions, subresource, reset)


@dataclass(frozen=True, slots=True)
class _Versions:
    """The versions of a resource, as `managing` asks for them."""

    source: SchemaSource
    resource: Resource

    def serves(self, api_version: str) -> bool:
        return self.source.in_version(self.resource, api_version) is not None

    def schema(self, api_version: str) -> Schema | None:
        other = self.source.in_version(self.resource, api_version)
        return self.source.of(other) if other else None

    def convert(self, value: Raw, api_version: str) -> Raw:
        if value.get("apiVersion") == api_version:
            return value
        given = self.source.in_version(self.resource, value.get("apiVersion") or "")
        asked = self.source.in_version(self.resource, api_version)
        assert asked is not None, f"{api_version} is not served"
        stored = (given or self.resource).strategy.to_storage(value)
        return asked.strategy.from_storage(stored)


class Management:
    """Keeps managedFields."""

    def __init__(self, source: SchemaSource) -> None:
        self._source = source

    def record(self, resource: Resource, new: Raw, old: Raw | None, manager: Manager) -> Raw:
        tracked = self._source.tracked(resource, manager.subresource)
        return managed_after_update(
            old, new, manager=manager.name, now=manager.now, tracked=tracked
        )

    def settle(self, old: Raw, new: Raw) -> Raw:
        return keep_times(old, new)


class AllPatches:
    """JSON, merge, strategic merge and server-side apply."""

    def __init__(self, source: SchemaSource) -> None:
        self._source = source

    def media_types(self, resource: Resource) -> Sequence[str]:
        return _CUSTOM_MEDIA_TYPES if resource.is_custom else _MEDIA_TYPES

    def apply_patch(self, resource: Resource, current: Raw | None, patch: Patch) -> Patched:
        if patch.media_type == APPLY_PATCH:
            return self._applied(resource, current, patch)
        assert current is not None, "only an apply creates"
        schema = self._source.of(resource)
        made = patched(current, patch.body, content_type=patch.media_type, schema=schema)
        if isinstance(made, PatchProblem):
            raise StatusError(Status(made.code, made.reason, made.message, made.details))
        if patch.media_type == JSON_PATCH and bodies.is_too_deep(made.object):
            # By adding and copying into what is there an object could grow without end.
            raise bad_request("exceeded max depth")
        shown = partial(_shown, made.object, patch)
        if not isinstance(made.object, dict):
            raise invalid_patch(shown(), bodies.not_an_object(made.object))
        problem = bodies.type_meta_problem(made.object)
        if patch.media_type == STRATEGIC_MERGE_PATCH and schema is not None:
            problem = conform(schema, made.object).mismatch
        if problem:
            raise invalid_patch(shown(), problem)
        return Patched(made.object, made.strict, shown)

    def _applied(self, resource: Resource, current: Raw | None, patch: Patch) -> Patched:
        configuration, again = _configuration(patch.body)
        manager = patch.manager
        if current is None:
            _check_new(resource, configuration)
        made = applied(
            current,
            configuration,
            manager=manager.name,
            force=patch.force,
            now=manager.now,
            tracked=self._source.tracked(resource, manager.subresource),
        )
        match made:
            case ApplyProblem():
                raise StatusError(Status(made.code, made.reason, made.message))
            case ApplyConflicts():
                raise _conflict(made)
            case _:
                return Patched(made, again)


def _shown(made: Any, patch: Patch) -> str:
    """What could not be read: of a strategic merge patch, the patch itself."""
    is_strategic = patch.media_type == STRATEGIC_MERGE_PATCH
    return compact(bodies.read_json(patch.body) if is_strategic else made)


def _configuration(body: bytes) -> tuple[Raw, tuple[str, ...]]:
    """What is applied, and a complaint if the text says keys twice."""
    again: tuple[str, ...] = ()
    try:
        if body[:1] == b"{":
            value = bodies.read_json(body)
            # JSON is YAML, and complained of as such.
            again = bodies.read_yaml(body)[1] if bodies.repeated_fields(body, value) else ()
        else:
            value, again = bodies.read_yaml(body)
    except go_json.GoSyntaxError as error:
        what = f"error decoding YAML: error converting YAML to JSON: {error}"
        raise bad_request(what) from None
    if value is not None and not isinstance(value, dict):
        name = go_json.type_name(value)
        what = f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
        prefix = "error decoding YAML: error unmarshaling JSON: while decoding JSON"
        raise bad_request(f"{prefix}: {what}")
    return value or {}, tuple(f"error converting YAML to JSON: {each}" for each in again)


def _check_new(resource: Resource, configuration: Raw) -> None:
    """Refuses to make an object that is said to be a certain one."""
    metadata = configuration.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    if named.get("uid"):
        detail = (
            f"the provided object specified uid {named['uid']}, and no existing object was found"
        )
        name = str(named.get("name") or "")
        raise conflict(resource.as_resource, name, f"uid mismatch: {detail}")


def _conflict(conflicts: ApplyConflicts) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": message, "field": field}
        for field, message in conflicts.causes
    ]
    return StatusError(Status(409, "Conflict", conflicts.message, {"causes": causes}))
