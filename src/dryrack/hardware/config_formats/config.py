"""
The configuration of Karpenter's driver: mappings from nodes to slices.

Both ways of writing it are one format here: `nodeSelectorTerms` or `nodeSelector.matchLabels`, a
whole ResourceSliceSpec or a few devices with bare values. Messages that upstream has are used
unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware import names
from dryrack.hardware.config_formats import node_selectors
from dryrack.hardware.config_formats.fields import SourceValue, read_fields, read_items, read_text
from dryrack.hardware.config_formats.parsed_slices import (
    EMPTY_DRIVER,
    SliceReader,
    normalize_driver,
)
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.config_formats.validation import validate_counters, validate_names
from dryrack.hardware.inventory import Assignment, Origin, SourceKind
from dryrack.kinds.shape import described
from dryrack.kinds.validation.names import label

if TYPE_CHECKING:
    from dryrack.hardware.config_formats.parsed_slices import ParsedSlice
    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.core import NodeSelectorTerm

_MAPPING = ("name", "nodeSelectorTerms", "nodeSelector", "resourceSlice")
_NO_DEVICES = "list at least one device in resourceSlice.devices"


class ConfigReader:
    """Reads one configuration."""

    def __init__(self, report: Report, *, name: str, driver: str) -> None:
        self._report = report
        self._name = name
        self._override = driver
        self._slices: list[ParsedSlice] = []
        self._names: dict[str, str] = {}

    def read(self, source: SourceValue) -> tuple[Assignment, ...]:
        """Return all mappings, and report problems."""
        if isinstance(source.value, dict):
            # People define YAML anchors under keys that begin with x-, and use them further down.
            values = {key: value for key, value in source.value.items() if not key.startswith("x-")}
            fields = read_fields(
                SourceValue(values, source.path), ("driver", "mappings"), self._report
            )
        else:
            fields = read_fields(source, ("driver", "mappings"), self._report)
        reader = SliceReader(
            self._report, driver=self._read_driver(source, fields), override=self._override
        )
        mappings = read_items(fields.get("mappings"), self._report)
        stated = fields["mappings"].value if "mappings" in fields else []
        if stated in ([], ()) and isinstance(source.value, dict):
            path = fields["mappings"].path if "mappings" in fields else (*source.path, "mappings")
            fix = "add one with name, nodeSelectorTerms and resourceSlice"
            self._report.refuse(path, "at least one mapping must be defined", fix)
        assignments = [self._read_mapping(each, reader) for each in mappings]
        validate_counters(self._slices, self._report)
        return tuple(each for each in assignments if each is not None)

    def _read_driver(self, source: SourceValue, fields: dict[str, SourceValue]) -> str:
        name = normalize_driver(fields["driver"], self._report) if "driver" in fields else ""
        stated = fields["driver"].value if "driver" in fields else ""
        if not stated and not self._override and isinstance(source.value, dict):
            path = fields["driver"].path if "driver" in fields else (*source.path, "driver")
            self._report.refuse(path, EMPTY_DRIVER, "add a line such as driver: gpu.example.com")
        return name

    def _read_mapping(self, source: SourceValue, reader: SliceReader) -> Assignment | None:
        if not isinstance(source.value, dict):
            what = f"expected a mapping, got {described(source.value)}"
            self._report.refuse(source.path, what, f"write an object with {', '.join(_MAPPING)}")
            return None
        fields = read_fields(source, _MAPPING, self._report)
        name = self._read_name(source, fields)
        terms = self._read_terms(source, fields)
        origin = Origin(SourceKind.CONFIG_MAP, self._name, name)
        if "resourceSlice" not in fields:
            self._report.refuse(source.path, "resourceSlice has no devices", _NO_DEVICES)
            return None
        parsed = reader.read(fields["resourceSlice"])
        validate_names([parsed], self._report)
        self._slices.append(parsed)
        return Assignment(origin, terms, (parsed.batch,))

    def _read_name(self, source: SourceValue, fields: dict[str, SourceValue]) -> str:
        written = read_text(fields.get("name"), self._report)
        if not written:
            if "name" not in fields or fields["name"].value == "":
                fix = "add a line such as name: gpu-nodes"
                self._report.refuse(source.path, "name: mapping name cannot be empty", fix)
            return ""
        path = fields["name"].path
        better = written if not label(written) else names.label(written)
        if better != written:
            what = f"mapping name {written!r} cannot be part of the name of an object"
            self._report.remark(Topic.SPELLING, path, what, f"write {better!r}")
        if better in self._names:
            what = f"another mapping is also named {self._names[better]!r}"
            self._report.refuse(path, what, "give each mapping a different name")
        self._names.setdefault(better, written)
        return better

    def _read_terms(
        self, source: SourceValue, fields: dict[str, SourceValue]
    ) -> tuple[NodeSelectorTerm, ...]:
        if "nodeSelectorTerms" in fields and "nodeSelector" in fields:
            what = "nodeSelectorTerms and nodeSelector are both given"
            self._report.refuse(fields["nodeSelector"].path, what, "keep one of the two")
            return ()
        if "nodeSelector" in fields:
            return node_selectors.read_label_selector(fields["nodeSelector"], self._report)
        terms = fields.get("nodeSelectorTerms")
        if terms is None or terms.value == []:
            path = source.path if terms is None else terms.path
            prefix = "nodeSelectorTerms: " if terms is None else ""
            fix = "add a term that names a label of the nodes"
            self._report.refuse(path, f"{prefix}{node_selectors.NO_TERM}", fix)
            return ()
        return node_selectors.read_terms(terms, self._report)
