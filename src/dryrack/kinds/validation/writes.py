"""
A write, from the request's body to the verdict.

The server does not judge an object as it was sent: it completes the metadata, drops what is
disabled, and on an update puts back what the request may not touch. The same happens here, then
the kind's own rules are asked.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias, assert_never

import msgspec

from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.kinds.validation import allocations, claims, classes, slices
from dryrack.kinds.validation.gates import drop_disabled
from dryrack.kinds.validation.meta import (
    common_metadata,
    common_metadata_change,
    completed_for_create,
    completed_for_status,
    completed_for_update,
)
from dryrack.kinds.validation.parts import Expressions
from dryrack.kinds.validation.problems import FieldProblem

Validated: TypeAlias = (
    ResourceSlice | ResourceClaim | ResourceClaimTemplate | DeviceClass | DeviceTaintRule
)


class Given(msgspec.Struct, frozen=True):
    """What a verdict depends on besides the object."""

    expressions: Expressions
    namespace_labels: Mapping[str, str] | None


def created(obj: Validated, given: Given) -> Iterator[FieldProblem]:
    """Problems of a new object; a status that it brings is ignored."""
    namespaced = _is_namespaced(obj)
    meta = completed_for_create(obj.metadata, namespaced=namespaced)
    if not namespaced:
        meta = msgspec.structs.replace(meta, generation=1)
    kept = drop_disabled(msgspec.structs.replace(obj, metadata=meta)).obj
    problems = tuple(_created(kept, given))
    yield from problems or common_metadata(meta, namespaced=namespaced)


def _created(obj: Validated, given: Given) -> Iterator[FieldProblem]:
    match obj:
        case ResourceSlice():
            return slices.created(obj)
        case ResourceClaim():
            return claims.created(obj, given.expressions, given.namespace_labels)
        case ResourceClaimTemplate():
            return claims.template_created(obj, given.expressions, given.namespace_labels)
        case DeviceClass():
            return classes.created(obj, given.expressions)
        case DeviceTaintRule():
            return classes.rule_created(obj)
        case _:
            assert_never(obj)


def updated(
    obj: Validated, old: Validated, given: Given, *, subresource: str
) -> Iterator[FieldProblem]:
    """Problems of an update; first those that any kind can have, then the kind's own."""
    assert type(obj) is type(old), "an update does not change the kind"
    namespaced = _is_namespaced(obj)
    new = _prepared(obj, old, subresource)
    meta = completed_for_update(new.metadata, old.metadata, namespaced=namespaced)
    if not namespaced and subresource != "status" and new.spec != old.spec:
        meta = msgspec.structs.replace(meta, generation=old.metadata.generation + 1)
    new = drop_disabled(msgspec.structs.replace(new, metadata=meta), old).obj
    yield from common_metadata_change(meta, old.metadata, namespaced=namespaced)
    if subresource == "status":
        yield from _status_updated(new, old, given)
    else:
        yield from _updated((new, old), given)


def _prepared(obj: Validated, old: Validated, subresource: str) -> Validated:
    """An update of the status leaves all else alone, and the other way round."""
    if subresource == "status":
        meta = completed_for_status(obj.metadata, old.metadata)
        return msgspec.structs.replace(obj, metadata=meta, spec=old.spec)
    if isinstance(old, ResourceClaim | DeviceTaintRule):
        return msgspec.structs.replace(obj, status=old.status)
    return obj


def _status_updated(obj: Validated, old: Validated, given: Given) -> Iterator[FieldProblem]:
    match obj, old:
        case ResourceClaim(), ResourceClaim():
            status = allocations.without_deallocated(obj.status, old.status)
            kept = msgspec.structs.replace(obj, status=status)
            yield from allocations.status_updated(kept, old, given.namespace_labels)
        case DeviceTaintRule(), DeviceTaintRule():
            yield from classes.rule_status_updated(obj, old)
        case _:
            raise AssertionError(f"a {type(obj).__name__} has no status")


def _updated(change: tuple[Validated, Validated], given: Given) -> Iterator[FieldProblem]:
    match change:
        case ResourceSlice() as obj, ResourceSlice() as old:
            return slices.updated(obj, old)
        case ResourceClaim() as obj, ResourceClaim() as old:
            return claims.updated(obj, old)
        case ResourceClaimTemplate() as obj, ResourceClaimTemplate() as old:
            return claims.template_updated(obj, old, given.expressions)
        case DeviceClass() as obj, DeviceClass() as old:
            return classes.updated(obj, old, given.expressions)
        case DeviceTaintRule() as obj, DeviceTaintRule() as old:
            return classes.rule_updated(obj, old)
        case _:
            raise AssertionError("an update does not change the kind")


def _is_namespaced(obj: Validated) -> bool:
    return isinstance(obj, ResourceClaim | ResourceClaimTemplate)
