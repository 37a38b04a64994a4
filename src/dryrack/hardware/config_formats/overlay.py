"""
NodeOverlay (karpenter.sh/v1alpha1) with the slices of its nodes in it.

Only the fields about devices are read; prices and the like are for Karpenter. An overlay without
slices defines no devices, and does not take precedence over other sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dryrack.hardware import names
from dryrack.hardware.config_formats import node_selectors
from dryrack.hardware.config_formats.fields import (
    SourceValue,
    read_entries,
    read_fields,
    read_items,
)
from dryrack.hardware.config_formats.parsed_slices import EMPTY_DRIVER, SliceReader
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.validation import validate_counters, validate_names
from dryrack.hardware.inventory import Assignment, Origin, Overlay, SourceKind
from dryrack.hardware.overlay_capacity import find_capacity_mismatches
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.shape import described

if TYPE_CHECKING:
    from dryrack.hardware.config_formats.parsed_slices import ParsedSlice
    from dryrack.hardware.config_formats.report import Report

WEIGHT_MAX = 10_000

_SLICE = ("apiVersion", "kind", "metadata", "spec")
_GROUP = "resource.k8s.io/"


class OverlayReader:
    """Reads the spec of one object."""

    def __init__(self, report: Report, *, name: str, driver: str) -> None:
        self._report = report
        self._name = name
        self._slices = SliceReader(report, driver="", override=driver)

    def read(self, source: SourceValue) -> Overlay | None:
        """Return the overlay, or None if it has no slices, and report problems."""
        value = source.value if isinstance(source.value, Mapping) else {}
        fields = {
            name: SourceValue(each, (*source.path, name))
            for name, each in value.items()
            if each is not None
        }
        sources = read_items(fields.get("resourceSlices"), self._report)
        if not sources:
            return None
        slices = [parsed for each in sources if (parsed := self._read_slice(each)) is not None]
        validate_names(slices, self._report)
        validate_counters(slices, self._report)
        origin = Origin(SourceKind.OVERLAY, self._name, names.label(self._name))
        terms = node_selectors.read_overlay_requirements(fields.get("requirements"), self._report)
        overlay = Overlay(
            Assignment(origin, terms, tuple(parsed.batch for parsed in slices)),
            self._read_weight(fields.get("weight")),
            self._read_capacity(fields.get("capacity")),
        )
        for mismatch in find_capacity_mismatches(overlay):
            path = (*source.path, "capacity", mismatch.resource)
            fix = "make the two numbers equal"
            self._report.remark(Topic.PROMISE, path, mismatch.message, fix)
        return overlay

    def _read_slice(self, source: SourceValue) -> ParsedSlice | None:
        fields = read_fields(source, _SLICE, self._report, hint="put it under spec")
        kind = fields.get("kind")
        if kind is not None and kind.value != "ResourceSlice":
            what = f"expected a ResourceSlice, got {described(kind.value)}"
            self._report.refuse(kind.path, what, "write kind: ResourceSlice, or leave it out")
        version = fields.get("apiVersion")
        if version is not None and not str(version.value).startswith(_GROUP):
            what = f"a ResourceSlice is of {_GROUP}v1, not of {version.value!r}"
            self._report.refuse(version.path, what, f"write apiVersion: {_GROUP}v1")
        if "spec" not in fields:
            if isinstance(source.value, Mapping):
                fix = "put driver and devices under spec"
                self._report.refuse(source.path, "the slice has no spec", fix)
            return None
        refused = self._report.refused
        parsed = self._slices.read(fields["spec"])
        if not parsed.batch.driver and self._report.refused == refused:
            path = (*fields["spec"].path, "driver")
            what = f"{EMPTY_DRIVER} in ResourceSlice spec"
            self._report.refuse(path, what, "add a line such as driver: gpu.example.com")
        return parsed

    def _read_weight(self, source: SourceValue | None) -> int:
        if source is None:
            return 0
        weight = source.value
        if not isinstance(weight, int) or isinstance(weight, bool):
            what = f"expected a whole number, got {described(weight)}"
            self._report.refuse(source.path, what, "write a number without quotes")
            return 0
        if not 1 <= weight <= WEIGHT_MAX:
            what = f"a weight is a number from 1 to {WEIGHT_MAX}, not {weight}"
            self._report.refuse(source.path, what, "remove it for the lowest weight")
        return weight

    def _read_capacity(self, source: SourceValue | None) -> Mapping[str, Quantity]:
        capacity = {}
        for name, each in read_entries(source, self._report):
            try:
                capacity[name] = Quantity.from_json(each.value)
            except QuantityError as error:
                what = f"expected a quantity, got {described(each.value)} ({error})"
                self._report.refuse(each.path, what, 'write a number, as in "8"')
        return capacity
