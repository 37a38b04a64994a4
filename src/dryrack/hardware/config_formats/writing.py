"""
Device configuration in another format.

A document of any format is read into assignments of devices to nodes, and these are written in the
format that is asked for: both documents publish the same devices. What a format has no place for is
a loss, with the path of the field; a document whose devices the format cannot publish is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from dryrack.hardware import names
from dryrack.hardware.config_formats.document_readers import (
    find_config_key,
    remarked_config,
    remarked_dra_config,
    remarked_overlay,
)
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.inventory import EveryNode, PerDevice, SelectedNodes, ThisNode
from dryrack.hardware.node_terms import EVERY_NODE, without_kwok_label
from dryrack.kinds.core import NodeSelectorRequirement, NodeSelectorTerm
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.documents import Problem
from dryrack.kinds.paths import get
from dryrack.kinds.text.yaml_printing import print_block
from dryrack.kinds.text.yaml_text import documents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.hardware.config_formats.report import Read
    from dryrack.hardware.inventory import Batch, Overlay
    from dryrack.kinds.documents import Document
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

CONFIG_MAP = "configmap"
CONFIG_MAP_SHORT = "configmap-short"
NODE_OVERLAY = "nodeoverlay"
DRA_CONFIG = "draconfig"

KARPENTER_NAME = "dra-kwok-configmap"
KARPENTER_NAMESPACE = "karpenter"
_KEY = "config.yaml"
_PLAIN_TYPES = ("string", "bool", "int")
_OVERLAY_FIELDS = frozenset({"weight", "requirements", "resourceSlices"})
# Every node has this label; the API has no valid term that selects all nodes by a field.
_NAMED = NodeSelectorTerm(
    match_expressions=(NodeSelectorRequirement(key="kubernetes.io/hostname", operator="Exists"),)
)
_RENAMED = (Topic.ATTRIBUTE_NAME, Topic.DRIVER_NAME)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The documents of the new format; none if there are problems."""

    documents: tuple[Raw, ...] = ()
    losses: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


class DevicePool(NamedTuple):
    """Devices for the nodes of the terms."""

    name: str
    terms: tuple[NodeSelectorTerm, ...]
    batches: tuple[Batch, ...]


@dataclass(slots=True)
class DeviceConfiguration:
    """The contents of a document, and what a document of another format does not have of it."""

    document: Document
    pools: Sequence[DevicePool] = ()
    losses: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def lose(self, path: Path, message: str) -> None:
        self.losses.append(self.document.problem(path, message))

    def refuse(self, message: str, fix: str) -> None:
        self.problems.append(self.document.problem((), message, fix))


def format_of(document: Document) -> str:
    """Return the format of a document with device configuration; "" for another document."""
    match document.kind, document.api_version.partition("/")[0]:
        case "NodeOverlay", "karpenter.sh":
            spec = document.raw.get("spec")
            return NODE_OVERLAY if isinstance(spec, dict) and spec.get("resourceSlices") else ""
        case "DRAConfig", "test.karpenter.sh":
            return DRA_CONFIG
        case "ConfigMap", "v1":
            key = find_config_key(document.raw)
            text = "" if key is None else document.raw["data"][key]
            return (CONFIG_MAP_SHORT if _is_short(text) else CONFIG_MAP) if key else ""
    return ""


def read_configuration(document: Document, content: str) -> DeviceConfiguration:
    """Return the contents of a document; `content` is the text of its file."""
    source = format_of(document)
    read = _read(document, source, content)
    reading = read.to_reading()
    whole = DeviceConfiguration(document, problems=list(reading.problems))
    if reading.problems:
        return whole
    overlay = reading.overlay
    assignments = (overlay.assignment,) if overlay is not None else reading.assignments
    terms = [
        tuple(EVERY_NODE if term == _NAMED else term for term in without_kwok_label(each.terms))
        for each in assignments
    ]
    whole.losses += (
        Problem(read.file, *read.place(each), each.message, each.fix)
        for each in read.report.remarks
        if each.topic in _RENAMED
    )
    if any(len(each.terms) != len(new) for each, new in zip(assignments, terms, strict=True)):
        message = "the label kwok.x-k8s.io/node is left out: the publisher serves only KWOK nodes"
        whole.lose(read.within, message)
    whole.pools = [
        DevicePool(names.label(each.origin.part or each.origin.name), new, each.batches)
        for each, new in zip(assignments, terms, strict=True)
    ]
    _note_other_fields(whole, source, overlay)
    return whole


def write_configuration(whole: DeviceConfiguration, target: str) -> Rewritten:
    """Return the documents of a format that publish the devices."""
    if not whole.problems:
        write = {
            CONFIG_MAP: _write_config_map,
            CONFIG_MAP_SHORT: _write_config_map,
            NODE_OVERLAY: _write_overlays,
            DRA_CONFIG: _write_dra_configs,
        }[target]
        made = write(whole, is_short=target == CONFIG_MAP_SHORT)
        if not whole.problems:
            return Rewritten(tuple(made), tuple(whole.losses))
    return Rewritten(losses=tuple(whole.losses), problems=tuple(whole.problems))


