"""
The loop that creates NodeClaims for pods that fit on no node.

Pods that become unschedulable are decided together: when no further one has come for a second, or
ten seconds after the first. A decision is made again when something changes that may help, and
while pods wait for nodes that have room for them.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from dryrack.client.endpoints import NODE_CLAIMS, NODE_POOLS, PODS
from dryrack.client.informer import name_of
from dryrack.controllers.objects import condition_of, is_deleted, is_terminal, spec_of, uid_of
from dryrack.controllers.provisioning.cluster_view import ClusterView
from dryrack.controllers.provisioning.decision import decide
from dryrack.controllers.provisioning.node_bodies import claim_name, new_claim
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Create, EngineContext, Plan, Report, Write
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.controllers.provisioning.cluster_view import View
    from dryrack.controllers.provisioning.decision import Decision, NeededNode
    from dryrack.controllers.provisioning.nominations import Nominations
    from dryrack.kinds.raw import Raw

NAME = "dryrack-provisioner"
_logger = logging.getLogger(__name__)
_ALL = "pending pods"
# Pods that fit on a node are looked at again after this, as another pod may have taken the room.
_AGAIN_SECONDS = 10.0
# The API server refuses longer messages of events.
_MESSAGE_MAX = 1000
_IGNORED = (
    "the pod has ResourceClaims, which the provisioner ignores; to get nodes for them, start it "
    "without --ignore-dra-requests"
)


def is_waiting(pod: Raw) -> bool:
    """Return whether the scheduler has found no node for a pod."""
    if spec_of(pod).get("nodeName") or is_deleted(pod) or is_terminal(pod):
        return False
    if get(pod, "status.nominatedNodeName", ""):
        return False
    condition = condition_of(pod, "PodScheduled") or {}
    return condition.get("status") == "False" and condition.get("reason") == "Unschedulable"


def claims_for(
    decision: Decision, pods: Mapping[str, Raw], claims: Sequence[Raw]
) -> list[tuple[NeededNode, Raw]]:
    """Return the NodeClaims for the needed nodes; the same need has the same names."""
    batch = [uid_of(each) for each in (*pods.values(), *claims)]
    made = []
    for index, each in enumerate(decision.nodes):
        pool = each.offer.pool
        name = claim_name(pool.metadata.name, batch, index)
        body = new_claim(
            pool,
            name,
            each.offer.labels,
            machines=each.machines,
            requests=each.requests,
            drivers=each.drivers,
        )
        made.append((each, body))
    return made


class NodesForPods(Reconciler[str]):
    """Creates NodeClaims for unschedulable pods."""

    def __init__(
        self, context: EngineContext, settings: ProvisionerSettings, nominations: Nominations
    ) -> None:
        super().__init__(context, NAME, workers=1)
        self._settings = settings
        self._nominations = nominations
        self._first: float | None = None
        """When the first pod of the batch came; None if there is no batch."""
        self._last = 0.0
        self._reported: dict[str, str] = {}
        """By the UID of a pod: the message of its last event."""
        # Listeners read it; they are called at once for objects that are known already.
        self._pods = self.watch(PODS)
        self._view = self.make_view()
        self.reads += self._view.informers
        self._pods.listen(self._on_pod)
        self.watch(NODE_POOLS, self._on_pool)
        self.watch(NODE_CLAIMS, self._on_claim)

    def make_view(self) -> ClusterView:
        return ClusterView(self._context, self._settings, self._on_change)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        pod = new or old
        if pod is not None and (new is None or spec_of(pod).get("nodeName")):
            self._reported.pop(uid_of(pod), None)
            self._nominations.settle_pod(uid_of(pod))
        elif (
            new is not None
            and is_waiting(new)
            and (
                old is None
                or not is_waiting(old)
                or condition_of(old, "PodScheduled") != condition_of(new, "PodScheduled")
            )
        ):
            self._extend_batch()

    def _on_pool(self, old: Raw | None, new: Raw | None) -> None:
        if old is None or new is None or spec_of(old) != spec_of(new):
            self._on_change()

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            self._on_change()

    def _on_change(self) -> None:
        if any(map(is_waiting, self._pods.all())):
            self._extend_batch()

    def _extend_batch(self) -> None:
        self._last = self._clock.now()
        if self._first is None:
            self._first = self._last
            self.queue.add_after(_ALL, self._settings.batch_idle_seconds)

    def _due(self) -> float:
        if self._first is None:
            return 0.0
        idle = self._last + self._settings.batch_idle_seconds
        return min(idle, self._first + self._settings.batch_seconds_max)

    async def decide(self, key: str) -> Plan:
        left = self._due() - self._clock.now()
        if left > 0:
            return Plan(again_seconds=left)
        self._first = None
        waiting = {"/".join(name_of(each)): each for each in self._pods.all() if is_waiting(each)}
        if not waiting:
            return NOTHING
        pods, writes = self.select(waiting)
        view = self.view_of(pods)
        decision = await self._clock.compute(partial(decide, view.case, view.pools, view.future))
        writes += self.create_nodes(decision, pods)
        for pod, node in decision.nominated.items():
            self._nominations.protect(node, self._clock.now(), [uid_of(pods[pod])])
            writes += self.nominate(pods[pod], self.place_of(node))
        expected = {uid_of(pods[name]) for name in decision.nominated}
        expected |= {uid_of(pods[name]) for needed in decision.nodes for name in needed.pods}
        self._nominations.unplaceable = frozenset(map(uid_of, waiting.values())) - expected
        for pod, why in decision.unplaceable.items():
            if pod in pods:
                writes += self._report(pods[pod], f"no node is created for the pod: {why}")
        return Plan(tuple(writes), _AGAIN_SECONDS if expected else None)

    def select(self, waiting: Mapping[str, Raw]) -> tuple[Mapping[str, Raw], list[Write]]:
        """Return the pods that can get nodes, and events on the others."""
        if not self._settings.ignores_claims:
            return waiting, []
        ignored = [each for each in waiting.values() if has_claims(each)]
        writes = [write for each in ignored for write in self._report(each, _IGNORED)]
        return {name: each for name, each in waiting.items() if not has_claims(each)}, writes

    def view_of(self, pods: Mapping[str, Raw]) -> View:
        """Return the cluster for a decision about these pods."""
        return self._view.of_pending(pods.keys())

    def place_of(self, node: str) -> str:
        """Return a node of a decision as an event names it."""
        return f"node {node}"

    def create_nodes(self, decision: Decision, pods: Mapping[str, Raw]) -> list[Write]:
        """Return the writes that create the needed nodes."""
        writes: list[Write] = []
        for needed, body in claims_for(decision, pods, self._view.claims.all()):
            if not any(map(self.still_waits, (pods[pod] for pod in needed.pods))):
                continue
            writes.append(Create(NODE_CLAIMS, body))
            name = body["metadata"]["name"]
            count = len(needed.pods)
            _logger.info(
                "NodeClaim %s: %s for %d pod%s", name, needed.machines[0], count, "s"[: count > 1]
            )
            own = [uid_of(pods[pod]) for pod in needed.pods]
            self._nominations.protect(name, self._clock.now(), own)
            for pod in needed.pods:
                writes += self.nominate(pods[pod], f"NodeClaim {name}")
        return writes

    def still_waits(self, pod: Raw) -> bool:
        """Return whether a pod waits, also after the time that the decision took."""
        now = self._pods.objects.get(name_of(pod))
        return now is not None and uid_of(now) == uid_of(pod) and is_waiting(now)

    def _report(self, pod: Raw, message: str) -> list[Write]:
        """Return an event on the pod, unless its last one says the same."""
        text = message if len(message) <= _MESSAGE_MAX else f"{message[: _MESSAGE_MAX - 4]} ..."
        if self._reported.get(uid_of(pod)) == text:
            return []
        self._reported[uid_of(pod)] = text
        return [Report(pod, "Warning", "FailedScheduling", text)]

    def nominate(self, pod: Raw, place: str) -> list[Write]:
        """Return an event on the pod, unless its last one says the same."""
        text = f"the pod should be scheduled on {place}"
        if self._reported.get(uid_of(pod)) == text:
            return []
        self._reported[uid_of(pod)] = text
        return [Report(pod, "Normal", "Nominated", text)]


def has_claims(pod: Raw) -> bool:
    """Return whether a pod has ResourceClaims."""
    return bool(spec_of(pod).get("resourceClaims"))
