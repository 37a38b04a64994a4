"""
A bag of objects, sorted for a what-if: who asks for what, in which order.

A pod asks for its claims together, on one node; one that has ended asks for nothing. A claim that
no pod uses asks for itself. They come in the order of the bag. A claim that a pod makes from a
template is named after the two, without the random ending that it gets in a cluster; so is the
claim for extended resources that device classes stand for. Objects without a namespace are in
"default", as they are when somebody applies them. Pods of a gang name it (see `gangs.dialects`),
and share the claims that they have from its PodGroup.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace as changed

from dryrack.allocation import Code, claim_name
from dryrack.kinds.core import Event, Node, PersistentVolumeClaim, Pod, PodOwner
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.expansion import extended_resources
from dryrack.kinds.expansion.pod_claims import claim_from_template, generate_name, named_claim
from dryrack.kinds.meta import KubernetesObject, ObjectMeta
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
from dryrack.placement.whatif.admission import AdmissionRefusals, completed_pods, refusals
from dryrack.placement.whatif.cluster_context import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.core import PodResourceClaim
    from dryrack.kinds.quantity import Quantity
    from dryrack.placement.gangs.dialects import Definition
    from dryrack.placement.whatif.admission import AdmissionRefusal

_Kind = TypeVar("_Kind", bound=KubernetesObject)

_DONE = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Missing:
    """A missing object that a claim needs, by the name that the claim would have."""

    claim: str
    fact: str
    remedy: str = "add it"
    # Why it is missing.
    code: Code = Code.NOT_FOUND


@dataclass(frozen=True, slots=True)
class Party:
    """Those who are served together: a pod with its claims, or a claim by itself."""

    pod: Pod | None
    claims: tuple[ResourceClaim, ...]
    # What the pod needs and nobody has.
    missing: tuple[Missing, ...] = ()
    # What one of the claims is for, where a node may have some of its own.
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
        """The claims that the claim controller creates, or has created, for the pod."""
        extended = () if self.extended is None else (self.extended.claim, self.extended.made)
        return (each for each in self.claims if each not in extended)

    @property
    def asks_for_devices(self) -> bool:
        return bool(self.claims or self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The objects that a what-if reckons with; others are left out."""

    nodes: tuple[Node, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    # What is known of the cluster besides.
    facts: tuple[Fact, ...] = ()
    # What says which gangs there are.
    groups: tuple[KubernetesObject, ...] = ()
    # What a cluster reports; a decision does not look at them.
    events: tuple[Event, ...] = ()
    # Pods and claims, in the order in which they are served.
    parties: tuple[Pod | ResourceClaim, ...] = ()

    @staticmethod
    def of(objects: Iterable[KubernetesObject]) -> World:
        """The world of a bag of typed objects, which have their defaults."""
        bag = completed_pods([with_namespace(each) for each in objects])
        world = World(
            nodes=_only(bag, Node),
            slices=_only(bag, ResourceSlice),
            classes=_only(bag, DeviceClass),
            taint_rules=_only(bag, DeviceTaintRule),
            templates=_only(bag, ResourceClaimTemplate),
            facts=tuple(each for each in bag if isinstance(each, Fact)),
            groups=tuple(each for each in bag if isinstance(each, GROUPS)),
            events=_only(bag, Event),
            parties=tuple(each for each in bag if isinstance(each, Pod | ResourceClaim)),
        )
        return replace(world, parties=_in_queue_order(world))

    @property
    def claims(self) -> tuple[ResourceClaim, ...]:
        return _only(self.parties, ResourceClaim)

    @property
    def definitions(self) -> Mapping[GangKey, Definition]:
        """What is said about gangs."""
        return {each.key: each for group in self.groups for each in definitions(group)}

    def with_claim(self, claim: ResourceClaim) -> World:
        """The same with another version of a claim, or of the template it comes from."""
        named = claim_name(claim)
        parties = tuple(
            claim if isinstance(each, ResourceClaim) and claim_name(each) == named else each
            for each in self.parties
        )
        if claim not in parties:
            parties = (claim, *parties)
        return replace(self, parties=parties)

    def with_higher_quotas(self, limits: Mapping[tuple[str, str], Quantity]) -> World:
        """The same with these limits, by the name of the quota and of the resource."""

        def raise_limits(each: Fact) -> Fact:
            if not isinstance(each, ResourceQuota):
                return each
            own = {
                name: new for (quota, name), new in limits.items() if quota == each.metadata.name
            }
            spec = changed(each.spec, hard={**each.spec.hard, **own})
            hard = {**each.status.hard, **own} if each.status.hard else {}
            return changed(each, spec=spec, status=changed(each.status, hard=hard))

        return replace(self, facts=tuple(map(raise_limits, self.facts)))

    @property
    def pods(self) -> tuple[Pod, ...]:
        """Those that have not ended."""
        return tuple(each for each in _only(self.parties, Pod) if each.status.phase not in _DONE)

    def in_order(self) -> Iterator[Party]:
        """All who ask, one after the other."""
        named = _Named.of(self)
        refused = refusals(self.facts, self.classes, self.parties, named.party)
        used = {
            f"{pod.metadata.namespace}/{name}"
            for pod in self.pods
            for name in (
                extended_resources.claim_name_of(pod),
                *(named.claim_of(pod, each) for each in pod.spec.resource_claims),
            )
        }
        for each in self.parties:
            if isinstance(each, Pod):
                if each.status.phase not in _DONE:
                    yield _add_refusals(named.party(each), refused)
            elif claim_name(each) not in used:
                yield _add_refusals(Party(None, (each,)), refused)


@dataclass(frozen=True, slots=True)
class _Named:
    """What pods refer to by name."""

    claims: Mapping[str, ResourceClaim]
    templates: Mapping[str, ResourceClaimTemplate]
    classes: Mapping[str, DeviceClass]
    # Extended resources that some node has of its own, by a device plugin.
    of_nodes: frozenset[str]
    gangs: Mapping[GangKey, Definition]

    @staticmethod
    def of(world: World) -> _Named:
        return _Named(
            {claim_name(claim): claim for claim in world.claims},
            {each.full_name: each for each in world.templates},
            extended_resources.classes_by_resource(world.classes),
            frozenset(name for node in world.nodes for name in node.status.allocatable),
            world.definitions,
        )

    def party(self, pod: Pod) -> Party:
        entries = [each for each in pod.spec.resource_claims if named_claim(pod, each) != ""]
        found = [self._claim(pod, each) for each in entries]
        extended = self._extended(pod)
        if isinstance(extended, ExtendedResources):
            found.append(extended.made or extended.claim)
        elif extended is not None:
            found.append(extended)
        return Party(
            pod,
            tuple(each for each in found if isinstance(each, ResourceClaim)),
            tuple(each for each in found if isinstance(each, Missing)),
            extended if isinstance(extended, ExtendedResources) else None,
            membership(pod),
        )

    def claim_of(self, pod: Pod, wanted: PodResourceClaim) -> str:
        """The name of the claim that the pod means, as the cluster says or would say."""
        named = named_claim(pod, wanted)
        if named is not None:
            return named
        owner = self._group_with(pod, wanted) or pod.metadata.name
        return generate_name(owner, wanted.name).removesuffix("-")

    def _group_with(self, pod: Pod, wanted: PodResourceClaim) -> str:
        """The PodGroup of the pod that has the very same entry, whose claim it is then."""
        group = pod.spec.scheduling_group
        if group is None or not group.pod_group_name:
            return ""
        key = GangKey(Dialect.POD_GROUP, pod.metadata.namespace, group.pod_group_name)
        entries = self.gangs[key].claims if key in self.gangs else ()
        template = wanted.resource_claim_template_name
        same = (e for e in entries if e.name == wanted.name)
        is_its = any(entry.resource_claim_template_name == template for entry in same)
        return group.pod_group_name if is_its else ""

    def _claim(self, pod: Pod, wanted: PodResourceClaim) -> ResourceClaim | Missing:
        name = f"{pod.metadata.namespace}/{self.claim_of(pod, wanted)}"
        if name in self.claims:
            return self.claims[name]
        template_name = wanted.resource_claim_template_name
        template = self.templates.get(f"{pod.metadata.namespace}/{template_name}")
        if template is not None:
            return _generated(pod, wanted, template, self.claim_of(pod, wanted))
        what = f"ResourceClaim {wanted.resource_claim_name!r}"
        if template_name is not None:
            what = f"ResourceClaimTemplate {template_name!r}"
        return Missing(name, f"pod {pod.full_name} uses {what}, which does not exist")

    def _extended(self, pod: Pod) -> ExtendedResources | Missing | None:
        """Return the extended resources of classes, or what no class and no node provides."""
        resources = extended_resources.asked_for(pod)
        name = extended_resources.claim_name_of(pod)
        full = f"{pod.metadata.namespace}/{name}"
        lacking = [e for e in resources if e not in self.classes and e not in self.of_nodes]
        if lacking:
            asks = f"pod {pod.full_name} requests {' and '.join(lacking)}"
            fact = f"{asks}, which no DeviceClass and no node provides"
            return Missing(full, fact, " and ".join(map(_class_for, lacking)))
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


def _class_for(resource: str) -> str:
    """Which class would give a resource."""
    if resource.startswith(CLASS_RESOURCE):
        return f"add the DeviceClass {resource.removeprefix(CLASS_RESOURCE)!r}"
    return f"add a DeviceClass with spec.extendedResourceName: {resource}"


def _in_queue_order(world: World) -> tuple[Pod | ResourceClaim, ...]:
    """
    Return pods and claims, where pods of a cluster that wait are in the order of the queue.

    The scheduler takes gangs that have waited for a minute first, then pods by priority and age.
    """
    places = [number for number, each in enumerate(world.parties) if _is_queued(each)]
    queued = [each for each in world.parties if isinstance(each, Pod) and _is_queued(each)]
    if len(queued) < 2:
        return world.parties
    gangs: dict[GangKey, list[Pod]] = {}
    for pod in world.pods:
        said = membership(pod)
        if isinstance(said, Membership):
            gangs.setdefault(said.key, []).append(pod)
    known = {key: gang_of(key, pods, world.definitions) for key, pods in gangs.items()}

    def turn(pod: Pod) -> tuple[bool, int, str, str, str]:
        said = membership(pod)
        gang = known.get(said.key) if isinstance(said, Membership) else None
        created = pod.metadata.creation_timestamp or ""
        if gang is None or isinstance(gang, Flaw):
            return True, -(pod.spec.priority or 0), created, "", ""
        return False, -gang.priority, gang.created, created, pod.metadata.name

    ordered = dict(zip(places, sorted(queued, key=turn), strict=True))
    return tuple(ordered.get(number, each) for number, each in enumerate(world.parties))


def _is_queued(each: Pod | ResourceClaim) -> bool:
    return isinstance(each, Pod) and bool(each.metadata.uid) and not each.spec.node_name


def _generated(
    pod: Pod, wanted: PodResourceClaim, template: ResourceClaimTemplate, name: str
) -> ResourceClaim:
    given = {"spec": {"metadata": to_builtins(template.spec.metadata)}}
    made = claim_from_template({"metadata": to_builtins(pod.metadata)}, wanted.name, given)
    metadata = decode({**made["metadata"], "name": name}, ObjectMeta)
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


def _only(bag: Iterable[KubernetesObject], kind: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(each for each in bag if isinstance(each, kind))


def with_namespace(each: KubernetesObject) -> KubernetesObject:
    """The object as somebody applies it who names no namespace."""
    namespaced = isinstance(
        each,
        (
            *(Pod, ResourceClaim, ResourceClaimTemplate, PodOwner, PersistentVolumeClaim),
            *(ResourceQuota, LimitRange, PodDisruptionBudget, *GROUPS),
        ),
    )
    if not namespaced or each.metadata.namespace:
        return each
    return changed(each, metadata=changed(each.metadata, namespace="default"))
