"""What the stream tells: a set of changes as one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.dashboard.data.rows import RowChanges
    from dryrack.dashboard.data.tracked import Changes

Document = dict[str, Any]


def update_document(changes: Changes, summary: Sequence[Document]) -> Document:
    """Only the parts in which something is another now."""
    found: Document = {}
    if changes.pools or changes.nodes:
        found["fleet"] = {
            "pools": [each.document() for each in changes.pools.changed],
            "poolsGone": [{"driver": driver, "pool": pool} for driver, pool in changes.pools.gone],
            "nodes": list(changes.nodes.changed),
            "nodesGone": list(changes.nodes.gone),
            "summary": list(summary),
        }
    for name in ("claims", "pods", "events"):
        part: RowChanges[str, Document] = getattr(changes, name)
        if part:
            found[name] = {"changed": list(part.changed), "gone": list(part.gone)}
    if changes.gangs:
        found["gangs"] = _gangs(changes)
    return found


def _gangs(changes: Changes) -> Document:
    """A definition stands for several gangs, where it has replicas."""
    before = [each for rows in changes.gangs.before.values() for each in rows or ()]
    after = [each for rows in changes.gangs.after.values() for each in rows or ()]
    there = {_gang(each) for each in after}
    gone = [each for each in before if _gang(each) not in there]
    return {
        "changed": [each for each in after if each not in before],
        "gone": [{key: each[key] for key in _GANG} for each in gone],
    }


_GANG = ("namespace", "name", "dialect")


def _gang(document: Document) -> tuple[str, ...]:
    return tuple(document[key] for key in _GANG)
