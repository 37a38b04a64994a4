"""
DR23x: devices on nodes that are not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.names import suggestion
from dryrack.kinds.selectors import parse_node_selector
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.core import NodeSelector
    from dryrack.kinds.resource import ResourceSlice
    from dryrack.linter.finding import Path
    from dryrack.linter.world import Entry, World

RULES = Registry()


@RULES.rule(
    "DR231",
    "device-selector-terms",
    Severity.ERROR,
    summary="A device's own node selector does not have exactly one term.",
)
def device_selector_terms(world: World) -> Iterator[Problem]:
    """
    The API server checks this for a slice, but not for a device. The scheduler then stops with an
    error when it selects the device.
    """
    for placed in world.devices:
        selector = placed.device.node_selector
        if selector is not None and len(selector.node_selector_terms) != 1:
            yield Problem(
                placed.entry,
                (*placed.path, "nodeSelector", "nodeSelectorTerms"),
                f"device {placed.device.name!r} has a node selector with"
                f" {len(selector.node_selector_terms)} terms, but must have exactly one",
                "put all conditions into one term",
            )


def _node_names(world: World) -> Iterator[tuple[Entry[ResourceSlice], Path, str]]:
    for entry in world.slices:
        if entry.value.spec.node_name:
            yield entry, ("spec", "nodeName"), entry.value.spec.node_name
    for placed in world.devices:
        if placed.device.node_name:
            yield placed.entry, (*placed.path, "nodeName"), placed.device.node_name


@RULES.rule(
    "DR232",
    "node-unknown",
    Severity.WARNING,
    summary="A slice uses a node that is not in the files.",
)
def node_unknown(world: World) -> Iterator[Problem]:
    """The scheduler cannot allocate the devices of a node that does not exist."""
    known = frozenset(each.value.metadata.name for each in world.nodes)
    for entry, path, name in _node_names(world) if known else ():
        if name not in known:
            yield Problem(
                entry,
                path,
                f"node {name!r} is not in the files",
                suggestion(name, known) or "add the Node",
            )


def _node_selectors(world: World) -> Iterator[tuple[Entry[ResourceSlice], Path, NodeSelector]]:
    for entry in world.slices:
        if entry.value.spec.node_selector is not None:
            yield entry, ("spec", "nodeSelector"), entry.value.spec.node_selector
    for placed in world.devices:
        if placed.device.node_selector is not None:
            yield placed.entry, (*placed.path, "nodeSelector"), placed.device.node_selector


@RULES.rule(
    "DR233",
    "node-selector-matches-nothing",
    Severity.WARNING,
    summary="A node selector of a slice or device matches none of the nodes in the files.",
)
def node_selector_matches_nothing(world: World) -> Iterator[Problem]:
    """The scheduler cannot allocate the devices, and no component reports this."""
    nodes = [each.value for each in world.nodes]
    verdicts: dict[NodeSelector, bool] = {}
    for entry, path, selector in _node_selectors(world) if nodes else ():
        if selector not in verdicts:
            matcher = parse_node_selector(selector)
            verdicts[selector] = bool(matcher.errors) or any(map(matcher.matches, nodes))
        if not verdicts[selector]:
            yield Problem(
                entry,
                path,
                f"the selector matches none of the {len(world.nodes)} nodes in the files",
                "correct the key, operator or values, or label a node",
            )
