"""
DRAConfig (test.karpenter.sh/v1alpha1): pools of one driver, each for the nodes it selects.

The rules of the kind's own schema are kept, with its messages: what an API server has taken is
never refused for its shape, and a file is refused for what the server would refuse. Beyond the
schema a slice may define shared counters, without which devices cannot be partitions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.hardware import names
from dryrack.hardware.config_formats import selectors
from dryrack.hardware.config_formats.fields import Given, fields, items, text
from dryrack.hardware.config_formats.judging import judge_names, judge_together
from dryrack.hardware.config_formats.slices import SliceReader
from dryrack.hardware.inventory import Assignment, Origin, SourceKind
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.names import DRIVER_NAME_BYTES_MAX, LABEL_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.config_formats.pieces import Piece
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
        self._pieces: list[Piece] = []
        self._seen: set[str] = set()

    def read(self, given: Given) -> tuple[Assignment, ...]:
        """All pools; what is wrong is in the report."""
        found = fields(given, ("driver", "pools"), self._report)
        reader = SliceReader(
            self._report, driver=self._driver(given, found), override=self._override
        )
        pools = self._list(given, found, "pools")
        assignments = tuple(self._pool(each, reader) for each in pools)
        judge_together(self._pieces, self._report)
        return assignments

    def _driver(self, given: Given, found: Mapping[str, Given]) -> str:
        name = self._matching(given, found, "driver", _DRIVER)
        if name and len(name) > DRIVER_NAME_BYTES_MAX:
            what = f"Too long: may not be more than {DRIVER_NAME_BYTES_MAX} bytes"
            self._report.refuse(found["driver"].path, what, "choose a shorter name")
        return name

    def _pool(self, given: Given, reader: SliceReader) -> Assignment:
        found = fields(given, _POOL, self._report)
        name = self._pool_name(given, found)
        self._list(given, found, "nodeSelectorTerms")
        wanted = found.get("nodeSelectorTerms")
        terms = selectors.terms(wanted, self._report) if wanted else ()
        slices = self._list(given, found, "resourceSlices")
        pieces = [reader.read(each, _SLICE) for each in slices]
        judge_names(pieces, self._report)
        self._pieces += pieces
        origin = Origin(SourceKind.CONFIG, self._name, name)
        return Assignment(origin, terms, tuple(piece.batch for piece in pieces))

    def _pool_name(self, given: Given, found: Mapping[str, Given]) -> str:
        name = self._matching(given, found, "name", _NAME)
        if len(name) > LABEL_BYTES_MAX:
            what = f"Too long: may not be more than {LABEL_BYTES_MAX} bytes"
            self._report.refuse(found["name"].path, what, "choose a shorter name")
        if name and name in self._seen:
            what = f"another pool is also named {name!r}"
            self._report.refuse(found["name"].path, what, "give each pool a different name")
        self._seen.add(name)
        return name

    def _matching(
        self, given: Given, found: Mapping[str, Given], field: str, pattern: re.Pattern[str]
    ) -> str:
        if field not in found:
            self._report.refuse((*given.path, field), "Required value", f"add a line {field}: …")
            return ""
        name = text(found[field], self._report)
        if isinstance(found[field].value, str) and not pattern.match(name):
            what = f"Invalid value: {quoted(name)}: should match '{pattern.pattern}'"
            better = names.driver_name(name) if field == "driver" else names.label(name)
            self._report.refuse(found[field].path, what, f"write {better!r}")
        return name

    def _list(self, given: Given, found: Mapping[str, Given], field: str) -> list[Given]:
        if field not in found:
            self._report.refuse((*given.path, field), "Required value", f"add {field} with an item")
            return []
        if found[field].value in ([], ()):
            what = "should have at least 1 items"
            self._report.refuse(found[field].path, what, "add an item, or remove what has it")
        return items(found[field], self._report)
