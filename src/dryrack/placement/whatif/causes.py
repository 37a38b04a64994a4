"""
The nearest cause of a refusal, in a sentence, and causes that are about no node.

No node is named for a class that does not exist, nor for a driver without a ResourceSlice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.allocation import Code, Obstacle
from dryrack.cel.selector_parts import compared_texts, split
from dryrack.hardware.names import suggestion
from dryrack.placement.whatif.explain import NodeExplanation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dryrack.kinds.resource import DeviceSelector, ResourceClaim
    from dryrack.placement.whatif.world import World

# Counted in the first sentence of a request.
_COUNTED = (Code.IN_USE, Code.CAPACITY_SHORT, Code.COUNTER_SHORT)


def cause_of(nodes: Sequence[NodeExplanation]) -> str:
    """Return the causes on the nearest node; empty if nothing is known."""
    if not nodes:
        return ""
    story = nodes[0]
    facts = [each.fact for each in story.obstacles if each.code is Code.NODE]
    of_devices = [each for each in story.obstacles if each.code is not Code.NODE]
    if of_devices:
        facts.append("; ".join(_of_request(of_devices)))
    if not story.node:
        return "; ".join(each.message for each in story.obstacles)
    count = len(story.alike)
    more = f" and {count} {'node' if count == 1 else 'nodes'} like it" if count else ""
    return f"node {story.node}{more}: {'; '.join(facts)}"


def _of_request(obstacles: Sequence[Obstacle]) -> Iterator[str]:
    """Yield the shortage of the first request, and why its nearest device does not fit."""
    first = obstacles[0]
    yield first.sentence
    for each in obstacles[1:]:
        if each.devices and each.request == first.request and each.code not in _COUNTED:
            count = len(each.devices) - 1
            more = f" and {count} more" if count else ""
            yield f"{each.devices[0]}{more}: {each.fact}"
            return


def missing_class(world: World, claims: Iterable[ResourceClaim]) -> tuple[NodeExplanation, ...]:
    """Return the story of a class that claims ask for and that does not exist."""
    known = [each.metadata.name for each in world.classes]
    for claim in claims:
        for request in claim.spec.devices.requests:
            asks = (request.exactly, *request.first_available)
            for name in (each.device_class_name for each in asks if each is not None):
                if name not in known:
                    remedy = suggestion(name, known) or "create it"
                    fact = f"device class {name} does not exist"
                    obstacle = Obstacle(request.name, Code.ERROR, fact, remedy, ())
                    return (NodeExplanation("", 0, (obstacle,)),)
    return ()


def missing_driver(world: World, claims: Iterable[ResourceClaim]) -> tuple[NodeExplanation, ...]:
    """Return the story of a driver that claims ask for and no ResourceSlice is of."""
    published = {each.spec.driver for each in world.slices}
    classes = {each.metadata.name: each for each in world.classes}
    for claim in claims:
        for request in claim.spec.devices.requests:
            ask = request.exactly
            if ask is None or ask.device_class_name not in classes:
                continue
            selectors = (*classes[ask.device_class_name].spec.selectors, *ask.selectors)
            for driver in _drivers(selectors):
                if driver not in published:
                    fact = f"no ResourceSlice of driver {driver} exists"
                    remedy = "install the driver, or check that it runs on the nodes"
                    obstacle = Obstacle(request.name, Code.NO_DEVICES, fact, remedy, ())
                    return (NodeExplanation("", ask.count, (obstacle,)),)
    return ()


def _drivers(selectors: Iterable[DeviceSelector]) -> Iterator[str]:
    """Yield the drivers that devices must have by a condition of a selector."""
    for selector in selectors:
        expression = selector.cel.expression if selector.cel is not None else ""
        for condition in split(expression):
            compared = compared_texts(condition)
            if len(compared) == 1 and compared[0][0].kind == "driver" and "==" in condition:
                yield str(compared[0][1].value)
