"""
The slices of a document, as batches that the API accepts.

All formats share a slice without a node. A `SliceReader` reads the slices of one document: it
corrects names, reports what the publisher decides itself, and validates the rest by the API's own
rules before anything is published. An entry with a count is validated as one entry, not as
thousands of devices.

A driver cannot be named `example.com/gpu`; the rule that corrects such names is that of Karpenter's
driver, so that a document means the same to both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.hardware import names
from dryrack.hardware.config_formats.device_syntax import COUNT_MAX, expand_names, parse_device
from dryrack.hardware.config_formats.fields import (
    SourceValue,
    normalize_keys,
    read_fields,
    read_items,
    read_text,
)
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.source_paths import decode_value
from dryrack.hardware.config_formats.validation import validate_slice
from dryrack.hardware.inventory import Batch, EveryNode, PerDevice, SelectedNodes, ThisNode
from dryrack.kinds import shape
from dryrack.kinds.core import NodeSelector
from dryrack.kinds.resource import CounterSet, Device
from dryrack.kinds.shape import described
from dryrack.kinds.validation.names import DRIVER_NAME_BYTES_MAX, pool_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.hardware.config_formats.device_syntax import DeviceTemplate
    from dryrack.hardware.config_formats.report import Report
    from dryrack.hardware.inventory import Reach

# A document of the largest size has space for some ten thousand devices that are written out.
DEVICES_MAX = 100_000
EMPTY_DRIVER = "driver name cannot be empty"

_SCOPES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_SCOPE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
SPEC_FIELDS = ("driver", "pool", *_SCOPES, "devices", "sharedCounters")
_POOL_FIELDS = ("name", "generation", "resourceSliceCount")
_COUNTER_SET = shape.of(CounterSet)
_SELECTOR = shape.of(NodeSelector)


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """One entry of the list of devices, decoded."""

    template: DeviceTemplate
    device: Device

    def names(self) -> Iterator[str]:
        """Yield the names of the devices that the entry defines."""
        return expand_names(self.device, self.template.count)


@dataclass(frozen=True, slots=True)
class ParsedSlice:
    """A batch, with the entries and counter sets that it is made of."""

    batch: Batch
    entries: tuple[DeviceEntry, ...]
    counters: tuple[tuple[SourceValue, CounterSet], ...]


class SliceReader:
    """Reads the slices of one document."""

    def __init__(self, report: Report, *, driver: str, override: str) -> None:
        self._report = report
        self._driver = driver
        self._override = override
        self._devices = 0

    def read(self, source: SourceValue, known: Sequence[str] = SPEC_FIELDS) -> ParsedSlice:
        """Return a slice, and report its problems."""
        report = self._report
        fields = read_fields(source, known, report)
        devices = fields.get("devices")
        if "sharedCounters" not in fields:
            if devices is None and isinstance(source.value, Mapping):
                fix = "list at least one device under devices"
                report.refuse(source.path, "the slice has no devices", fix)
            elif devices is not None and devices.value in ([], ()):
                report.refuse(devices.path, "devices is empty", "list at least one device")
        templates = [
            template
            for each in read_items(devices, report)
            if (template := parse_device(each, report)) is not None
        ]
        sets = read_items(fields.get("sharedCounters"), report)
        reach = _read_node_scope(source, fields, report)
        entries = []
        for template in templates:
            document = SourceValue(template.document, template.source.path)
            device = decode_value(document, Device, template.source, report)
            if device is not None:
                entries.append(DeviceEntry(template, device))
        counters = []
        for each in sets:
            document = SourceValue(normalize_keys(each, _COUNTER_SET, report), each.path)
            counter_set = decode_value(document, CounterSet, each, report)
            if counter_set is not None:
                counters.append((each, counter_set))
        batch = Batch(
            driver=self._find_driver(fields, templates),
            pool=self._read_pool(fields, is_shared=not isinstance(reach, ThisNode)),
            reach=reach,
            devices=tuple(self._expand(entries)),
            shared_counters=tuple(counter_set for _, counter_set in counters),
        )
        if entries and counters:
            report.remark(
                Topic.PUBLISHER,
                fields["sharedCounters"].path,
                "the API requires separate slices for counters; dryrack publishes them separately",
                "move the counters to another slice, if other programs read this file",
            )
        parsed = ParsedSlice(batch, tuple(entries), tuple(counters))
        validate_slice(source, parsed, report)
        return parsed

    def _expand(self, entries: Sequence[DeviceEntry]) -> Iterator[Device]:
        """Yield the devices of all entries, until the document has too many."""
        for entry in entries:
            self._devices += entry.template.count or 1
            if self._devices > DEVICES_MAX:
                what = f"the document has more than {DEVICES_MAX} devices"
                fix = f"reduce the count; one entry creates at most {COUNT_MAX} devices"
                self._report.refuse(entry.template.source.path, what, fix)
                return
            device = entry.device
            for name in entry.names():
                yield device if name == device.name else replace(device, name=name)

    def _find_driver(
        self, fields: dict[str, SourceValue], templates: Sequence[DeviceTemplate]
    ) -> str:
        """Return the driver of the slice; refuse devices that name another one."""
        drivers = [each.driver for each in templates if each.driver is not None]
        of_devices = [normalize_driver(each, self._report) for each in drivers]
        of_slice = normalize_driver(fields["driver"], self._report) if "driver" in fields else ""
        expected = of_slice
        for source in drivers:
            if not isinstance(source.value, str) or not source.value:
                continue
            driver = names.driver_name(source.value)
            expected = expected or driver
            if driver != expected:
                what = f"driver {source.value!r} differs from the driver of the slice, {expected!r}"
                self._report.refuse(source.path, what, "put the device into a separate slice")
            else:
                what = "the API has no driver field in a device; the driver is a field of the slice"
                self._report.remark(Topic.SPELLING, source.path, what, "leave it out")
        return self._override or of_slice or next(filter(None, of_devices), "") or self._driver

    def _read_pool(self, fields: dict[str, SourceValue], *, is_shared: bool) -> str:
        """Return the name of the pool; report the fields that only its publisher can set."""
        if "pool" not in fields:
            return ""
        pool = read_fields(fields["pool"], _POOL_FIELDS, self._report)
        for name in ("resourceSliceCount", "generation"):
            source = pool.get(name)
            if source is not None and (
                not isinstance(source.value, int) or isinstance(source.value, bool)
            ):
                what = f"expected a whole number, got {described(source.value)}"
                self._report.refuse(source.path, what, "leave it out")
                pool.pop(name)
        count = pool.get("resourceSliceCount")
        if count is not None and count.value != 1:
            what = f"resourceSliceCount is {count.value}, but this entry creates one slice"
            self._report.remark(Topic.SLICE_COUNT, count.path, what, "set it to 1, or remove it")
        generation = pool.get("generation")
        if generation is not None and generation.value not in (0, 1):
            what = "dryrack sets the generation of a pool"
            self._report.remark(Topic.PUBLISHER, generation.path, what, "leave it out")
        name = read_text(pool.get("name"), self._report)
        if not name:
            return ""
        for problem in pool_name("", name):
            fix = problem.fix or "use lower case letters, digits, '-' and '.'"
            self._report.refuse(pool["name"].path, problem.message, fix)
        if not is_shared:
            self._report.remark(
                Topic.POOL_NAME,
                pool["name"].path,
                f"nodes with the same pool name {name!r} would share its devices,"
                f" so dryrack names the pool of each node <node>/{name}",
                "remove the name; the pool then has the name of the node",
            )
        return name


def normalize_driver(source: SourceValue, report: Report) -> str:
    """Return the driver name as the API allows it, or "" if it is missing or invalid."""
    written = read_text(source, report)
    if not written:
        return ""
    if len(written.encode()) > DRIVER_NAME_BYTES_MAX:
        what = (
            f"driver name '{written[:20]}…' must be a valid DNS subdomain"
            f" of no more than {DRIVER_NAME_BYTES_MAX} bytes"
        )
        report.refuse(source.path, what, "choose a shorter name")
        return ""
    better = names.driver_name(written)
    if better != written:
        what = f"driver name {written!r} is not allowed by the API"
        report.remark(Topic.DRIVER_NAME, source.path, what, f"write {better!r}")
    return better


def _read_node_scope(
    source: SourceValue, fields: Mapping[str, SourceValue], report: Report
) -> Reach:
    """Return which nodes can use the devices of a slice."""
    stated = [name for name in _SCOPES if name in fields]
    if len(stated) > 1:
        what = f"{_ONE_SCOPE} is required, but multiple fields are set"
        report.refuse(source.path, what, f"keep one of {', '.join(stated)}")
        return ThisNode()
    name = stated[0] if stated else ""
    if name in ("allNodes", "perDeviceNodeSelection"):
        value, path = fields[name]
        if value is False:
            report.refuse(path, "must be either unset or set to true", "leave it out")
            return ThisNode()
        if value is not True:
            what = f"expected true, got {described(value)}"
            report.refuse(path, what, "write true without quotes, or leave it out")
            return ThisNode()
    match name:
        case "allNodes":
            what = "allNodes and a node selector are both set; all nodes get the devices"
            fix = "remove allNodes, unless all nodes can use the devices"
            report.remark(Topic.ALL_NODES, fields[name].path, what, fix)
            return EveryNode()
        case "perDeviceNodeSelection":
            return PerDevice()
        case "nodeSelector":
            written = fields[name]
            document = SourceValue(normalize_keys(written, _SELECTOR, report), written.path)
            selector = decode_value(document, NodeSelector, written, report)
            return ThisNode() if selector is None else SelectedNodes(selector)
        case "nodeName":
            what = "dryrack sets the name of the node that matches"
            report.remark(Topic.PUBLISHER, fields[name].path, what, "leave it out")
    return ThisNode()
