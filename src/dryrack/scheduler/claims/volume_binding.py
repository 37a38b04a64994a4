"""
Volume binding: PersistentVolumeClaims that are bound when a node is chosen for their pod.

As in kube-scheduler, a chosen free volume gets a reference to the claim; for other claims the node
is written to the claim, and the provisioner of its StorageClass creates the volume. The pod is
bound once its claims are bound. The whole state of the wait is in the volume or the claim: after a
crash the next scheduler finds the choice there, and makes no other.
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
    from dryrack.kinds.core import PersistentVolumeClaim, Pod
    from dryrack.placement import Fleet

_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
# kube-scheduler's bindTimeoutSeconds.
TIMEOUT_SECONDS = 600.0


class UnusableVolumeClaimError(UnusableClaimError):
    """A PersistentVolumeClaim cannot be used as it was decided."""

    PLUGIN = "VolumeBinding"


class UnboundClaim(NamedTuple):
    """A PVC that is to be bound, and the node of its pod."""

    namespace: str
    name: str
    uid: str
    node: str
    volume: str = ""
    """The free volume that the claim gets; "" if one is provisioned."""


class VolumeBinding:
    """Binds volumes, or requests them from provisioners, and waits for them."""

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
            informers.of(endpoint).listen(lambda _old, _new: self._notify())

    def assume(self, pods: Iterable[tuple[Pod, str]]) -> list[UnboundClaim]:
        """
        Return the claims that have to be bound before their pods, each with the node of its pod.

        Other pods cannot use the chosen volumes until `forget` is called.
        """
        unbound: list[UnboundClaim] = []
        for pod, node in pods:
            try:
                unbound += self._choose_volumes(pod, node)
            except UnusableClaimError:
                self.forget(unbound)
                raise
        return unbound

    def forget(self, waiting: Iterable[UnboundClaim]) -> None:
        """Undo `assume`, once the informers show what was written."""
        assumed = self._fleet.volumes.assumed
        for each in waiting:
            if assumed.get(each.volume) == (each.namespace, each.name):
                del assumed[each.volume]

    def _choose_volumes(self, pod: Pod, node: str) -> Iterable[UnboundClaim]:
        volumes = self._fleet.volumes
        offers = VolumeOffers(volumes, volumes.waiting(pod)) if pod.spec.volumes else None
        state = self._fleet.get(node)
        if not offers or state is None:
            return []
        choices = offers.on(state.node.metadata)
        if isinstance(choices, Unbindable):
            # Another pod of the same decision got the volume.
            name = f"{choices.claim[0]}/{choices.claim[1]}"
            raise UnusableVolumeClaimError(name, f"{choices.fact}; {choices.remedy}")
        uids = {key: volumes.claims[key].metadata.uid for key in choices}
        volumes.assumed.update((volume, key) for key, volume in choices.items() if volume)
        return [UnboundClaim(*key, uids[key], node, volume) for key, volume in choices.items()]

    async def bind(self, waiting: Iterable[UnboundClaim]) -> None:
        """Wait until all claims are bound; raise `UnusableClaimError` if one cannot be."""
        left = [each for each in waiting if not self._is_bound(each)]
        # Pods that share a claim may run on several nodes: its volume is provisioned for one.
        for each in {each.uid: each for each in reversed(left)}.values():
            await (self._bind_volume(each) if each.volume else self._select_node(each))
        deadline = self._clock.now() + TIMEOUT_SECONDS
        while left := [each for each in left if not self._is_done(each)]:
            if self._clock.now() >= deadline:
                raise _failure(left[0], f"has no volume after {TIMEOUT_SECONDS:.0f} s")
            timer = self._clock.call_at(deadline, self._notify)
            try:
                await self._changed.wait()
            finally:
                timer.cancel()

    async def _select_node(self, each: UnboundClaim) -> None:
        metadata = self._find_claim(each).metadata
        if SELECTED_NODE in metadata.annotations:
            return
        # Another pod with the claim may be assigned to another node at this very moment.
        identity = {"uid": each.uid, "resourceVersion": metadata.resource_version}
        patch = {"metadata": {**identity, "annotations": {SELECTED_NODE: each.node}}}
        try:
            written = await self._client.patch(
                VOLUME_CLAIMS, each.name, patch, namespace=each.namespace
            )
        except NotFoundError as error:
            raise _failure(each, "was deleted") from error
        # From here on the informer shows the node, unless the provisioner removed it.
        await self._claims.wait_for_revision(written["metadata"]["resourceVersion"])

    async def _bind_volume(self, each: UnboundClaim) -> None:
        """Bind the volume to the claim; a controller binds the claim to the volume."""
        volume = self._fleet.volumes.volumes.get(each.volume)
        if volume is None:
            raise _failure(each, f"lost its volume {each.volume}")
        reference = volume.spec.claim_ref
        metadata = self._find_claim(each).metadata
        if reference is not None and reference.uid == each.uid:
            return
        identity = {"uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version}
        # A user who reserves a volume for a claim by name has bound it without a controller.
        marks = {"annotations": {_BY_CONTROLLER: "yes"}} if reference is None else {}
        claim_reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": each.namespace,
            "name": each.name,
            "uid": each.uid,
            "resourceVersion": metadata.resource_version,
        }
        patch = {"metadata": identity | marks, "spec": {"claimRef": claim_reference}}
        written = await self._client.patch(VOLUMES, each.volume, patch)
        await self._volumes.wait_for_revision(written["metadata"]["resourceVersion"])

    def _is_bound(self, each: UnboundClaim) -> bool:
        volume = self._fleet.volumes.bound_to(self._find_claim(each))
        if volume is None:
            return False
        node = self._fleet.get(each.node)
        labels = {} if node is None else node.node.metadata.labels
        if not self._fleet.volumes.reaches(volume, labels):
            raise _failure(each, f"got a volume that node {each.node} cannot use")
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
        if SELECTED_NODE not in self._find_claim(each).metadata.annotations:
            raise _failure(each, f"cannot have its volume on node {each.node}; see its events")
        return False

    def _find_claim(self, each: UnboundClaim) -> PersistentVolumeClaim:
        claim = self._fleet.volumes.claims.get((each.namespace, each.name))
        if claim is None or claim.metadata.uid != each.uid:
            raise _failure(each, "was deleted")
        if claim.metadata.deletion_timestamp is not None:
            raise _failure(each, "is being deleted")
        return claim

    def _notify(self) -> None:
        """Let all waiting tasks check their claims again."""
        self._changed.set()
        self._changed = asyncio.Event()


def _failure(each: UnboundClaim, problem: str) -> UnusableVolumeClaimError:
    name = f"{each.namespace}/{each.name}"
    return UnusableVolumeClaimError(name, f'persistentvolumeclaim "{each.name}" {problem}')
