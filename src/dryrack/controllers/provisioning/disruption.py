"""
The loop that removes nodes that are not needed: empty ones, drifted ones, and those whose pods fit
elsewhere or on a cheaper node.

There has to be a reason at two looks, some seconds apart. The disruption budgets of the pool limit
how many nodes go at once; an event tells which budget holds a node back, and until when. A gang is
moved as a whole or not at all. A node is replaced by creating its successor first: the NodeClaim of
the successor names it, so that a restart between the two loses nothing.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from dryrack.client.endpoints import NODE_CLAIMS, NODE_POOLS, NODES, POD_DISRUPTION_BUDGETS, PODS
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import timestamp
from dryrack.controllers.budgets import covers
from dryrack.controllers.objects import (
    annotations_of,
    has_condition,
    is_deleted,
    is_terminal,
    labels_of,
    node_names,
    spec_of,
    status_of,
    uid_of,
    with_condition,
)
from dryrack.controllers.provisioning.candidates import (
    Candidate,
    consolidatable_at,
    idle_since,
    is_in_use,
    obstacle,
    order_of,
    reason_for,
)
from dryrack.controllers.provisioning.cluster_view import ClusterView
from dryrack.controllers.provisioning.decision import QUICK, decide
from dryrack.controllers.provisioning.disruption_budgets import Allowance, Reason, allowance
from dryrack.controllers.provisioning.draining import protected_until
from dryrack.controllers.provisioning.future_nodes import price_of
from dryrack.controllers.provisioning.lifecycle import INITIALIZED_CONDITION
from dryrack.controllers.provisioning.node_bodies import REPLACES, claim_name, new_claim
from dryrack.controllers.provisioning.provisioning import NAME, is_waiting
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import Create, Delete, EngineContext, Patch, Plan, Report, Write
from dryrack.hardware import INSTANCE_TYPE
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.kinds.paths import get
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement import Membership, membership

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.controllers.provisioning.decision import Decision, PoolState
    from dryrack.controllers.provisioning.nominations import Nominations
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.provisioning import NodePool
    from dryrack.kinds.raw import Raw
    from dryrack.placement import GangKey

_logger = logging.getLogger(__name__)
_ALL = "nodes"
# Changes of the cluster are looked at together.
_COLLECT_SECONDS = 1.0
# As in Karpenter: the time of the last pod event is not written more often.
_EVENT_SECONDS = 10.0
# Nodes whose pods are tried elsewhere in one look; the others have their turn in the next.
_TRIALS_MAX = 10
_SAVING = Fraction(1, 10**6)


class Disruption(Reconciler[str]):
    """Removes and replaces nodes that are not needed."""

    def __init__(
        self, context: EngineContext, settings: ProvisionerSettings, nominations: Nominations
    ) -> None:
        super().__init__(context, NAME, workers=1)
        self._settings = settings
        self._machines = {each.name: each for each in settings.machines}
        self._nominations = nominations
        self._seen: dict[tuple[str, Reason], float] = {}
        """By the UID of a NodeClaim and a reason: when it was a candidate first."""
        self._events: dict[str, float] = {}
        """By node: when a pod came or left last."""
        self._told: dict[tuple[str, str], str] = {}
        """By the UID of a NodeClaim and a subject: the last event."""
        self._tried: dict[str, int] = {}
        """By the UID of a NodeClaim: the version in which its pods fit nowhere else."""
        self._version = 0
        self._view = ClusterView(context, settings, self._wake)
        self.reads += self._view.informers
        self._pods = self.watch(PODS, self._on_pod)
        self._by_node = self._pods.index("node", node_names)
        self._by_gang = self._pods.index("gang", _gang_names)
        self._nodes = self.watch(NODES, self._on_node)
        self._budgets = self.watch(POD_DISRUPTION_BUDGETS)
        self._claims = self.watch(NODE_CLAIMS, self._on_claim)
        self._by_replaced = self._claims.index("replaced", _replaced_names)
        self.watch(NODE_POOLS, self._on_pool)

    def _wake(self) -> None:
        self._version += 1
        self.queue.add_after(_ALL, _COLLECT_SECONDS)

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        before, after = _place_of(old), _place_of(new)
        if before == after:
            return
        for node, _ in (before, after):
            if node and self._view.claims.get("", node) is not None:
                self._events[node] = self._clock.now()
        self._wake()

    def _on_node(self, old: Raw | None, new: Raw | None) -> None:
        if old is None or new is None or _relevant(old) != _relevant(new):
            self._wake()

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if new is None and old is not None:
            uid = uid_of(old)
            self._seen = {key: each for key, each in self._seen.items() if key[0] != uid}
            self._told = {key: each for key, each in self._told.items() if key[0] != uid}
            self._tried.pop(uid, None)
            self._events.pop(_name(old), None)
        if old is None or new is None or _progress(old) != _progress(new):
            self._wake()

    def _on_pool(self, old: Raw | None, new: Raw | None) -> None:
        if old is None or new is None or spec_of(old) != spec_of(new):
            self._wake()

    async def decide(self, key: str) -> Plan:
        now = self._clock.now()
        look = _Look(now)
        writes: list[Write] = []
        for state in self._view.pool_states():
            writes += self._look_at(state, look)
        writes += self._finish_replacements(look)
        if not look.is_settling:
            writes += self._consolidate(look)
        again = min((when for when in look.times if when > now), default=None)
        return Plan(tuple(writes), None if again is None else max(0.05, again - now))

    def _look_at(self, state: PoolState, look: _Look) -> list[Write]:
        """Note the candidates of a pool, and remove its empty nodes."""
        pool = state.pool
        writes: list[Write] = []
        members = self._view.claims_of(pool.metadata.name)
        leaving = sum(map(is_deleted, members))
        look.is_settling |= leaving > 0
        candidates = []
        for each in members:
            if not is_in_use(each, self._nodes.get("", _name(each))):
                continue
            last = self._events.get(_name(each), 0.0)
            start = consolidatable_at(each, pool, last)
            writes += self._note_times(each, start, last, look)
            candidate = self._candidate(each, pool, start, look)
            if candidate is not None:
                candidates.append(candidate)
        number = sum(self._nodes.get("", _name(each)) is not None for each in members)
        for reason in Reason:
            own = [each for each in candidates if each.reason is reason]
            if own:
                budgets = pool.spec.disruption.budgets
                allowed = allowance(budgets, reason, nodes=number, leaving=leaving, now=look.now)
                if allowed.until is not None:
                    look.times.append(allowed.until)
                removed = self._choose(own, allowed, look)
                leaving += sum(isinstance(each, Delete) for each in removed)
                writes += removed
        return writes

    def _candidate(
        self, claim: Raw, pool: NodePool, start: float | None, look: _Look
    ) -> Candidate | None:
        """Return the candidate for a node that can be removed or replaced now."""
        name = _name(claim)
        if self._by_replaced.get(name):
            return None
        expected = self._nominations.until(name)
        if expected > look.now:
            look.times.append(expected)
            return None
        candidate = reason_for(claim, pool, self._by_node.get(name), look.now)
        if candidate.reason is not Reason.DRIFTED:
            policy = pool.spec.disruption.consolidation_policy
            is_kept = policy == "WhenEmpty" and candidate.reason is Reason.UNDERUTILIZED
            if start is None or is_kept:
                return None
            if start > look.now:
                look.times.append(start)
                return None
        return candidate if self._is_second_look(candidate, look) else None

    def _choose(
        self, candidates: Sequence[Candidate], allowed: Allowance, look: _Look
    ) -> list[Write]:
        """Remove as many empty nodes as the budgets allow; keep the other candidates for later."""
        writes: list[Write] = []
        left = allowed.nodes
        for candidate in order_of(candidates):
            node = self._nodes.get("", candidate.name)
            assert node is not None, "a candidate has a node"
            why = self._obstacle(candidate, node, look.now)
            ends = map(protected_until, candidate.pods)
            look.times += [each for each in ends if look.now < each < math.inf]
            if why:
                writes += self._tell(candidate, "Unconsolidatable", f"the node stays: {why}")
            elif candidate.pods:
                look.candidates.append((candidate, left, allowed.text()))
            elif left:
                left -= 1
                look.is_settling = True
                writes += self._remove(candidate, "no pod runs on the node")
            else:
                writes += self._tell_budget(candidate, allowed.text())
        return writes

    def _is_second_look(self, candidate: Candidate, look: _Look) -> bool:
        key = (uid_of(candidate.claim), candidate.reason)
        first = self._seen.setdefault(key, look.now)
        for other in Reason:
            if other is not candidate.reason:
                self._seen.pop((key[0], other), None)
        due = first + self._settings.second_look_seconds
        if due > look.now:
            look.times.append(due)
        return due <= look.now

    def _note_times(
        self, claim: Raw, start: float | None, last: float, look: _Look
    ) -> Iterator[Write]:
        """Yield the status of a NodeClaim: its last pod event, and whether it is consolidatable."""
        status: Raw = {}
        if last and idle_since(claim, 0.0) + _EVENT_SECONDS <= last:
            status["lastPodEventTime"] = timestamp(last)
        is_set = has_condition(claim, "Consolidatable")
        is_wanted = start is not None and start <= look.now
        if is_set != is_wanted:
            conditions: Sequence[Raw] = get(claim, "status.conditions", ())
            if is_wanted:
                new = {"type": "Consolidatable", "status": "True", "reason": "Consolidatable"}
                new |= {"message": "", "lastTransitionTime": timestamp(look.now)}
                status["conditions"] = with_condition(conditions, new)
            else:
                left = [each for each in conditions if each["type"] != "Consolidatable"]
                status["conditions"] = left
        if status:
            metadata = {"uid": uid_of(claim)}
            if "conditions" in status:
                metadata["resourceVersion"] = claim["metadata"]["resourceVersion"]
            patch = {"metadata": metadata, "status": status}
            yield Patch(NODE_CLAIMS, name_of(claim), patch, "status")

    def _obstacle(self, candidate: Candidate, node: Raw, now: float) -> str:
        def is_covered(pod: Raw) -> bool:
            namespace = pod["metadata"]["namespace"]
            return any(
                not status_of(each).get("disruptionsAllowed") and covers(each, pod)
                for each in self._budgets.all(namespace)
            )

        def members(gang: GangKey) -> Sequence[Raw]:
            own = self._by_gang.get(str(gang))
            return [each for each in own if _node_of(each) and not is_terminal(each)]

        return obstacle(candidate, node, now, members=members, is_covered=is_covered)

    def _finish_replacements(self, look: _Look) -> list[Write]:
        """Delete NodeClaims whose successor is initialized."""
        writes: list[Write] = []
        for each in self._claims.all():
            name = annotations_of(each).get(REPLACES)
            old = self._claims.get("", name) if name else None
            if old is None or is_deleted(each) or is_deleted(old):
                continue
            look.is_settling = True
            if has_condition(each, INITIALIZED_CONDITION):
                self._nominations.protect(_name(each), look.now)
                text = f"the pods fit on node {_name(each)}, which replaces the node"
                report = Report(old, "Normal", "DisruptionTerminating", text)
                writes += [report, Delete(NODE_CLAIMS, name_of(old), uid_of(old))]
        return writes

    def _consolidate(self, look: _Look) -> list[Write]:
        """Remove or replace the first candidate whose pods fit elsewhere."""
        hopeless = self._nominations.unplaceable
        if any(is_waiting(each) and uid_of(each) not in hopeless for each in self._pods.all()):
            # These pods may need the room; the next event comes when they have a node.
            return []
        writes: list[Write] = []
        trials = 0
        found_by_name = {each[0].name: each for each in look.candidates}
        for each in order_of(found[0] for found in look.candidates):
            candidate, allowed, budget = found_by_name[each.name]
            uid = uid_of(candidate.claim)
            if self._tried.get(uid) == self._version:
                continue
            if trials == _TRIALS_MAX:
                look.times.append(look.now + _COLLECT_SECONDS)
                break
            trials += 1
            found = self._elsewhere(candidate)
            if found is None:
                self._tried[uid] = self._version
                text = "the scheduler would not place all its pods on other nodes or a cheaper one"
                writes += self._tell(candidate, "Unconsolidatable", f"the node stays: {text}")
            elif not allowed:
                writes += self._tell_budget(candidate, budget)
            elif not found.nodes:
                for node in found.nominated.values():
                    self._nominations.protect(node, look.now)
                return [*writes, *self._remove(candidate, "its pods fit on other nodes")]
            else:
                return [*writes, *self._replace(candidate, found)]
        return writes

    def _elsewhere(self, candidate: Candidate) -> Decision | None:
        """Return where the pods of a node fit without it, None if there is no such place."""
        replaced: dict[str, KubernetesObject | None] = {}
        names = []
        own = {uid_of(each) for each in candidate.pods}
        for raw in candidate.pods:
            pod = decode(raw, Pod)
            names.append(pod.full_name)
            spec = changed(pod.spec, node_name="")
            replaced[pod.metadata.uid] = changed(pod, spec=spec)
            replaced |= {each.metadata.uid: each for each in self._claims_to_move(pod, own)}
        for raw in self._by_node.get(candidate.name):
            if uid_of(raw) not in own:
                # Pods that stay with their node, such as those of DaemonSets.
                replaced[uid_of(raw)] = None
        view = self._view.of_pending(names, without=(candidate.name,), replaced=replaced)
        limits = QUICK
        if candidate.reason is not Reason.DRIFTED:
            machine = self._machines.get(labels_of(candidate.claim).get(INSTANCE_TYPE, ""))
            most = price_of(machine) - _SAVING if machine is not None else Fraction(0)
            limits = replace(limits, nodes=1, cost=most)
        found = decide(view.case, view.pools, view.future, limits)
        ready = all(
            (node := self._view.claims.get("", name)) is None
            or has_condition(node, INITIALIZED_CONDITION)
            for name in found.nominated.values()
        )
        is_placed = len(found.nominated) + sum(len(e.pods) for e in found.nodes) == len(names)
        # Pods that the scheduler places otherwise would need further nodes, again and again.
        return found if is_placed and ready and found.is_free else None

    def _claims_to_move(self, pod: Pod, leaving: set[str]) -> Iterator[ResourceClaim]:
        """Yield the claims of a pod that only leaving pods use, without their devices."""
        for entry in pod.spec.resource_claims:
            name = named_claim(pod, entry)
            raw = self._view.resource_claims.get(pod.metadata.namespace, name) if name else None
            if raw is None:
                continue
            claim = decode(raw, ResourceClaim)
            if all(user.uid in leaving for user in claim.status.reserved_for):
                status = changed(claim.status, allocation=None, reserved_for=())
                yield changed(claim, status=status)

    def _remove(self, candidate: Candidate, why: str) -> list[Write]:
        claim = candidate.claim
        text = f"the node is removed ({candidate.reason}): {why}"
        _logger.info("NodeClaim %s: %s", candidate.name, text)
        report = Report(claim, "Normal", "DisruptionTerminating", text)
        return [report, Delete(NODE_CLAIMS, name_of(claim), uid_of(claim))]

    def _replace(self, candidate: Candidate, found: Decision) -> list[Write]:
        """Create the successors of a node; it is removed when they are initialized."""
        writes: list[Write] = []
        for index, needed in enumerate(found.nodes):
            pool = needed.offer.pool
            name = claim_name(pool.metadata.name, [uid_of(candidate.claim)], index)
            body = new_claim(
                pool,
                name,
                needed.offer.labels,
                machines=needed.machines,
                requests=needed.requests,
                drivers=needed.drivers,
                replaces=candidate.name,
            )
            text = f"NodeClaim {name} ({needed.machines[0]}) will replace the node"
            _logger.info("NodeClaim %s: %s", candidate.name, text)
            report = Report(candidate.claim, "Normal", "DisruptionLaunching", text)
            writes += [Create(NODE_CLAIMS, body), report]
            self._nominations.protect(name, self._clock.now())
        return writes

    def _tell_budget(self, candidate: Candidate, budget: str) -> list[Write]:
        pool = candidate.pool.metadata.name
        text = f"NodePool {pool} does not allow to remove the node ({candidate.reason}): {budget}"
        return self._tell(candidate, "DisruptionBlocked", text)

    def _tell(self, candidate: Candidate, reason: str, text: str) -> list[Write]:
        """Return an event, unless the last one of this kind says the same."""
        key = (uid_of(candidate.claim), reason)
        if self._told.get(key) == text:
            return []
        self._told[key] = text
        _logger.info("NodeClaim %s: %s", candidate.name, text)
        return [Report(candidate.claim, "Normal", reason, text, once=text)]


class _Look:
    """One look at all nodes."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.times: list[float] = []
        """When something may be different without a change of the cluster."""
        self.is_settling = False
        """True if a node is being removed, so that its pods look for places."""
        self.candidates: list[tuple[Candidate, int, str]] = []
        """With the number of nodes that the budgets allow, and the budget."""


def _name(obj: Raw) -> str:
    return str(obj["metadata"]["name"])


def _node_of(pod: Raw) -> str:
    return spec_of(pod).get("nodeName") or ""


def _progress(claim: Raw) -> object:
    return is_deleted(claim), has_condition(claim, INITIALIZED_CONDITION)


def _place_of(pod: Raw | None) -> tuple[str, bool]:
    """Return the node on which a pod is, and whether it is leaving."""
    if pod is None or is_terminal(pod):
        return "", False
    return _node_of(pod), is_deleted(pod)


def _relevant(node: Raw) -> object:
    return spec_of(node), labels_of(node), annotations_of(node), is_deleted(node)


def _replaced_names(claim: Raw) -> Sequence[str]:
    name = annotations_of(claim).get(REPLACES)
    return (name,) if name else ()


def _gang_names(pod: Raw) -> Sequence[str]:
    gang = membership(decode(pod, Pod))
    return (str(gang.key),) if isinstance(gang, Membership) else ()
