"""
Volume matching: the free PersistentVolumes that the claims of a pod get on a node.

As in kube-scheduler's VolumeBinding, each claim gets the smallest volume that fits, beginning with
the smallest claim; a volume that is reserved for a claim is for that claim only. If no volume fits,
one is provisioned, if the class has a provisioner and allows the node.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.selectors import matches_labels, parse_node_selector
from dryrack.placement.index.volumes import SELECTED_NODE, class_of, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim
    from dryrack.kinds.meta import ObjectMeta
    from dryrack.kinds.selectors import NodeMatcher
    from dryrack.placement.index.volumes import ClaimKey, Volumes, WaitingClass

_HOST = "kubernetes.io/hostname"
NO_STORAGE = Quantity.parse("0")


class Unbindable(NamedTuple):
    """The reason for which a claim cannot have a volume on a node, and the remedy."""

    claim: ClaimKey
    fact: str
    remedy: str


class _Candidate(NamedTuple):
    """A volume that fits a claim, with the nodes that can use it."""

    size: Quantity
    name: str
    matcher: NodeMatcher | None

    def reaches(self, labels: Mapping[str, str]) -> bool:
        return self.matcher is None or any(term.matches(labels, "") for term in self.matcher.terms)


class _WaitingClaim:
    """A claim with its candidates: those of one host by its name, as there may be many."""

    def __init__(self, claim: PersistentVolumeClaim, waits: WaitingClass, volumes: Volumes) -> None:
        self.key = key_of(claim)
        self.claim = claim
        self.waits = waits
        self.size = claim.spec.resources.requests.get("storage", NO_STORAGE)
        self._kept: list[_Candidate] = []
        self._by_host: defaultdict[str, list[_Candidate]] = defaultdict(list)
        self._others: list[_Candidate] = []
        if SELECTED_NODE not in claim.metadata.annotations:
            self._look_at(volumes)

    def _look_at(self, volumes: Volumes) -> None:
        for volume in volumes.volumes.values():
            owner = volumes.owner(volume)
            if (owner is not None and owner != self.key) or not _does(volume, self.claim):
                continue
            affinity = volume.spec.node_affinity
            required = None if affinity is None else affinity.required
            matcher = None if required is None else parse_node_selector(required)
            size = volume.spec.capacity.get("storage", NO_STORAGE)
            candidate = _Candidate(size, volume.metadata.name, matcher)
            if owner is not None and volumes.is_kept(volume, self.claim):
                self._kept.append(candidate)
            elif owner is None and _is_on_offer(volume, self.claim):
                for place in self._places(candidate):
                    place.append(candidate)

    @property
    def has_candidates(self) -> bool:
        return bool(self._kept or self._by_host or self._others)

    def _places(self, candidate: _Candidate) -> Iterable[list[_Candidate]]:
        """Return the lists for the hosts of a candidate, or that of the others."""
        hosts: set[str] = set()
        for term in () if candidate.matcher is None else candidate.matcher.terms:
            of_host = [each for each in term.labels if (each.key, each.operator) == (_HOST, "In")]
            if not of_host:
                return (self._others,)
            hosts.update(of_host[0].values)
        return [self._by_host[host] for host in sorted(hosts)] or (self._others,)

    def on(self, labels: Mapping[str, str], taken: Iterable[str]) -> str:
        """Return the volume that the claim gets; "" if there is none."""
        if self._kept:
            first = self._kept[0]
            return first.name if first.reaches(labels) else ""
        near = self._by_host.get(labels.get(_HOST, ""), ())
        usable = (
            each
            for each in chain(near, self._others)
            if each.name not in taken and each.reaches(labels)
        )
        smallest = min(usable, key=lambda each: each[:2], default=None)
        return "" if smallest is None else smallest.name


class VolumeOffers:
    """The volumes that waiting claims of one pod may get, computed once for all nodes."""

    def __init__(
        self, volumes: Volumes, waiting: Iterable[tuple[PersistentVolumeClaim, WaitingClass]]
    ) -> None:
        claims = {key_of(claim): _WaitingClaim(claim, waits, volumes) for claim, waits in waiting}
        self._claims = sorted(claims.values(), key=lambda each: each.size)

    def __bool__(self) -> bool:
        return bool(self._claims)

    @property
    def has_candidates(self) -> bool:
        """Return True if a claim may get a volume that exists."""
        return any(each.has_candidates for each in self._claims)

    def on(self, node: ObjectMeta) -> Mapping[ClaimKey, str] | Unbindable:
        """Return by claim the volume that it gets on a node; "" if one is provisioned there."""
        volumes: dict[ClaimKey, str] = {}
        for claim in self._claims:
            volume = claim.on(node.labels, volumes.values())
            problem = None if volume else _check_provisioning(claim, node)
            if problem is not None:
                return problem
            volumes[claim.key] = volume
        return volumes


def _check_provisioning(waiting: _WaitingClaim, node: ObjectMeta) -> Unbindable | None:
    """Return why no volume can be provisioned for the claim on a node."""
    chosen = waiting.claim.metadata.annotations.get(SELECTED_NODE)
    name = waiting.key[1]
    about = f"the volume of PersistentVolumeClaim {name}"
    if chosen is not None and chosen != node.name:
        fact = f"{about} is being created on node {chosen}"
        return Unbindable(waiting.key, fact, f"wait for it, or delete claim {name}")
    if not waiting.waits.is_provisioned:
        fact = f"no free PersistentVolume of the node fits PersistentVolumeClaim {name}"
        remedy = f"create one of class {class_of(waiting.claim)} with its size and access mode"
        return Unbindable(waiting.key, fact, remedy)
    if not waiting.waits.reaches(node.labels):
        fact = f"{about} can only be created on other nodes"
        return Unbindable(waiting.key, fact, "see allowedTopologies of its class")
    return None


def _does(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    offer = volume.spec
    asked = claim.spec
    needed = asked.resources.requests.get("storage", NO_STORAGE)
    return (
        volume.metadata.deletion_timestamp is None
        and class_of(volume) == class_of(claim)
        and offer.capacity.get("storage", NO_STORAGE) >= needed
        and (offer.volume_mode or "Filesystem") == (asked.volume_mode or "Filesystem")
        and (offer.volume_attributes_class_name or "") == (asked.volume_attributes_class_name or "")
    )


def _is_on_offer(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return True if a volume that is not reserved for the claim is available to it."""
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (selector is None or matches_labels(selector, volume.metadata.labels))
    )
