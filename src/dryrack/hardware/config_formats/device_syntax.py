"""
Devices as people write them, in the form that the API has.

An attribute is an object with one field in the API; people also write a bare value, or the field
in another case or by its name in Go. A capacity may be a bare quantity. `count: 8` means eight
devices that differ only in a number, and a device may repeat the name of its driver.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.hardware import names
from dryrack.hardware.config_formats.fields import (
    SourceValue,
    normalize_keys,
    quoting_fix,
    read_entries,
    read_fields,
)
from dryrack.hardware.config_formats.remedies import find_remedy
from dryrack.hardware.config_formats.report import Topic
from dryrack.kinds import scalars, shape
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.kinds.resource import Device, DeviceAttribute, DeviceCapacity
from dryrack.kinds.shape import Fields, described
from dryrack.kinds.validation.names import IDENTIFIER_BYTES_MAX, qualified_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.meta import Model

# A node has dozens of devices, seldom hundreds; a larger number is a mistake.
COUNT_MAX = 10_000

_ONE_OF = "give it one of string, int, bool and version"


def _fields_of(model: type[Model]) -> Mapping[str, shape.Shape]:
    fields = shape.of(model)
    assert isinstance(fields, Fields), f"{model} is no object"
    return fields.fields


_DEVICE = _fields_of(Device)
_TYPES = tuple(_fields_of(DeviceAttribute))
_LISTS = ("bools", "ints", "strings", "versions")
# In Go the fields are called `StringValue` and so on, and some documents have those names.
_TYPE_OF_KEY = {name: name for name in _TYPES} | {f"{name}value": name for name in _TYPES}
_CAPACITY = shape.of(DeviceCapacity)


@dataclass(frozen=True, slots=True)
class DeviceTemplate:
    """One entry of a list of devices: the document of the API, and the fields beside it."""

    source: SourceValue
    document: dict[str, Any]
    count: int | None
    driver: SourceValue | None


def parse_device(source: SourceValue, report: Report) -> DeviceTemplate | None:
    """Return an entry in the form of the API; None if it is not an object."""
    if not isinstance(source.value, Mapping):
        what = f"expected a device, got {described(source.value)}"
        report.refuse(source.path, what, "write it as in {name: gpu-0}")
        return None
    hint = "put what is in it into the device itself" if "basic" in source.value else ""
    fields = read_fields(source, (*_DEVICE, "count", "driver"), report, hint=hint)
    count = fields.pop("count", None)
    driver = fields.pop("driver", None)
    document: dict[str, Any] = {}
    for name, field in fields.items():
        match name:
            case "attributes":
                document[name] = _read_map(field, "attribute", _read_attribute, report)
            case "capacity":
                document[name] = _read_map(field, "capacity", _read_capacity, report)
            case _:
                document[name] = normalize_keys(field, _DEVICE[name], report)
    return DeviceTemplate(source, document, _read_count(count, document, report), driver)


def _read_count(
    source: SourceValue | None, document: Mapping[str, Any], report: Report
) -> int | None:
    if source is None:
        return None
    count = source.value
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if not isinstance(count, int) or isinstance(count, bool):
        fix = "write a whole number without quotes, as in count: 8"
        report.refuse(source.path, f"expected a number of devices, got {described(count)}", fix)
        return None
    if not 1 <= count <= COUNT_MAX:
        fix = f"write a number from 1 to {COUNT_MAX}"
        report.refuse(source.path, f"{count} is not a possible number of devices", fix)
        return None
    first, last = (f"{document.get('name', '')}-{number}" for number in (0, count - 1))
    devices = f"the devices {first} to {last}" if count > 1 else f"the device {first}"
    report.remark(
        Topic.SPELLING,
        source.path,
        f"the API has no field count; dryrack creates {devices}",
        "list the devices, if other programs read this file",
    )
    return count


def _read_map(
    source: SourceValue,
    what: str,
    read_value: Callable[[str, SourceValue, Report], Any],
    report: Report,
) -> Any:
    """Return a map with names that the user chooses; correct the names and the values."""
    if not isinstance(source.value, Mapping):
        return source.value
    entries: dict[str, Any] = {}
    for written, each in read_entries(source, report):
        name = _correct_name(written, what, each, report)
        if name in entries:
            report.refuse(each.path, f"two entries are named {name!r}", "rename one of them")
        value = read_value(written, each, report)
        if name is not None and value is not None:
            entries[name] = value
    return entries


def _correct_name(written: str, what: str, source: SourceValue, report: Report) -> str | None:
    """Return the name as the API allows it; refuse a name that dryrack cannot correct."""
    problems = list(qualified_name("", written))
    if not problems:
        return written
    better = names.identifier(written)
    too_long = len(written.rpartition("/")[2]) > IDENTIFIER_BYTES_MAX
    if too_long or any(qualified_name("", better)):
        for problem in problems:
            report.refuse(source.path, problem.message, find_remedy(problem))
        return None
    message = f"{what} name {written!r} is not allowed by the API"
    report.remark(Topic.ATTRIBUTE_NAME, source.path, message, f"write {better!r}")
    return better


def _read_attribute(name: str, source: SourceValue, report: Report) -> Any:
    form = _read_type(source, report)
    if form is None:
        return None
    is_plain = isinstance(source.value, Mapping) and all(key in _TYPES for key in source.value)
    if not is_plain and len(form) == 1:
        ((kind, value),) = form.items()
        message = f"attribute {name!r} is not in the form of the API"
        fix = f"write {{{kind}: {_to_yaml(value)}}}"
        report.remark(Topic.ATTRIBUTE_FORM, source.path, message, fix)
    quantity = names.amount(form["string"]) if isinstance(form.get("string"), str) else None
    if quantity is not None:
        message = f"attribute {name!r} is a quantity; selectors cannot compare it as a string"
        fix = f"move it to capacity: {names.identifier(name)}: {{value: {quantity}}}"
        report.remark(Topic.AMOUNT, source.path, message, fix)
    return form


def _read_type(source: SourceValue, report: Report) -> dict[str, Any] | None:
    """Return the attribute as an object with the name of its type; None if it has no type."""
    match source.value:
        case bool():
            return {"bool": source.value}
        case int():
            return {"int": source.value}
        case str():
            return {"string": source.value}
        case Mapping():
            return _correct_type_names(source, report)
        case _:
            what = f"expected an attribute, got {described(source.value)}"
            fix = quoting_fix(source) if isinstance(source.value, float) else _ONE_OF
            report.refuse(source.path, what, fix)
    return None


def _correct_type_names(source: SourceValue, report: Report) -> dict[str, Any] | None:
    form: dict[str, Any] = {}
    for key, value in source.value.items():
        kind = _TYPE_OF_KEY.get(key.lower())
        if kind is None or kind in form:
            what = "unknown type" if kind is None else "a second value of type"
            report.refuse((*source.path, key), f"{what} {key!r}", _ONE_OF)
            return None
        form[kind] = value
    lists = [kind for kind in form if kind in _LISTS]
    if lists:
        what = f"{lists[0]!r} is behind the feature gate DRAListTypeAttributes, which is off"
        report.refuse(source.path, f"{what} in Kubernetes {DEFAULT_RELEASE.value}", _ONE_OF)
        return None
    if not form:
        report.refuse(source.path, "exactly one value must be specified", _ONE_OF)
    return form or None


def _read_capacity(name: str, source: SourceValue, report: Report) -> Any:
    if isinstance(source.value, str | int | float) and not isinstance(source.value, bool):
        message = f"capacity {name!r} is not in the form of the API"
        fix = f"write {{value: {source.value}}}"
        report.remark(Topic.ATTRIBUTE_FORM, source.path, message, fix)
        return {"value": source.value}
    if source.value is None:
        report.refuse(source.path, "expected a quantity, got null", "write {value: 16Gi}")
        return None
    return normalize_keys(source, _CAPACITY, report)


def _to_yaml(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    is_word = value.replace("-", "").replace("_", "").replace(".", "").isalnum()
    is_text = is_word and isinstance(scalars.plain(value), str)
    return value if is_text else json.dumps(value, ensure_ascii=False)


def expand_names(device: Device, count: int | None) -> Iterator[str]:
    """Yield the names of the devices that an entry with this count defines."""
    if count is None:
        yield device.name
        return
    for number in range(count):
        yield f"{device.name}-{number}"
