"""
The objects of a what-if, sorted, and the parties that they form, in the order of their turns.

A pod asks for all its claims together, on one node; a pod that has ended asks for nothing. A claim
that no pod uses asks for itself. Parties are in the order of the objects. A claim that is created
from a template is named after the pod and the template, without the random ending that it gets in a
cluster; so is the claim for extended resources. Objects without a namespace are in "default", as if
they were applied. Pods name their gang (see `gangs.dialects`), and share the claims of its
PodGroup.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.allocation import Code, claim_name
from dryrack.kinds.core import Event, Node, PersistentVolumeClaim, Pod, PodOwner
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.expansion import extended_resources
from dryrack.kinds.expansion.pod_claims import claim_from_template, generate_name, named_claim
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.quota_usage.admission_kinds import LimitRange, PodDisruptionBudget, ResourceQuota
from dryrack.kinds.quota_usage.pods import CLASS_RESOURCE
from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.placement.extended_resources import ExtendedResources
from dryrack.placement.gangs.dialects import (
    GROUPS,
    Dialect,
    Flaw,
    GangKey,
    Membership,
    definitions,
    gang_of,
    membership,
)
from dryrack.placement.whatif.admission import (
    AdmissionRefusals,
    refusals,
    set_group_priorities,
    set_pod_defaults,
)
from dryrack.placement.whatif.cluster_context import ClusterContext, ObjectsByKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from dryrack.kinds.core import PodResourceClaim
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.quantity import Quantity
    from dryrack.placement.gangs.dialects import Definition
    from dryrack.placement.whatif.admission import AdmissionRefusal

_DONE = ("Succeeded", "Failed")
_NAMESPACED = (
    *(Pod, ResourceClaim, ResourceClaimTemplate, PodOwner, PersistentVolumeClaim),
    *(ResourceQuota, LimitRange, PodDisruptionBudget, *GROUPS),
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing object that a claim needs, with the name that the claim would have."""

    claim: str
    fact: str
    remedy: str = "add it"
    code: Code = Code.NOT_FOUND


