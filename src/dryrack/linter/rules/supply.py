"""
DR5xx, continued: claims that ask for more than there is.

All of these count devices in the files, so they hold only as far as the files are the whole
fleet, and are warnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.names import suggestion
from dryrack.linter.asks import asks_of
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.linter.asks import Ask
    from dryrack.linter.reach import Reach
    from dryrack.linter.world import ClaimEntry, World

RULES = Registry()


def _reach(world: World, ask: Ask) -> Reach:
    return world.supply.reach([world.candidates(ask)], ask.details.tolerations)


def _is_countable(world: World, ask: Ask) -> bool:
    """
    Return whether a count that is too high is the end: nothing else fits, and none is shared.

    Of a class that is not in the files nobody knows the devices.
    """
    if ask.details.device_class_name not in world.class_of or world.has_way_out(ask):
        return False
    selected = world.candidates(ask)
    once = not any(placed.device.allow_multiple_allocations for placed in selected.examples)
    return selected.compiled and once and _reach(world, ask).count > 0


@RULES.rule(
    "DR502",
    "more-than-any-node-has",
    Severity.WARNING,
    summary="A claim asks for more devices than any node in the files has.",
)
def more_than_any_node_has(world: World) -> Iterator[Problem]:
    """
    All devices of a claim must be reachable from one node. The claim stays pending however
    many nodes there are.
    """
    for claim in world.claims:
        asks = [ask for ask in asks_of(claim) if _is_countable(world, ask)]
        too_large = [ask for ask in asks if ask.count > _reach(world, ask).count]
        for ask in too_large:
            reach = _reach(world, ask)
            where = f"node {reach.node!r}" if reach.node else "a node"
            yield Problem(
                claim.entry,
                (*ask.path, "count"),
                f"request {ask.name!r} asks for {ask.count} devices, but {where} has the most"
                f" that it could use, {reach.count}",
                f"ask for at most {reach.count}",
            )
        if not too_large:
            yield from _more_in_all(world, claim, asks)


def _more_in_all(world: World, claim: ClaimEntry, asks: list[Ask]) -> Iterator[Problem]:
    """The requests of a claim share what a node has."""
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
            f"the requests ask for {wanted} devices together, but no node has more than"
            f" {reach.count} that they could use{f' (node {reach.node!r})' if reach.node else ''}",
            f"ask for at most {reach.count} in all",
        )


@RULES.rule(
    "DR511",
    "only-tainted-devices",
    Severity.WARNING,
    summary="Every device that matches a request is tainted, and the request tolerates none.",
)
def only_tainted_devices(world: World) -> Iterator[Problem]:
    """Taints with the effects NoSchedule and NoExecute keep requests away that do not tolerate."""
    for ask in world.asks:
        selected = world.candidates(ask)
        if not selected.shapes or not selected.compiled or world.has_way_out(ask):
            continue
        if not _reach(world, ask).count:
            taints = next(placed.device.taints for placed in selected.devices)
            if not taints:
                # The devices are free of taints but on nodes that are not in the files.
                continue
            yield Problem(
                ask.claim.entry,
                ask.path,
                f"every device that matches request {ask.name!r} is tainted, the first with"
                f" {taints[0].key!r}",
                f"add a toleration such as {{key: {taints[0].key}, operator: Exists}}",
            )


@RULES.rule(
    "DR508",
    "capacity-missing",
    Severity.WARNING,
    summary="A request wants a capacity that no matching device has.",
)
def capacity_missing(world: World) -> Iterator[Problem]:
    """
    A device without the capacity is passed over. The name must be spelt as in the slice:
    here the driver's domain is not filled in, unlike in selectors.
    """
    for ask in world.asks:
        selected = world.candidates(ask)
        known = {name for placed in selected.examples for name in placed.device.capacity}
        for name in ask.details.capacity.requests if ask.details.capacity else ():
            if selected.shapes and name not in known and not world.has_way_out(ask):
                yield Problem(
                    ask.claim.entry,
                    (*ask.path, "capacity", "requests", name),
                    f"no device that matches request {ask.name!r} has capacity {name!r}",
                    suggestion(name, known) or "name one that they have",
                )


@RULES.rule(
    "DR509",
    "capacity-too-large",
    Severity.WARNING,
    summary="A request wants more of a capacity than any matching device has.",
)
def capacity_too_large(world: World) -> Iterator[Problem]:
    """Capacity is not added up over devices: each one must have what is asked."""
    for ask in world.asks:
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
                    f"request {ask.name!r} wants {quantity} of {name!r}, and the largest device"
                    f" that matches has {max(sizes)}",
                    f"ask for at most {max(sizes)}",
                )
