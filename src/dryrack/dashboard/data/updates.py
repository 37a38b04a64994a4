"""The document of an update in the stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.dashboard.data.rows import RowChanges
    from dryrack.dashboard.data.tracked import Changes

Document = dict[str, Any]


def update_document(changes: Changes, summary: Sequence[Document] | None) -> Document:
    """Return the parts of the page that changed; `summary` is None if no device changed."""
    document: Document = {}
    if changes.pools or changes.nodes:
        document["fleet"] = {
            "pools": [each.document() for each in changes.pools.changed],
            "poolsGone": [{"driver": driver, "pool": pool} for driver, pool in changes.pools.gone],
            "nodes": list(changes.nodes.changed),
            "nodesGone": list(changes.nodes.gone),
        }
        if summary is not None:
            document["fleet"]["summary"] = list(summary)
    for name in ("claims", "pods", "events"):
        part: RowChanges[str, Document] = getattr(changes, name)
        if part:
            document[name] = {"changed": list(part.changed), "gone": list(part.gone)}
    if changes.gangs:
        document["gangs"] = _gangs(changes)
    return document


def _gangs(changes: Changes) -> Document:
    """Return the changed gangs; a definition with replicas defines several."""
    before = [each for rows in changes.gangs.before.values() for each in rows or ()]
    after = [each for rows in changes.gangs.after.values() for each in rows or ()]
    names = {_gang(each) for each in after}
    gone = [each for each in before if _gang(each) not in names]
    return {
        "changed": [each for each in after if each not in before],
        "gone": [{key: each[key] for key in _GANG} for each in gone],
    }


_GANG = ("namespace", "name", "dialect")


def _gang(document: Document) -> tuple[str, ...]:
    return tuple(document[key] for key in _GANG)
