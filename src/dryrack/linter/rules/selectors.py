"""
DR4xx: classes and selectors, tried on every device in the files.

An expression that compiles can still pick nothing, or end in an error on a device that its
author never thought of. The first leaves pods pending; the second stops the scheduling of
every pod whose search meets that device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware.names import amount, quoted
from dryrack.linter import expressions
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.known_classes import KNOWN_CLASSES
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.resource import DeviceSelector
    from dryrack.linter.finding import Path
    from dryrack.linter.selection import Failure, Selected
    from dryrack.linter.world import Entry, World

RULES = Registry()


@dataclass(frozen=True, slots=True)
class _Use:
    """
    A list of selectors where it is written, and what it is tried on.

    Without its class, what reaches a request is not certain: a class may keep devices away.
    """

    entry: Entry[object]
    path: Path
    owner: str
    selectors: Sequence[DeviceSelector]
    among: Selected
    selected: Selected
    is_certain: bool = True

    def expression(self, index: int) -> Path:
        return (*self.path, "selectors", index, "cel", "expression")


def _class_uses(world: World) -> Iterator[_Use]:
    everything = world.selection.everything
    for entry in world.classes:
        selectors = entry.value.spec.selectors
        selected = world.selection.select(selectors, everything)
        owner = f"class {entry.value.metadata.name!r}"
        yield _Use(entry, ("spec",), owner, selectors, everything, selected)


def _ask_uses(world: World) -> Iterator[_Use]:
    for ask in world.asks:
        name = ask.details.device_class_name
        yield _Use(
            entry=ask.claim.entry,
            path=ask.path,
            owner=f"request {ask.name!r}",
            selectors=ask.details.selectors,
            among=world.served_by(name),
            selected=world.candidates(ask),
            is_certain=name in world.class_of,
        )


def _uses(world: World) -> Iterator[_Use]:
    yield from _class_uses(world)
    yield from _ask_uses(world)


def _picks_nothing(use: _Use) -> bool:
    """Return whether the selectors leave no device of those that were selected before."""
    selected = use.selected
    # A name that cannot exist is reported by itself, with its own fix.
    is_told = any(_impossible_names(each) for each in use.selectors)
    blameless = is_told or not selected.compiled or selected.failures or not use.among.shapes
    return bool(use.selectors) and not selected.shapes and not blameless


def _empty_selection(use: _Use, world: World, remark: str) -> Problem:
    texts = [each.cel.expression for each in use.selectors if each.cel]
    total = use.among.device_count
    return Problem(
        use.entry,
        use.expression(0) if len(texts) == 1 else (*use.path, "selectors"),
        f"{use.owner} matches none of the {total} {remark}",
        expressions.hint(texts, world.selection.everything)
        or "correct the expression, or add a device that it matches",
    )


@RULES.rule(
    "DR401",
    "class-serves-nothing",
    Severity.WARNING,
    summary="A class matches no device in the files.",
)
def class_serves_nothing(world: World) -> Iterator[Problem]:
    """
    Every claim that uses the class stays pending. The usual cause is a wrong driver name. The rule
    does not report classes of known drivers, because a driver installs its classes before it has
    devices.
    """
    for entry, use in zip(world.classes, _class_uses(world), strict=True):
        if _picks_nothing(use) and entry.value.metadata.name not in KNOWN_CLASSES:
            yield _empty_selection(use, world, "devices in the files")


@RULES.rule(
    "DR402",
    "request-matches-nothing",
    Severity.WARNING,
    summary="A request matches no device of its class in the files.",
)
def request_matches_nothing(world: World) -> Iterator[Problem]:
    """
    The claim stays pending. Attribute values are case-sensitive. The rule does not report an
    alternative if another alternative of the request can be allocated, or a request for devices
    of a driver that is not in the files if its class is not in the files either.
    """
    for ask, use in zip(world.asks, _ask_uses(world), strict=True):
        if not _picks_nothing(use) or world.has_way_out(ask):
            continue
        if use.is_certain:
            yield _empty_selection(use, world, "devices of its class")
        elif not _names_other_drivers(use, world):
            yield _empty_selection(use, world, "devices in the files")


def _names_other_drivers(use: _Use, world: World) -> bool:
    """Return whether the selectors name a driver that has no devices in the files."""
    texts = [each.cel.expression for each in use.selectors if each.cel]
    names = {name for text in texts for name in expressions.domains_named(text)}
    return not names <= {*world.drivers}


def _failures(world: World) -> Iterator[tuple[_Use, Failure]]:
    for use in _uses(world):
        if use.is_certain and use.among.compiled and use.selected.compiled:
            for failure in use.selected.failures:
                yield use, failure


def _failure_problem(use: _Use, failure: Failure, fix: str) -> Problem:
    others = failure.device_count - 1
    where = f"device {failure.example.id}" + (f" and {others} more" if others else "")
    return Problem(
        use.entry,
        use.expression(failure.selector),
        f"on {where} the expression fails with the error {failure.message!r}, which stops the"
        " scheduling of the pod",
        fix,
    )


@RULES.rule(
    "DR403",
    "attribute-missing",
    Severity.ERROR,
    summary="A selector reads an attribute that a device does not have.",
)
def attribute_missing(world: World) -> Iterator[Problem]:
    """
    Reading a missing attribute is an error ("no such key"), and an error stops the scheduling of
    the pod on all nodes. The selectors of a class run for the devices of all drivers: test the
    driver first, or test that the attribute exists.
    """
    for use, failure in _failures(world):
        key = expressions.missing_key(failure.message)
        if key is not None:
            fix = expressions.guard(failure.expression, key, world.selection.everything)
            yield _failure_problem(use, failure, fix)


@RULES.rule(
    "DR404",
    "selector-fails",
    Severity.ERROR,
    summary="A selector fails with an error on a device.",
)
def selector_fails(world: World) -> Iterator[Problem]:
    """
    The types of attributes are known only when the expression runs. A comparison of different
    types, a result that is not a boolean, and a cost above the limit are errors. An error stops
    the scheduling of the pod on all nodes.
    """
    for use, failure in _failures(world):
        if expressions.missing_key(failure.message) is None:
            yield _failure_problem(use, failure, "change the expression to fit the device's values")


@RULES.rule(
    "DR405",
    "amount-compared-as-text",
    Severity.WARNING,
    summary="A selector compares an amount as a string.",
)
def amount_compared_as_text(world: World) -> Iterator[Problem]:
    """
    As strings, "80Gi" is less than "9Gi". Quantities compare by value. The rule does not report
    tests for equality, because an attribute such as a link speed can be a label.
    """
    for use in _uses(world):
        for index, selector in enumerate(use.selectors):
            if use.is_certain and any(each.selector == index for each in use.selected.failures):
                # The error on a device is reported, with its own fix.
                continue
            text = selector.cel.expression if selector.cel else ""
            for literal in expressions.texts_ordered(text):
                if amount(literal) is not None:
                    yield Problem(
                        use.entry,
                        use.expression(index),
                        f"the expression compares the amount {literal!r} as a string",
                        "publish it as capacity and use"
                        f' .compareTo(quantity("{amount(literal)}")) >= 0',
                    )


@RULES.rule(
    "DR408",
    "driver-name-impossible",
    Severity.WARNING,
    summary="A selector uses the name of a driver that cannot exist.",
)
def driver_name_impossible(world: World) -> Iterator[Problem]:
    """
    The name of a driver, and the domain of an attribute, is a DNS name without a slash. The API
    server accepts a test for another name, but no device has that name.
    """
    for use in _uses(world):
        for index, selector in enumerate(use.selectors):
            for name in _impossible_names(selector):
                yield Problem(
                    use.entry,
                    use.expression(index),
                    f"{name!r} is not a valid driver name, so no device matches it",
                    expressions.valid_driver(name, world.drivers),
                )


def _impossible_names(selector: DeviceSelector) -> list[str]:
    """Return the driver names in a selector that the API does not allow."""
    text = selector.cel.expression if selector.cel else ""
    return [
        each for each in expressions.domains_named(text) if not expressions.is_driver_name(each)
    ]


@RULES.rule(
    "DR406",
    "class-without-selector",
    Severity.WARNING,
    summary="A class has no selector, so it matches every device of every driver.",
)
def class_without_selector(world: World) -> Iterator[Problem]:
    """A claim of such a class can get a network device instead of a GPU."""
    for entry in world.classes:
        if not entry.value.spec.selectors:
            drivers = f" ({quoted(world.drivers)})" if world.drivers else ""
            yield Problem(
                entry,
                ("spec",),
                f"class {entry.value.metadata.name!r} matches all devices of all drivers{drivers}",
                "add a selector such as device.driver == "
                f'"{world.drivers[0] if world.drivers else "driver.example.com"}"',
            )


@RULES.rule(
    "DR407",
    "extended-resource-taken",
    Severity.WARNING,
    summary="Two classes have the same extended resource name.",
)
def extended_resource_taken(world: World) -> Iterator[Problem]:
    """
    The scheduler uses the newer class, or the first by name if both were created at the same time.
    A pod that requests the extended resource can get devices of the wrong class.
    """
    seen: dict[str, str] = {}
    for entry in world.classes:
        name = entry.value.spec.extended_resource_name
        if not name:
            continue
        first = seen.setdefault(name, entry.value.metadata.name)
        if first != entry.value.metadata.name:
            yield Problem(
                entry,
                ("spec", "extendedResourceName"),
                f"class {first!r} already has the extended resource name {name!r}",
                "give each class its own extended resource name",
            )
