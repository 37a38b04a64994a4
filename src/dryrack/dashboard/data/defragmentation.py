"""The document of a defragmentation: pods whose move frees whole nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.base.text import hint
from dryrack.cluster import SeededChance
from dryrack.kinds.releases import DEFAULT_RELEASE
from dryrack.planning import defragment

if TYPE_CHECKING:
    from dryrack.placement import World

# Pods that cannot be moved; a large cluster has one on almost every node.
_FIXED_MAX = 200


def defragmentation_document(world: World, driver: str) -> dict[str, Any]:
    """Return the moves, the nodes that they free, and the free devices before and after them."""
    drivers = sorted({each.spec.driver for each in world.slices if each.spec.node_name})
    if driver not in drivers:
        raise ContentError(f"driver {driver!r} has no devices on nodes; {hint(driver, drivers)}")
    found = defragment(world, driver, release=DEFAULT_RELEASE, chance=SeededChance())
    return {
        "driver": driver,
        "nodes": len(found.nodes),
        "whole": len(found.whole),
        "freed": list(found.freed),
        "moves": [
            {"pod": each.pod, "from": each.source, "to": each.target, "gang": each.gang}
            for each in found.moves
        ],
        "placement": "any" if found.is_reached_freely else "pinned",
        "tried": found.tried,
        "isComplete": found.is_complete,
        "fixed": [
            {"name": each.name, "node": each.node, "why": each.why}
            for each in found.fixed[:_FIXED_MAX]
        ],
        "fixedOmitted": max(0, len(found.fixed) - _FIXED_MAX),
        "before": [each.document() for each in found.before],
        "after": [each.document() for each in found.after],
    }
