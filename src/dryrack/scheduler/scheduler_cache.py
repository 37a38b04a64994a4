"""
The scheduler's cache: the cluster as the informers show it, and decisions that are assumed.

A decision is assumed from the moment when it is made until its result is known. It is stored like
the facts, so that the next pod cannot get the same device or the same memory. Informers that are
behind cannot undo an assumption; once its result is known, the claim counts as it was last read,
and older revisions from the informers do not count.

The cache is updated with each change: the cost of a pod does not depend on the cluster's size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dryrack.allocation import NO_NODES
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SLICES,
)
from dryrack.client.informer import Name, name_of
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.expansion.extended_resources import classes_by_resource
from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.kinds.resource import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
)
from dryrack.kinds.slice_decode import SliceDecoder
from dryrack.placement import (
    Change,
    Cluster,
    Fleet,
    Occupant,
    Reservations,
    Unplaced,
    no_victims,
    queueing_hint,
)
from dryrack.scheduler.claims.extended_resources import (
    ExtendedClaim,
    find_owners,
    prefer_allocated,
)
from dryrack.scheduler.cluster_facts import ClusterFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dryrack.allocation import AffectedNodes, LiveAllocator
    from dryrack.client.endpoints import Endpoint
    from dryrack.client.informer import Informer, Informers
    from dryrack.kinds.raw import Raw
    from dryrack.placement import ExtendedResources, GangRefused, Profile, VolumeProblem
    from dryrack.scheduler.binding import Plan

# Fields by which a pod requires something of other pods.
_FIELDS_ABOUT_PODS = frozenset(("affinity", "topologySpreadConstraints"))


class WaitingPods(Protocol):
    """Pods and gangs that wait for a change of the cluster."""

    def wake(self, change: Change = Change.REST) -> None:
        """Retry those that the change may help."""
        ...

    def wake_for_claim(self, claim: str) -> None:
        """Retry those that wait for a change of the claim."""
        ...

    def wake_for_pod(self, pod: Occupant) -> None:
        """Retry those that a pod may help that was assigned to a node."""
        ...

    def park_until_pod(self, key: Any, helps: Callable[[Occupant], bool]) -> None:
        """Retry a parked key when such a pod is assigned to a node."""
        ...


class SchedulerCache:
    """The state of the cluster from the informers, with assumed decisions of the scheduler."""

    def __init__(
        self,
        informers: Informers,
        allocator: LiveAllocator,
        waiting: WaitingPods,
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        self.pods = informers.of(PODS)
        self.claims = informers.of(CLAIMS)
        self._classes = informers.of(CLASSES)
        self.budgets = informers.of(POD_DISRUPTION_BUDGETS)
        self._shared_informers = informers
        self._waiting = waiting
        self._fleet = Fleet(release)
        self._allocator = allocator
        self._slices = SliceDecoder()
        # Computed on demand; None after a change of a class.
        self._by_resource: Mapping[str, DeviceClass] | None = None
        self._extended_claims = self.claims.index("extended resources", find_owners)
        self._assumed: dict[str, AllocationResult] = {}
        # Claims as they were last read, until the informers have caught up.
        self._settled: dict[str, Raw] = {}
        self.cluster = Cluster(self._fleet, self._allocator)
        self.reservations = Reservations(self._fleet, self._allocator)
        self.informers = [
            self._listen(self.pods, self._on_pod),
            self._listen(self.claims, self._on_claim),
            self._listen(informers.of(NODES), self._on_node),
            self._listen(informers.of(SLICES), self._on_slice),
            self._listen(self._classes, self._on_class),
            *ClusterFacts(informers, self._fleet, waiting).informers,
            self.budgets,
        ]

    def watch_taint_rules(self, endpoint: Endpoint) -> None:
        """Follow DeviceTaintRules, which not every cluster serves."""
        rules = self._shared_informers.of(endpoint)
        self.informers.append(self._listen(rules, self._on_taint_rule))

    @staticmethod
    def _listen(informer: Informer, listener: Any) -> Informer:
        informer.listen(listener)
        return informer

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """Return a claim, with its assumed allocation if there is one."""
        full = f"{namespace}/{name}"
        raw = self.find_claim(full)
        if raw is None:
            return None
        assumed = self._assumed.get(full)
        if assumed:
            raw = {**raw, "status": {**raw.get("status", {}), "allocation": to_builtins(assumed)}}
        return decode(raw, ResourceClaim)

    def volume_problem(self, pod: Pod) -> VolumeProblem | None:
        """Return the first PVC that keeps the pod from every node, with the reported message."""
        problem = self._fleet.volumes.problem(pod)
        nodes = len(self._fleet)
        if problem is None or not nodes:
            return problem
        message = f"0/{nodes} nodes are available: {problem.message}."
        return problem._replace(message=message)

    def refusal_by_claim(self, problem: str) -> str:
        """Return what kube-scheduler reports if a claim keeps a pod from all nodes."""
        nodes = len(self._fleet)
        if not nodes:
            return "no nodes available to schedule pods"
        _, deallocation = self._fleet.behaviour.no_deallocation_texts
        preemption = no_victims(self.cluster, nodes).message
        reasons = ", ".join(filter(None, (deallocation, preemption)))
        return f"0/{nodes} nodes are available: {problem}. {reasons}"

    def forget_refusals(self) -> None:
        """Check all nodes again: the reasons for which they refused pods may have changed."""
        self._fleet.reopen_all()

    def park_until_pod(self, key: Any, pods: Iterable[Raw]) -> None:
        """Retry a parked key when a pod is assigned to a node that may help one of its pods."""
        asking = [pod for pod in pods if not _FIELDS_ABOUT_PODS.isdisjoint(pod["spec"])]
        predicates = [queueing_hint(decode(pod, Pod), self._fleet) for pod in asking]
        hints = [each for each in predicates if each is not None]
        if hints:
            self._waiting.park_until_pod(key, lambda other: any(helps(other) for helps in hints))

    def extended_resources(self) -> Mapping[str, DeviceClass]:
        """Return the DeviceClass of each extended resource."""
        if self._by_resource is None:
            classes = [decode(each, DeviceClass) for each in self._classes.all()]
            self._by_resource = classes_by_resource(classes)
        return self._by_resource

    def find_extended_claim(self, pod: str) -> Raw | None:
        """Return the claim for the extended resources of a pod, by the uid of the pod."""
        return prefer_allocated(self._extended_claims.get(pod))

    def find_claim(self, claim: str) -> Raw | None:
        """Return the claim ("ns/name") as it was last read."""
        return self._settled.get(claim) or self.claims.get(*claim.split("/"))

    def claims_reserved_for(self, pod: Pod, uid: str) -> tuple[Raw, ...]:
        """Return the claims of a pod that are reserved for a uid: of the pod, or of its group."""
        namespace = pod.metadata.namespace
        names = [named_claim(pod, each) for each in pod.spec.resource_claims]
        claims = [self.find_claim(f"{namespace}/{name}") for name in dict.fromkeys(names) if name]
        claims.append(self.find_extended_claim(pod.metadata.uid))
        return tuple(
            claim
            for claim in claims
            if claim is not None
            and any(each["uid"] == uid for each in claim.get("status", {}).get("reservedFor", ()))
        )

    def wake(self) -> None:
        """Retry all pods that free capacity may help."""
        self._waiting.wake()

    def is_left_over(self, claim: str) -> bool:
        """Return whether a claim has devices although no pod on a node uses it."""
        return not self._fleet.users(claim) and self._allocator.allocation_of(claim) is not None

    def find_obstacle(self, pod: Raw, node: str) -> str:
        """Return what prevents the binding of the pod to the node by now; "" if nothing does."""
        current = self.pods.get(*name_of(pod))
        full = "/".join(name_of(pod))
        if current is None or current["metadata"]["uid"] != pod["metadata"]["uid"]:
            return f"pod {full}: no longer exists"
        if "deletionTimestamp" in current["metadata"]:
            return f"pod {full}: is being deleted"
        if self._fleet.get(node) is None:
            return f"node {node}: no longer exists"
        return ""

    def assume(
        self, pod: Name, node: str, occupant: Occupant, given: Mapping[str, AllocationResult]
    ) -> None:
        """Store a decision: the pod is on the node, and its claims have these allocations."""
        self._fleet.add_pod(pod, node, occupant)
        self._waiting.wake_for_pod(occupant)
        for claim, allocation in given.items():
            self._assumed[claim] = allocation
            self._fleet.reopen(self._allocator.set_allocation(claim, allocation))

    def is_assumed(self, claim: str) -> bool:
        """Return whether an allocation of the claim is assumed and not written yet."""
        return claim in self._assumed

    def extended_claim(
        self, wanted: ExtendedResources | None, node: str, given: Mapping[str, AllocationResult]
    ) -> ExtendedClaim | None:
        """Return the claim for extended resources that a pod gets on its node."""
        state = self._fleet.get(node)
        return None if state is None else ExtendedClaim.of(wanted, state.node, given)

    def rename_claims(self, before: Plan, after: Plan) -> Plan:
        """Move assumed allocations to the names that created claims got from the API server."""
        for old, new in zip(before.assignments, after.assignments, strict=True):
            if old.extended is not None and new.extended is not None and old.extended.to_create:
                allocation = self._assumed.pop(old.extended.name)
                self._allocator.set_allocation(old.extended.name, None)
                self._assumed[new.extended.name] = allocation
                self._allocator.set_allocation(new.extended.name, allocation)
        return after

    def forget_pod(self, pod: Name) -> None:
        """Undo `assume` for a pod that was not bound; the informers count again."""
        self._fleet.remove_pod(pod)
        raw = self.pods.get(*pod)
        if raw is not None:
            self._on_pod(None, raw)
        self._waiting.wake(Change.POD_LEFT)

    def settle_claim(self, claim: str, raw: Raw | None) -> None:
        """Replace an assumed allocation by the claim as it was just read; None: it is deleted."""
        self._assumed.pop(claim, None)
        if raw is not None:
            self._settled[claim] = raw
            self._set_allocation(claim, raw)
        self._read_informer(claim, self.claims.get(*claim.split("/")))
        self._waiting.wake_for_claim(claim)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        if new is None or new.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            if self._fleet.remove_pod(name):
                self._waiting.wake(Change.POD_LEFT)
        elif new["spec"].get("nodeName") and not (
            old and _fields_of_occupant(old) == _fields_of_occupant(new)
        ):
            before = self._fleet.occupant(name)
            occupant = Occupant.of(decode(new, Pod))
            self._fleet.add_pod(name, new["spec"]["nodeName"], occupant)
            if before is not None and before.labels != occupant.labels:
                self._waiting.wake()
            elif before != occupant:
                self._waiting.wake_for_pod(occupant)

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        name = "/".join(name_of(new or old or {}))
        self._read_informer(name, new)
        self._waiting.wake_for_claim(name)

    def _read_informer(self, name: str, claim: Raw | None) -> None:
        """Store a claim as the informer shows it, unless a newer state is known."""
        settled = self._settled.get(name)
        if name in self._assumed or (settled and claim and _revision(claim) < _revision(settled)):
            return
        self._settled.pop(name, None)
        self._set_allocation(name, claim)

    def _set_allocation(self, name: str, claim: Raw | None) -> None:
        raw = None if claim is None else claim.get("status", {}).get("allocation")
        allocation = None if raw is None else decode(raw, AllocationResult)
        self._retry_on(self._allocator.set_allocation(name, allocation))

    def _retry_on(self, nodes: AffectedNodes) -> None:
        """Check these nodes again for waiting pods, unless nothing changed on any node."""
        if nodes != NO_NODES:
            self._fleet.reopen(nodes)
            self._waiting.wake(Change.DEVICE)

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        state = self._fleet.get(name)
        before = state.node if state else None
        if new is None:
            self._fleet.drop(name)
            self._allocator.forget_node(name)
            self._waiting.wake(Change.NODE_LEFT)
            return
        node = decode(new, Node)
        # Heartbeats and images help no waiting pod.
        if before is None or _scheduling_fields(before) != _scheduling_fields(node):
            self._fleet.put(node)
            takes_fewer = before is not None and _takes_fewer_pods(before, node)
            self._waiting.wake(Change.NODE_LEFT if takes_fewer else Change.NODE)
        elif before.status.images != node.status.images:
            self._fleet.put(node)

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            nodes = self._allocator.drop_slice(name_of(old or {}).name)
        else:
            nodes = self._allocator.put_slice(self._slices.decode(new))
        if old is not None and _offers_less(old, new):
            # Nodes refuse pods for other reasons now, and an attempt that failed on one of the
            # devices may succeed.
            self._fleet.reopen(nodes)
            self._waiting.wake(Change.DEVICE_LEFT)
        else:
            self._retry_on(nodes)

    def _on_class(self, old: Raw | None, new: Raw | None) -> None:
        self._by_resource = None
        if new is None:
            self._retry_on(self._allocator.drop_class(name_of(old or {}).name))
        else:
            self._retry_on(self._allocator.put_class(decode(new, DeviceClass)))

    def _on_taint_rule(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            self._retry_on(self._allocator.drop_rule(name_of(old or {}).name))
        else:
            self._retry_on(self._allocator.put_rule(decode(new, DeviceTaintRule)))


def find_helpful_changes(
    pods: Iterable[Raw], refused: Unplaced | GangRefused, profile: Profile
) -> Change:
    """Return the changes that may help these pods, which were refused."""
    changes = Change.OTHER
    for plugin in profile.filters:
        changes |= plugin.hints or Change(0)
    if isinstance(refused, Unplaced) and refused.unresolvable is None:
        # An error on one node keeps a pod from all others until that node loses the device.
        changes |= Change.DEVICE_LEFT | Change.NODE_LEFT
    if refused.is_helped_by_leaving:
        changes |= Change.POD_LEFT
    if any(pod["spec"].get("topologySpreadConstraints") for pod in pods):
        changes |= Change.NODE_LEFT
    return changes


def _scheduling_fields(node: Node) -> tuple[object, ...]:
    """Return the fields of a node that decide which pods it takes."""
    spec = node.spec
    status = node.status
    own = node.metadata.uid, node.metadata.labels, status.allocatable, status.declared_features
    return *own, spec.taints, spec.unschedulable


def _takes_fewer_pods(before: Node, after: Node) -> bool:
    """Return whether a node has only got further taints, or was cordoned."""
    return (
        _scheduling_fields(before)[:4] == _scheduling_fields(after)[:4]
        and all(taint in after.spec.taints for taint in before.spec.taints)
        and after.spec.unschedulable >= before.spec.unschedulable
    )


def _offers_less(before: Raw, after: Raw | None) -> bool:
    """
    Return whether a pool of one slice was deleted, or has only got further taints.

    In a pool of several slices, any slice may be the last that the pool needs to be complete.
    """
    old = before["spec"]
    new = (after or before)["spec"]
    if any(spec["pool"].get("resourceSliceCount", 0) > 1 for spec in (old, new)):
        return False
    old_devices = old.get("devices", ())
    new_devices = new.get("devices", ())
    return (
        _omit(old, "devices", "pool") == _omit(new, "devices", "pool")
        and len(old_devices) == len(new_devices)
        and all(map(_has_only_more_taints, old_devices, new_devices))
    )


def _has_only_more_taints(before: Raw, after: Raw) -> bool:
    taints = after.get("taints", ())
    return before is after or (
        _omit(before, "taints") == _omit(after, "taints")
        and all(taint in taints for taint in before.get("taints", ()))
    )


def _omit(obj: Raw, *fields: str) -> Raw:
    return {name: value for name, value in obj.items() if name not in fields}


def _fields_of_occupant(pod: Raw) -> tuple[object, ...]:
    """Return the fields of a pod on a node that matter to other pods."""
    metadata = pod["metadata"]
    return pod["spec"], metadata.get("labels"), "deletionTimestamp" in metadata


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])