@dataclass(frozen=True, slots=True)
class Party:
    """A pod with its claims, or a claim that no pod uses: they get devices together."""

    pod: Pod | None
    claims: tuple[ResourceClaim, ...]
    # Objects that the pod needs and that do not exist.
    missing: tuple[Missing, ...] = ()
    # The extended resources that one of the claims is for.
    extended: ExtendedResources | None = None
    # The gang of the pod.
    membership: Membership | Flaw | None = None
    # Why the API server does not create the pod.
    refusal: AdmissionRefusal | None = None

    @property
    def is_bound(self) -> bool:
        return self.pod is not None and bool(self.pod.spec.node_name)

    @property
    def from_templates(self) -> Iterator[ResourceClaim]:
        """Yield the claims that the claim controller creates, or has created, for the pod."""
        extended = () if self.extended is None else (self.extended.claim, self.extended.made)
        return (each for each in self.claims if each not in extended)

    @property
    def asks_for_devices(self) -> bool:
        return bool(self.claims or self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The objects that a what-if uses, by kind; it ignores others."""

    nodes: tuple[Node, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    context: ClusterContext = field(default_factory=ClusterContext)
    # The objects that define gangs.
    groups: tuple[KubernetesObject, ...] = ()
    # The events of a cluster; decisions do not use them.
    events: tuple[Event, ...] = ()
    # Pods and claims, in the order of their turns.
    parties: tuple[Pod | ResourceClaim, ...] = ()

    @staticmethod
    def of(objects: Iterable[KubernetesObject]) -> World:
        """Return the world of typed objects, which have their defaults."""
        named = [with_namespace(each) for each in objects]
        kinds = ObjectsByKind(named)
        context = ClusterContext.of(kinds)
        parties = [each for each in named if isinstance(each, Pod | ResourceClaim)]
        world = World(
            nodes=kinds.of(Node),
            slices=kinds.of(ResourceSlice),
            classes=kinds.of(DeviceClass),
            taint_rules=kinds.of(DeviceTaintRule),
            templates=kinds.of(ResourceClaimTemplate),
            context=context,
            groups=set_group_priorities(
                (each for each in named if isinstance(each, GROUPS)), context.priority_classes
            ),
            events=kinds.of(Event),
            parties=set_pod_defaults(parties, context),
        )
        return replace(world, parties=_in_queue_order(world))

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        return tuple(each for each in self.parties if isinstance(each, ResourceClaim))

    @property
    def definitions(self) -> Mapping[GangKey, Definition]:
        """Return the definitions of gangs by their keys."""
        return {each.key: each for group in self.groups for each in definitions(group)}

    def with_claim(self, claim: ResourceClaim) -> World:
        """Return the world with another version of a claim, or of a claim from a template."""
        name = claim_name(claim)
        parties = tuple(
            claim if isinstance(each, ResourceClaim) and claim_name(each) == name else each
            for each in self.parties
        )
        if claim not in parties:
            parties = (claim, *parties)
        return replace(self, parties=parties)

    def with_priority(self, pods: Collection[str], priority: int) -> World:
        """Return the world in which these pods, "namespace/name", have a priority."""
        parties = tuple(
            changed(each, spec=changed(each.spec, priority=priority))
            if isinstance(each, Pod) and each.full_name in pods
            else each
            for each in self.parties
        )
        return replace(self, parties=parties)

    def with_higher_quotas(self, limits: Mapping[tuple[str, str], Quantity]) -> World:
        """Return the world with these limits, by the name of the quota and of the resource."""

        def raise_limits(quota: ResourceQuota) -> ResourceQuota:
            raised = {
                name: new for (own, name), new in limits.items() if own == quota.metadata.name
            }
            spec = changed(quota.spec, hard={**quota.spec.hard, **raised})
            hard = {**quota.status.hard, **raised} if quota.status.hard else {}
            return changed(quota, spec=spec, status=changed(quota.status, hard=hard))

        quotas = tuple(map(raise_limits, self.context.quotas))
        return replace(self, context=replace(self.context, quotas=quotas))

    @property
    def pods(self) -> tuple[Pod, ...]:
        """Return the pods that have not ended."""
        return tuple(
            each
            for each in self.parties
            if isinstance(each, Pod) and each.status.phase not in _DONE
        )

    def in_order(self) -> Iterator[Party]:
        """Yield all parties in the order of their turns."""
        references = _References.of(self)
        refused = refusals(self.context, self.classes, self.parties, references.party)
        used = {
            f"{pod.metadata.namespace}/{name}"
            for pod in self.pods
            for name in (
                extended_resources.claim_name_of(pod),
                *(references.claim_of(pod, each) for each in pod.spec.resource_claims),
            )
        }
        for each in self.parties:
            if isinstance(each, Pod):
                if each.status.phase not in _DONE:
                    yield _add_refusals(references.party(each), refused)
            elif claim_name(each) not in used:
                yield _add_refusals(Party(None, (each,)), refused)


@dataclass(frozen=True, slots=True)
class _References:
    """The objects that pods refer to, by name."""

    claims: Mapping[str, ResourceClaim]
    templates: Mapping[str, ResourceClaimTemplate]
    classes: Mapping[str, DeviceClass]
    # Extended resources that device plugins provide on some node.
    of_nodes: frozenset[str]
    gangs: Mapping[GangKey, Definition]

    @staticmethod
    def of(world: World) -> _References:
        return _References(
            {claim_name(claim): claim for claim in world.claims},
            {each.full_name: each for each in world.templates},
            extended_resources.classes_by_resource(world.classes),
            frozenset(name for node in world.nodes for name in node.status.allocatable),
            world.definitions,
        )

    def party(self, pod: Pod) -> Party:
        """Return the pod with its claims, and what is missing for them."""
        entries = [each for each in pod.spec.resource_claims if named_claim(pod, each) != ""]
        parts = [self._find_claim(pod, each) for each in entries]
        extended = self._find_extended(pod)
        if isinstance(extended, ExtendedResources):
            parts.append(extended.made or extended.claim)
        elif extended is not None:
            parts.append(extended)
        return Party(
            pod,
            tuple(each for each in parts if isinstance(each, ResourceClaim)),
            tuple(each for each in parts if isinstance(each, Missing)),
            extended if isinstance(extended, ExtendedResources) else None,
            membership(pod),
        )

    def claim_of(self, pod: Pod, entry: PodResourceClaim) -> str:
        """Return the name of the claim for an entry, as the cluster names or would name it."""
        name = named_claim(pod, entry)
        if name is not None:
            return name
        owner = pod.metadata.name
        group = pod.spec.scheduling_group
        if group is not None and group.pod_group_name:
            # The PodGroup owns the claim if it has the very same entry.
            key = GangKey(Dialect.POD_GROUP, pod.metadata.namespace, group.pod_group_name)
            same = (entry.name, entry.resource_claim_template_name)
            entries = self.gangs[key].claims if key in self.gangs else ()
            if any((each.name, each.resource_claim_template_name) == same for each in entries):
                owner = group.pod_group_name
        return generate_name(owner, entry.name).removesuffix("-")

    def _find_claim(self, pod: Pod, entry: PodResourceClaim) -> ResourceClaim | Missing:
        """Return the claim for an entry, which may be created from a template."""
        namespace = pod.metadata.namespace
        name = self.claim_of(pod, entry)
        full = f"{namespace}/{name}"
        if full in self.claims:
            return self.claims[full]
        template_name = entry.resource_claim_template_name
        template = self.templates.get(f"{namespace}/{template_name}")
        if template is not None:
            given = {"spec": {"metadata": to_builtins(template.spec.metadata)}}
            owner = {"metadata": to_builtins(pod.metadata)}
            raw = claim_from_template(owner, entry.name, given)
            metadata = decode({**raw["metadata"], "name": name}, ObjectMeta)
            return ResourceClaim(metadata=metadata, spec=template.spec.spec)
        what = f"ResourceClaim {entry.resource_claim_name!r}"
        if template_name is not None:
            what = f"ResourceClaimTemplate {template_name!r}"
        return Missing(full, f"pod {pod.full_name} uses {what}, which does not exist")

    def _find_extended(self, pod: Pod) -> ExtendedResources | Missing | None:
        """Return the extended resources of classes, or those that no class and no node provides."""
        resources = extended_resources.asked_for(pod)
        name = extended_resources.claim_name_of(pod)
        full = f"{pod.metadata.namespace}/{name}"
        lacking = [e for e in resources if e not in self.classes and e not in self.of_nodes]
        if lacking:
            asks = f"pod {pod.full_name} requests {' and '.join(lacking)}"
            fact = f"{asks}, which no DeviceClass and no node provides"
            return Missing(full, fact, " and ".join(map(_remedy_for, lacking)))
        return ExtendedResources.of(pod, self.classes, name=name, made=self.claims.get(full))


def _add_refusals(party: Party, refused: AdmissionRefusals) -> Party:
    """Return the party without the claims that the API server refuses."""
    if party.pod is not None and party.pod.full_name in refused.pods:
        return replace(party, refusal=refused.pods[party.pod.full_name])
    if not refused.claims:
        return party
    missing = [
        Missing(name, why.fact, why.remedy, Code.ADMISSION)
        for name, why in ((claim_name(e), refused.claims.get(claim_name(e))) for e in party.claims)
        if why is not None
    ]
    claims = tuple(each for each in party.claims if claim_name(each) not in refused.claims)
    return replace(party, claims=claims, missing=(*party.missing, *missing))


def _remedy_for(resource: str) -> str:
    """Return the class that would provide the resource."""
    if resource.startswith(CLASS_RESOURCE):
        return f"add the DeviceClass {resource.removeprefix(CLASS_RESOURCE)!r}"
    return f"add a DeviceClass with spec.extendedResourceName: {resource}"


def _in_queue_order(world: World) -> tuple[Pod | ResourceClaim, ...]:
    """
    Return pods and claims, with pending pods of a cluster in the order of the scheduler's queue.

    The scheduler takes gangs that have waited for a minute first, then pods by priority and age.
    """
    queued = {
        number: each
        for number, each in enumerate(world.parties)
        if isinstance(each, Pod) and each.metadata.uid and not each.spec.node_name
    }
    if len(queued) < 2:
        return world.parties
    members: dict[GangKey, list[Pod]] = {}
    for pod in world.pods:
        in_gang = membership(pod)
        if isinstance(in_gang, Membership):
            members.setdefault(in_gang.key, []).append(pod)
    gangs = {key: gang_of(key, pods, world.definitions) for key, pods in members.items()}

    def turn(pod: Pod) -> tuple[bool, int, str, str, str]:
        in_gang = membership(pod)
        gang = gangs.get(in_gang.key) if isinstance(in_gang, Membership) else None
        created = pod.metadata.creation_timestamp or ""
        if gang is None or isinstance(gang, Flaw):
            return True, -(pod.spec.priority or 0), created, "", ""
        return False, -gang.priority, gang.created, created, pod.metadata.name

    ordered = dict(zip(queued, sorted(queued.values(), key=turn), strict=True))
    return tuple(ordered.get(number, each) for number, each in enumerate(world.parties))


def with_namespace(each: KubernetesObject) -> KubernetesObject:
    """Return the object in the namespace "default" if it names none, as if it were applied."""
    if not isinstance(each, _NAMESPACED) or each.metadata.namespace:
        return each
    return changed(each, metadata=changed(each.metadata, namespace="default"))
