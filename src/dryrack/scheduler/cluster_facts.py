"""
What the scheduler knows of a cluster besides nodes, pods and devices, from the informers.

Labels of namespaces, which affinity between pods selects; what Services and workloads select, whose
pods are spread; volumes and their claims, which tie pods to nodes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dryrack.client.endpoints import (
    NAMESPACES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.client.informer import name_of
from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get
from dryrack.placement import SELECTED_NODE, WaitingClass
from dryrack.scheduler.demands import volume_claim_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informer, Informers
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Fleet
    from dryrack.scheduler.cluster_view import WaitingPods

# Their selectors are labels, and not the selector of other kinds.
_BY_LABELS = (SERVICES, REPLICATION_CONTROLLERS)
_ON_FIRST_USE = "WaitForFirstConsumer"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class ClusterFacts:
    """Tells a fleet what the informers show, and wakes whom it may help."""

    def __init__(self, informers: Informers, fleet: Fleet, sleepers: WaitingPods) -> None:
        self._fleet = fleet
        self._sleepers = sleepers
        self.reads = [self._listen(informers, *each) for each in self._listeners()]

    def _listeners(self) -> Iterator[tuple[Endpoint, Callable[[Raw | None, Raw | None], None]]]:
        yield NAMESPACES, self._namespace
        yield VOLUME_CLAIMS, self._volume_claim
        yield VOLUMES, self._volume
        yield STORAGE_CLASSES, self._storage_class
        for endpoint in (SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS):
            yield endpoint, partial(self._owner, endpoint)

    @staticmethod
    def _listen(
        informers: Informers,
        endpoint: Endpoint,
        listener: Callable[[Raw | None, Raw | None], None],
    ) -> Informer:
        informer = informers.of(endpoint)
        informer.listen(listener)
        return informer

    def _namespace(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        labels = None if new is None else new["metadata"].get("labels", {})
        if self._fleet.namespaces.get(name) == labels:
            return
        if labels is None:
            del self._fleet.namespaces[name]
        else:
            self._fleet.namespaces[name] = labels
            self._sleepers.wake()

    def _volume_claim(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        before = self._fleet.volumes.claims.pop(name, None)
        after = None if new is None else decode(new, PersistentVolumeClaim)
        if after is not None:
            self._fleet.volumes.claims[name] = after
        self._sleepers.wake_for(volume_claim_key(*name))
        if before is not None and after is not None and _is_released(before, after):
            self._sleepers.wake()

    def _volume(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        before = self._fleet.volumes.volumes.pop(name, None)
        if new is None:
            return
        volume = self._fleet.volumes.volumes[name] = decode(new, PersistentVolume)
        claim = volume.spec.claim_ref
        if claim is not None:
            self._sleepers.wake_for(volume_claim_key(claim.namespace, claim.name))
        if before is not None and _reach(before) != _reach(volume):
            self._sleepers.wake()
        kind = volume.spec.storage_class_name or ""
        if claim is None and before != volume and kind in self._fleet.volumes.waiting_classes:
            self._wake_unbound(kind)

    def _storage_class(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        volumes = self._fleet.volumes
        before = volumes.waiting_classes.pop(name, None)
        if new is not None and new.get("volumeBindingMode") == _ON_FIRST_USE:
            volumes.waiting_classes[name] = waiting_class(new)
        if volumes.waiting_classes.get(name) != before:
            self._wake_unbound(name)

    def _wake_unbound(self, storage_class: str) -> None:
        self._sleepers.wake()
        for key in self._fleet.volumes.unbound(storage_class):
            self._sleepers.wake_for(volume_claim_key(*key))

    def _owner(self, endpoint: Endpoint, old: Raw | None, new: Raw | None) -> None:
        """How pods are spread by default is a matter of scores: nobody waits for it."""
        namespace, name = name_of(new or old or {})
        if new is None:
            self._fleet.owners.drop(endpoint.kind, namespace, name)
            return
        selector = new.get("spec", {}).get("selector")
        if selector is not None:
            by_labels = endpoint in _BY_LABELS
            selector = decode({"matchLabels": selector} if by_labels else selector, LabelSelector)
        self._fleet.owners.put(endpoint.kind, namespace, name, selector)


def waiting_class(storage_class: Raw) -> WaitingClass:
    """What a StorageClass says of claims that are bound when a pod uses them."""
    terms = [
        tuple((each["key"], frozenset(each["values"])) for each in term)
        for term in (
            get(each, "matchLabelExpressions", ())
            for each in get(storage_class, "allowedTopologies", ())
        )
    ]
    return WaitingClass(storage_class.get("provisioner") != _NO_PROVISIONER, tuple(terms))


def _reach(volume: PersistentVolume) -> tuple[object, ...]:
    return volume.metadata.labels, volume.spec.node_affinity


def _is_released(before: PersistentVolumeClaim, after: PersistentVolumeClaim) -> bool:
    """Whether pods for other nodes no longer have to wait for a volume that is being made."""
    is_bound = bool(after.spec.volume_name) and not before.spec.volume_name
    chosen = before.metadata.annotations.get(SELECTED_NODE)
    annotations = after.metadata.annotations
    return is_bound or (chosen is not None and annotations.get(SELECTED_NODE) != chosen)
