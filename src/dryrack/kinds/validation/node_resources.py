"""Allocatable resources of a node that its devices use (DRANodeAllocatableResources)."""

from collections.abc import Iterator

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import Device, NodeAllocatableMapping, NodeAllocatableOverhead
from dryrack.kinds.validation.problems import FieldProblem, Reason, Token, invalid, required

_NATIVE = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def node_allocatable_resources(field: str, device: Device) -> Iterator[FieldProblem]:
    """Yield the problems of `nodeAllocatableResources`."""
    resources = device.node_allocatable_resources
    for name in sorted(resources):
        at = f"{field}[{name}]"
        given = resources[name]
        if name not in _NATIVE and not name.startswith(_HUGE_PAGES):
            fix = f"use {', '.join(_NATIVE)} or {_HUGE_PAGES}<size>"
            yield invalid(at, Token(name), "must be a node allocatable resource name", fix=fix)
        if given.mapping is None and given.overhead is None:
            yield required(at, "at least one of mapping or overhead must be set")
        if given.mapping is not None:
            yield from _mapping_problems(f"{at}.mapping", given.mapping, device)
        if given.overhead is not None:
            yield from _overhead(f"{at}.overhead", given.overhead)


def _mapping_problems(
    field: str, mapping: NodeAllocatableMapping, device: Device
) -> Iterator[FieldProblem]:
    key = mapping.capacity_key
    if key is not None:
        if not key:
            yield invalid(f"{field}.capacityKey", "", "capacityKey must not be an empty string")
        elif key not in device.capacity:
            yield FieldProblem(Reason.NOT_FOUND, f"{field}.capacityKey", Token(key))
        if mapping.capacity_multiplier is None:
            detail = "capacityMultiplier is required when capacityKey is set"
            yield required(f"{field}.capacityMultiplier", detail)
        else:
            yield from _positive(f"{field}.capacityMultiplier", mapping.capacity_multiplier)
    if mapping.device_multiplier is not None:
        yield from _positive(f"{field}.deviceMultiplier", mapping.device_multiplier)
    if mapping.capacity_multiplier is not None and key is None:
        detail = "capacityKey is required when capacityMultiplier is set"
        yield required(f"{field}.capacityKey", detail)


def _positive(field: str, value: Quantity) -> Iterator[FieldProblem]:
    if value.sign <= 0:
        yield invalid(field, str(value), "must be positive")


def _overhead(field: str, overhead: NodeAllocatableOverhead) -> Iterator[FieldProblem]:
    if overhead.per_pod is None and overhead.per_container is None:
        yield invalid(field, "", "at least one of perPod or perContainer must be set")
    for name, value in (("perPod", overhead.per_pod), ("perContainer", overhead.per_container)):
        if value is not None and value.sign < 0:
            yield invalid(f"{field}.{name}", str(value), "must be non-negative")
