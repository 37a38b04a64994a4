"""
Stand-in pods: dryrack decides which nodes pods with claims need, and Karpenter creates the nodes.

Karpenter creates no nodes for pods with ResourceClaims. For each needed node, this loop creates a
pod without claims that only a new node of the chosen NodePool and instance type can take. No
scheduler schedules it. It is deleted when Karpenter has created the NodeClaim, because the pods
take the place of the stand-in on the node, and Karpenter would create a second node for it. It is
also deleted when its pods have a node or are gone, or when they fit on another node.

A stand-in has all of its state in the API, so a restart continues with it. The pods are its owners:
if they are deleted while dryrack is down, the garbage collector deletes the stand-in.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dryrack.client.endpoints import NODE_CLAIMS, PODS, SLICES
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import seconds_of, timestamp
from dryrack.controllers.objects import (
    condition_of,
    controller_reference,
    has_condition,
    is_deleted,
    labels_of,
    spec_of,
    uid_of,
)
from dryrack.controllers.provisioning.cluster_view import ClusterView
from dryrack.controllers.provisioning.lifecycle import INITIALIZED_CONDITION
from dryrack.controllers.provisioning.node_bodies import claim_name
from dryrack.controllers.provisioning.node_pools import InvalidPoolError, decode_pool
from dryrack.controllers.provisioning.nominations import Nominations
from dryrack.controllers.provisioning.offers import choices_of, offers_of
from dryrack.controllers.provisioning.provisioning import NodesForPods, has_claims, is_waiting
from dryrack.controllers.writes import NOTHING, Create, Delete, EngineContext, Patch, Plan, Report
from dryrack.hardware import INSTANCE_TYPE
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.kinds.provisioning import DRIVERS, NODE_POOL, NodePool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.controllers.provisioning.cluster_view import View
    from dryrack.controllers.provisioning.decision import Decision, NeededNode
    from dryrack.controllers.provisioning.future_nodes import FutureNodes
    from dryrack.controllers.writes import Write
    from dryrack.kinds.raw import Raw
    from dryrack.planning import NewNode

STAND_IN = "dryrack.dev/stand-in"
SCHEDULER = "dryrack-stand-in"
"""No scheduler has this name."""
_logger = logging.getLogger(__name__)
# A node that has no devices by then has no publisher.
_PUBLISHING_SECONDS = 60.0
_HOSTNAME = "kubernetes.io/hostname"
# DaemonSet pods run on every node; the label is on no other pod.
_OTHER_PODS = {
    "topologyKey": _HOSTNAME,
    "namespaceSelector": {},
    "labelSelector": {
        "matchExpressions": [{"key": "pod-template-generation", "operator": "DoesNotExist"}]
    },
}
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def new_stand_in(needed: NeededNode, name: str, pods: Sequence[Raw]) -> Raw:
    """Return the stand-in for a needed node; it is in the namespace of the first of the pods."""
    pool = needed.offer.pool
    labels = needed.offer.labels
    named = choices_of((decode(each, Pod) for each in pods), ())
    selected = {NODE_POOL, INSTANCE_TYPE, *named} & labels.keys() - {_HOSTNAME}
    namespace = pods[0]["metadata"]["namespace"]
    owners = [
        controller_reference(e, PODS) for e in pods if e["metadata"]["namespace"] == namespace
    ]
    for each in owners:
        del each["controller"], each["blockOwnerDeletion"]
    requests = {
        key: value
        for key, value in needed.requests.items()
        if key != "pods" and not key.startswith("hugepages-")
    }
    extended = {key: value for key, value in requests.items() if "/" in key}
    tolerations = [
        {
            "key": each.key,
            "effect": each.effect,
            **({"value": each.value} if each.value else {"operator": "Exists"}),
        }
        for each in pool.spec.template.spec.taints
    ]
    container = {
        "name": "stand-in",
        "image": STAND_IN,
        "resources": {"requests": requests, **({"limits": extended} if extended else {})},
        "securityContext": _RESTRICTED,
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {STAND_IN: "true"},
            "annotations": {DRIVERS: ",".join(needed.drivers)},
            "ownerReferences": owners,
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "nodeSelector": {key: labels[key] for key in sorted(selected)},
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_OTHER_PODS]}
            },
            "tolerations": tolerations,
            "containers": [container],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
        },
    }


class StandIns(NodesForPods):
    """Creates stand-ins for pods with claims, so that Karpenter creates nodes for them."""

    def __init__(self, context: EngineContext, settings: ProvisionerSettings) -> None:
        pods = context.informers.of(PODS)
        self._stand_ins = pods.index("stand-in", _mark_of)
        self._by_owner = pods.index("owner of stand-in", _owners_of)
        self._claimed: dict[str, str] = {}
        """By the UID of a NodeClaim: the UID of the stand-in for which it was created."""
        super().__init__(context, settings, Nominations())
        pods.listen(self._on_stand_in)
        self._claims = self.watch(NODE_CLAIMS, self._on_node_claim)
        self.watch(SLICES, self._on_slice)

    def make_view(self) -> ClusterView:
        return ClusterView(self._context, self._settings, self._on_change, read_ready_pool)

    def _on_stand_in(self, old: Raw | None, new: Raw | None) -> None:
        pod = new or old or {}
        names = [name_of(each) for each in self._by_owner.get(uid_of(pod))]
        if new is not None and _mark_of(new):
            names.append(name_of(new))
        for name in names:
            self.queue.add("/".join(name))

    def _on_node_claim(self, old: Raw | None, new: Raw | None) -> None:
        if new is None and old is not None:
            self._claimed.pop(uid_of(old), None)
        elif old is None:
            for each in self._live():
                self.queue.add("/".join(name_of(each)))

    def _on_slice(self, old: Raw | None, new: Raw | None) -> None:
        self._on_change()

    async def decide(self, key: str) -> Plan:
        if "/" not in key:
            return await super().decide(key)
        stand_in = next((e for e in self._live() if "/".join(name_of(e)) == key), None)
        if stand_in is None:
            return NOTHING
        claim = self._find_claim(stand_in)
        if claim is not None:
            self._on_change()
            return Plan(_remove(stand_in, f"Karpenter has created NodeClaim {claim}"))
        if not any(map(is_waiting, self._owners(stand_in))):
            return Plan(_remove(stand_in, "no pod needs its node any more"))
        if condition_of(stand_in, "PodScheduled") is None:
            return Plan((_mark_unschedulable(stand_in, self._clock.now()),))
        return NOTHING

    def _live(self) -> list[Raw]:
        """Return the stand-ins that are not being deleted, the oldest first."""
        return sorted((e for e in self._stand_ins.get(STAND_IN) if not is_deleted(e)), key=_age)

    def _owners(self, stand_in: Raw) -> Iterator[Raw]:
        uids = set(_owners_of(stand_in))
        pods = self._pods.all(name_of(stand_in).namespace)
        return (each for each in pods if uid_of(each) in uids)

    def _find_claim(self, stand_in: Raw) -> str | None:
        """
        Return the NodeClaim that Karpenter has created for a stand-in, None if there is none yet.

        Karpenter tells only in an event for which pod a NodeClaim is, so the oldest NodeClaim of
        the pool and type that no other stand-in has is that of the stand-in.
        """
        selector = spec_of(stand_in)["nodeSelector"]
        for claim in sorted(self._view.claims_of(selector[NODE_POOL]), key=_age):
            owner = self._claimed.get(uid_of(claim), uid_of(stand_in))
            if (
                owner == uid_of(stand_in)
                and _age(claim)[0] >= _age(stand_in)[0]
                and _types_of(claim) == [selector[INSTANCE_TYPE]]
            ):
                self._claimed[uid_of(claim)] = owner
                return str(claim["metadata"]["name"])
        return None

    def select(self, waiting: Mapping[str, Raw]) -> tuple[Mapping[str, Raw], list[Write]]:
        return {name: each for name, each in waiting.items() if has_claims(each)}, []

    def view_of(self, pods: Mapping[str, Raw]) -> View:
        return self._view.of_pending(pods.keys(), expected=self._expected_nodes)

    def _expected_nodes(self, future: FutureNodes) -> list[NewNode]:
        """Return the nodes of stand-ins, and those of NodeClaims that lack a node with devices."""
        machines = {each.name: each for each in future.machines}
        pools = {each.pool.metadata.name: each.pool for each in self._view.pool_states()}
        nodes = [new for each in self._claims.all() if (new := self._future_node(each, future))]
        for each in self._live():
            selector: Mapping[str, str] = spec_of(each)["nodeSelector"]
            pool = pools.get(selector[NODE_POOL])
            machine = machines.get(selector[INSTANCE_TYPE])
            if pool is None or machine is None or uid_of(each) in self._claimed.values():
                continue
            choices = {key: (value,) for key, value in selector.items()}
            for offer in offers_of(pool, (machine,), choices):
                if selector.items() <= offer.labels.items():
                    taints = pool.spec.template.spec.taints
                    nodes.append(future.make(_node_of(each), machine, offer.labels, taints))
                    break
        return nodes

    def _future_node(self, claim: Raw, future: FutureNodes) -> NewNode | None:
        """Return the node of a NodeClaim as it will be, None if it has its devices."""
        done = condition_of(claim, INITIALIZED_CONDITION) or {}
        if done.get("status") != "True":
            return self._view.future_node(claim, future)
        if seconds_of(done["lastTransitionTime"]) + _PUBLISHING_SECONDS < self._clock.now():
            return None
        new = self._view.future_node(claim, future)
        published = set(self._view.published_drivers(get(claim, "status.nodeName", "")))
        is_lacking = new is not None and not {e.spec.driver for e in new.slices} <= published
        return new if is_lacking else None

    def place_of(self, node: str) -> str:
        stand_in = next((each for each in self._live() if _node_of(each) == node), None)
        if stand_in is not None:
            return _place_text("/".join(name_of(stand_in)))
        return super().place_of(node)

    def create_nodes(self, decision: Decision, pods: Mapping[str, Raw]) -> list[Write]:
        """Return the writes that create the stand-ins, and delete those that are not needed."""
        writes: list[Write] = []
        used = set(decision.nominated.values())
        for each in self._live():
            if _node_of(each) not in used:
                writes += _remove(each, "the pods fit on other nodes")
        for index, needed in enumerate(decision.nodes):
            own = [pods[pod] for pod in needed.pods]
            if not any(map(self.still_waits, own)):
                continue
            name = claim_name("stand-in", map(uid_of, own), index)
            body = new_stand_in(needed, name, own)
            place = f"{body['metadata']['namespace']}/{name}"
            count = len(own)
            _logger.info(
                "stand-in %s: %s for %d pod%s", place, needed.machines[0], count, "s"[: count > 1]
            )
            refused = Report(own[0], "Warning", "FailedScheduling", f"stand-in pod {name}: {{}}")
            writes.append(Create(PODS, body, refused=refused))
            for pod in own:
                writes += self.nominate(pod, _place_text(place))
        return writes


def read_ready_pool(raw: Raw) -> NodePool:
    """Return a NodePool that Karpenter uses for pods, or raise `InvalidPoolError`."""
    pool = decode_pool(raw)
    if pool.spec.replicas is not None:
        raise InvalidPoolError("spec.replicas: Karpenter creates a fixed number of nodes")
    if not has_condition(raw, "Ready"):
        raise InvalidPoolError("Karpenter has not set the condition Ready")
    return pool


def _mark_of(pod: Raw) -> Sequence[str]:
    return (STAND_IN,) if STAND_IN in labels_of(pod) else ()


def _owners_of(pod: Raw) -> Sequence[str]:
    owners = get(pod["metadata"], "ownerReferences", ())
    return [each["uid"] for each in owners] if _mark_of(pod) else ()


def _age(obj: Raw) -> tuple[str, str]:
    return obj["metadata"]["creationTimestamp"], obj["metadata"]["name"]


def _types_of(claim: Raw) -> Sequence[str]:
    requirements = spec_of(claim).get("requirements", ())
    values = (each.get("values", ()) for each in requirements if each["key"] == INSTANCE_TYPE)
    return [value for each in values for value in each]


def _node_of(stand_in: Raw) -> str:
    """Return the name of the expected node of a stand-in in decisions."""
    return f"{stand_in['metadata']['name']}.{uid_of(stand_in)}"


def _place_text(stand_in: str) -> str:
    return f"the node that Karpenter creates for the stand-in pod {stand_in}"


def _remove(stand_in: Raw, why: str) -> tuple[Write, ...]:
    _logger.info("stand-in %s is deleted: %s", "/".join(name_of(stand_in)), why)
    return (Delete(PODS, name_of(stand_in), uid_of(stand_in), grace_seconds=0),)


def _mark_unschedulable(stand_in: Raw, now: float) -> Patch:
    """Return the condition that Karpenter waits for before it creates a node for a pod."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no scheduler schedules the pod; it stands for pods with ResourceClaims",
        "lastTransitionTime": timestamp(now),
    }
    patch = {"metadata": {"uid": uid_of(stand_in)}, "status": {"conditions": [condition]}}
    return Patch(PODS, name_of(stand_in), patch, "status")
