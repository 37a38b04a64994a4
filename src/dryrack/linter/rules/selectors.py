"""
DR4xx: classes and selectors, tried on every device in the files.

An expression that compiles can still pick nothing, or end in an error on a device that its
author never thought of. The first leaves pods pending; the second stops the scheduling of
every pod whose search meets that device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.hardware.names import amount, driver_name, quoted, suggestion
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
    """Whether the selectors, and not what came before them, leave no device."""
    selected = use.selected
    # A name that cannot exist is reported by itself, with its own fix.
    is_told = any(_impossible_names(each) for each in use.selectors)
    blameless = is_told or not selected.compiled or selected.failures or not use.among.shapes
    return bool(use.selectors) and not selected.shapes and not blameless


def _nothing(use: _Use, world: World, remark: str) -> Problem:
    texts = [each.cel.expression for each in use.selectors if each.cel]
    total = use.among.device_count
    return Problem(
        use.entry,
        use.expression(0) if len(texts) == 1 else (*use.path, "selectors"),
        f"{use.owner} matches none of the {total} {remark}",
        expressions.hint(texts, world.selection.everything)
        or "change the expression, or add a device that it matches",
    )


@RULES.rule(
    "DR401",
    "class-serves-nothing",
    Severity.WARNING,
    summary="A class matches no device in the files.",
)
def class_serves_nothing(world: World) -> Iterator[Problem]:
    """
    Every claim that names the class stays pending. The usual cause is a driver's name. Classes of
    known drivers may wait for their devices: a driver installs all of its classes on any node.
    """
    for entry, use in zip(world.classes, _class_uses(world), strict=True):
        if _picks_nothing(use) and entry.value.metadata.name not in KNOWN_CLASSES:
            yield _nothing(use, world, "devices in the files")


@RULES.rule(
    "DR402",
    "request-matches-nothing",
    Severity.WARNING,
    summary="A request matches no device of its class in the files.",
)
def request_matches_nothing(world: World) -> Iterator[Problem]:
    """
    The claim stays pending. Attribute values are compared exactly, upper case and all. An
    alternative may match nothing as long as another one of the request can be served.
    """
    for ask, use in zip(world.asks, _ask_uses(world), strict=True):
        if _picks_nothing(use) and not world.has_way_out(ask):
            yield _nothing(use, world, "devices that its class leaves")


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
        f"on {where} the expression ends in the error {failure.message!r}, which stops the"
        " scheduling of the pod",
        fix,
    )


@RULES.rule(
    "DR403",
    "attribute-missing",
    Severity.ERROR,
    summary="A selector reads an attribute that some device it reaches does not have.",
)
def attribute_missing(world: World) -> Iterator[Problem]:
    """
    A missing attribute is not false but an error ("no such key"), and an error ends the
    scheduling of the pod on all nodes. Classes see every device of every driver: test the
    driver first, or ask whether the attribute is there.
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
    summary="A selector ends in an error on some device that it reaches.",
)
def selector_fails(world: World) -> Iterator[Problem]:
    """
    Attributes have no type until the expression runs. A comparison of the wrong types, a
    result that is not true or false, or more work than the limit allows is an error then,
    and ends the scheduling of the pod on all nodes.
    """
    for use, failure in _failures(world):
        if expressions.missing_key(failure.message) is None:
            yield _failure_problem(use, failure, "make the expression fit the device's values")


@RULES.rule(
    "DR405",
    "amount-compared-as-text",
    Severity.WARNING,
    summary="A selector compares an amount as text.",
)
def amount_compared_as_text(world: World) -> Iterator[Problem]:
    """
    As text, "80Gi" is less than "9Gi". Quantities compare by value. Equality is not reported: an
    attribute such as a link speed can be a label.
    """
    for use in _uses(world):
        for index, selector in enumerate(use.selectors):
            text = selector.cel.expression if selector.cel else ""
            for literal in expressions.texts_ordered(text):
                if amount(literal) is not None:
                    yield Problem(
                        use.entry,
                        use.expression(index),
                        f"the amount {literal!r} is compared as text",
                        "publish it as capacity and write"
                        f' .compareTo(quantity("{amount(literal)}")) >= 0',
                    )


@RULES.rule(
    "DR408",
    "driver-name-impossible",
    Severity.WARNING,
    summary="A selector names a driver that cannot exist.",
)
def driver_name_impossible(world: World) -> Iterator[Problem]:
    """
    The name of a driver is a DNS name, without a slash, and so is the domain of an attribute. A
    test for another name is accepted by the API server and never true.
    """
    for use in _uses(world):
        for index, selector in enumerate(use.selectors):
            for name in _impossible_names(selector):
                valid = driver_name(name)
                yield Problem(
                    use.entry,
                    use.expression(index),
                    f"no driver can have the name {name!r}, so nothing matches it",
                    suggestion(name, world.drivers) or f"write {valid!r}",
                )


def _impossible_names(selector: DeviceSelector) -> list[str]:
    """Return the drivers that a selector names and the API allows nobody to be."""
    text = selector.cel.expression if selector.cel else ""
    return [each for each in expressions.domains_named(text) if driver_name(each) != each.lower()]


@RULES.rule(
    "DR406",
    "class-without-selector",
    Severity.WARNING,
    summary="A class has no selector, so it serves every device of every driver.",
)
def class_without_selector(world: World) -> Iterator[Problem]:
    """A claim of such a class may be given a network card where a GPU was meant."""
    for entry in world.classes:
        if not entry.value.spec.selectors:
            drivers = f" ({quoted(world.drivers)})" if world.drivers else ""
            yield Problem(
                entry,
                ("spec",),
                f"class {entry.value.metadata.name!r} serves every device of every driver{drivers}",
                "add a selector such as device.driver == "
                f'"{world.drivers[0] if world.drivers else "driver.example.com"}"',
            )


@RULES.rule(
    "DR407",
    "extended-resource-taken",
    Severity.WARNING,
    summary="Two classes stand for the same extended resource.",
)
def extended_resource_taken(world: World) -> Iterator[Problem]:
    """
    The newer class wins, and of two that are equally new the one whose name sorts first; a
    pod that asks for the extended resource gets devices that nobody chose.
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
                f"extended resource {name!r} already stands for class {first!r}",
                "give each class a name of its own",
            )
