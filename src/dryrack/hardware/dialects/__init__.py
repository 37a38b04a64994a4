"""
What people write about devices on nodes, read and put into one form.

Four dialects: the configuration of Karpenter's driver in a ConfigMap, in both ways of writing it;
a NodeOverlay with slices in it; a DRAConfig. Whatever comes out is what the API takes. Loose
writing is understood and told as a warning, with line and fix; what cannot be understood is a
problem, and then nothing of the document is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.dialects.config import ConfigReader
from dryrack.hardware.dialects.fields import Given
from dryrack.hardware.dialects.report import Reading, Report, finished
from dryrack.hardware.dialects.text import Nothing, parsed
from dryrack.kinds.documents import Problem
from dryrack.kinds.yaml_text import Parsed

if TYPE_CHECKING:
    from dryrack.kinds.yaml_text import Fault

__all__ = ["Reading", "read_config"]

_EMPTY = "the configuration is empty: no devices are published from it"


def read_config(text: str, *, file: str, driver: str = "", name: str = "") -> Reading:
    """
    A configuration in YAML, in either way of writing it.

    `driver` takes the place of every driver that it names. `name` is that of the object that has
    it, if it is in one. An empty text is no mistake: it says that there are no devices.
    """
    found = parsed(text)
    if isinstance(found, Nothing):
        warning = Problem(file, 1, 1, _EMPTY, "add driver and mappings")
        return Reading(warnings=(warning,))
    if not isinstance(found, Parsed):
        return Reading(problems=tuple(_problem(file, fault) for fault in found))
    report = Report()
    reader = ConfigReader(report, name=name or file, driver=driver)
    assignments = reader.read(Given(found.value, ()))
    return finished(report, file, found.tree.locate, assignments=assignments)


def _problem(file: str, fault: Fault) -> Problem:
    return Problem(file, fault.place.line, fault.place.column, fault.message, fault.fix)
