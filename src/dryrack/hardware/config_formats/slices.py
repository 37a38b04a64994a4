"""
The slices of a document, as batches that the API would take.

All dialects have in common a slice without a node. A `SliceReader` reads those of one document:
it puts the names right, says what the publisher decides itself, and has the rest judged by the
API's own rules before anything is published. Counts are judged as one entry, not as thousands of
devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dryrack.hardware.config_formats import drivers, reaches
from dryrack.hardware.config_formats.decoding import decoded
from dryrack.hardware.config_formats.fields import Given, fields, folded, items, text
from dryrack.hardware.config_formats.forms import COUNT_MAX, template
from dryrack.hardware.config_formats.judging import judge
from dryrack.hardware.config_formats.pieces import Entry, Piece
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.inventory import Batch, ThisNode
from dryrack.kinds import shape
from dryrack.kinds.resource import CounterSet, Device
from dryrack.kinds.shape import described
from dryrack.kinds.validation.names import pool_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.hardware.config_formats.forms import Template
    from dryrack.hardware.config_formats.report import Report

# A document of the largest size has room for some ten thousand devices that are written out.
DEVICES_MAX = 100_000

SPEC_FIELDS = (
    "driver",
    "pool",
    "nodeName",
    "nodeSelector",
    "allNodes",
    "perDeviceNodeSelection",
    "devices",
    "sharedCounters",
)
_POOL_FIELDS = ("name", "generation", "resourceSliceCount")
_COUNTER_SET = shape.of(CounterSet)


class SliceReader:
    """Reads the slices of one document."""

    def __init__(self, report: Report, *, driver: str, override: str) -> None:
        self._report = report
        self._driver = driver
        self._override = override
        self._devices = 0

    def read(self, given: Given, known: Sequence[str] = SPEC_FIELDS) -> Piece:
        """A slice; what is wrong with it is in the report."""
        found = fields(given, known, self._report)
        templates = self._templates(given, found)
        sets = items(found.get("sharedCounters"), self._report)
        reach = reaches.reach(given, found, self._report)
        entries = tuple(self._entries(templates))
        counters = tuple(self._counters(sets))
        batch = Batch(
            driver=self._driver_of(found, templates),
            pool=self._pool(found, is_shared=not isinstance(reach, ThisNode)),
            reach=reach,
            devices=tuple(self._expanded(entries)),
            shared_counters=tuple(each for _, each in counters),
        )
        if entries and counters:
            self._report.remark(
                Topic.PUBLISHER,
                found["sharedCounters"].path,
                "the API requires separate slices for counters; dryrack publishes them separately",
                "move the counters to another slice, if other programs read this file",
            )
        piece = Piece(batch, entries, counters)
        judge(given, piece, self._report)
        return piece

    def _templates(self, given: Given, found: dict[str, Given]) -> list[Template]:
        devices = found.get("devices")
        if devices is None and "sharedCounters" not in found and isinstance(given.value, Mapping):
            fix = "list at least one device under devices"
            self._report.refuse(given.path, "the slice has no devices", fix)
        elif devices is not None and devices.value in ([], ()) and "sharedCounters" not in found:
            fix = "list at least one device"
            self._report.refuse(devices.path, "devices is empty", fix)
        made = (template(each, self._report) for each in items(devices, self._report))
        return [each for each in made if each is not None]

    def _entries(self, templates: Sequence[Template]) -> Iterator[Entry]:
        for each in templates:
            device = decoded(
                Given(each.document, each.given.path), Device, each.given, self._report
            )
            if device is not None:
                yield Entry(each, device)

    def _counters(self, given: Sequence[Given]) -> Iterator[tuple[Given, CounterSet]]:
        for each in given:
            document = Given(folded(each, _COUNTER_SET, self._report), each.path)
            found = decoded(document, CounterSet, each, self._report)
            if found is not None:
                yield each, found

    def _expanded(self, entries: Sequence[Entry]) -> Iterator[Device]:
        for entry in entries:
            self._devices += entry.template.count or 1
            if self._devices > DEVICES_MAX:
                what = f"the document has more than {DEVICES_MAX} devices"
                fix = f"reduce the count; one entry creates at most {COUNT_MAX} devices"
                self._report.refuse(entry.template.given.path, what, fix)
                return
            device = entry.device
            for name in entry.names():
                yield device if name == device.name else replace(device, name=name)

    def _driver_of(self, found: dict[str, Given], templates: Sequence[Template]) -> str:
        stated = [drivers.sanitised(each, self._report) for each in _drivers(templates)]
        of_slice = drivers.sanitised(found["driver"], self._report) if "driver" in found else ""
        drivers.agree(of_slice, templates, self._report)
        return self._override or of_slice or next(filter(None, stated), "") or self._driver

    def _pool(self, found: dict[str, Given], *, is_shared: bool) -> str:
        if "pool" not in found:
            return ""
        pool = fields(found["pool"], _POOL_FIELDS, self._report)
        self._stated(pool)
        name = text(pool.get("name"), self._report)
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

    def _stated(self, pool: dict[str, Given]) -> None:
        """Check the fields of a pool that only its publisher can set."""
        for name in ("resourceSliceCount", "generation"):
            given = pool.get(name)
            if given is not None and (
                not isinstance(given.value, int) or isinstance(given.value, bool)
            ):
                what = f"expected a whole number, got {described(given.value)}"
                self._report.refuse(given.path, what, "leave it out")
                pool.pop(name)
        count = pool.get("resourceSliceCount")
        if count is not None and count.value != 1:
            what = f"resourceSliceCount is {count.value}, but this entry creates one slice"
            self._report.remark(Topic.SLICE_COUNT, count.path, what, "set it to 1, or remove it")
        generation = pool.get("generation")
        if generation is not None and generation.value not in (0, 1):
            what = "dryrack sets the generation of a pool"
            self._report.remark(Topic.PUBLISHER, generation.path, what, "leave it out")


def _drivers(templates: Sequence[Template]) -> list[Given]:
    return [each.driver for each in templates if each.driver is not None]