def _read(document: Document, source: str, content: str) -> Read:
    if source == NODE_OVERLAY:
        return remarked_overlay(document)
    if source == DRA_CONFIG:
        return remarked_dra_config(document)
    key = find_config_key(document.raw)
    assert key is not None, "a ConfigMap with a configuration"
    return remarked_config(document, key, content=content)


def _is_short(text: str) -> bool:
    """Return whether a configuration is in the short form: counts, labels and bare values."""
    parsed = next(iter(documents(text)), None)
    value = getattr(parsed, "value", None)
    mappings = value.get("mappings") if isinstance(value, dict) else None
    for each in mappings if isinstance(mappings, list) else ():
        if not isinstance(each, dict):
            continue
        if "nodeSelector" in each:
            return True
        spec = each.get("resourceSlice")
        devices = spec.get("devices") if isinstance(spec, dict) else None
        for device in devices if isinstance(devices, list) else ():
            if isinstance(device, dict) and "count" in device:
                return True
    return False


def _note_other_fields(whole: DeviceConfiguration, source: str, overlay: Overlay | None) -> None:
    """Note what no other format than that of the document has."""
    raw = whole.document.raw
    if overlay is not None:
        if overlay.weight:
            message = "spec.weight is dropped: all matching configurations apply to a node"
            whole.lose(("spec", "weight"), message)
        for name in raw.get("spec", {}):
            if name not in _OVERLAY_FIELDS:
                whole.lose(("spec", name), f"spec.{name} is dropped")
    if source in (CONFIG_MAP, CONFIG_MAP_SHORT):
        for name in raw.get("data", {}):
            if name != find_config_key(raw):
                whole.lose(("data", name), f"data[{name}] is dropped")


def _write_config_map(whole: DeviceConfiguration, *, is_short: bool) -> list[Raw]:
    pools = whole.pools
    mappings = []
    taken: set[str] = set()
    for pool in pools:
        for batch in pool.batches:
            name = pool.name
            number = 1
            while name in taken:
                name = names.label(f"{pool.name}-{number}")
                number += 1
            taken.add(name)
            labels = _labels_of(pool.terms) if is_short else None
            nodes: Raw = (
                {"nodeSelectorTerms": _write_terms(pool.terms)}
                if labels is None
                else {"nodeSelector": {"matchLabels": labels}}
            )
            spec = {"driver": batch.driver, **_slice(batch, is_short=is_short)}
            mappings.append({"name": name, **nodes, "resourceSlice": spec})
    driver = pools[0].batches[0].driver if pools and pools[0].batches else ""
    metadata: Raw = {"name": KARPENTER_NAME, "namespace": KARPENTER_NAMESPACE}
    key = _KEY
    if whole.document.kind == "ConfigMap":
        metadata = get(whole.document.raw, "metadata", metadata)
        key = find_config_key(whole.document.raw) or _KEY
    text = print_block({"driver": driver, "mappings": mappings})
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}]


