"""
A pool as the slices that publish it.

The API limits what one slice may hold, so a pool may need several; they state one count and one
generation. Which slices a pool has follows from the pool alone: whoever cuts it, and however
often, gets the same names. Slices of one origin sort by name in the order of their devices,
because consumers try devices in that order.

A name begins as people read it, `<node>-devices-<mapping>`, and ends with a digest of all that
the slice is for. The words alone would not do: node `a`, mapping `b-devices-c` and node
`a-devices-b`, mapping `c` read the same, and both may be longer than a name can be.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from dryrack.hardware.inventory import EveryNode, PerDevice, SelectedNodes, ThisNode
from dryrack.kinds.meta import ObjectMeta, OwnerReference
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

MANAGED_BY = "kwok.x-k8s.io/managed-by"
MANAGER = "dra-kwok-driver"
NODE = "kwok.x-k8s.io/node"
MAPPING = "kwok.x-k8s.io/mapping"
SOURCE = "dryrack.dev/source"
"""Whose devices they are; read again where the source itself cannot be read."""

FIRST_GENERATION = 1

_NAME_MAX = 253
_LABEL_MAX = 63
# 48 bits: two of the slices that share all readable parts of their names, or of the labels that
# are cut alike, meet with a chance of one in 10^14.
_DIGEST_DIGITS = 12
_NUMBER_DIGITS = 3


def slices_of(pool: Pool, *, owner: OwnerReference | None = None) -> tuple[ResourceSlice, ...]:
    """All slices of the pool, as they are when it is published first; none if it has no devices."""
    specs = tuple(_specs(pool))
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
    """A reference to the node with whose end its slices end."""
    return OwnerReference(api_version="v1", kind="Node", name=name, uid=uid, controller=True)


def source_label(source: Source) -> str:
    """The value of the label that tells whose devices a slice has."""
    # No namespace has a dot, so that different names stay different.
    return label_text(f"{source.kind}.{source.name.replace('/', '.')}")


def label_text(text: str) -> str:
    """A value for a label: the text itself, or if no label can hold it one like it."""
    if text and not label_value(text):
        return text
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[: _LABEL_MAX - _DIGEST_DIGITS - 1]
    return "-".join(part for part in (readable.strip("-._"), _digest(text)) if part)


def _specs(pool: Pool) -> Iterator[tuple[str, Mapping[str, str], ResourceSliceSpec]]:
    for section in pool.sections:
        labels = _labels(pool, section)
        for role, specs in (("counters", _counters(section)), ("devices", _devices(section))):
            for number, spec in enumerate(specs):
                name = _name(pool, section, role=role, number=number)
                yield name, labels, _placed(replace(spec, driver=pool.driver), pool)


def _counters(section: Section) -> Iterator[ResourceSliceSpec]:
    sets = section.shared_counters
    for start in range(0, len(sets), COUNTER_SETS_MAX):
        yield ResourceSliceSpec(shared_counters=sets[start : start + COUNTER_SETS_MAX])


def _devices(section: Section) -> Iterator[ResourceSliceSpec]:
    devices = section.devices
    # One limit for all slices of a section: a taint on one device then moves no other's slice
    # twice.
    advanced = any(map(is_advanced, devices))
    step = DEVICES_MAX_WITH_ADVANCED_FEATURES if advanced else DEVICES_MAX
    for start in range(0, len(devices), step):
        yield ResourceSliceSpec(devices=devices[start : start + step])


def _placed(spec: ResourceSliceSpec, pool: Pool) -> ResourceSliceSpec:
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


def _labels(pool: Pool, section: Section) -> Mapping[str, str]:
    labels = {
        MANAGED_BY: MANAGER,
        MAPPING: label_text(_mapping(section)),
        SOURCE: source_label(section.origin.source),
    }
    return labels | {NODE: label_text(pool.node)} if pool.node else labels


def _mapping(section: Section) -> str:
    return section.origin.part or section.origin.name


def _name(pool: Pool, section: Section, *, role: str, number: int) -> str:
    origin = section.origin
    whose = (pool.driver, pool.name, pool.node, origin.kind, origin.name, origin.part, role)
    suffix = f"-{number:0{_NUMBER_DIGITS}x}{_digest(*whose)}"
    mapping = re.sub(r"[^a-z0-9.-]+", "-", _mapping(section).lower())
    words = "-".join(part for part in (pool.node, role, mapping) if part)
    # Dots next to dots or hyphens are no name; the digest tells apart what becomes alike.
    words = re.sub(r"(?<![.-])[.-]*\.[.-]*", ".", words)[: _NAME_MAX - len(suffix)]
    return words.strip("-.") + suffix


def _digest(*parts: str) -> str:
    # With its length before each, different parts never make one text.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_DIGITS]
