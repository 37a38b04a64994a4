"""
DR3xx: devices that are published in a way that selectors cannot use.

All of these pass the API server. A fleet repeats one mistake on every device, so each rule
speaks once per driver and name, at the first place, and says how many others there are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from dryrack.hardware.names import amount, qualified
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.resource import DeviceAttribute
    from dryrack.linter.world import PlacedDevice, World

RULES = Registry()

_WHOLE = re.compile(r"0|[1-9][0-9]*")
_DOTTED = re.compile(r"(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){1,2}")
# Names of identifiers, which are compared but never measured.
_NAMING = re.compile(r"(?i)(^|_)(uu)?id$|serial|bus|address|slot|uid")


def _strings(world: World) -> Iterator[tuple[PlacedDevice, str, str]]:
    for placed in world.devices:
        for name, attribute in placed.device.attributes.items():
            if attribute.string_value is not None:
                yield placed, name, attribute.string_value


def _once_per_name(
    found: Iterable[tuple[PlacedDevice, str, str]],
) -> Iterator[tuple[PlacedDevice, str, str, str]]:
    """Yield the first place of each driver and name, and how many others there are."""
    places: dict[tuple[str, str], list[tuple[PlacedDevice, str, str]]] = defaultdict(list)
    for place in found:
        placed, name, _ = place
        places[placed.entry.value.spec.driver, name].append(place)
    for first, *others in places.values():
        more = f", as on {len(others)} more devices of the driver" if others else ""
        yield (*first, more)


@RULES.rule(
    "DR301",
    "amount-as-string",
    Severity.WARNING,
    summary="An amount is published as a string attribute.",
)
def amount_as_string(world: World) -> Iterator[Problem]:
    """
    Selectors can compare a string only as text, so "at least 40Gi" is not possible, and a claim
    cannot request a part of the amount. Publish amounts in `capacity`.
    """
    meant = ((placed, name, text) for placed, name, text in _strings(world) if amount(text))
    for placed, name, text, others in _once_per_name(meant):
        yield Problem(
            placed.entry,
            (*placed.path, "attributes", name, "string"),
            f"attribute {name!r} is the string {text!r}, which selectors cannot compare as an"
            f" amount{others}",
            f"move it to capacity: {name}: {{value: {amount(text)}}}",
        )


@RULES.rule(
    "DR302",
    "number-as-string",
    Severity.INFO,
    summary="A number or version is published as a string attribute.",
)
def number_as_string(world: World) -> Iterator[Problem]:
    """Strings compare letter by letter: "10" is less than "9", and "9.0" is not "9.0.0"."""
    numbers = (
        (placed, name, text)
        for placed, name, text in _strings(world)
        if (_WHOLE.fullmatch(text) or _DOTTED.fullmatch(text)) and not _NAMING.search(name)
    )
    for placed, name, text, others in _once_per_name(numbers):
        yield Problem(
            placed.entry,
            (*placed.path, "attributes", name, "string"),
            f"attribute {name!r} is the string {text!r}, which does not compare as a number"
            f"{others}",
            f"write {{int: {text}}}"
            if "." not in text
            else f"write {{version: {'.'.join(([*text.split('.'), '0'])[:3])}}}",
        )


def _type(attribute: DeviceAttribute) -> str:
    for name in ("int", "bool", "string", "version"):
        if getattr(attribute, f"{name}_value") is not None:
            return name
        if getattr(attribute, f"{name}_values") is not None:
            return f"{name}s"
    return ""


@RULES.rule(
    "DR303",
    "attribute-types-differ",
    Severity.WARNING,
    summary="One attribute has different types on different devices of a driver.",
)
def types_differ(world: World) -> Iterator[Problem]:
    """
    A selector expects one type. On a device with another type it is false or an error, and an
    error stops the scheduling of every pod whose claim reaches the device.
    """
    first: dict[str, tuple[PlacedDevice, str]] = {}
    told: set[str] = set()
    for placed in world.devices:
        for name, attribute in placed.device.attributes.items():
            full = qualified(name, placed.entry.value.spec.driver)
            has = _type(attribute)
            if not has:
                # The API refuses an attribute without a value.
                continue
            model, expected = first.setdefault(full, (placed, has))
            if has != expected and full not in told:
                told.add(full)
                yield Problem(
                    placed.entry,
                    (*placed.path, "attributes", name),
                    f"attribute {full!r} has type {has} here, but {expected} on device {model.id}",
                    "use one type on all devices",
                )


@RULES.rule(
    "DR304",
    "name-given-twice",
    Severity.ERROR,
    summary="A device has an attribute or capacity with its short and its full name.",
)
def given_twice(world: World) -> Iterator[Problem]:
    """
    A name without a domain belongs to the domain of the driver. If a device has both spellings, a
    selector reads one of the two values, and the choice can change between attempts.
    """
    for placed in world.devices:
        driver = placed.entry.value.spec.driver
        for kind in ("attributes", "capacity"):
            names = getattr(placed.device, kind)
            for name in names:
                if "/" not in name and f"{driver}/{name}" in names:
                    yield Problem(
                        placed.entry,
                        (*placed.path, kind, f"{driver}/{name}"),
                        f"{name!r} and '{driver}/{name}' of device {placed.device.name!r} are the"
                        " same name",
                        "keep one of them",
                    )


@RULES.rule(
    "DR305",
    "capacity-negative",
    Severity.WARNING,
    summary="A capacity is less than zero.",
)
def capacity_negative(world: World) -> Iterator[Problem]:
    """
    The API server accepts any quantity, but no request fits into a negative one. Zero is valid:
    the NVIDIA driver publishes it for the engines that a MIG profile does not have.
    """
    for placed in world.devices:
        for name, capacity in placed.device.capacity.items():
            if capacity.value.nanos < 0:
                yield Problem(
                    placed.entry,
                    (*placed.path, "capacity", name, "value"),
                    f"capacity {name!r} of device {placed.device.name!r} is {capacity.value}",
                    "set the capacity of the device, or leave it out",
                )
