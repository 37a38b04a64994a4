"""
Adapters of managedFields and patches to the extension points of the pipeline.

`server_side_apply` and `patching` are pure functions of an object and the schema of its kind. The
adapters find the schema, and raise refusals as a `StatusError`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dryrack.apiserver.answer.status import Status, StatusError, bad_request, conflict
from dryrack.apiserver.decode import bodies
from dryrack.apiserver.extension_points import Manager, Patch, Patched
from dryrack.apiserver.ownership.patching import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchProblem,
    apply_patch,
)
from dryrack.apiserver.ownership.patching.problems import invalid_patch
from dryrack.apiserver.ownership.server_side_apply import (
    ApplyConflicts,
    ApplyProblem,
    Tracked,
    apply_configuration,
    keep_times,
    managed_after_update,
)
from dryrack.apiserver.registry import Registry, Resource
from dryrack.kinds import schemas
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import DEFAULT_RELEASE, PATCHES, PatchBehaviour, Release
from dryrack.kinds.schemas import Schema
from dryrack.kinds.schemas.strict_decode import conform
from dryrack.kinds.text import go_json
from dryrack.kinds.text.go_json import compact

APPLY_PATCH = "application/apply-patch+yaml"
_MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
_CUSTOM_MEDIA_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)

# The fields that an endpoint never writes, so that no manager owns them through it.
_NOT_STATUS = (("status",),)
_STATUS_ALONE = (("metadata",), ("spec",))
_ALL_BY_PART = (("pods", "ephemeralcontainers"), ("pods", "resize"))


class SchemaSource:
    """Finds the schema of a resource; reads the schema of a custom one once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._custom: dict[str, tuple[object, Schema]] = {}

    def of(self, resource: Resource) -> Schema | None:
        if resource.schema is None:
            return schemas.schema_of(
                resource.group, resource.version, resource.kind, resource.release
            )
        place = f"{resource.plural}.{resource.api_version}"
        raw, schema = self._custom.get(place, (None, None))
        if schema is None or raw is not resource.schema:
            schema = schemas.custom(dict(resource.schema))
            self._custom[place] = (resource.schema, schema)
        return schema

    def in_version(self, resource: Resource, api_version: str) -> Resource | None:
        """Return the resource in another version, or None if it is not served."""
        if api_version == resource.api_version:
            return resource
        group, _, version = api_version.rpartition("/")
        if group != resource.group:
            return None
        return self._registry.recognised(group, version, resource.plural)

    def tracked(self, resource: Resource, subresource: str) -> Tracked:
        """Return the endpoint whose writes are tracked."""
        reset: tuple[tuple[str, ...], ...] = ()
        if subresource == "status":
            reset = _STATUS_ALONE if resource.is_custom else resource.kept_by_status
        elif "status" in resource.subresources:
            # These subresources write a part of the object, and track every field that is sent.
            is_part = (resource.storage, subresource) in _ALL_BY_PART
            reset = () if is_part else _NOT_STATUS
        versions = _Versions(self, resource)
        keeps = PATCHES[resource.release].keeps_owners_on_failure
        return Tracked(resource.api_version, resource.kind, versions, subresource, reset, keeps)


