"""
Claims of storage that are bound when a node is chosen for their pod.

As kube-scheduler: a free volume that was chosen is kept for the claim by its reference; for others
the node is written to the claim, where the provisioner of its class finds it and makes the volume.
The pod is bound when the claim is. All that the wait depends on is in the volume or the claim:
whoever dies in it finds it there, and chooses nothing else.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from dryrack.client.endpoints import VOLUME_CLAIMS, VOLUMES
from dryrack.client.errors import NotFoundError
from dryrack.placement import SELECTED_NODE, Unbindable, VolumeOffers
from dryrack.scheduler.claims import UnusableClaimError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim, Pod
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Fleet

_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
# kube-scheduler's bindTimeoutSeconds.
TIMEOUT_SECONDS = 600.0


class UnusableVolumeClaimError(UnusableClaimError):
    """A PersistentVolumeClaim cannot be used as it was decided."""

    PLUGIN = "VolumeBinding"


class UnboundClaim(NamedTuple):
    """A claim, and the node for whose pod it is to be bound."""

    namespace: str
    name: str
    uid: str
    node: str
    volume: str = ""
    """The free volume that it gets; "": one is made for it."""


class VolumeBinding:
    """Chooses volumes or has them made where pods go, and waits for them."""

    def __init__(
        self, client: Client, informers: Informers, fleet: Fleet, clock: Timekeeper
    ) -> None:
        self._client = client
        self._claims = informers.of(VOLUME_CLAIMS)
        self._volumes = informers.of(VOLUMES)
        self._fleet = fleet
        self._clock = clock
        self._changed = asyncio.Event()
        for endpoint in (VOLUME_CLAIMS, VOLUMES):
            informers.of(endpoint).listen(self._on_change)

    def assume(self, pods: Iterable[tuple[Pod, str]]) -> list[UnboundClaim]:
        """
        What has to be bound before pods can be, each with the node that it goes to.

        Volumes that are chosen for it are kept from other pods until it is forgotten.
        """
        found: list[UnboundClaim] = []
        for pod, node in pods:
            try:
                found += self._chosen(pod, node)
            except UnusableClaimError:
                self.forget(found)
                raise
        return found

    def forget(self, waiting: Iterable[UnboundClaim]) -> None:
        """Whatever became of them: what is written is known by now."""
        assumed = self._fleet.volumes.assumed
        for each in waiting:
            if assumed.get(each.volume) == (each.namespace, each.name):
                del assumed[each.volume]

    def _chosen(self, pod: Pod, node: str) -> Iterable[UnboundClaim]:
        volumes = self._fleet.volumes
        offers = VolumeOffers(volumes, volumes.waiting(pod)) if pod.spec.volumes else None
        state = self._fleet.get(node)
        if not offers or state is None:
            return []
        found = offers.on(state.node.metadata)
        if isinstance(found, Unbindable):
            # Another pod of the same decision got it.
            name = f"{found.claim[0]}/{found.claim[1]}"
            raise UnusableVolumeClaimError(name, f"{found.fact}; {found.remedy}")
        uids = {key: volumes.claims[key].metadata.uid for key in found}
        volumes.assumed.update((volume, key) for key, volume in found.items() if volume)
        return [UnboundClaim(*key, uids[key], node, volume) for key, volume in found.items()]

    async def bind(self, waiting: Iterable[UnboundClaim]) -> None:
        """Returns when all claims are bound; raises `UnusableClaimError` if one will not be."""
        left = [each for each in waiting if not self._is_bound(each)]
        # Pods that share a claim may go to several nodes: its volume is made on one of them.
        for each in {each.uid: each for each in reversed(left)}.values():
            await (self._keep(each) if each.volume else self._choose(each))
        deadline = self._clock.now() + TIMEOUT_SECONDS
        while left := [each for each in left if not self._is_done(each)]:
            if self._clock.now() >= deadline:
                raise _failure(left[0], f"has no volume after {TIMEOUT_SECONDS:.0f} s")
            timer = self._clock.call_at(deadline, self._look)
            try:
                await self._changed.wait()
            finally:
                timer.cancel()

    async def _choose(self, each: UnboundClaim) -> None:
        known = self._known(each).metadata
        if SELECTED_NODE in known.annotations:
            return
        # Another pod with the claim may be going to another node at this very moment.
        identity = {"uid": each.uid, "resourceVersion": known.resource_version}
        patch = {"metadata": {**identity, "annotations": {SELECTED_NODE: each.node}}}
        try:
            written = await self._client.patch(
                VOLUME_CLAIMS, each.name, patch, namespace=each.namespace
            )
        except NotFoundError as error:
            raise _failure(each, "was deleted") from error
        # What is known from here on has the node, unless the provisioner took it away.
        await self._claims.reached(written["metadata"]["resourceVersion"])

    async def _keep(self, each: UnboundClaim) -> None:
        """Binds the volume to the claim; a controller binds the claim to the volume."""
        volume = self._fleet.volumes.volumes.get(each.volume)
        if volume is None:
            raise _failure(each, f"lost its volume {each.volume}")
        reference = volume.spec.claim_ref
        metadata = self._known(each).metadata
        if reference is not None and reference.uid == each.uid:
            return
        identity = {"uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version}
        # Who keeps it for the claim by name has bound it themselves.
        marks = {"annotations": {_BY_CONTROLLER: "yes"}} if reference is None else {}
        kept = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": each.namespace,
            "name": each.name,
            "uid": each.uid,
            "resourceVersion": metadata.resource_version,
        }
        patch = {"metadata": identity | marks, "spec": {"claimRef": kept}}
        written = await self._client.patch(VOLUMES, each.volume, patch)
        await self._volumes.reached(written["metadata"]["resourceVersion"])

    def _is_bound(self, each: UnboundClaim) -> bool:
        volume = self._fleet.volumes.bound_to(self._known(each))
        if volume is None:
            return False
        self._check_reach(each, volume)
        return True

    def _is_done(self, each: UnboundClaim) -> bool:
        if self._is_bound(each):
            return True
        if each.volume:
            volume = self._fleet.volumes.volumes.get(each.volume)
            reference = None if volume is None else volume.spec.claim_ref
            if reference is None or reference.uid != each.uid:
                raise _failure(each, f"lost its volume {each.volume}")
            return False
        if SELECTED_NODE not in self._known(each).metadata.annotations:
            raise _failure(each, f"cannot have its volume on node {each.node}; see its events")
        return False

    def _check_reach(self, each: UnboundClaim, volume: PersistentVolume) -> None:
        node = self._fleet.get(each.node)
        labels = {} if node is None else node.node.metadata.labels
        if not self._fleet.volumes.reaches(volume, labels):
            raise _failure(each, f"got a volume that node {each.node} cannot use")

    def _known(self, each: UnboundClaim) -> PersistentVolumeClaim:
        claim = self._fleet.volumes.claims.get((each.namespace, each.name))
        if claim is None or claim.metadata.uid != each.uid:
            raise _failure(each, "was deleted")
        if claim.metadata.deletion_timestamp is not None:
            raise _failure(each, "is being deleted")
        return claim

    def _on_change(self, _old: Raw | None, _new: Raw | None) -> None:
        self._look()

    def _look(self) -> None:
        """All who wait look again, and wait for the next time."""
        self._changed.set()
        self._changed = asyncio.Event()


def _failure(each: UnboundClaim, problem: str) -> UnusableVolumeClaimError:
    name = f"{each.namespace}/{each.name}"
    return UnusableVolumeClaimError(name, f'persistentvolumeclaim "{each.name}" {problem}')
