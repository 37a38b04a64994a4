"""Nodes that pods are expected on: they are not removed while the scheduler has not placed them."""

from __future__ import annotations

# As in Karpenter: twice the longest batch.
NOMINATED_SECONDS = 20.0


class Nominations:
    """The nodes for which pods were nominated, and until when that holds."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def protect(self, node: str, now: float) -> None:
        """Protect a node from now on for some seconds."""
        self._until = {name: until for name, until in self._until.items() if until > now}
        self._until[node] = now + NOMINATED_SECONDS

    def until(self, node: str) -> float:
        """Return until when a node is protected, 0 if it is not."""
        return self._until.get(node, 0.0)
