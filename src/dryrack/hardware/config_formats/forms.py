"""
Devices as people write them, in the form that the API has.

An attribute is an object with one field in the API; people also write a bare value, or the field
in another case or by its name in Go. A capacity may be a bare quantity. `count: 8` stands for
eight devices that differ in nothing but a number, and a device may repeat its driver's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.hardware import names
from dryrack.hardware.config_formats.fields import Given, entries, fields, folded, quoting
from dryrack.hardware.config_formats.fixes import fix_of
from dryrack.hardware.config_formats.report import Topic
from dryrack.kinds import scalars, shape
from dryrack.kinds.resource import Device, DeviceAttribute, DeviceCapacity
from dryrack.kinds.shape import Fields, described
from dryrack.kinds.validation.names import IDENTIFIER_BYTES_MAX, qualified_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.hardware.config_formats.report import Report
    from dryrack.kinds.meta import Model

# A node has dozens of devices, seldom hundreds; what is more than this is a slip of the pen.
COUNT_MAX = 10_000

_ONE_OF = "give it one of string, int, bool and version"


def _fields_of(model: type[Model]) -> Mapping[str, shape.Shape]:
    found = shape.of(model)
    assert isinstance(found, Fields), f"{model} is no object"
    return found.fields


_DEVICE = _fields_of(Device)
_TYPES = tuple(_fields_of(DeviceAttribute))
_LISTS = ("bools", "ints", "strings", "versions")
# In Go the fields are called `StringValue` and so on, and some documents have those names.
_MEANT = {name: name for name in _TYPES} | {f"{name}value": name for name in _TYPES}
_CAPACITY = shape.of(DeviceCapacity)


@dataclass(frozen=True, slots=True)
class Template:
    """One entry of a list of devices: what the API would have, and what it has not."""

    given: Given
    document: dict[str, Any]
    count: int | None
    driver: Given | None


def template(given: Given, report: Report) -> Template | None:
    """An entry in the form of the API; None if it is not even an object."""
    if not isinstance(given.value, Mapping):
        what = f"expected a device, got {described(given.value)}"
        report.refuse(given.path, what, "write it as in {name: gpu-0}")
        return None
    hint = "put what is in it into the device itself" if "basic" in given.value else ""
    found = fields(given, (*_DEVICE, "count", "driver"), report, hint=hint)
    count = found.pop("count", None)
    driver = found.pop("driver", None)
    document = {name: _field(name, each, report) for name, each in found.items()}
    return Template(given, document, _count(count, document, report), driver)


def _field(name: str, given: Given, report: Report) -> Any:
    match name:
        case "attributes":
            return _named(given, "attribute", _attribute, report)
        case "capacity":
            return _named(given, "capacity", _capacity, report)
        case _:
            return folded(given, _DEVICE[name], report)


def _count(given: Given | None, document: Mapping[str, Any], report: Report) -> int | None:
    if given is None:
        return None
    count = given.value
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if not isinstance(count, int) or isinstance(count, bool):
        fix = "write a whole number without quotes, as in count: 8"
        report.refuse(given.path, f"expected a number of devices, got {described(count)}", fix)
        return None
    if not 1 <= count <= COUNT_MAX:
        fix = f"write a number from 1 to {COUNT_MAX}"
        report.refuse(given.path, f"{count} is not a possible number of devices", fix)
        return None
    first, last = (f"{document.get('name', '')}-{number}" for number in (0, count - 1))
    made = f"the devices {first} to {last}" if count > 1 else f"the device {first}"
    report.remark(
        Topic.SPELLING,
        given.path,
        f"the API has no field count; dryrack creates {made}",
        "list the devices, if other programs read this file",
    )
    return count


def _named(
    given: Given, what: str, form: Callable[[str, Given, Report], Any], report: Report
) -> Any:
    """A map from names that the user chooses, with names and values put right."""
    found: dict[str, Any] = {}
    if not isinstance(given.value, Mapping):
        return given.value
    for written, each in entries(given, report):
        name = _name(written, what, each, report)
        if name in found:
            report.refuse(each.path, f"two entries are named {name!r}", "rename one of them")
        value = form(written, each, report)
        if name is not None and value is not None:
            found[name] = value
    return found


def _name(written: str, what: str, given: Given, report: Report) -> str | None:
    """The name as the API allows it; None if only its author can put it right."""
    problems = list(qualified_name("", written))
    if not problems:
        return written
    better = names.identifier(written)
    too_long = len(written.rpartition("/")[2]) > IDENTIFIER_BYTES_MAX
    if too_long or any(qualified_name("", better)):
        for problem in problems:
            report.refuse(given.path, problem.message, fix_of(problem))
        return None
    message = f"{what} name {written!r} is not allowed by the API"
    report.remark(Topic.ATTRIBUTE_NAME, given.path, message, f"write {better!r}")
    return better


def _attribute(name: str, given: Given, report: Report) -> Any:
    form = _typed(given, report)
    if form is None:
        return None
    is_plain = isinstance(given.value, Mapping) and all(key in _TYPES for key in given.value)
    if not is_plain and len(form) == 1:
        ((kind, value),) = form.items()
        message = f"attribute {name!r} is not in the form of the API"
        fix = f"write {{{kind}: {_shown(value)}}}"
        report.remark(Topic.ATTRIBUTE_FORM, given.path, message, fix)
    meant = names.amount(form["string"]) if isinstance(form.get("string"), str) else None
    if meant is not None:
        message = f"attribute {name!r} is a quantity; selectors cannot compare it as a string"
        fix = f"move it to capacity: {names.identifier(name)}: {{value: {meant}}}"
        report.remark(Topic.AMOUNT, given.path, message, fix)
    return form


def _typed(given: Given, report: Report) -> dict[str, Any] | None:
    """The attribute as an object with the name of its type; None if it has none."""
    match given.value:
        case bool():
            return {"bool": given.value}
        case int():
            return {"int": given.value}
        case str():
            return {"string": given.value}
        case Mapping():
            return _spelt(given, report)
        case float():
            report.refuse(
                given.path, f"expected an attribute, got {described(given.value)}", quoting(given)
            )
        case _:
            report.refuse(
                given.path, f"expected an attribute, got {described(given.value)}", _ONE_OF
            )
    return None


def _spelt(given: Given, report: Report) -> dict[str, Any] | None:
    form: dict[str, Any] = {}
    for key, value in given.value.items():
        kind = _MEANT.get(key.lower())
        if kind is None or kind in form:
            what = "unknown type" if kind is None else "a second value of type"
            report.refuse((*given.path, key), f"{what} {key!r}", _ONE_OF)
            return None
        form[kind] = value
    lists = [kind for kind in form if kind in _LISTS]
    if lists:
        what = f"{lists[0]!r} is behind the feature gate DRAListTypeAttributes, which is off"
        report.refuse(given.path, f"{what} in Kubernetes 1.36", _ONE_OF)
        return None
    if not form:
        report.refuse(given.path, "exactly one value must be specified", _ONE_OF)
    return form or None


def _capacity(name: str, given: Given, report: Report) -> Any:
    if isinstance(given.value, str | int | float) and not isinstance(given.value, bool):
        message = f"capacity {name!r} is not in the form of the API"
        fix = f"write {{value: {given.value}}}"
        report.remark(Topic.ATTRIBUTE_FORM, given.path, message, fix)
        return {"value": given.value}
    if given.value is None:
        report.refuse(given.path, "expected a quantity, got null", "write {value: 16Gi}")
        return None
    return folded(given, _CAPACITY, report)


def _shown(value: Any) -> str:
    """The value as one would write it in YAML."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    is_word = value.replace("-", "").replace("_", "").replace(".", "").isalnum()
    is_text = is_word and isinstance(scalars.plain(value), str)
    return value if is_text else json.dumps(value, ensure_ascii=False)


def expanded(device: Device, count: int | None) -> Iterator[str]:
    """The names of the devices that an entry stands for."""
    if count is None:
        yield device.name
        return
    for number in range(count):
        yield f"{device.name}-{number}"
