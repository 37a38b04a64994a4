"""The writes to a store, for tests of clusters that should be idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.store import Gone

if TYPE_CHECKING:
    from dryrack.store import Store

HEARTBEAT = "leases.coordination.k8s.io"


def writes_after(store: Store, revision: int) -> list[str]:
    """Return all writes after a revision, except the heartbeats of nodes."""
    writes: list[str] = []
    for resource in store.resources():
        events = store.events(resource, after=revision)
        assert not isinstance(events, Gone), f"{resource} was written too often to be reported"
        if resource != HEARTBEAT:
            writes += [repr(event) for event in events]
    return writes
