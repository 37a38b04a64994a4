"""
NodeOverlay (karpenter.sh/v1alpha1) with the slices of its nodes in it.

Only what concerns devices is read; prices and the like are Karpenter's. An overlay without slices
says nothing about devices, and then it does not stand before other sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dryrack.hardware import names
from dryrack.hardware.config_formats import selectors
from dryrack.hardware.config_formats.fields import Given, entries, fields, items
from dryrack.hardware.config_formats.judging import judge_names, judge_together
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.slices import SliceReader
from dryrack.hardware.inventory import Assignment, Origin, Overlay, SourceKind
from dryrack.hardware.promises import broken_promises
from dryrack.kinds.quantity import Quantity, QuantityError
from dryrack.kinds.shape import described

if TYPE_CHECKING:
    from dryrack.hardware.config_formats.pieces import Piece
    from dryrack.hardware.config_formats.report import Report

WEIGHT_MAX = 10_000

_SLICE = ("apiVersion", "kind", "metadata", "spec")
_GROUP = "resource.k8s.io/"
_NO_DRIVER = "driver name cannot be empty in ResourceSlice spec"


class OverlayReader:
    """Reads the spec of one object."""

    def __init__(self, report: Report, *, name: str, driver: str) -> None:
        self._report = report
        self._name = name
        self._slices = SliceReader(report, driver="", override=driver)

    def read(self, given: Given) -> Overlay | None:
        """The overlay; None if it has no slices. What is wrong is in the report."""
        found = _fields(given)
        slices = items(found.get("resourceSlices"), self._report)
        if not slices:
            return None
        pieces = [piece for each in slices if (piece := self._slice(each)) is not None]
        judge_names(pieces, self._report)
        judge_together(pieces, self._report)
        origin = Origin(SourceKind.OVERLAY, self._name, names.label(self._name))
        terms = selectors.requirements(found.get("requirements"), self._report)
        overlay = Overlay(
            Assignment(origin, terms, tuple(piece.batch for piece in pieces)),
            self._weight(found.get("weight")),
            self._capacity(found.get("capacity")),
        )
        for broken in broken_promises(overlay):
            path = (*given.path, "capacity", broken.resource)
            fix = "make the two numbers equal"
            self._report.remark(Topic.PROMISE, path, broken.message, fix)
        return overlay

    def _slice(self, given: Given) -> Piece | None:
        found = fields(given, _SLICE, self._report, hint="put it under spec")
        self._check_kind(found)
        if "spec" not in found:
            if isinstance(given.value, Mapping):
                fix = "put driver and devices under spec"
                self._report.refuse(given.path, "the slice has no spec", fix)
            return None
        before = self._report.refused
        piece = self._slices.read(found["spec"])
        if not piece.batch.driver and self._report.refused == before:
            fix = "add a line such as driver: gpu.example.com"
            self._report.refuse((*found["spec"].path, "driver"), _NO_DRIVER, fix)
        return piece

    def _check_kind(self, found: Mapping[str, Given]) -> None:
        kind = found.get("kind")
        version = found.get("apiVersion")
        if kind is not None and kind.value != "ResourceSlice":
            what = f"expected a ResourceSlice, got {described(kind.value)}"
            self._report.refuse(kind.path, what, "write kind: ResourceSlice, or leave it out")
        if version is not None and not str(version.value).startswith(_GROUP):
            what = f"a ResourceSlice is of {_GROUP}v1, not of {version.value!r}"
            self._report.refuse(version.path, what, f"write apiVersion: {_GROUP}v1")

    def _weight(self, given: Given | None) -> int:
        if given is None:
            return 0
        weight = given.value
        if not isinstance(weight, int) or isinstance(weight, bool):
            what = f"expected a whole number, got {described(weight)}"
            self._report.refuse(given.path, what, "write a number without quotes")
            return 0
        if not 1 <= weight <= WEIGHT_MAX:
            what = f"a weight is a number from 1 to {WEIGHT_MAX}, not {weight}"
            self._report.refuse(given.path, what, "remove it for the lowest weight")
        return weight

    def _capacity(self, given: Given | None) -> Mapping[str, Quantity]:
        found = {}
        for name, each in entries(given, self._report):
            try:
                found[name] = Quantity.from_json(each.value)
            except QuantityError as error:
                what = f"expected a quantity, got {described(each.value)} ({error})"
                self._report.refuse(each.path, what, 'write a number, as in "8"')
        return found


def _fields(given: Given) -> dict[str, Given]:
    value: Any = given.value if isinstance(given.value, Mapping) else {}
    return {
        name: Given(each, (*given.path, name)) for name, each in value.items() if each is not None
    }
