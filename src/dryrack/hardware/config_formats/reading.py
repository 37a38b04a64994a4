"""
The ways in: a text, or an object as it was decoded, or a document of a file.

A document of a file knows its lines, and then problems have those of the file. Of an object that
came from an API server nobody knows lines but those of a text inside it; then a problem has line
0, and its field has to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from dryrack.hardware.config_formats.config import ConfigReader
from dryrack.hardware.config_formats.config_map import Emptied, Missing, configuration
from dryrack.hardware.config_formats.draconfig import DraConfigReader
from dryrack.hardware.config_formats.fields import Given
from dryrack.hardware.config_formats.overlay import OverlayReader
from dryrack.hardware.config_formats.report import (
    Read,
    Reading,
    Remark,
    Report,
    TooMuchError,
    Topic,
)
from dryrack.hardware.config_formats.text import Nothing, block, parsed
from dryrack.kinds.documents import Document
from dryrack.kinds.text.parsed import Parsed
from dryrack.kinds.text.source_positions import Place

Source: TypeAlias = Mapping[str, Any] | Document
Shift: TypeAlias = Callable[[Place], Place]
T = TypeVar("T")

_EMPTY = "the configuration is empty: no devices are published from it"
_ADD = "add driver and mappings"
_NOWHERE = Place(0, 0)


def read_config(text: str, *, file: str, driver: str = "", name: str = "") -> Reading:
    """
    A configuration in YAML, in either way of writing it.

    `driver` takes the place of every driver that it names. `name` is that of the object that has
    it, if it is in one. An empty text is no mistake: it says that there are no devices.
    """
    return _config(text, file, _same, name=name or file, driver=driver).reading()


def read_config_map(
    source: Source, *, key: str = "config.yaml", driver: str = "", content: str = ""
) -> Reading:
    """
    The configuration in a ConfigMap, under the key or under the only other one.

    `content` is the text of the file that a document is from: with it the lines are the file's.
    """
    raw, nothing = _opened(source)
    found = configuration(raw, key)
    if isinstance(found, Emptied):
        nothing.report.remark(Topic.SPELLING, ("data",), _EMPTY, _ADD)
        return nothing.reading()
    if isinstance(found, Missing):
        nothing.report.refuse(found.path, found.what, found.fix)
        return nothing.reading()
    read = remarked_config(source, found.key, driver=driver, content=content)
    if found.key != key:
        what = f"the configuration is under the key {found.key!r}"
        place = read.locate(())
        read.report.remarks.append(Remark(Topic.SPELLING, (), what, f"rename it to {key!r}", place))
    return read.reading()


def remarked_config(source: Source, key: str, *, driver: str = "", content: str) -> Read:
    """The text under a key of a ConfigMap, with its remarks."""
    raw, nothing = _opened(source)
    found = configuration(raw, key)
    assert not isinstance(found, Emptied | Missing), "no text under the key"
    if not isinstance(source, Document):
        return _config(found.text, key, _same, name=_name(raw), driver=driver)
    shift = block(source.place(("data", key)), found.text, content).place
    read = _config(found.text, nothing.file, shift, name=_name(raw), driver=driver)
    return replace(read, within=("data", key))


def read_dra_config(source: Source, *, driver: str = "") -> Reading:
    """A DRAConfig, with one assignment for each of its pools."""
    return remarked_dra_config(source, driver=driver).reading()


def remarked_dra_config(source: Source, *, driver: str = "") -> Read:
    """The same with its remarks."""
    raw, read = _opened(source)
    reader = DraConfigReader(read.report, name=_name(raw), driver=driver)
    return replace(read, assignments=_unless_too_much(reader.read, _spec(raw)) or ())


def read_overlay(source: Source, *, driver: str = "") -> Reading:
    """A NodeOverlay; without slices in it there is neither overlay nor problem."""
    return remarked_overlay(source, driver=driver).reading()


def remarked_overlay(source: Source, *, driver: str = "") -> Read:
    """The same with its remarks."""
    raw, read = _opened(source)
    reader = OverlayReader(read.report, name=_name(raw), driver=driver)
    return replace(read, overlay=_unless_too_much(reader.read, _spec(raw)))


def _config(text: str, file: str, shift: Shift, *, name: str, driver: str) -> Read:
    report = Report()
    start = shift(Place(1, 1))
    found = parsed(text)
    if isinstance(found, Nothing):
        report.remarks.append(Remark(Topic.SPELLING, (), _EMPTY, _ADD, start))
        return Read(file, report, lambda path: start)
    if not isinstance(found, Parsed):
        for fault in found:
            report.fault(shift(fault.place), fault.message, fault.fix)
        return Read(file, report, lambda path: start)
    tree = found.tree
    reader = ConfigReader(report, name=name, driver=driver)
    assignments = _unless_too_much(reader.read, Given(found.value, ())) or ()
    return Read(file, report, lambda path: shift(tree.locate(path)), assignments=assignments)


def _unless_too_much(read: Callable[[Given], T], given: Given) -> T | None:
    try:
        return read(given)
    except TooMuchError:
        return None


def _opened(source: Source) -> tuple[Mapping[str, Any], Read]:
    """The object, and what is read of it so far."""
    if isinstance(source, Document):
        return source.raw, Read(source.file, Report(), source.place)
    kind = source.get("kind") or "object"
    return source, Read(f"{kind} {_name(source)}", Report(), lambda path: _NOWHERE)


def _spec(raw: Mapping[str, Any]) -> Given:
    return Given(raw.get("spec"), ("spec",))


def _same(place: Place) -> Place:
    return place


def _name(raw: Mapping[str, Any]) -> str:
    meta = raw.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else ""
    return name if isinstance(name, str) else ""
