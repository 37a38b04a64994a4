"""
Nodes that could be removed: since when, for which reason, and what forbids it.

A node is empty if no pod has to move, drifted if its pool has another template by now, and else
perhaps underutilized. Only nodes that are initialized are looked at, and no node on which a pod is
expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.durations import seconds_in
from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.objects import (
    annotations_of,
    condition_of,
    controller_of,
    has_condition,
    is_deleted,
    labels_of,
    status_of,
)
from dryrack.controllers.provisioning.disruption_budgets import Reason
from dryrack.controllers.provisioning.draining import must_leave, protected_until
from dryrack.controllers.provisioning.lifecycle import INITIALIZED_CONDITION
from dryrack.controllers.provisioning.node_bodies import template_hash
from dryrack.controllers.provisioning.requirements import combine, first_mismatch
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.provisioning import DO_NOT_DISRUPT, NEVER, POOL_HASH, NodePool
from dryrack.placement import Membership, membership

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.placement import GangKey


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that could be removed for a reason, with the pods that would have to move."""

    claim: Raw
    pool: NodePool
    reason: Reason
    pods: tuple[Raw, ...]

    @property
    def name(self) -> str:
        return str(self.claim["metadata"]["name"])


def reason_for(claim: Raw, pool: NodePool, pods: Sequence[Raw], now: float) -> Candidate:
    """Return the candidate for a node with these pods."""
    moving = tuple(each for each in pods if must_leave(each, now))
    if is_drifted(claim, pool):
        return Candidate(claim, pool, Reason.DRIFTED, moving)
    return Candidate(claim, pool, Reason.UNDERUTILIZED if moving else Reason.EMPTY, moving)


def is_drifted(claim: Raw, pool: NodePool) -> bool:
    """Return whether the pool would not create this node any more."""
    made_from = annotations_of(claim).get(POOL_HASH)
    if made_from is not None and made_from != template_hash(pool):
        return True
    allowed = combine(pool.spec.template.spec.requirements)
    return first_mismatch(allowed, labels_of(claim)) is not None


def idle_since(claim: Raw, last_event: float) -> float:
    """Return when the last pod came to the node or left it, or when the node was initialized."""
    initialized = condition_of(claim, INITIALIZED_CONDITION) or {}
    times = [last_event, seconds_of(initialized["lastTransitionTime"])]
    noted = status_of(claim).get("lastPodEventTime")
    return max((*times, seconds_of(noted))) if noted else max(times)


def consolidatable_at(claim: Raw, pool: NodePool, last_event: float) -> float | None:
    """Return the time from which the node can be consolidated, None if it never can."""
    after = pool.spec.disruption.consolidate_after
    seconds = None if after == NEVER else seconds_in(after)
    return None if seconds is None else idle_since(claim, last_event) + seconds


def is_in_use(claim: Raw, node: Raw | None) -> bool:
    """Return whether a NodeClaim has a node that is initialized and stays."""
    return (
        node is not None
        and not is_deleted(claim)
        and not is_deleted(node)
        and has_condition(claim, INITIALIZED_CONDITION)
    )


def obstacle(
    candidate: Candidate,
    node: Raw,
    now: float,
    *,
    members: Callable[[GangKey], Iterable[Raw]],
    is_covered: Callable[[Raw], bool],
) -> str:
    """
    Return what forbids to remove a node, "" if nothing does.

    `members` are the running pods of a gang; `is_covered` says whether a PodDisruptionBudget
    forbids to evict a pod now.
    """
    for each in (candidate.claim, node):
        if annotations_of(each).get(DO_NOT_DISRUPT) == "true":
            return f"it has the annotation {DO_NOT_DISRUPT}"
    own = {each["metadata"]["uid"] for each in candidate.pods}
    for pod in candidate.pods:
        name = f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if protected_until(pod) > now:
            return f"{name} has the annotation {DO_NOT_DISRUPT}"
        if controller_of(pod) is None:
            return f"{name} has no controller, so no pod would replace it"
        if is_covered(pod):
            return f"a PodDisruptionBudget does not allow to evict {name}"
        gang = membership(decode(pod, Pod))
        if isinstance(gang, Membership):
            others = [each for each in members(gang.key) if each["metadata"]["uid"] not in own]
            if others:
                return f"{name} is in a gang with {len(others)} pods on other nodes: {gang.key}"
    return ""


def order_of(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates, those first that disturb the fewest pods."""
    return sorted(candidates, key=lambda each: (len(each.pods), each.name))
