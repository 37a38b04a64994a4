"""
DR504 to DR506: constraints that no device satisfies, or that have no effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.names import suggestion
from dryrack.kinds.validation.claims import CONSTRAINTS_MAX, REQUESTS_MAX
from dryrack.linter.asks import asks_of
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.resource import DeviceConstraint
    from dryrack.linter.asks import Ask
    from dryrack.linter.finding import Path
    from dryrack.linter.world import ClaimEntry, World

RULES = Registry()


def _covers(constraint_requests: tuple[str, ...], ask: Ask) -> bool:
    return not constraint_requests or any(
        each in (ask.name, ask.request) for each in constraint_requests
    )


def _constraints(world: World) -> Iterator[tuple[ClaimEntry, Path, DeviceConstraint, list[Ask]]]:
    for claim in world.claims:
        devices = claim.spec.devices
        # The API refuses more, as DR115 says; comparing each with each would take minutes.
        if len(devices.requests) > REQUESTS_MAX or len(devices.constraints) > CONSTRAINTS_MAX:
            continue
        asks = list(asks_of(claim))
        for index, constraint in enumerate(devices.constraints):
            path = (*claim.path, "devices", "constraints", index)
            yield claim, path, constraint, [a for a in asks if _covers(constraint.requests, a)]


def _attribute(constraint: DeviceConstraint) -> tuple[str, str]:
    """The field that counts, and the attribute it names."""
    if constraint.match_attribute is not None:
        return "matchAttribute", constraint.match_attribute
    return "distinctAttribute", constraint.distinct_attribute or ""


@RULES.rule(
    "DR504",
    "constraint-attribute-missing",
    Severity.WARNING,
    summary="A constraint uses an attribute that no matching device has.",
)
def constraint_attribute_missing(world: World) -> Iterator[Problem]:
    """A device without the attribute cannot satisfy the constraint, so no device matches."""
    for claim, path, constraint, asks in _constraints(world):
        field, attribute = _attribute(constraint)
        lacking = [ask for ask in asks if _lacks(world, ask, attribute)]
        for ask in lacking:
            if any(other.request == ask.request and other not in lacking for other in asks):
                # Another alternative of the request has it.
                continue
            names = world.candidates(ask).names_of("attributes")
            yield Problem(
                claim.entry,
                (*path, field),
                f"no device that matches request {ask.name!r} has attribute {attribute!r}",
                suggestion(attribute, names) or "use an attribute that the devices have",
            )


def _lacks(world: World, ask: Ask, attribute: str) -> bool:
    """Return whether there are devices for the ask and no device has the attribute."""
    selected = world.candidates(ask)
    is_absent = "/" in attribute and attribute not in selected.names_of("attributes")
    return is_absent and bool(selected.shapes)


@RULES.rule(
    "DR505",
    "constraint-over-one-device",
    Severity.WARNING,
    summary="A constraint covers a single device, so it has no effect.",
)
def constraint_over_one_device(world: World) -> Iterator[Problem]:
    """
    A single device always satisfies the constraint. Often the constraint lists one request but
    needs two, or its author expects it to apply across claims, which is not possible.
    """
    for claim, path, _, asks in _constraints(world):
        requests = {ask.request for ask in asks}
        several = any(ask.is_all or ask.count > 1 for ask in asks)
        if len(requests) == 1 and not several:
            yield Problem(
                claim.entry,
                path,
                f"the constraint covers only the one device of request {asks[0].name!r}",
                "list all requests that the constraint applies to, or remove it",
            )


@RULES.rule(
    "DR506",
    "constraint-has-both",
    Severity.WARNING,
    summary="A constraint has matchAttribute and distinctAttribute; only the first has an effect.",
)
def constraint_has_both(world: World) -> Iterator[Problem]:
    """The API server accepts both fields, but the scheduler ignores `distinctAttribute`."""
    for claim, path, constraint, _ in _constraints(world):
        if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
            yield Problem(
                claim.entry,
                (*path, "distinctAttribute"),
                "distinctAttribute has no effect together with matchAttribute",
                "write two constraints",
            )