def _write_overlays(whole: DeviceConfiguration, *, is_short: bool) -> list[Raw]:
    pools = whole.pools
    # Of several overlays only the heaviest applies to a node, so equal terms share one overlay.
    by_terms: dict[str, list[DevicePool]] = {}
    for pool in pools:
        for term in pool.terms:
            if term.match_fields and term != EVERY_NODE:
                message = "a NodeOverlay selects nodes by labels, not by fields"
                whole.refuse(f"{pool.name}: {message}", "select them by a label")
            key = repr(term)
            by_terms.setdefault(key, []).append(pool._replace(terms=(term,)))
    merged = list(by_terms.values())
    for index, one in enumerate(merged):
        for other in merged[index + 1 :]:
            if not _are_disjoint(one[0].terms, other[0].terms):
                message = f"a node that matches {one[0].name} and {other[0].name} gets only the"
                message += " devices of one NodeOverlay, but of all ConfigMap mappings and pools"
                whole.lose((), message)
    made: list[Raw] = []
    for group in merged:
        name = (
            group[0].name
            if len(merged) > 1 or len(pools) > 1
            else names.label(whole.document.name or KARPENTER_NAME)
        )
        while any(each["metadata"]["name"] == name for each in made):
            name = f"{name}-{len(made)}"
        spec: Raw = {}
        term = group[0].terms[0]
        if term != EVERY_NODE:
            spec["requirements"] = [to_builtins(each) for each in term.match_expressions]
        spec["resourceSlices"] = [
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "spec": {"driver": batch.driver, **_slice(batch, is_short=is_short)},
            }
            for pool in group
            for batch in pool.batches
        ]
        made.append(
            {
                "apiVersion": "karpenter.sh/v1alpha1",
                "kind": "NodeOverlay",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
    return made


def _write_dra_configs(whole: DeviceConfiguration, *, is_short: bool) -> list[Raw]:
    pools = whole.pools
    by_driver: dict[str, list[Raw]] = {}
    published: list[tuple[DevicePool, Batch]] = []
    for pool in pools:
        for batch in pool.batches:
            if not isinstance(batch.reach, ThisNode):
                message = f"{pool.name}: the devices of a DRAConfig belong to one node"
                fix = "keep the ConfigMap for devices that several nodes share"
                whole.refuse(message, fix)
            for other, earlier in published:
                same = {each.name for each in earlier.devices} & {
                    each.name for each in batch.devices
                }
                if (
                    same
                    and earlier.driver == batch.driver
                    and not _are_disjoint(other.terms, pool.terms)
                ):
                    message = f"{other.name} and {pool.name} both have a device {min(same)}, and a"
                    message += " DRAConfig puts all devices of a driver and a node into one pool"
                    whole.refuse(message, "rename one of the devices")
            if batch.pool:
                message = f"{pool.name}: the pool is named after the driver, not {batch.pool!r}"
                whole.lose((), message)
            published.append((pool, batch))
        for driver in dict.fromkeys(batch.driver for batch in pool.batches):
            slices = [
                _slice(batch, is_short=False, bare=True)
                for batch in pool.batches
                if batch.driver == driver
            ]
            by_driver.setdefault(driver, []).append(
                {
                    "name": pool.name,
                    "nodeSelectorTerms": _write_terms(pool.terms),
                    "resourceSlices": slices,
                }
            )
    name = names.label(whole.document.name or KARPENTER_NAME)
    return [
        {
            "apiVersion": "test.karpenter.sh/v1alpha1",
            "kind": "DRAConfig",
            "metadata": {"name": name if len(by_driver) == 1 else names.label(f"{name}-{driver}")},
            "spec": {"driver": driver, "pools": each},
        }
        for driver, each in by_driver.items()
    ]


def _write_terms(terms: Sequence[NodeSelectorTerm]) -> list[Raw]:
    return [to_builtins(_NAMED if term == EVERY_NODE else term) for term in terms]


def _slice(batch: Batch, *, is_short: bool, bare: bool = False) -> Raw:
    """Return the spec of a slice; with `bare` only its devices."""
    spec: Raw = {}
    if not bare:
        if batch.pool:
            spec["pool"] = {"name": batch.pool}
        match batch.reach:
            case EveryNode():
                spec["allNodes"] = True
            case SelectedNodes(selector):
                spec["nodeSelector"] = to_builtins(selector)
            case PerDevice():
                spec["perDeviceNodeSelection"] = True
    devices = [to_builtins(each) for each in batch.devices]
    if devices:
        spec["devices"] = _shorten(devices) if is_short else devices
    if batch.shared_counters:
        spec["sharedCounters"] = [to_builtins(each) for each in batch.shared_counters]
    return spec


def _shorten(devices: Sequence[Raw]) -> list[Raw]:
    """Return entries with counts for devices that differ only in their numbers, and bare values."""
    entries: list[Raw] = []
    index = 0
    while index < len(devices):
        device = devices[index]
        base, _, number = str(device["name"]).rpartition("-")
        count = 0
        if base and number == "0":
            while index + count < len(devices):
                expected = {**device, "name": f"{base}-{count}"}
                if devices[index + count] != expected:
                    break
                count += 1
        entry = {"name": base, "count": count} if count > 1 else {"name": device["name"]}
        for key, value in device.items():
            if key == "attributes":
                entry[key] = {name: _bare_attribute(each) for name, each in value.items()}
            elif key == "capacity":
                entry[key] = {
                    name: each["value"] if list(each) == ["value"] else each
                    for name, each in value.items()
                }
            elif key != "name":
                entry[key] = value
        entries.append(entry)
        index += max(count, 1)
    return entries


def _bare_attribute(attribute: Raw) -> Any:
    ((kind, value),) = attribute.items()
    return value if kind in _PLAIN_TYPES else attribute


def _labels_of(terms: Sequence[NodeSelectorTerm]) -> dict[str, str] | None:
    """Return the labels that the terms require; None if they require anything else."""
    if len(terms) != 1 or terms[0].match_fields:
        return None
    labels: dict[str, str] = {}
    for each in terms[0].match_expressions:
        if each.operator != "In" or len(each.values) != 1 or each.key in labels:
            return None
        labels[each.key] = each.values[0]
    return labels or None


def _are_disjoint(one: Sequence[NodeSelectorTerm], other: Sequence[NodeSelectorTerm]) -> bool:
    """Return whether no node matches both, because a label would need two values."""

    def required(term: NodeSelectorTerm) -> dict[str, set[str]]:
        return {
            each.key: set(each.values) for each in term.match_expressions if each.operator == "In"
        }

    return all(
        any(
            not values & required(second).get(key, values)
            for key, values in required(first).items()
        )
        for first in one
        for second in other
    )
