"""
The pods that belong with a pod: those that its Services, and the workload that made it, select.

Kube-scheduler spreads such pods where they say nothing about it themselves. Only what it looks at
counts: Services of the namespace, and a ReplicaSet, StatefulSet or ReplicationController that
controls the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.selectors import LabelMatcher, SelectorError, parse_label_selector

if TYPE_CHECKING:
    from dryrack.kinds.core import Pod
    from dryrack.kinds.meta import LabelSelector

SERVICE = "Service"
CONTROLLERS = {
    "ReplicationController": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
_NOBODY = LabelMatcher(None)
_EVERYBODY = LabelMatcher(())


class OwnerSelectors:
    """What Services and workloads select, as far as they are known."""

    def __init__(self) -> None:
        # By kind and namespace, then by name.
        self._known: dict[tuple[str, str], dict[str, LabelMatcher]] = {}

    def put(self, kind: str, namespace: str, name: str, selector: LabelSelector | None) -> None:
        """A Service or a workload is there, as it is now; without a selector it has no pods."""
        try:
            matcher = parse_label_selector(selector)
        except SelectorError:
            matcher = _NOBODY
        self._known.setdefault((kind, namespace), {})[name] = matcher

    def drop(self, kind: str, namespace: str, name: str) -> None:
        """It is gone."""
        self._known.get((kind, namespace), {}).pop(name, None)

    def of(self, pod: Pod) -> LabelMatcher:
        """What all of those select together that the pod belongs to; empty if there are none."""
        metadata = pod.metadata
        services = self._known.get((SERVICE, metadata.namespace), {})
        matchers = [each for each in services.values() if each.matches(metadata.labels)]
        for owner in metadata.owner_references:
            if owner.controller and CONTROLLERS.get(owner.kind) == owner.api_version:
                owned = self._known.get((owner.kind, metadata.namespace), {})
                matchers.append(owned.get(owner.name, _NOBODY))
        if not matchers:
            return _EVERYBODY
        # In one order, and once each, so that the same pods are the same question.
        unique = {each: None for matcher in matchers for each in matcher.requirements or ()}
        return LabelMatcher(tuple(sorted(unique, key=repr)))
