"""
DR5xx, continued: claims that ask for more than there is.

All of these count devices in the files, so they hold only as far as the files are the whole
fleet, and are warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.names import suggestion
from dryrack.linter.asks import RESULTS_MAX, asks_of, least_devices
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.linter.asks import Ask
    from dryrack.linter.selection import Reach
    from dryrack.linter.world import ClaimEntry, World

RULES = Registry()


def _reach(world: World, ask: Ask) -> Reach:
    return world.supply.reach([world.candidates(ask)], ask.details.tolerations)


def _is_class_known(world: World, ask: Ask) -> bool:
    """Return whether the files have the class; the devices of other classes are unknown."""
    return ask.details.device_class_name in world.class_of


def _is_countable(world: World, ask: Ask) -> bool:
    """Return whether a too high count makes the claim impossible: no alternative, no sharing."""
    if not _is_class_known(world, ask) or world.has_way_out(ask):
        return False
    selected = world.candidates(ask)
    once = not any(placed.device.allow_multiple_allocations for placed in selected.examples)
    return selected.compiled and once and _reach(world, ask).count > 0


@RULES.rule(
    "DR502",
    "more-than-any-node-has",
    Severity.WARNING,
    summary="A claim requests more devices than any node in the files has.",
)
def more_than_any_node_has(world: World) -> Iterator[Problem]:
    """
    One node must be able to access all devices of a claim. The claim stays pending, regardless of
    the number of nodes. DR503 reports a claim that requests more than 32 devices.
    """
    for claim in world.claims:
        if least_devices(claim) > RESULTS_MAX:
            continue
        asks = [ask for ask in asks_of(claim) if _is_countable(world, ask)]
        too_large = [ask for ask in asks if ask.count > _reach(world, ask).count]
        for ask in too_large:
            reach = _reach(world, ask)
            where = f" (node {reach.node!r})" if reach.node else ""
            yield Problem(
                claim.entry,
                (*ask.path, "count"),
                f"request {ask.name!r} needs {ask.count} devices, but no node has more than"
                f" {reach.count} matching devices{where}",
                f"request at most {reach.count}",
            )
        if not too_large:
            yield from _more_in_all(world, claim, asks)


def _more_in_all(world: World, claim: ClaimEntry, asks: list[Ask]) -> Iterator[Problem]:
    """Yield a problem if the requests of a claim together need more than a node has."""
    exact = [ask for ask in asks if not (ask.is_alternative or ask.is_admin or ask.is_all)]
    selections = [world.candidates(ask) for ask in exact]
    tolerations = tuple(each for ask in exact for each in ask.details.tolerations)
    wanted = sum(ask.count for ask in exact)
    if len(exact) < 2:
        return
    reach = world.supply.reach(selections, tolerations)
    if wanted > reach.count:
        yield Problem(
            claim.entry,
            (*claim.path, "devices", "requests"),
            f"the requests together need {wanted} devices, but no node has more than"
            f" {reach.count} matching devices{f' (node {reach.node!r})' if reach.node else ''}",
            f"request at most {reach.count} in total",
        )


@RULES.rule(
    "DR511",
    "only-tainted-devices",
    Severity.WARNING,
    summary="All devices that match a request have taints that it does not tolerate.",
)
def only_tainted_devices(world: World) -> Iterator[Problem]:
    """A request without a toleration cannot get devices with NoSchedule or NoExecute taints."""
    for ask in world.asks:
        selected = world.candidates(ask)
        if not selected.shapes or not selected.compiled or world.has_way_out(ask):
            continue
        if not _is_class_known(world, ask):
            continue
        if not _reach(world, ask).count:
            taints = next(placed.device.taints for placed in selected.devices)
            if not taints:
                # The devices are free of taints but on nodes that are not in the files.
                continue
            yield Problem(
                ask.claim.entry,
                ask.path,
                f"all devices that match request {ask.name!r} have taints that it does not"
                f" tolerate, for example {taints[0].key!r}",
                f"add a toleration such as {{key: {taints[0].key}, operator: Exists}}",
            )


@RULES.rule(
    "DR508",
    "capacity-missing",
    Severity.WARNING,
    summary="A request needs a capacity that no matching device has.",
)
def capacity_missing(world: World) -> Iterator[Problem]:
    """
    The scheduler skips devices without the capacity. The name must be the same as in the slice:
    unlike in selectors, the domain of the driver is not added.
    """
    for ask in world.asks:
        if not _is_class_known(world, ask):
            continue
        selected = world.candidates(ask)
        known = {name for placed in selected.examples for name in placed.device.capacity}
        for name in ask.details.capacity.requests if ask.details.capacity else ():
            if selected.shapes and name not in known and not world.has_way_out(ask):
                yield Problem(
                    ask.claim.entry,
                    (*ask.path, "capacity", "requests", name),
                    f"no device that matches request {ask.name!r} has capacity {name!r}",
                    suggestion(name, known) or "use a capacity that the devices have",
                )


@RULES.rule(
    "DR509",
    "capacity-too-large",
    Severity.WARNING,
    summary="A request needs more of a capacity than any matching device has.",
)
def capacity_too_large(world: World) -> Iterator[Problem]:
    """Each device must have the requested capacity; the scheduler does not add up devices."""
    for ask in world.asks:
        if not _is_class_known(world, ask):
            continue
        wanted = ask.details.capacity.requests if ask.details.capacity else {}
        for name, quantity in wanted.items():
            sizes = [
                placed.device.capacity[name].value
                for placed in world.candidates(ask).examples
                if name in placed.device.capacity
            ]
            if sizes and max(sizes) < quantity and not world.has_way_out(ask):
                yield Problem(
                    ask.claim.entry,
                    (*ask.path, "capacity", "requests", name),
                    f"request {ask.name!r} needs {quantity} of {name!r}, but the largest matching"
                    f" device has {max(sizes)}",
                    f"request at most {max(sizes)}",
                )
