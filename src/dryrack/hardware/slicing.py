"""
The ResourceSlices that publish a pool.

The API limits the size of a slice, so a pool may need several; all have the same count and
generation. The slices follow from the pool alone: each publisher gets the same names for it, each
time. Slices of one origin sort by name in the order of their devices, because consumers try devices
in that order.

A name begins with a readable part, `<node>-devices-<mapping>`, and ends with a digest of everything
that identifies the slice. The readable part is not unique: node `a`, mapping `b-devices-c` and node
`a-devices-b`, mapping `c` read the same, and both may be longer than a name can be.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from dryrack.hardware.inventory import EveryNode, PerDevice, SelectedNodes, ThisNode
from dryrack.kinds.meta import ObjectMeta, OwnerReference
from dryrack.kinds.paths import get
from dryrack.kinds.resource import ResourcePool, ResourceSlice, ResourceSliceSpec
from dryrack.kinds.validation.names import label_value
from dryrack.kinds.validation.slices import (
    COUNTER_SETS_MAX,
    DEVICES_MAX,
    DEVICES_MAX_WITH_ADVANCED_FEATURES,
    is_advanced,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.hardware.inventory import Pool, Section, Source
    from dryrack.kinds.raw import Raw

MANAGED_BY = "kwok.x-k8s.io/managed-by"
MANAGER = "dra-kwok-driver"
NODE = "kwok.x-k8s.io/node"
MAPPING = "kwok.x-k8s.io/mapping"
SOURCE = "dryrack.dev/source"
"""The label with the source of the devices, for publishers that cannot read the source itself."""

FIRST_GENERATION = 1
# The labels of slices that dryrack publish and dryrack plugin manage.
_OWN_LABELS = {(MANAGED_BY, MANAGER), ("app.kubernetes.io/managed-by", "dryrack-plugin")}


def is_managed_slice(each: Raw) -> bool:
    """Return whether a publisher of dryrack manages a slice."""
    return not _OWN_LABELS.isdisjoint(get(each["metadata"], "labels", {}).items())


_NAME_MAX = 253
_LABEL_MAX = 63
# 48 bits: two slices whose names have the same readable part, or two labels that are cut to the
# same text, collide with a probability of one in 10^14.
_DIGEST_DIGITS = 12
_NUMBER_DIGITS = 3


def slices_of(pool: Pool, *, owner: OwnerReference | None = None) -> tuple[ResourceSlice, ...]:
    """Return all slices of a pool for its first publication; none if it has no devices."""
    specs: list[tuple[str, Mapping[str, str], ResourceSliceSpec]] = []
    for section in pool.sections:
        labels = {
            MANAGED_BY: MANAGER,
            MAPPING: label_text(section.origin.part or section.origin.name),
            SOURCE: source_label(section.origin.source),
        }
        if pool.node:
            labels[NODE] = label_text(pool.node)
        for role, parts in (("counters", _counters(section)), ("devices", _devices(section))):
            for number, part in enumerate(parts):
                name = _name(pool, section, role=role, number=number)
                specs.append((name, labels, _set_scope(replace(part, driver=pool.driver), pool)))
    size = ResourcePool(
        name=pool.name, generation=FIRST_GENERATION, resource_slice_count=len(specs)
    )
    owners = () if owner is None else (owner,)
    return tuple(
        ResourceSlice(
            metadata=ObjectMeta(name=name, labels=labels, owner_references=owners),
            spec=replace(spec, pool=size),
        )
        for name, labels, spec in specs
    )


def node_owner(name: str, uid: str) -> OwnerReference:
    """Return an owner reference to a node, so that its slices are deleted with it."""
    return OwnerReference(api_version="v1", kind="Node", name=name, uid=uid, controller=True)


def source_label(source: Source) -> str:
    """Return the value of the label with the source of a slice."""
    # A namespace has no dot, so that different names stay different.
    return label_text(f"{source.kind}.{source.name.replace('/', '.')}")


def label_text(text: str) -> str:
    """Return a text as the value of a label; if it is not allowed, a similar unique one."""
    if text and not label_value(text):
        return text
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[: _LABEL_MAX - _DIGEST_DIGITS - 1]
    return "-".join(part for part in (readable.strip("-._"), _digest(text)) if part)


def _counters(section: Section) -> Iterator[ResourceSliceSpec]:
    sets = section.shared_counters
    for start in range(0, len(sets), COUNTER_SETS_MAX):
        yield ResourceSliceSpec(shared_counters=sets[start : start + COUNTER_SETS_MAX])


def _devices(section: Section) -> Iterator[ResourceSliceSpec]:
    devices = section.devices
    # One limit for all slices of a section: then a taint on one device moves other devices to
    # other slices only once.
    advanced = any(map(is_advanced, devices))
    step = DEVICES_MAX_WITH_ADVANCED_FEATURES if advanced else DEVICES_MAX
    for start in range(0, len(devices), step):
        yield ResourceSliceSpec(devices=devices[start : start + step])


def _set_scope(spec: ResourceSliceSpec, pool: Pool) -> ResourceSliceSpec:
    match pool.reach:
        case ThisNode():
            return replace(spec, node_name=pool.node)
        case EveryNode():
            return replace(spec, all_nodes=True)
        case SelectedNodes(selector):
            return replace(spec, node_selector=selector)
        case PerDevice():
            return replace(spec, per_device_node_selection=True)
        case _:
            assert_never(pool.reach)


def _name(pool: Pool, section: Section, *, role: str, number: int) -> str:
    origin = section.origin
    identity = (pool.driver, pool.name, pool.node, origin.kind, origin.name, origin.part, role)
    suffix = f"-{number:0{_NUMBER_DIGITS}x}{_digest(*identity)}"
    mapping = re.sub(r"[^a-z0-9.-]+", "-", (origin.part or origin.name).lower())
    readable = "-".join(part for part in (pool.node, role, mapping) if part)
    # A name has no dots next to dots or hyphens; the digest keeps different names different.
    readable = re.sub(r"(?<![.-])[.-]*\.[.-]*", ".", readable)[: _NAME_MAX - len(suffix)]
    return readable.strip("-.") + suffix


def _digest(*parts: str) -> str:
    # The length of each part makes the joined text unique.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]
