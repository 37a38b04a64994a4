"""Nodes that pods are expected on: they are not removed while the scheduler has not placed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# As in Karpenter: twice the longest batch.
NOMINATED_SECONDS = 20.0


class Nominations:
    """The nodes for which pods were nominated, until these pods have a node."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._pods: dict[str, set[str]] = {}
        """By node: the UIDs of the pods that are not placed yet, if they are known."""
        self.unplaceable: frozenset[str] = frozenset()
        """The UIDs of pods that fit on no node, whatever is created for them."""

    def protect(self, node: str, now: float, pods: Collection[str] = ()) -> None:
        """Protect a node for some seconds, or until these pods, by their UIDs, are placed."""
        self._until = {name: until for name, until in self._until.items() if until > now}
        self._pods = {name: each for name, each in self._pods.items() if name in self._until}
        self._until[node] = now + NOMINATED_SECONDS
        self._pods.setdefault(node, set()).update(pods)

    def settle_pod(self, uid: str) -> None:
        """Note that a pod has a node, or is gone."""
        for node, pods in list(self._pods.items()):
            if uid in pods:
                pods.discard(uid)
                if not pods:
                    self._until.pop(node, None)
                    del self._pods[node]

    def until(self, node: str) -> float:
        """Return until when a node is protected, 0 if it is not."""
        return self._until.get(node, 0.0)
