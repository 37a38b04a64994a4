"""
A snapshot of a cluster: all objects of some kinds, listed once and typed.

For commands that write nothing. A kind that the cluster does not serve has no objects; a kind that
the account may not list is an error that names the rights that the command needs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.client.client import EVERYTHING, Client, Selection
from dryrack.client.discovery import is_served, newest_version
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    COSCHEDULING_POD_GROUPS,
    EVENTS,
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    POD_GROUPS_V1BETA1,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    SLICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TAINT_RULES,
    TAINT_RULES_V1,
    TEMPLATES,
    VOLUME_CLAIMS,
    VOLUMES,
    WORKLOADS_V1ALPHA1,
)
from dryrack.client.errors import ApiError, ForbiddenError, NotFoundError, TransportError
from dryrack.client.informer import Informers
from dryrack.client.timekeeping import sleep
from dryrack.cluster.attached import AttachError, remedy
from dryrack.cluster.ports import SystemChance, SystemClock
from dryrack.kinds.core import (
    Event,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodOwner,
    StorageClass,
)
from dryrack.kinds.decode import decode
from dryrack.kinds.quota_usage.admission_kinds import PodDisruptionBudget
from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.kinds.scheduling import (
    CoschedulingPodGroup,
    PodGroup,
    PodGroupV1Beta1,
    WorkloadV1Alpha1,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw

MODELS: Mapping[Endpoint, type[KubernetesObject]] = {
    PODS: Pod,
    NODES: Node,
    CLAIMS: ResourceClaim,
    TEMPLATES: ResourceClaimTemplate,
    SLICES: ResourceSlice,
    CLASSES: DeviceClass,
    TAINT_RULES: DeviceTaintRule,
    TAINT_RULES_V1: DeviceTaintRule,
    POD_GROUPS: PodGroup,
    POD_GROUPS_V1BETA1: PodGroupV1Beta1,
    WORKLOADS_V1ALPHA1: WorkloadV1Alpha1,
    COSCHEDULING_POD_GROUPS: CoschedulingPodGroup,
    NAMESPACES: Namespace,
    VOLUME_CLAIMS: PersistentVolumeClaim,
    VOLUMES: PersistentVolume,
    STORAGE_CLASSES: StorageClass,
    SERVICES: PodOwner,
    REPLICATION_CONTROLLERS: PodOwner,
    REPLICA_SETS: PodOwner,
    STATEFUL_SETS: PodOwner,
    POD_DISRUPTION_BUDGETS: PodDisruptionBudget,
    EVENTS: Event,
}
GROUP_KINDS: tuple[Endpoint, ...] = (
    *(POD_GROUPS, POD_GROUPS_V1BETA1, WORKLOADS_V1ALPHA1),
    COSCHEDULING_POD_GROUPS,
)
# Namespaces, volumes and owners of pods matter to few of them.
_FACTS = (
    NAMESPACES,
    VOLUME_CLAIMS,
    VOLUMES,
    STORAGE_CLASSES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
# Whose selectors are only labels.
_BY_LABELS = (SERVICES, REPLICATION_CONTROLLERS)
# What a cluster need not serve, and an account need not see.
OPTIONAL = (
    *(TAINT_RULES, TAINT_RULES_V1, PRIORITY_CLASSES, POD_DISRUPTION_BUDGETS, EVENTS),
    *(*GROUP_KINDS, *_FACTS),
)
# Changes come together; who looks at a table sees two of them in a second.
_CHANGES_SECONDS = 0.5
DECISION_KINDS = (
    PODS,
    NODES,
    CLAIMS,
    TEMPLATES,
    SLICES,
    CLASSES,
    TAINT_RULES,
    *GROUP_KINDS,
    *_FACTS,
)
# What an explanation reads besides: why claims are not created or prepared.
EXPLANATION_KINDS = (*DECISION_KINDS, EVENTS)
# What a scenario of a cluster is made of.
RECORDED_KINDS = (
    NODES,
    PODS,
    CLAIMS,
    TEMPLATES,
    SLICES,
    CLASSES,
    TAINT_RULES,
    *GROUP_KINDS,
    NAMESPACES,
    PRIORITY_CLASSES,
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of a cluster, by kind in the requested order."""

    objects: tuple[KubernetesObject, ...]
    # Kinds that could not be read; they are not taken into account.
    notes: tuple[str, ...] = ()


