"""
The cluster as the scheduler sees it: what the caches say, and what it has promised itself.

A promise is an assumption between the decision and the moment when it is known what came of it.
It is kept in the same books as the facts, so that the next pod cannot be given the same device
or the same memory. While it stands, caches that are behind cannot undo it; then the claim is
settled as it was last read, and what the caches show of older revisions does not count.

Everything is kept as it changes: what a pod costs does not depend on how large the cluster is.
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
    TAINT_RULES,
)
from dryrack.client.informer import Name, name_of
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.expansion.extended_resources import classes_by_resource
from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.kinds.resource import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
)
from dryrack.kinds.slice_decode import SliceDecoder
from dryrack.placement import (
    Cluster,
    Fleet,
    Occupant,
    Reservations,
    Unplaced,
    no_victims,
    queueing_hint,
)
from dryrack.scheduler.claims.extended_resources import ExtendedClaim, owners, the_one_that_counts
from dryrack.scheduler.cluster_facts import ClusterFacts
from dryrack.scheduler.queue import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dryrack.allocation import AffectedNodes, LiveAllocator
    from dryrack.client.informer import Informer, Informers
    from dryrack.kinds.raw import Raw
    from dryrack.placement import ExtendedResources, GangRefused, VolumeProblem
    from dryrack.scheduler.binding import Plan

_DONE = ("Succeeded", "Failed")
# Fields by which a pod asks something of other pods.
_HOPING = frozenset(("affinity", "topologySpreadConstraints"))


class WaitingPods(Protocol):
    """Who waits for something to change."""

    def wake(self, change: Change = Change.OTHER) -> None:
        """Something changed that could help many."""
        ...

    def wake_for(self, claim: str) -> None:
        """Something changed about a claim."""
        ...

    def wake_by(self, pod: Occupant) -> None:
        """A pod came to a node."""
        ...

    def hope(self, key: Any, helps: Callable[[Occupant], bool]) -> None:
        """What waits is helped by such a pod that comes."""
        ...


class View:
    """Facts from the informers, promises from the scheduler."""

    def __init__(
        self, informers: Informers, allocator: LiveAllocator, sleepers: WaitingPods
    ) -> None:
        self.pods = informers.of(PODS)
        self.claims = informers.of(CLAIMS)
        self._classes = informers.of(CLASSES)
        self.budgets = informers.of(POD_DISRUPTION_BUDGETS)
        self._informers = informers
        self._sleepers = sleepers
        self._fleet = Fleet()
        self._allocator = allocator
        self._slices = SliceDecoder()
        # Worked out when it is asked for, and forgotten when a class changes.
        self._by_resource: Mapping[str, DeviceClass] | None = None
        self._made = self.claims.index("extended resources", owners)
        self._promised: dict[str, AllocationResult] = {}
        # Claims as they were last read, until the caches are as far.
        self._settled: dict[str, Raw] = {}
        self.cluster = Cluster(self._fleet, self._allocator)
        self.reservations = Reservations(self._fleet, self._allocator)
        self.reads = [
            self._listen(self.pods, self._pod),
            self._listen(self.claims, self._claim),
            self._listen(informers.of(NODES), self._node),
            self._listen(informers.of(SLICES), self._slice),
            self._listen(self._classes, self._class),
            *ClusterFacts(informers, self._fleet, sleepers).reads,
            self.budgets,
        ]

    def follow_taint_rules(self) -> None:
        """Not every cluster serves them."""
        self.reads.append(self._listen(self._informers.of(TAINT_RULES), self._rule))

    @staticmethod
    def _listen(informer: Informer, listener: Any) -> Informer:
        informer.listen(listener)
        return informer

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim, with the allocation that it is promised."""
        full = f"{namespace}/{name}"
        raw = self.known(full)
        if raw is None:
            return None
        promised = self._promised.get(full)
        return _with_allocation(raw, promised) if promised else decode(raw, ResourceClaim)

    def volume_problem(self, pod: Pod) -> VolumeProblem | None:
        """The first of the pod's volume claims that keeps it from every node, as it is told."""
        problem = self._fleet.volumes.problem(pod)
        nodes = len(self._fleet)
        if problem is None or not nodes:
            return problem
        said = f"0/{nodes} nodes are available: {problem.message}."
        return problem._replace(message=said)

    def refusal_by_claim(self, problem: str) -> str:
        """Return what kube-scheduler reports if a claim keeps a pod from all nodes."""
        nodes = len(self._fleet)
        if not nodes:
            return "no nodes available to schedule pods"
        preemption = no_victims(self.cluster, nodes).message
        return f"0/{nodes} nodes are available: {problem}. still not schedulable, {preemption}"

    def refresh(self) -> None:
        """Forgets why nodes refused: by now they may do so for other reasons."""
        self._fleet.reopen_all()

    def hope(self, key: Any, pods: Iterable[Raw]) -> None:
        """What waits has these pods, which may be helped by others that come to nodes."""
        asking = [pod for pod in pods if not _HOPING.isdisjoint(pod["spec"])]
        found = [queueing_hint(decode(pod, Pod), self._fleet) for pod in asking]
        hints = [each for each in found if each is not None]
        if hints:
            self._sleepers.hope(key, lambda other: any(helps(other) for helps in hints))

    def extended_resources(self) -> Mapping[str, DeviceClass]:
        """The class that stands for each extended resource."""
        if self._by_resource is None:
            classes = [decode(each, DeviceClass) for each in self._classes.all()]
            self._by_resource = classes_by_resource(classes)
        return self._by_resource

    def made_for(self, pod: str) -> Raw | None:
        """The claim that was made for the extended resources of a pod, by its uid."""
        return the_one_that_counts(self._made.get(pod))

    def known(self, claim: str) -> Raw | None:
        """The claim as it was last read or seen."""
        return self._settled.get(claim) or self.claims.get(*claim.split("/"))

    def held_for(self, pod: Pod, user: str) -> tuple[Raw, ...]:
        """The claims of a pod that are reserved for a user, by its uid: the pod, or its group."""
        namespace = pod.metadata.namespace
        names = [named_claim(pod, each) for each in pod.spec.resource_claims]
        claims = [self.known(f"{namespace}/{name}") for name in dict.fromkeys(names) if name]
        claims.append(self.made_for(pod.metadata.uid))
        return tuple(claim for claim in claims if claim is not None and _is_user(claim, user))

    def wake(self) -> None:
        """Something became free that may help anybody."""
        self._sleepers.wake()

    def is_left_over(self, claim: str) -> bool:
        """Whether a claim that no pod on a node has keeps devices."""
        return not self._fleet.users(claim) and self._allocator.allocation_of(claim) is not None

    def obstacle(self, pod: Raw, node: str) -> str:
        """What is in the way of binding the pod to the node by now; nothing if it is empty."""
        known = self.pods.get(*name_of(pod))
        full = "/".join(name_of(pod))
        if known is None or known["metadata"]["uid"] != pod["metadata"]["uid"]:
            return f"pod {full}: no longer exists"
        if "deletionTimestamp" in known["metadata"]:
            return f"pod {full}: is being deleted"
        if self._fleet.get(node) is None:
            return f"node {node}: no longer exists"
        return ""

    def promise(
        self, pod: Name, node: str, occupant: Occupant, given: Mapping[str, AllocationResult]
    ) -> None:
        """The pod will be there, and the claims will have these."""
        self._fleet.add_pod(pod, node, occupant)
        self._sleepers.wake_by(occupant)
        for claim, allocation in given.items():
            self._promised[claim] = allocation
            self._fleet.reopen(self._allocator.set_allocation(claim, allocation))

    def is_promised(self, claim: str) -> bool:
        """Whether devices are about to be given to the claim."""
        return claim in self._promised

    def extended_claim(
        self, wanted: ExtendedResources | None, node: str, given: Mapping[str, AllocationResult]
    ) -> ExtendedClaim | None:
        """The claim that is made for a pod on its node, which is given these."""
        state = self._fleet.get(node)
        return None if state is None else ExtendedClaim.of(wanted, state.node, given)

    def renamed(self, before: Plan, after: Plan) -> Plan:
        """What was promised to claims that had yet to be made is theirs by the names they got."""
        for old, new in zip(before.assignments, after.assignments, strict=True):
            if old.extended is not None and new.extended is not None and old.extended.to_make:
                allocation = self._promised.pop(old.extended.name)
                self._allocator.set_allocation(old.extended.name, None)
                self._promised[new.extended.name] = allocation
                self._allocator.set_allocation(new.extended.name, allocation)
        return after

    def take_back(self, pod: Name) -> None:
        """The pod did not get there: the books show again what the caches say."""
        self._fleet.remove_pod(pod)
        raw = self.pods.get(*pod)
        if raw is not None:
            self._pod(None, raw)
        self._sleepers.wake(Change.POD_LEFT)

    def settle(self, claim: str, raw: Raw | None) -> None:
        """What came of a promise: the claim as it was read just now, None if it is gone."""
        self._promised.pop(claim, None)
        if raw is not None:
            self._settled[claim] = raw
            self._hold(claim, _allocation(raw))
        self._claim_seen(claim, self.claims.get(*claim.split("/")))
        self._sleepers.wake_for(claim)

    def _pod(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {})
        if new is None or _is_done(new):
            if self._fleet.remove_pod(name):
                self._sleepers.wake(Change.POD_LEFT)
        elif new["spec"].get("nodeName") and not (old and _occupies(old) == _occupies(new)):
            before = self._fleet.occupant(name)
            occupant = Occupant.of(decode(new, Pod))
            self._fleet.add_pod(name, new["spec"]["nodeName"], occupant)
            if before is not None and before.labels != occupant.labels:
                self._sleepers.wake()
            elif before != occupant:
                self._sleepers.wake_by(occupant)

    def _claim(self, old: Raw | None, new: Raw | None) -> None:
        name = "/".join(name_of(new or old or {}))
        self._claim_seen(name, new)
        self._sleepers.wake_for(name)

    def _claim_seen(self, name: str, new: Raw | None) -> None:
        """What the caches show of a claim, unless more is known."""
        settled = self._settled.get(name)
        if name in self._promised or (settled and new and _revision(new) < _revision(settled)):
            return
        self._settled.pop(name, None)
        self._hold(name, _allocation(new) if new else None)

    def _hold(self, claim: str, allocation: AllocationResult | None) -> None:
        self._help(self._allocator.set_allocation(claim, allocation))

    def _help(self, nodes: AffectedNodes) -> None:
        """Something happened on these nodes that may help those who wait."""
        if nodes != NO_NODES:
            self._fleet.reopen(nodes)
            self._sleepers.wake()

    def _node(self, old: Raw | None, new: Raw | None) -> None:
        name = name_of(new or old or {}).name
        state = self._fleet.get(name)
        before = state.node if state else None
        if new is None:
            self._fleet.drop(name)
            self._allocator.forget_node(name)
            self._sleepers.wake(Change.NODE_LEFT)
            return
        node = decode(new, Node)
        # A heartbeat changes nothing for anybody who waits, nor do images.
        if before is None or _offer(before) != _offer(node):
            self._fleet.put(node)
            takes_fewer = before is not None and _takes_fewer(before, node)
            self._sleepers.wake(Change.NODE_LEFT if takes_fewer else Change.OTHER)
        elif before.status.images != node.status.images:
            self._fleet.put(node)

    def _slice(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            nodes = self._allocator.drop_slice(name_of(old or {}).name)
        else:
            nodes = self._allocator.put_slice(self._slices.decode(new))
        if old is not None and _offers_less(old, new):
            # Nodes say other things, and a device is gone that an attempt may have failed on.
            self._fleet.reopen(nodes)
            self._sleepers.wake(Change.DEVICE_LEFT)
        else:
            self._help(nodes)

    def _class(self, old: Raw | None, new: Raw | None) -> None:
        self._by_resource = None
        if new is None:
            self._help(self._allocator.drop_class(name_of(old or {}).name))
        else:
            self._help(self._allocator.put_class(decode(new, DeviceClass)))

    def _rule(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            self._help(self._allocator.drop_rule(name_of(old or {}).name))
        else:
            self._help(self._allocator.put_rule(decode(new, DeviceTaintRule)))


def _offer(node: Node) -> tuple[object, ...]:
    """What decides which pods a node takes."""
    spec = node.spec
    own = node.metadata.uid, node.metadata.labels, node.status.allocatable
    return *own, spec.taints, spec.unschedulable


def _takes_fewer(before: Node, after: Node) -> bool:
    """Whether all that has changed is that the node keeps more pods off."""
    return (
        _offer(before)[:3] == _offer(after)[:3]
        and all(taint in after.spec.taints for taint in before.spec.taints)
        and after.spec.unschedulable >= before.spec.unschedulable
    )


def _offers_less(before: Raw, after: Raw | None) -> bool:
    """
    Whether a slice that is all of its pool is gone, or has only got further taints.

    Of several slices each may be the one that the pool lacked to be complete.
    """
    old = before["spec"]
    new = (after or before)["spec"]
    if any(spec["pool"].get("resourceSliceCount", 0) > 1 for spec in (old, new)):
        return False
    devices = old.get("devices", ()), new.get("devices", ())
    return (
        _but(old, "devices", "pool") == _but(new, "devices", "pool")
        and len(devices[0]) == len(devices[1])
        and all(map(_is_tainted_more, *devices))
    )


def _is_tainted_more(before: Raw, after: Raw) -> bool:
    taints = after.get("taints", ())
    return before is after or (
        _but(before, "taints") == _but(after, "taints")
        and all(taint in taints for taint in before.get("taints", ()))
    )


def _but(obj: Raw, *fields: str) -> Raw:
    return {name: value for name, value in obj.items() if name not in fields}


def helped_by_changes(pods: Iterable[Raw], refused: Unplaced | GangRefused) -> Change:
    """Return the changes that may help these pods, which were refused."""
    found = Change.OTHER
    if isinstance(refused, Unplaced) and refused.unresolvable is None:
        # An error on one node keeps a pod from all others until that node does without the device.
        found |= Change.DEVICE_LEFT | Change.NODE_LEFT
    if refused.is_helped_by_leaving:
        found |= Change.POD_LEFT
    if any(pod["spec"].get("topologySpreadConstraints") for pod in pods):
        found |= Change.NODE_LEFT
    return found


def _occupies(pod: Raw) -> tuple[object, ...]:
    """What others see of a pod that is on a node."""
    metadata = pod["metadata"]
    return pod["spec"], metadata.get("labels"), "deletionTimestamp" in metadata


def _is_done(pod: Raw) -> bool:
    return pod.get("status", {}).get("phase") in _DONE


def _is_user(claim: Raw, uid: str) -> bool:
    users = claim.get("status", {}).get("reservedFor", ())
    return any(user["uid"] == uid for user in users)


def _revision(obj: Raw) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _allocation(claim: Raw) -> AllocationResult | None:
    raw = claim.get("status", {}).get("allocation")
    return None if raw is None else decode(raw, AllocationResult)


def _with_allocation(raw: Raw, allocation: AllocationResult) -> ResourceClaim:
    status = {**raw.get("status", {}), "allocation": to_builtins(allocation)}
    return decode({**raw, "status": status}, ResourceClaim)
