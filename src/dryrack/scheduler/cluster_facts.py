"""
Further objects that affect scheduling, from the informers.

Namespaces, whose labels pod affinity selects; Services and workloads, whose pods are spread by
default; volumes and PersistentVolumeClaims, which tie pods to nodes.
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
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informer, Informers, Listener
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Fleet
    from dryrack.scheduler.scheduler_cache import WaitingPods

# Kinds whose selectors are a map of labels instead of a LabelSelector.
_BY_LABELS = (SERVICES, REPLICATION_CONTROLLERS)
_ON_FIRST_USE = "WaitForFirstConsumer"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"


class ClusterFacts:
    """Stores in a fleet what the informers show, and retries pods that a change may help."""

    def __init__(self, informers: Informers, fleet: Fleet, waiting: WaitingPods) -> None:
        self._fleet = fleet
        self._waiting = waiting
        self.informers: list[Informer] = []
        owners = (SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS)
        listeners: dict[Endpoint, Listener] = {
            NAMESPACES: self._on_namespace,
            VOLUME_CLAIMS: self._on_volume_claim,
            VOLUMES: self._on_volume,
            STORAGE_CLASSES: self._on_storage_class,
            **{endpoint: partial(self._on_owner, endpoint) for endpoint in owners},
        }
        for endpoint, listener in listeners.items():
            informer = informers.of(endpoint)
            informer.listen(listener)
            self.informers.append(informer)

    def _on_namespace(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        labels = None if new is None else new["metadata"].get("labels", {})
        if self._fleet.namespaces.get(name) == labels:
            return
        if labels is None:
            del self._fleet.namespaces[name]
        else:
            self._fleet.namespaces[name] = labels
            self._waiting.wake()

    def _on_volume_claim(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        before = self._fleet.volumes.claims.pop(name, None)
        after = None if new is None else decode(new, PersistentVolumeClaim)
        if after is not None:
            self._fleet.volumes.claims[name] = after
        self._waiting.wake_for_claim(volume_claim_key(*name))
        if before is not None and after is not None and _frees_other_nodes(before, after):
            self._waiting.wake()

    def _on_volume(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        before = self._fleet.volumes.volumes.pop(name, None)
        if new is None:
            return
        volume = self._fleet.volumes.volumes[name] = decode(new, PersistentVolume)
        claim = volume.spec.claim_ref
        if claim is not None:
            self._waiting.wake_for_claim(volume_claim_key(claim.namespace, claim.name))
        if before is not None and _node_fields(before) != _node_fields(volume):
            self._waiting.wake()
        kind = volume.spec.storage_class_name or ""
        if claim is None and before != volume and kind in self._fleet.volumes.waiting_classes:
            self._wake_unbound(kind)

    def _on_storage_class(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        volumes = self._fleet.volumes
        before = volumes.waiting_classes.pop(name, None)
        if new is not None and new.get("volumeBindingMode") == _ON_FIRST_USE:
            volumes.waiting_classes[name] = waiting_class(new)
        if volumes.waiting_classes.get(name) != before:
            self._wake_unbound(name)

    def _wake_unbound(self, storage_class: str) -> None:
        self._waiting.wake()
        for key in self._fleet.volumes.unbound(storage_class):
            self._waiting.wake_for_claim(volume_claim_key(*key))

    def _on_owner(self, endpoint: Endpoint, old: Raw | None, new: Raw | None) -> None:
        """Store a selector. It affects only scores, so that no pod waits for a change of it."""
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
    """Return a StorageClass whose claims are bound when a pod uses them."""
    terms = [
        tuple((each["key"], frozenset(each["values"])) for each in term)
        for term in (
            get(each, "matchLabelExpressions", ())
            for each in get(storage_class, "allowedTopologies", ())
        )
    ]
    return WaitingClass(storage_class.get("provisioner") != _NO_PROVISIONER, tuple(terms))


def _node_fields(volume: PersistentVolume) -> tuple[object, ...]:
    """Return the fields of a volume that decide from which nodes it can be used."""
    return volume.metadata.labels, volume.spec.node_affinity


def _frees_other_nodes(before: PersistentVolumeClaim, after: PersistentVolumeClaim) -> bool:
    """Return whether pods for other nodes need not wait for a volume any longer."""
    is_bound = bool(after.spec.volume_name) and not before.spec.volume_name
    chosen = before.metadata.annotations.get(SELECTED_NODE)
    annotations = after.metadata.annotations
    return is_bound or (chosen is not None and annotations.get(SELECTED_NODE) != chosen)
