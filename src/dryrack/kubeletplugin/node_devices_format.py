"""
NodeDevices as one of the formats of device configuration.

A NodeDevices document names device kinds, which define the devices of a node; the other formats
list them. On the way to another format, the kinds list their devices, without the attributes that
differ between nodes. On the way back, each list must be one that a device kind defines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.hardware import EVERY_NODE, INSTANCE_TYPE, Batch, ThisNode, of_labels
from dryrack.hardware import config_formats as formats
from dryrack.hardware.config_formats import (
    DeviceConfiguration,
    DevicePool,
    Rewritten,
    read_configuration,
    write_configuration,
)
from dryrack.kubeletplugin.device_kind import DevicesError, PartitionableKind
from dryrack.kubeletplugin.devices_file import (
    API_VERSION,
    KIND,
    DevicesFileError,
    is_node_devices,
    options_in,
)
from dryrack.kubeletplugin.registry import CATALOGUE, read_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.core import NodeSelectorTerm
    from dryrack.kinds.documents import Document
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import CounterSet, Device
    from dryrack.kubeletplugin.device_kind import DeviceKind, KindOptions

FORMAT = "nodedevices"
_SIMPLE_KINDS = ("fake", "gpu", "net", "cpu", "file")
# Any two nodes: what differs between them belongs to a node.
_NODES = ("node-1", "node-2")


def format_of(document: Document) -> str:
    """Return the format of a document with device configuration; "" for another document."""
    return FORMAT if is_node_devices(document) else formats.format_of(document)


def rewrite(
    document: Document, target: str, content: str, catalogue: Callable[[], Catalogue]
) -> Rewritten:
    """Return a document with device configuration in another format."""
    if is_node_devices(document):
        return write_configuration(_read(document, catalogue), target)
    whole = read_configuration(document, content)
    return _write(whole, catalogue) if target == FORMAT else write_configuration(whole, target)


def _read(document: Document, catalogue: Callable[[], Catalogue]) -> DeviceConfiguration:
    """Return the devices that the kinds of a document define."""
    whole = DeviceConfiguration(document)
    try:
        entries = options_in(document)
    except DevicesFileError as error:
        whole.problems += error.problems
        return whole
    pools: list[DevicePool] = []
    for index, options in enumerate(entries):
        path = ("devices", index)
        try:
            kinds = read_devices([_text_of(options)], catalogue=catalogue)
        except DevicesError as error:
            whole.problems.append(document.problem(path, str(error)))
            continue
        is_type = options.kind == CATALOGUE and options.name in catalogue().instance_types
        terms = of_labels({INSTANCE_TYPE: options.name}) if is_type else (EVERY_NODE,)
        batches = tuple(_batch(kind) for kind in kinds)
        lost = {name for kind in kinds for name in _differing(kind)}
        if lost:
            message = f"{', '.join(sorted(lost))}: left out, because they differ between nodes"
            whole.lose(path, message)
        name = options.name.lower() if is_type else options.kind
        pools.append(
            DevicePool(f"{name.replace('.', '-').replace('_', '-')}-{index}", terms, batches)
        )
    whole.pools = pools
    return whole


def _text_of(options: KindOptions) -> str:
    """Return the options as one value of `--devices`."""
    head = options.kind
    if options.name or options.count is not None:
        head += f":{options.name or options.count}"
    return ",".join((head, *(f"{name}={value}" for name, value in options.options.items())))


def _counters(kind: DeviceKind) -> tuple[CounterSet, ...]:
    return kind.counter_sets() if isinstance(kind, PartitionableKind) else ()


def _differing(kind: DeviceKind) -> set[str]:
    """Return the attributes of the devices that have another value on another node."""
    one, other = (kind.devices(node) for node in _NODES)
    return {
        name
        for first, second in zip(one, other, strict=True)
        for name, value in first.attributes.items()
        if second.attributes.get(name) != value
    }


def _devices(kind: DeviceKind) -> tuple[Device, ...]:
    """Return the devices without the attributes that differ between nodes."""
    lost = _differing(kind)
    return tuple(_without(each, lost) for each in kind.devices(_NODES[0]))


def _without(device: Device, names: set[str]) -> Device:
    kept = {name: value for name, value in device.attributes.items() if name not in names}
    return replace(device, attributes=kept)


def _batch(kind: DeviceKind) -> Batch:
    return Batch(kind.driver, "", ThisNode(), _devices(kind), _counters(kind))


def _write(whole: DeviceConfiguration, catalogue: Callable[[], Catalogue]) -> Rewritten:
    """Return the NodeDevices document whose kinds define the devices."""
    entries: list[Raw] = []
    # A format can have the drivers of a node in several parts.
    merged: dict[tuple[NodeSelectorTerm, ...], DevicePool] = {}
    for pool in whole.pools:
        there = merged.setdefault(pool.terms, pool._replace(batches=()))
        merged[pool.terms] = there._replace(batches=(*there.batches, *pool.batches))
    for pool in merged.values():
        found = _entries_of(pool, catalogue)
        if found is None:
            message = f"{pool.name}: no device kind defines these devices"
            fix = "write a device kind, or keep this format; see: dryrack hardware list"
            whole.refuse(message, fix)
            continue
        entries += found
        if pool.terms != (EVERY_NODE,):
            message = f"{pool.name}: the node selector is dropped: NodeDevices are for the node"
            whole.lose((), f"{message} that they are given to")
    if whole.problems:
        return Rewritten(losses=tuple(whole.losses), problems=tuple(whole.problems))
    made = {"apiVersion": API_VERSION, "kind": KIND, "devices": entries}
    return Rewritten((made,), tuple(whole.losses))


def _entries_of(pool: DevicePool, catalogue: Callable[[], Catalogue]) -> list[Raw] | None:
    """Return the entries that define all devices of a pool; None if there are none."""
    name = _instance_type(pool.terms)
    if name and name in catalogue().instance_types:
        for options in ({}, {"mig": True}):
            entry: Raw = {"kind": CATALOGUE, "name": name}
            text = f"{CATALOGUE}:{name}" + (",mig=true" if options else "")
            if _defines(text, pool.batches, catalogue):
                return [entry | ({"options": options} if options else {})]
    entries = []
    for batch in pool.batches:
        entry_of_batch = next(_simple_entries(batch, catalogue), None)
        if entry_of_batch is None:
            return None
        entries.append(entry_of_batch)
    return entries


def _instance_type(terms: Sequence[NodeSelectorTerm]) -> str:
    """Return the instance type that the terms require; "" if they require anything else."""
    if len(terms) == 1 and len(terms[0].match_expressions) == 1 and not terms[0].match_fields:
        [each] = terms[0].match_expressions
        if each.key == INSTANCE_TYPE and each.operator == "In" and len(each.values) == 1:
            return each.values[0]
    return ""


def _simple_entries(batch: Batch, catalogue: Callable[[], Catalogue]) -> Iterator[Raw]:
    for kind in _SIMPLE_KINDS:
        text = f"{kind}:{len(batch.devices)}"
        if _defines(text, (batch,), catalogue):
            yield {"kind": kind, "count": len(batch.devices)}


def _defines(text: str, batches: Sequence[Batch], catalogue: Callable[[], Catalogue]) -> bool:
    """Return whether a value of `--devices` defines the same devices."""
    try:
        kinds = read_devices([text], catalogue=catalogue)
    except DevicesError:
        return False
    if {each.driver for each in kinds} != {each.driver for each in batches}:
        return False
    own = {each.driver: each for each in kinds}
    return len(kinds) == len(batches) and all(
        tuple(_without(each, _differing(own[batch.driver])) for each in batch.devices)
        == _devices(own[batch.driver])
        and batch.shared_counters == _counters(own[batch.driver])
        for batch in batches
    )
