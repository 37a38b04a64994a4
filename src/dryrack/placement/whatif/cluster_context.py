"""
The objects of a cluster besides nodes, pods and devices that a decision depends on.

These are namespaces, owners of pods, volumes, and the objects that admission and preemption read. A
what-if loads them into its fleet, as informers do in the scheduler. The selector of a workload
stands for the pods that it will create; a Deployment for the ReplicaSet that it will create.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dryrack.kinds.catalog import Typed
from dryrack.kinds.core import (
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodOwner,
    StorageClass,
)
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.expansion.workload_pods import CONTROLLING
from dryrack.kinds.meta import KubernetesObject
from dryrack.kinds.quota_usage.admission_kinds import (
    LimitRange,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.documents import Document, Problem
    from dryrack.placement.fleet import Fleet

_Kind = TypeVar("_Kind", bound=KubernetesObject)

_ADMISSION: dict[str, type[KubernetesObject]] = {
    "ResourceQuota": ResourceQuota,
    "LimitRange": LimitRange,
    "PriorityClass": PriorityClass,
    "PodDisruptionBudget": PodDisruptionBudget,
}
_VOLUMES: dict[str, type[KubernetesObject]] = {
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "StorageClass": StorageClass,
}
# Kinds whose selectors are only labels.
_BY_LABELS = ("Service", "ReplicationController")
_OWNERS = (*_BY_LABELS, "ReplicaSet", "StatefulSet", "Deployment")


class ObjectsByKind:
    """Typed objects, sorted by kind once."""

    def __init__(self, objects: Iterable[KubernetesObject]) -> None:
        self._objects: defaultdict[type, list[Any]] = defaultdict(list)
        for each in objects:
            self._objects[type(each)].append(each)

    def of(self, kind: type[_Kind]) -> tuple[_Kind, ...]:
        """Return the objects of a kind, in their order."""
        return tuple(self._objects.get(kind, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """Objects besides nodes, pods and devices, by kind."""

    namespaces: tuple[Namespace, ...] = ()
    owners: tuple[PodOwner, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()

    @staticmethod
    def of(objects: ObjectsByKind) -> ClusterContext:
        return ClusterContext(
            namespaces=objects.of(Namespace),
            owners=objects.of(PodOwner),
            volumes=objects.of(PersistentVolume),
            volume_claims=objects.of(PersistentVolumeClaim),
            storage_classes=objects.of(StorageClass),
            quotas=objects.of(ResourceQuota),
            limit_ranges=objects.of(LimitRange),
            priority_classes=objects.of(PriorityClass),
            disruption_budgets=objects.of(PodDisruptionBudget),
        )

    def load_into(self, fleet: Fleet) -> None:
        """Add the objects that plugins read to the fleet."""
        for namespace in self.namespaces:
            fleet.namespaces[namespace.metadata.name] = namespace.metadata.labels
        for owner in self.owners:
            kind = CONTROLLING.get(owner.kind, owner.kind)
            metadata = owner.metadata
            fleet.owners.put(kind, metadata.namespace, metadata.name, owner.spec.selector)
        for volume in self.volumes:
            fleet.volumes.volumes[volume.metadata.name] = volume
        for claim in self.volume_claims:
            fleet.volumes.claims[claim.metadata.namespace, claim.metadata.name] = claim
        for each in self.storage_classes:
            if each.volume_binding_mode in (None, "Immediate"):
                fleet.volumes.immediate_classes.add(each.metadata.name)


def decode_context_object(document: Document) -> Typed | tuple[Problem, ...] | None:
    """Return the object of a document that belongs to the context; None if it does not."""
    if document.kind in _ADMISSION:
        try:
            return Typed(document, decode(document.raw, _ADMISSION[document.kind]), document.raw)
        except DecodeError as error:
            return tuple(document.problem(e.path, str(e), e.fix) for e in error.mismatches)
    raw = document.raw
    model = _VOLUMES.get(document.kind)
    if document.kind in _OWNERS:
        model = PodOwner
        spec = raw.get("spec")
        selector = spec.get("selector") if isinstance(spec, dict) else None
        if document.kind in _BY_LABELS and selector is not None:
            selector = {"matchLabels": selector}
        raw = {**raw, "spec": {"selector": selector}, "status": {}}
    if model is None:
        return None
    try:
        return Typed(document, decode(raw, model), document.raw)
    except DecodeError:
        # Like objects of kinds without effect, it is ignored: these are not validated.
        return None
