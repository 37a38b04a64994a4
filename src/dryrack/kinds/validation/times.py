"""
Times that are no times.

The server parses a time while it decodes, so a wrong one never reaches validation: the whole
request is bad, and nothing else is said about it. The models keep times as text; what is wrong
with them is told here, as values of the wrong type.
"""

from collections.abc import Iterator

from dryrack.kinds.meta import Condition, ObjectMeta
from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.kinds.text.go_time import GoTimeError, parse_time
from dryrack.kinds.validation.problems import FieldProblem, Reason

Found = tuple[str, str | None]


def malformed_times(
    obj: ResourceSlice | ResourceClaim | ResourceClaimTemplate | DeviceClass | DeviceTaintRule,
) -> Iterator[FieldProblem]:
    """Problems for which the server refuses to read an object at all."""
    for field, text in (*_of_metadata("metadata", obj.metadata), *_times(obj)):
        if text is not None and not is_time(text):
            detail = "must be an RFC 3339 time, such as 2026-01-02T03:04:05Z"
            yield FieldProblem(Reason.TYPE_INVALID, field, text, detail)


def is_time(text: str) -> bool:
    """Return whether Go reads the text as a time."""
    try:
        parse_time(text)
    except GoTimeError:
        return False
    return True


def _times(obj: object) -> Iterator[Found]:
    match obj:
        case ResourceSlice():
            for position, device in enumerate(obj.spec.devices):
                for index, taint in enumerate(device.taints):
                    at = f"spec.devices[{position}].taints[{index}]"
                    yield f"{at}.timeAdded", taint.time_added
        case ResourceClaim():
            yield from _of_claim(obj)
        case ResourceClaimTemplate():
            yield from _of_metadata("spec.metadata", obj.spec.metadata)
        case DeviceTaintRule():
            yield "spec.taint.timeAdded", obj.spec.taint.time_added
            yield from _of_conditions("status.conditions", obj.status.conditions)


def _of_claim(claim: ResourceClaim) -> Iterator[Found]:
    allocation = claim.status.allocation
    if allocation is not None:
        yield "status.allocation.allocationTimestamp", allocation.allocation_timestamp
    for position, device in enumerate(claim.status.devices):
        yield from _of_conditions(f"status.devices[{position}].conditions", device.conditions)


def _of_metadata(field: str, meta: ObjectMeta) -> Iterator[Found]:
    yield f"{field}.creationTimestamp", meta.creation_timestamp
    yield f"{field}.deletionTimestamp", meta.deletion_timestamp


def _of_conditions(field: str, conditions: tuple[Condition, ...]) -> Iterator[Found]:
    for position, condition in enumerate(conditions):
        yield f"{field}[{position}].lastTransitionTime", condition.last_transition_time
