"""
Selectors of Services and workloads, for the pods that belong together.

kube-scheduler spreads such pods by default. As there, these are the pods that the Services of the
namespace select, and those of the ReplicaSet, StatefulSet or ReplicationController that controls
the pod.
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
_MATCHES_NONE = LabelMatcher(None)
_MATCHES_ALL = LabelMatcher(())


class OwnerSelectors:
    """The selectors of the known Services and workloads."""

    def __init__(self) -> None:
        # By kind and namespace, then by name.
        self._known: dict[tuple[str, str], dict[str, LabelMatcher]] = {}

    def put(self, kind: str, namespace: str, name: str, selector: LabelSelector | None) -> None:
        """Add or replace a Service or a workload; without a selector it selects no pods."""
        try:
            matcher = parse_label_selector(selector)
        except SelectorError:
            matcher = _MATCHES_NONE
        self._known.setdefault((kind, namespace), {})[name] = matcher

    def drop(self, kind: str, namespace: str, name: str) -> None:
        """Remove a Service or a workload."""
        self._known.get((kind, namespace), {}).pop(name, None)

    def of(self, pod: Pod) -> LabelMatcher:
        """Return the combined selector of the pod's Services and controller; may be empty."""
        metadata = pod.metadata
        services = self._known.get((SERVICE, metadata.namespace), {})
        matchers = [each for each in services.values() if each.matches(metadata.labels)]
        for owner in metadata.owner_references:
            if owner.controller and CONTROLLERS.get(owner.kind) == owner.api_version:
                owned = self._known.get((owner.kind, metadata.namespace), {})
                matchers.append(owned.get(owner.name, _MATCHES_NONE))
        if not matchers:
            return _MATCHES_ALL
        # Sorted and without duplicates, so that equal selectors are equal keys.
        unique = {each: None for matcher in matchers for each in matcher.requirements or ()}
        return LabelMatcher(tuple(sorted(unique, key=repr)))