@dataclass(frozen=True, slots=True)
class _Versions:
    """The versions of a resource, for `server_side_apply`."""

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
        source = self.source.in_version(self.resource, value.get("apiVersion") or "")
        target = self.source.in_version(self.resource, api_version)
        assert target is not None, f"{api_version} is not served"
        stored = (source or self.resource).strategy.to_storage(value)
        return target.strategy.from_storage(stored)


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

    def __init__(self, source: SchemaSource, release: Release = DEFAULT_RELEASE) -> None:
        self._source = source
        self._behaviour = PATCHES[release]

    def media_types(self, resource: Resource) -> Sequence[str]:
        return _CUSTOM_MEDIA_TYPES if resource.is_custom else _MEDIA_TYPES

    def apply_patch(self, resource: Resource, current: Raw | None, patch: Patch) -> Patched:
        if patch.media_type == APPLY_PATCH:
            return self._apply(resource, current, patch)
        if self._behaviour.checks_syntax_first and not _is_json(patch.body):
            raise bad_request("invalid JSON patch")
        assert current is not None, "only an apply creates"
        schema = self._source.of(resource)
        result = apply_patch(current, patch.body, content_type=patch.media_type, schema=schema)
        if isinstance(result, PatchProblem):
            raise StatusError(Status(result.code, result.reason, result.message, result.details))
        obj = result.object
        if patch.media_type == JSON_PATCH and bodies.is_too_deep(obj):
            # Operations that add and copy could let an object grow without end.
            raise bad_request("exceeded max depth")
        is_strategic = patch.media_type == STRATEGIC_MERGE_PATCH

        def shown() -> str:
            # The server shows the patch itself if it is a strategic merge patch.
            return compact(bodies.read_json(patch.body) if is_strategic else obj)

        if not isinstance(obj, dict):
            raise invalid_patch(shown(), bodies.not_an_object(obj))
        problem = bodies.type_meta_problem(obj)
        if is_strategic and schema is not None:
            problem = conform(schema, obj).mismatch
        if problem:
            raise invalid_patch(shown(), problem)
        return Patched(obj, result.strict, shown)

    def _apply(self, resource: Resource, current: Raw | None, patch: Patch) -> Patched:
        configuration, repeated = _read_configuration(patch.body, self._behaviour)
        uid = get(configuration, "metadata.uid")
        if current is None and uid:
            detail = f"the provided object specified uid {uid}, and no existing object was found"
            name = str(get(configuration, "metadata.name", ""))
            raise conflict(resource.as_resource, name, f"uid mismatch: {detail}")
        manager = patch.manager
        result = apply_configuration(
            current,
            configuration,
            manager=manager.name,
            force=patch.force,
            now=manager.now,
            tracked=self._source.tracked(resource, manager.subresource),
        )
        match result:
            case ApplyProblem():
                raise StatusError(Status(result.code, result.reason, result.message))
            case ApplyConflicts():
                causes = [
                    {"reason": "FieldManagerConflict", "message": message, "field": field}
                    for field, message in result.causes
                ]
                raise StatusError(Status(409, "Conflict", result.message, {"causes": causes}))
            case _:
                noun = self._behaviour.applied
                return Patched(result, repeated, strict_text=f"error strict decoding {noun}: ")


def _is_json(body: bytes) -> bool:
    try:
        bodies.read_json(body)
    except go_json.GoSyntaxError:
        return False
    return True


def _read_configuration(body: bytes, behaviour: PatchBehaviour) -> tuple[Raw, tuple[str, ...]]:
    """Return the applied object, and a complaint if the text repeats keys."""
    repeated: tuple[str, ...] = ()
    try:
        try:
            value = bodies.read_json(body)
        except go_json.GoSyntaxError:
            # Text that looks like JSON can be YAML only, for example with a comma at the end.
            value, repeated = bodies.read_yaml(body)
        else:
            # JSON is YAML; the complaint is that of the YAML reader.
            repeated = bodies.read_yaml(body)[1] if bodies.repeated_fields(body, value) else ()
    except go_json.GoSyntaxError as error:
        if behaviour.checks_syntax_first:
            raise bad_request(f"error encoding patch: {error}") from None
        what = f"error decoding YAML: error converting YAML to JSON: {error}"
        raise bad_request(what) from None
    if value is not None and not isinstance(value, dict):
        name = go_json.type_name(value)
        what = f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
        prefix = "error unmarshaling JSON: while decoding JSON"
        raise bad_request(f"error decoding {behaviour.applied}: {prefix}: {what}")
    return value or {}, tuple(f"error converting YAML to JSON: {each}" for each in repeated)
