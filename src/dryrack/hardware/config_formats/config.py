"""
The configuration of Karpenter's driver: mappings from nodes to slices.

Both ways of writing it are one dialect here: `nodeSelectorTerms` or `nodeSelector.matchLabels`, a
whole ResourceSliceSpec or a few devices with bare values. What upstream has a message for is said
in its words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware import names
from dryrack.hardware.config_formats import drivers, selectors
from dryrack.hardware.config_formats.fields import Given, fields, items, text
from dryrack.hardware.config_formats.judging import judge_names, judge_together
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.slices import SliceReader
from dryrack.hardware.inventory import Assignment, Origin, SourceKind
from dryrack.kinds.shape import described
from dryrack.kinds.validation.names import label

if TYPE_CHECKING:
    from dryrack.hardware.config_formats.pieces import Piece
    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.core import NodeSelectorTerm

_MAPPING = ("name", "nodeSelectorTerms", "nodeSelector", "resourceSlice")
_FEW_DEVICES = "list at least one device in resourceSlice.devices"


class ConfigReader:
    """Reads one configuration."""

    def __init__(self, report: Report, *, name: str, driver: str) -> None:
        self._report = report
        self._name = name
        self._override = driver
        self._pieces: list[Piece] = []
        self._seen: dict[str, str] = {}

    def read(self, given: Given) -> tuple[Assignment, ...]:
        """All mappings; what is wrong is in the report."""
        found = fields(_without_notes(given), ("driver", "mappings"), self._report)
        reader = SliceReader(
            self._report, driver=self._driver(given, found), override=self._override
        )
        mappings = items(found.get("mappings"), self._report)
        stated = found["mappings"].value if "mappings" in found else []
        if stated in ([], ()) and isinstance(given.value, dict):
            path = found["mappings"].path if "mappings" in found else (*given.path, "mappings")
            fix = "add one with name, nodeSelectorTerms and resourceSlice"
            self._report.refuse(path, "at least one mapping must be defined", fix)
        assignments = [self._mapping(each, reader) for each in mappings]
        judge_together(self._pieces, self._report)
        return tuple(each for each in assignments if each is not None)

    def _driver(self, given: Given, found: dict[str, Given]) -> str:
        name = drivers.sanitised(found["driver"], self._report) if "driver" in found else ""
        stated = found["driver"].value if "driver" in found else ""
        if not stated and not self._override and isinstance(given.value, dict):
            path = found["driver"].path if "driver" in found else (*given.path, "driver")
            self._report.refuse(path, drivers.EMPTY, "add a line such as driver: gpu.example.com")
        return name

    def _mapping(self, given: Given, reader: SliceReader) -> Assignment | None:
        if not isinstance(given.value, dict):
            what = f"expected a mapping, got {described(given.value)}"
            self._report.refuse(given.path, what, f"write an object with {', '.join(_MAPPING)}")
            return None
        found = fields(given, _MAPPING, self._report)
        name = self._mapping_name(given, found)
        terms = self._terms(given, found)
        origin = Origin(SourceKind.CONFIG_MAP, self._name, name)
        if "resourceSlice" not in found:
            self._report.refuse(given.path, "resourceSlice has no devices", _FEW_DEVICES)
            return None
        piece = reader.read(found["resourceSlice"])
        judge_names([piece], self._report)
        self._pieces.append(piece)
        return Assignment(origin, terms, (piece.batch,))

    def _mapping_name(self, given: Given, found: dict[str, Given]) -> str:
        written = text(found.get("name"), self._report)
        if not written:
            if "name" not in found or found["name"].value == "":
                fix = "add a line such as name: gpu-nodes"
                self._report.refuse(given.path, "name: mapping name cannot be empty", fix)
            return ""
        path = found["name"].path
        better = written if not label(written) else names.label(written)
        if better != written:
            what = f"mapping name {written!r} cannot be part of the name of an object"
            self._report.remark(Topic.SPELLING, path, what, f"write {better!r}")
        if better in self._seen:
            what = f"another mapping is also named {self._seen[better]!r}"
            self._report.refuse(path, what, "give each mapping a different name")
        self._seen.setdefault(better, written)
        return better

    def _terms(self, given: Given, found: dict[str, Given]) -> tuple[NodeSelectorTerm, ...]:
        if "nodeSelectorTerms" in found and "nodeSelector" in found:
            what = "nodeSelectorTerms and nodeSelector are both given"
            self._report.refuse(found["nodeSelector"].path, what, "keep one of the two")
            return ()
        if "nodeSelector" in found:
            return selectors.label_selector(found["nodeSelector"], self._report)
        terms = found.get("nodeSelectorTerms")
        if terms is None or terms.value == []:
            path = given.path if terms is None else terms.path
            prefix = "nodeSelectorTerms: " if terms is None else ""
            fix = "add a term that names a label of the nodes"
            self._report.refuse(path, f"{prefix}{selectors.NO_TERM}", fix)
            return ()
        return selectors.terms(terms, self._report)


def _without_notes(given: Given) -> Given:
    """Without the fields that people keep anchors in, for aliases further down."""
    if not isinstance(given.value, dict):
        return given
    kept = {key: value for key, value in given.value.items() if not key.startswith("x-")}
    return Given(kept, given.path)
