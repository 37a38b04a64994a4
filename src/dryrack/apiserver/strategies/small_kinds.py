"""Kinds that differ from the usual treatment in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.answer.status import Subject
from dryrack.apiserver.answer.status import forbidden as refused
from dryrack.apiserver.strategies.pods.admission import PRIORITY_CLASSES
from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.apiserver.strategy import Strategy
from dryrack.extension.definitions import word_problems
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import Condition
from dryrack.kinds.paths import get, spec_of, status_of
from dryrack.kinds.rules.accounts import RoleBindingRules, RoleRules
from dryrack.kinds.rules.configuration import ConfigMapRules, SecretRules
from dryrack.kinds.rules.gangs import PodGroupRules, WorkloadObjectRules
from dryrack.kinds.rules.json_edit import (
    map_items,
    null_if_empty,
    update_at,
    with_metadata,
    without,
)
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.leases import LeaseRules
from dryrack.kinds.rules.priorities import PriorityClassRules
from dryrack.kinds.validation.meta import conditions
from dryrack.kinds.validation.names import subdomain
from dryrack.kinds.validation.problems import Token, forbidden, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


PROTECTION = "scheduling.k8s.io/podgroup-protection"
_PRIORITY_CLASSES = Subject("scheduling.k8s.io", "priorityclasses")
_FIXED = "field is immutable"
_IMMUTABLE = f"{_FIXED} when `immutable` is set"
# Fields of leases of a feature gate that is off in the reference release.
_NOT_YET = ("strategy", "preferredHolder")


class ConfigMapStrategy(ValidatedAsNewStrategy):
    """ConfigMaps."""

    def __init__(self) -> None:
        super().__init__(ConfigMapRules())

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        return _immutable_changes(obj, old, ("data", "binaryData"))


class SecretStrategy(ValidatedAsNewStrategy):
    """Secrets. The type cannot change."""

    selectable_fields = ("type",)
    field_refusal = "field label not supported: {label}"

    def __init__(self) -> None:
        super().__init__(SecretRules())

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        kind = obj.get("type") or ""
        if kind != (old.get("type") or ""):
            yield invalid("type", Token(kind), _FIXED)
        yield from _immutable_changes(obj, old, ("data",))


def _immutable_changes(obj: Raw, old: Raw, parts: tuple[str, ...]) -> Iterator[FieldProblem]:
    """Yield the problems of changes of an immutable object."""
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden("immutable", _IMMUTABLE)
    for part in parts:
        if (obj.get(part) or {}) != (old.get(part) or {}):
            yield forbidden(part, _IMMUTABLE)


class LeaseStrategy(Strategy):
    """Leases. A PUT can create a lease, and an update must have a resourceVersion."""

    creates_on_update = True
    updates_unconditionally = False

    def __init__(self) -> None:
        super().__init__(LeaseRules())

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return update_at(obj, "spec", lambda spec: without(spec, *_NOT_YET))

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        return update_at(obj, "spec", lambda spec: without(spec, *_NOT_YET))


class PriorityClassStrategy(ValidatedAsNewStrategy):
    """PriorityClasses. At most one is the global default."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(PriorityClassRules())

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        if not obj.get("globalDefault"):
            return obj
        name = obj["metadata"].get("name") or ""
        for other in write.lookup.list(PRIORITY_CLASSES, None):
            taken = other["metadata"]["name"]
            if other.get("globalDefault") and (old is None or taken != name):
                detail = f"PriorityClass {taken} is already marked as default. "
                raise refused(_PRIORITY_CLASSES, name, f"{detail}Only one default can exist")
        return obj

    def counted_part(self, obj: Raw) -> Any:
        """Return None: a class has no spec, so its generation never changes."""
        return None

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        if obj.get("value", 0) != old.get("value", 0):
            yield forbidden("value", "may not be changed in an update.")
        policy = obj.get("preemptionPolicy")
        if policy != old.get("preemptionPolicy"):
            yield invalid("preemptionPolicy", Token(policy or ""), _FIXED)


class PodGroupStrategy(Strategy):
    """
    PodGroups. The spec cannot change.

    Each group gets a finalizer, which a controller removes when the group has no pods.
    """

    def __init__(self) -> None:
        super().__init__(PodGroupRules())

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        finalizers = get(obj["metadata"], "finalizers", [])
        if old is not None or PROTECTION in finalizers:
            return obj
        return with_metadata(obj, "finalizers", [*finalizers, PROTECTION])

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return ()
        spec = spec_of(obj)
        before = spec_of(old)
        names = sorted({*spec, *before})
        return [
            invalid(f"spec.{name}", None, _FIXED)
            for name in names
            if spec.get(name) != before.get(name)
        ]


class WorkloadObjectStrategy(Strategy):
    """Workloads. Their controller and templates cannot change."""

    def __init__(self) -> None:
        super().__init__(WorkloadObjectRules())

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        spec = spec_of(obj)
        before = spec_of(old)
        return [
            invalid(f"spec.{name}", None, _FIXED)
            for name in ("controllerRef", "podGroupTemplates")
            if spec.get(name) != before.get(name)
        ]


class StorageVersionMigrationRules(KindRules):
    """StorageVersionMigration."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, has_status=True)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        at = "spec.resource"
        resource = get(obj, at, {})
        name, group = (resource.get(key) or "" for key in ("resource", "group"))
        if not name:
            yield required(f"{at}.resource", "resource is required to be set")
        elif complaints := word_problems(name):
            yield invalid(f"{at}.resource", name, ",".join(complaints))
        if group and (complaints := subdomain(group)):
            yield invalid(f"{at}.group", group, ",".join(complaints))


class StorageVersionMigrationStrategy(Strategy):
    """Requests to migrate stored objects. The spec cannot change."""

    updates_unconditionally = False

    def __init__(self) -> None:
        super().__init__(StorageVersionMigrationRules())

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return tuple(self._status_problems(status_of(obj), status_of(old)))
        found = [*self.rules.problems(obj)]
        if spec_of(obj) != spec_of(old):
            found.append(invalid("spec", spec_of(obj), _FIXED))
        return found

    def _status_problems(self, status: Raw, old: Raw) -> Iterator[FieldProblem]:
        given = tuple(decode(each, Condition) for each in get(status, "conditions", ()))
        yield from conditions("status.conditions", given, self.rules.behaviour)
        version = status.get("resourceVersion") or ""
        if old.get("resourceVersion") and version != old["resourceVersion"]:
            yield invalid("status.resourceVersion", version, _FIXED)


class ServiceAccountStrategy(ValidatedAsNewStrategy):
    """Service accounts. Only the names of referenced secrets are stored."""

    def __init__(self) -> None:
        super().__init__(KindRules(namespaced=True))

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return map_items(obj, "secrets", _name_only)

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        return map_items(obj, "secrets", _name_only)


def _name_only(secret: Raw) -> Raw:
    return {"name": secret["name"]} if secret.get("name") else {}


class RoleStrategy(ValidatedAsNewStrategy):
    """Roles, of a namespace or of the cluster."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(RoleRules(namespaced=namespaced))

    def to_storage(self, obj: Raw) -> Raw:
        return null_if_empty(obj, "rules")


class RoleBindingStrategy(ValidatedAsNewStrategy):
    """Bindings of roles to users, groups and service accounts."""

    creates_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__(RoleBindingRules(namespaced=namespaced))

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        if obj.get("roleRef") != old.get("roleRef"):
            yield invalid("roleRef", obj.get("roleRef"), "cannot change roleRef")