async def read_snapshot(
    client: Client, kinds: Sequence[Endpoint], selection: Selection = EVERYTHING
) -> Snapshot:
    """Return all objects of these kinds; raise an error with a remedy if one cannot be listed."""
    listings, notes = await _read(client, kinds, selection)
    return Snapshot(tuple(obj for kind, listing in listings for obj in typed(kind, listing)), notes)


async def read_objects(
    client: Client, kinds: Sequence[Endpoint]
) -> tuple[tuple[Raw, ...], tuple[str, ...]]:
    """Return the objects as plain objects, and the kinds that could not be read."""
    listings, notes = await _read(client, kinds, EVERYTHING)
    return tuple(obj for _, listing in listings for obj in listing), notes


async def _read(
    client: Client, kinds: Sequence[Endpoint], selection: Selection
) -> tuple[list[tuple[Endpoint, Sequence[Raw]]], tuple[str, ...]]:
    hidden: list[str] = []
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_list(client, each, selection, kinds), name=f"list {each.plural}")
            for each in kinds
        ]
    listings: list[tuple[Endpoint, Sequence[Raw]]] = []
    for kind, task in zip(kinds, tasks, strict=True):
        listing = task.result()
        if isinstance(listing, AttachError):
            raise listing
        if isinstance(listing, str):
            hidden.append(listing)
        else:
            listings.append((kind, listing))
    note = f"the account cannot list {', '.join(hidden)}; the result ignores them"
    return listings, (note,) if hidden else ()


async def follow_snapshots(
    client: Client,
    kinds: Sequence[Endpoint],
    selection: Selection,
    told: Callable[[Sequence[KubernetesObject]], None],
    *,
    clock: Timekeeper | None = None,
) -> None:
    """Call `tell` with the objects of these kinds, again whenever one changes."""
    # A kind that cannot be listed is reported once and not tried again.
    await read_snapshot(client, kinds, selection)
    newest = [await newest_version(client, each) for each in kinds]
    served = [each for each in newest if each not in OPTIONAL or await is_served(client, each)]
    clock = clock or SystemClock()
    informers = Informers(client, clock=clock, chance=SystemChance())
    changed = asyncio.Event()
    reads = [informers.of(each, selection if each.is_namespaced else EVERYTHING) for each in served]
    for informer in reads:
        informer.listen(lambda _old, _new: changed.set())
    async with asyncio.TaskGroup() as group:
        group.create_task(informers.run(), name="informers of a view")
        for informer in reads:
            await informer.synced.wait()
        while True:
            changed.clear()
            told([obj for each in reads for obj in typed(each.endpoint, each.all())])
            await changed.wait()
            await sleep(clock, _CHANGES_SECONDS)


def typed(kind: Endpoint, listing: Iterable[Raw]) -> list[KubernetesObject]:
    """Return the objects of a kind as their model."""
    model = MODELS[kind]
    if model is PodOwner:
        listing = [_owner(kind, each) for each in listing]
    return [decode(each, model) for each in listing]


def _owner(kind: Endpoint, raw: Raw) -> Raw:
    """Return the part of a Service or workload that selects its pods."""
    selector = raw.get("spec", {}).get("selector")
    if kind in _BY_LABELS and selector is not None:
        selector = {"matchLabels": selector}
    return {**raw, "spec": {"selector": selector}, "status": {}}


async def _list(
    client: Client, kind: Endpoint, selection: Selection, kinds: Sequence[Endpoint]
) -> Sequence[Raw] | str | AttachError:
    """Return the objects, or the name of an optional kind that is forbidden, or the error."""
    if not kind.is_namespaced:
        selection = EVERYTHING
    try:
        return (await client.list(await newest_version(client, kind), selection)).items
    except (ApiError, TransportError) as error:
        if kind in OPTIONAL and isinstance(error, NotFoundError):
            return ()
        if kind in OPTIONAL and isinstance(error, ForbiddenError):
            return kind.resource
        if isinstance(error, ForbiddenError):
            return AttachError(f"{error}; {_rights(kinds)}")
        return AttachError(f"{error}; {remedy(error, kind)}")


def _rights(kinds: Sequence[Endpoint]) -> str:
    """Return how an administrator grants the missing rights."""
    resources = ",".join(each.resource for each in kinds if each not in OPTIONAL)
    return (
        "the account needs to get, list and watch what this looks at: "
        f"kubectl create clusterrole dryrack-viewer --verb=get,list,watch --resource={resources}"
    )
