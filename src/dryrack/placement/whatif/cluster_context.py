"""
What files say of a cluster besides nodes, pods and devices.

These are namespaces, owners of pods, volumes, and what admission and preemption read. A what-if
knows of them what informers tell the scheduler. Pods that a workload in the files will make are
known by the selector of that workload; a Deployment stands for the ReplicaSet that it will make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from dryrack.kinds.quota_usage.admission_kinds import (
    LimitRange,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.placement.fleet import Fleet

Fact = (
    Namespace
    | PodOwner
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | ResourceQuota
    | LimitRange
    | PriorityClass
    | PodDisruptionBudget
)
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
# Whose selectors are only labels.
_BY_LABELS = ("Service", "ReplicationController")
_OWNERS = (*_BY_LABELS, "ReplicaSet", "StatefulSet", "Deployment")


def decode_fact(document: Document) -> Typed | tuple[Problem, ...] | None:
    """Return the fact that a document of one of Kubernetes' own kinds states, if it states one."""
    if document.kind in _ADMISSION:
        try:
            return Typed(document, decode(document.raw, _ADMISSION[document.kind]), document.raw)
        except DecodeError as error:
            return tuple(document.problem(e.path, str(e), e.fix) for e in error.mismatches)
    model = PodOwner if document.kind in _OWNERS else _VOLUMES.get(document.kind)
    if model is None:
        return None
    raw = _owner(document) if model is PodOwner else document.raw
    try:
        return Typed(document, decode(raw, model), document.raw)
    except DecodeError:
        # Whether it is well is not asked: it is passed over like those that tell nothing.
        return None


def load_into(fleet: Fleet, facts: Iterable[Fact]) -> None:
    """The fleet knows of these from now on."""
    for each in facts:
        metadata = each.metadata
        match each:
            case Namespace():
                fleet.namespaces[metadata.name] = metadata.labels
            case PodOwner():
                kind = CONTROLLING.get(each.kind, each.kind)
                fleet.owners.put(kind, metadata.namespace, metadata.name, each.spec.selector)
            case PersistentVolume():
                fleet.volumes.volumes[metadata.name] = each
            case PersistentVolumeClaim():
                fleet.volumes.claims[metadata.namespace, metadata.name] = each
            case StorageClass():
                if each.volume_binding_mode in (None, "Immediate"):
                    fleet.volumes.immediate_classes.add(metadata.name)
            case ResourceQuota() | LimitRange() | PriorityClass() | PodDisruptionBudget():
                # Admission and preemption read them.
                pass


def _owner(document: Document) -> Raw:
    spec = document.raw.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    if document.kind in _BY_LABELS and selector is not None:
        selector = {"matchLabels": selector}
    return {**document.raw, "spec": {"selector": selector}, "status": {}}
