"""
DR5xx, continued: claims that ask for more than there is.

All of these count devices in the files, so they hold only as far as the files are the whole
fleet, and are warnings.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dryrack.hardware.lint import examples
from dryrack.hardware.lint.asks import asks_of
from dryrack.hardware.lint.finding import Problem, Severity
from dryrack.hardware.lint.names import suggestion
from dryrack.hardware.lint.registry import Registry, broken
from dryrack.kinds.selectors import tolerates_device_taint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.hardware.lint.asks import Ask
    from dryrack.hardware.lint.world import ClaimEntry, PlacedDevice, World

RULES = Registry()

# The effects that keep a request away; None is only a note.
_KEEPING_AWAY = ("NoSchedule", "NoExecute")

_SOUND = examples.join(examples.SLICE, examples.CLASS, examples.CLAIM)
_TAINT = """\
    taints:
    - {key: example.com/broken, effect: NoSchedule}
"""


def _availability(world: World, devices: Iterable[PlacedDevice]) -> tuple[int, str]:
    """The most of these devices that one node can reach, and the name of such a node."""
    shared, own = 0, Counter[str]()
    for placed in devices:
        node = placed.node_name
        if node is None:
            shared += 1
        else:
            own[node] += 1
    best = max(world.node_names, key=lambda name: own[name], default="")
    return shared + own[best], best


def _is_usable(ask: Ask, placed: PlacedDevice) -> bool:
    """Whether no taint keeps the device from the ask."""
    return all(
        any(tolerates_device_taint(toleration, taint) for toleration in ask.details.tolerations)
        for taint in placed.device.taints
        if taint.effect in _KEEPING_AWAY
    )


def _usable(world: World, ask: Ask) -> list[PlacedDevice]:
    return [placed for placed in world.candidates(ask).devices if _is_usable(ask, placed)]


@RULES.rule(
    "DR502",
    "more-than-any-node-has",
    Severity.WARNING,
    summary="A claim asks for more devices than any node in the files has.",
    example=broken(_SOUND, ("count: 2", "count: 4")),
)
def more_than_any_node_has(world: World) -> Iterator[Problem]:
    """
    All devices of a claim must be reachable from one node. The claim stays pending however
    many nodes there are.
    """
    for claim in world.claims:
        usable = {ask.name: _usable(world, ask) for ask in asks_of(claim) if _is_open(world, ask)}
        asks = [ask for ask in asks_of(claim) if usable.get(ask.name)]
        too_large = False
        for ask in asks:
            has, node = _availability(world, usable[ask.name])
            if ask.count > has:
                too_large = True
                where = f"node {node!r}" if node else "a node"
                yield Problem(
                    claim.entry,
                    (*ask.path, "count"),
                    f"request {ask.name!r} asks for {ask.count} devices, but {where} has the most"
                    f" that it could use, {has}",
                    f"ask for at most {has}",
                )
        if not too_large:
            yield from _more_in_all(world, claim, [(ask, usable[ask.name]) for ask in asks])


def _is_open(world: World, ask: Ask) -> bool:
    """Whether counting devices says anything: each can be given once, and all are known."""
    selected = world.candidates(ask)
    return selected.compiled and not any(
        placed.device.allow_multiple_allocations for placed in selected.devices
    )


def _more_in_all(
    world: World, claim: ClaimEntry, usable: list[tuple[Ask, list[PlacedDevice]]]
) -> Iterator[Problem]:
    """The requests of a claim share what a node has."""
    exact = [
        (ask, devices)
        for ask, devices in usable
        if "/" not in ask.name and not ask.is_admin and not ask.is_all
    ]
    union = {id(placed.device): placed for _, devices in exact for placed in devices}
    wanted = sum(ask.count for ask, _ in exact)
    has, node = _availability(world, union.values())
    if len(exact) > 1 and wanted > has:
        yield Problem(
            claim.entry,
            (*claim.path, "devices", "requests"),
            f"the requests ask for {wanted} devices together, but no node has more than {has}"
            f" that they could use{f' (node {node!r})' if node else ''}",
            f"ask for at most {has} in all",
        )


@RULES.rule(
    "DR511",
    "only-tainted-devices",
    Severity.WARNING,
    summary="Every device that matches a request is tainted, and the request tolerates none.",
    example=broken(
        examples.join(
            examples.SLICE,
            examples.CLASS,
            examples.CLAIM.replace("count: 2", "count: 1").replace('"h100"', '"h100"'),
        ).replace(
            "      numa: {int: 1}\n    capacity:\n      memory: {value: 80Gi}\n",
            "      numa: {int: 1}\n    capacity:\n      memory: {value: 80Gi}\n" + _TAINT,
        ),
        (
            "      numa: {int: 0}\n    capacity:\n      memory: {value: 80Gi}\n",
            "      numa: {int: 0}\n    capacity:\n      memory: {value: 80Gi}\n" + _TAINT,
        ),
    ),
)
def only_tainted_devices(world: World) -> Iterator[Problem]:
    """Taints with the effects NoSchedule and NoExecute keep requests away that do not tolerate."""
    for ask in world.asks:
        selected = world.candidates(ask)
        if selected.shapes and selected.compiled and not _usable(world, ask):
            taints = selected.shapes[0].members[0].device.taints
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
    example=broken(
        _SOUND.replace(
            "count: 2", "count: 2\n        capacity:\n          requests: {memory: 40Gi}"
        ),
        ("requests: {memory: 40Gi}", "requests: {gpu.example.com/memory: 40Gi}"),
    ),
)
def capacity_missing(world: World) -> Iterator[Problem]:
    """
    A device without the capacity is passed over. The name must be spelt as in the slice:
    here the driver's domain is not filled in, unlike in selectors.
    """
    for ask in world.asks:
        selected = world.candidates(ask)
        known = {name for placed in selected.devices for name in placed.device.capacity}
        for name in ask.details.capacity.requests if ask.details.capacity else ():
            if selected.shapes and name not in known:
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
    example=broken(
        _SOUND.replace(
            "count: 2", "count: 2\n        capacity:\n          requests: {memory: 40Gi}"
        ),
        ("requests: {memory: 40Gi}", "requests: {memory: 400Gi}"),
    ),
)
def capacity_too_large(world: World) -> Iterator[Problem]:
    """Capacity is not added up over devices: each one must have what is asked."""
    for ask in world.asks:
        wanted = ask.details.capacity.requests if ask.details.capacity else {}
        for name, quantity in wanted.items():
            sizes = [
                placed.device.capacity[name].value
                for placed in world.candidates(ask).devices
                if name in placed.device.capacity
            ]
            if sizes and max(sizes) < quantity:
                yield Problem(
                    ask.claim.entry,
                    (*ask.path, "capacity", "requests", name),
                    f"request {ask.name!r} wants {quantity} of {name!r}, and the largest device"
                    f" that matches has {max(sizes)}",
                    f"ask for at most {max(sizes)}",
                )
