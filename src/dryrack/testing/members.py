"""The pods that an expectation is about, in their current state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.text import hint
from dryrack.client.endpoints import PODS
from dryrack.cluster import GROUP_KINDS
from dryrack.kinds.core import Pod
from dryrack.kinds.expansion.extended_resources import claim_name_of
from dryrack.kinds.expansion.pod_claims import named_claim
from dryrack.placement import gangs_of
from dryrack.testing.expectation import GANG, POD, ScheduledPod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import ResourceClaim
    from dryrack.testing.expectation import Target

MEMBER_KINDS = (PODS, *GROUP_KINDS)


@dataclass(frozen=True, slots=True)
class Members:
    """Pods by their names, or those of a gang."""

    target: Target
    kind: str
    pods: tuple[Pod, ...] = ()
    # Whether a gang has all that it needs on nodes.
    is_placed: bool = False

    @classmethod
    def of(cls, target: Target, objects: Sequence[KubernetesObject]) -> Members:
        pods = [each for each in objects if isinstance(each, Pod)]
        if target.kind != GANG:
            found = tuple(each for each in pods if target.matches(each.metadata.name))
            if found or target.kind == POD:
                return cls(target, POD, found)
        groups = [each for each in objects if not isinstance(each, Pod)]
        views = [each for each in gangs_of(pods, groups) if target.matches(each.key.name)]
        names = {name for view in views for name in (*view.placed, *view.waiting)}
        own = tuple(each for each in pods if each.metadata.name in names)
        is_placed = bool(views) and all(view.is_placed for view in views)
        return cls(target, GANG if views or target.kind == GANG else POD, own, is_placed)

    @property
    def placed(self) -> tuple[Pod, ...]:
        """Return the pods that have a node."""
        return tuple(each for each in self.pods if each.spec.node_name)

    @property
    def are_scheduled(self) -> bool:
        """Return whether all have a node; of a gang, as many as it needs."""
        if self.kind == GANG:
            return self.is_placed
        return bool(self.pods) and len(self.placed) == len(self.pods)

    @property
    def told(self) -> tuple[str, ...]:
        """Return the messages of the scheduler about pods without a node, each once."""
        said = (
            condition.message
            for each in self.pods
            for condition in each.status.conditions
            if condition.type == "PodScheduled" and condition.status == "False"
        )
        return tuple(dict.fromkeys(filter(None, said)))

    @property
    def are_told(self) -> bool:
        """Return whether a scheduler has refused one of the pods."""
        return bool(self.told)

    @property
    def first(self) -> str:
        """
        Return the subject to explain, by namespace and name: the gang, or the first waiting pod.
        """
        if self.kind == GANG and not self.target.is_pattern:
            return self.target.full_name
        waiting = [each for each in self.pods if not each.spec.node_name]
        pod = (waiting or self.pods)[0]
        return pod.full_name

    @property
    def explained_kind(self) -> str:
        """Return the kind of `first`."""
        return GANG if self.kind == GANG and not self.target.is_pattern else POD

    def nothing(self, pods: Iterable[Raw]) -> str:
        """Return the error for a target without pods."""
        known = [f"{it['metadata']['namespace']}/{it['metadata']['name']}" for it in pods]
        return f"{self.target} not found; {hint(self.target.full_name, known)}"

    def __str__(self) -> str:
        named = f"{self.kind} {self.target.full_name}"
        if self.target.is_pattern:
            named = f"{named}, {len(self.placed)} of {len(self.pods)} pods on nodes"
        elif self.placed:
            where = ", ".join(dict.fromkeys(each.spec.node_name for each in self.placed))
            named = f"{named} on node {where}"
        return named


def are_held_back(
    members: Members, claims: Iterable[ResourceClaim], without_claims: Collection[str]
) -> bool:
    """
    Return whether a claim that is missing or being deleted keeps each pod out of the queue.

    A scheduler reports nothing about such pods. `without_claims` are the names of pods whose claims
    cannot be created.
    """
    usable = {each.metadata.name for each in claims if each.metadata.deletion_timestamp is None}
    waiting = [each for each in members.pods if not each.spec.node_name]
    return bool(waiting) and all(
        pod.metadata.name in without_claims
        or any(
            name and name not in usable
            for name in (named_claim(pod, entry) for entry in pod.spec.resource_claims)
        )
        for pod in waiting
    )


def scheduled_pods(members: Members, claims: Iterable[ResourceClaim]) -> tuple[ScheduledPod, ...]:
    """Return the pods that have a node, with the devices of their claims."""
    by_name = {each.metadata.name: each for each in claims}
    found = []
    for pod in members.placed:
        names = [named_claim(pod, entry) for entry in pod.spec.resource_claims]
        # A pod may name a claim twice; two shares of a device are two results.
        used = dict.fromkeys(name for name in (*names, claim_name_of(pod)) if name)
        devices = [
            f"{each.driver}/{each.pool}/{each.device}"
            for claim in map(by_name.get, used)
            if claim is not None and claim.status.allocation is not None
            for each in claim.status.allocation.devices.results
        ]
        found.append(
            ScheduledPod(
                pod.metadata.namespace,
                pod.metadata.name,
                pod.spec.node_name,
                tuple(sorted(devices)),
            )
        )
    return tuple(sorted(found, key=lambda each: each.name))
