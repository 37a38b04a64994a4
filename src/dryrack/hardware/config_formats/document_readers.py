"""
Readers of device configuration: of a text, of an object from an API server, or of a file.

A document of a file has lines, and then problems name those of the file. An object from an API
server has lines only for a text inside it; otherwise a problem has line 0 and is located by its
field. A ConfigMap without any data defines no devices; one with data but without a configuration is
a mistake, and is reported with upstream's message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dryrack.hardware.config_formats.config import ConfigReader
from dryrack.hardware.config_formats.draconfig import DraConfigReader
from dryrack.hardware.config_formats.fields import SourceValue
from dryrack.hardware.config_formats.overlay import OverlayReader
from dryrack.hardware.config_formats.remedies import find_text_remedy
from dryrack.hardware.config_formats.report import (
    Read,
    Reading,
    Remark,
    Report,
    TooMuchError,
    Topic,
)
from dryrack.hardware.names import quoted
from dryrack.kinds.documents import Document
from dryrack.kinds.shape import described
from dryrack.kinds.text.parsed import Fault, Parsed
from dryrack.kinds.text.source_positions import Place
from dryrack.kinds.text.yaml_text import documents

if TYPE_CHECKING:
    from dryrack.kinds.shape import Path

Source: TypeAlias = Mapping[str, Any] | Document
Shift: TypeAlias = Callable[[Place], Place]
T = TypeVar("T")

# The API server refuses a ConfigMap with more data than this; larger texts are not parsed.
BYTES_MAX = 1024 * 1024
_EMPTY = "the configuration is empty: no devices are published from it"
_ADD = "add driver and mappings"
_NOWHERE = Place(0, 0)


def read_config(text: str, *, file: str, driver: str = "", name: str = "") -> Reading:
    """
    Read a configuration in YAML, in either way of writing it.

    `driver` replaces every driver that the text names. `name` is that of the object that contains
    the text. An empty text is no mistake: it defines no devices.
    """
    return _read_text(
        text, file, lambda place: place, name=name or file, driver=driver
    ).to_reading()


def read_config_map(
    source: Source, *, key: str = "config.yaml", driver: str = "", content: str = ""
) -> Reading:
    """
    Read the configuration in a ConfigMap, under the key or under the only other one.

    `content` is the text of the file of a document: with it, lines are those of the file.
    """
    raw, empty = _open(source)
    entry = _find_text(raw, key)
    if entry is None:
        empty.report.remark(Topic.SPELLING, ("data",), _EMPTY, _ADD)
        return empty.to_reading()
    if isinstance(entry, _Missing):
        empty.report.refuse(entry.path, entry.what, entry.fix)
        return empty.to_reading()
    read = remarked_config(source, entry.key, driver=driver, content=content)
    if entry.key != key:
        what = f"the configuration is under the key {entry.key!r}"
        place = read.locate(())
        read.report.remarks.append(Remark(Topic.SPELLING, (), what, f"rename it to {key!r}", place))
    return read.to_reading()


def remarked_config(source: Source, key: str, *, driver: str = "", content: str) -> Read:
    """Read the text under a key of a ConfigMap, with its remarks."""
    raw, empty = _open(source)
    entry = _find_text(raw, key)
    assert isinstance(entry, _Entry), "no text under the key"
    name = _name_of(raw)
    if not isinstance(source, Document):
        return _read_text(entry.text, key, lambda place: place, name=name, driver=driver)
    shift = _locate_block(source.place(("data", key)), entry.text, content)
    read = _read_text(entry.text, empty.file, shift, name=name, driver=driver)
    return replace(read, within=("data", key))


def find_config_key(source: Mapping[str, Any]) -> str | None:
    """Return the key of a ConfigMap whose text has mappings of devices; None if there is none."""
    data = source.get("data")
    for key, text in data.items() if isinstance(data, Mapping) else ():
        if isinstance(text, str) and "mappings" in text:
            parsed = _parse(text)
            value = parsed.value if isinstance(parsed, Parsed) else None
            if isinstance(parsed, tuple) or (isinstance(value, dict) and "mappings" in value):
                return str(key)
    return None


def read_dra_config(source: Source, *, driver: str = "") -> Reading:
    """Read a DRAConfig, with one assignment for each of its pools."""
    return remarked_dra_config(source, driver=driver).to_reading()


def remarked_dra_config(source: Source, *, driver: str = "") -> Read:
    """Read a DRAConfig, with its remarks."""
    raw, read = _open(source)
    reader = DraConfigReader(read.report, name=_name_of(raw), driver=driver)
    spec = SourceValue(raw.get("spec"), ("spec",))
    return replace(read, assignments=_read_within_limits(reader.read, spec) or ())


def read_overlay(source: Source, *, driver: str = "") -> Reading:
    """Read a NodeOverlay; without slices in it there is neither an overlay nor a problem."""
    return remarked_overlay(source, driver=driver).to_reading()


def remarked_overlay(source: Source, *, driver: str = "") -> Read:
    """Read a NodeOverlay, with its remarks."""
    raw, read = _open(source)
    reader = OverlayReader(read.report, name=_name_of(raw), driver=driver)
    spec = SourceValue(raw.get("spec"), ("spec",))
    return replace(read, overlay=_read_within_limits(reader.read, spec))


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a ConfigMap that is a text."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class _Missing:
    """The reason why a ConfigMap has no text for the configuration."""

    path: Path
    what: str
    fix: str


def _find_text(raw: Mapping[str, Any], key: str) -> _Entry | _Missing | None:
    """Return the text under the key, or under the only other one; None without any data."""
    for field in ("data", "binaryData"):
        if raw.get(field) is not None and not isinstance(raw[field], Mapping):
            what = f"expected an object, got {described(raw[field])}"
            return _Missing((field,), what, f"put the text under {field}.{key}")
    data: Mapping[str, Any] = raw.get("data") or {}
    binary: Mapping[str, Any] = raw.get("binaryData") or {}
    if not data and not binary:
        return None
    if key in binary and key not in data:
        return _decode_binary(key, binary[key])
    if key in data:
        if isinstance(data[key], str):
            return _Entry(key, data[key])
        fix = f"write {key}: | and the text below it, indented"
        return _Missing(("data", key), f"expected a string, got {described(data[key])}", fix)
    keys = (*data, *binary)
    if len(keys) == 1 and isinstance(data.get(keys[0]), str):
        text = data[keys[0]]
        parsed = _parse(text)
        # A text that cannot be parsed may be the configuration if it contains mappings.
        is_config = (
            _has_config_key(parsed.value) if isinstance(parsed, Parsed) else "mappings" in text
        )
        if is_config:
            return _Entry(keys[0], text)
    what = f"no configuration found in configmap, expected key: {key}"
    return _Missing(("data",), what, f"rename the key that has it; there is {quoted(keys)}")


def _decode_binary(key: str, value: Any) -> _Entry | _Missing:
    path: Path = ("binaryData", key)
    try:
        return _Entry(key, base64.b64decode(str(value), validate=True).decode())
    except binascii.Error:
        return _Missing(path, "expected base64", f"put the text under data.{key}")
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} at {error.start} is not UTF-8"
        return _Missing(path, what, "save the file as UTF-8 and create it again")


def _has_config_key(value: Any) -> bool:
    return isinstance(value, dict) and any(key.lower() in ("driver", "mappings") for key in value)


def _read_text(text: str, file: str, shift: Shift, *, name: str, driver: str) -> Read:
    report = Report()
    start = shift(Place(1, 1))
    parsed = _parse(text)
    if parsed is None:
        report.remarks.append(Remark(Topic.SPELLING, (), _EMPTY, _ADD, start))
        return Read(file, report, lambda path: start)
    if not isinstance(parsed, Parsed):
        for fault in parsed:
            fix = fault.fix or find_text_remedy(fault.message)
            report.refuse_text(shift(fault.place), fault.message, fix)
        return Read(file, report, lambda path: start)
    tree = parsed.tree
    reader = ConfigReader(report, name=name, driver=driver)
    assignments = _read_within_limits(reader.read, SourceValue(parsed.value, ())) or ()
    return Read(file, report, lambda path: shift(tree.locate(path)), assignments=assignments)


def _parse(text: str) -> Parsed | tuple[Fault, ...] | None:
    """Return the one document of a text, or its faults; None if it has no value."""
    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        fault = f"larger than {BYTES_MAX} bytes, which is all that a ConfigMap holds"
        return (Fault(Place(1, 1), fault, "split the configuration into several DRAConfigs"),)
    parsed = list(documents(text))
    faults = tuple(each for each in parsed if isinstance(each, Fault))
    if faults:
        return faults
    values = [each for each in parsed if isinstance(each, Parsed) and each.value is not None]
    if len(values) > 1:
        place = values[1].tree.locate(())
        what = "dryrack ignores every document after the first"
        return (Fault(place, what, "move all mappings into the first document"),)
    return values[0] if values else None


def _locate_block(key: Place, text: str, content: str) -> Shift:
    """Return a function from places in a text to places in the file that contains it."""
    # A block scalar has the text's lines as they are; the line after the key shows whether it is
    # one. Other texts are not written in lines of their own, so all places are that of the key.
    lines = content.split("\n", key.line + 1)
    below = lines[key.line] if key.line < len(lines) else ""
    if below.strip() != text.split("\n", 1)[0].strip():
        return lambda place: key
    indent = len(below) - len(below.lstrip())
    return lambda place: Place(key.line + place.line, place.column + indent)


def _read_within_limits(read: Callable[[SourceValue], T], source: SourceValue) -> T | None:
    try:
        return read(source)
    except TooMuchError:
        return None


def _open(source: Source) -> tuple[Mapping[str, Any], Read]:
    """Return the object, and an empty result for it."""
    if isinstance(source, Document):
        return source.raw, Read(source.file, Report(), source.place)
    kind = source.get("kind") or "object"
    return source, Read(f"{kind} {_name_of(source)}", Report(), lambda path: _NOWHERE)


def _name_of(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    return name if isinstance(name, str) else ""
