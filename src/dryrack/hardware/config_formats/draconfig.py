"""
DRAConfig (test.karpenter.sh/v1alpha1): pools of one driver, each for the nodes it selects.

The rules and messages of the kind's schema apply: an object that an API server has accepted is
never refused for its shape, and a file is refused if the server would refuse it. Beyond the schema
a slice may define shared counters, which partitions need.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.hardware import names
from dryrack.hardware.config_formats import node_selectors
from dryrack.hardware.config_formats.fields import SourceValue, read_fields, read_items, read_text
from dryrack.hardware.config_formats.parsed_slices import SliceReader
from dryrack.hardware.config_formats.validation import validate_counters, validate_names
from dryrack.hardware.inventory import Assignment, Origin, SourceKind
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.names import DRIVER_NAME_BYTES_MAX, LABEL_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.config_formats.parsed_slices import ParsedSlice
    from dryrack.hardware.config_formats.report import Report

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(f"^{_LABEL}$")
_DRIVER = re.compile(rf"^{_LABEL}(\.{_LABEL})*$")
_POOL = ("name", "nodeSelectorTerms", "resourceSlices")
_SLICE = ("devices", "sharedCounters")


class DraConfigReader:
    """Reads the spec of one object."""

    def __init__(self, report: Report, *, name: str, driver: str) -> None:
        self._report = report
        self._name = name
        self._override = driver
        self._slices: list[ParsedSlice] = []
        self._names: set[str] = set()

    def read(self, source: SourceValue) -> tuple[Assignment, ...]:
        """Return all pools, and report problems."""
        fields = read_fields(source, ("driver", "pools"), self._report)
        driver = self._read_name(source, fields, "driver", _DRIVER)
        if driver and len(driver) > DRIVER_NAME_BYTES_MAX:
            what = f"Too long: may not be more than {DRIVER_NAME_BYTES_MAX} bytes"
            self._report.refuse(fields["driver"].path, what, "choose a shorter name")
        reader = SliceReader(self._report, driver=driver, override=self._override)
        pools = self._read_list(source, fields, "pools")
        assignments = tuple(self._read_pool(each, reader) for each in pools)
        validate_counters(self._slices, self._report)
        return assignments

    def _read_pool(self, source: SourceValue, reader: SliceReader) -> Assignment:
        fields = read_fields(source, _POOL, self._report)
        name = self._read_name(source, fields, "name", _NAME)
        if len(name) > LABEL_BYTES_MAX:
            what = f"Too long: may not be more than {LABEL_BYTES_MAX} bytes"
            self._report.refuse(fields["name"].path, what, "choose a shorter name")
        if name and name in self._names:
            what = f"another pool is also named {name!r}"
            self._report.refuse(fields["name"].path, what, "give each pool a different name")
        self._names.add(name)
        self._read_list(source, fields, "nodeSelectorTerms")
        selector = fields.get("nodeSelectorTerms")
        terms = node_selectors.read_terms(selector, self._report) if selector else ()
        sources = self._read_list(source, fields, "resourceSlices")
        slices = [reader.read(each, _SLICE) for each in sources]
        validate_names(slices, self._report)
        self._slices += slices
        origin = Origin(SourceKind.CONFIG, self._name, name)
        return Assignment(origin, terms, tuple(parsed.batch for parsed in slices))

    def _read_name(
        self,
        source: SourceValue,
        fields: Mapping[str, SourceValue],
        field: str,
        pattern: re.Pattern[str],
    ) -> str:
        if field not in fields:
            self._report.refuse((*source.path, field), "Required value", f"add a line {field}: …")
            return ""
        name = read_text(fields[field], self._report)
        if isinstance(fields[field].value, str) and not pattern.match(name):
            what = f"Invalid value: {quoted(name)}: should match '{pattern.pattern}'"
            better = names.driver_name(name) if field == "driver" else names.label(name)
            self._report.refuse(fields[field].path, what, f"write {better!r}")
        return name

    def _read_list(
        self, source: SourceValue, fields: Mapping[str, SourceValue], field: str
    ) -> list[SourceValue]:
        if field not in fields:
            fix = f"add {field} with an item"
            self._report.refuse((*source.path, field), "Required value", fix)
            return []
        if fields[field].value in ([], ()):
            what = "should have at least 1 items"
            self._report.refuse(fields[field].path, what, "add an item, or remove what has it")
        return read_items(fields[field], self._report)
