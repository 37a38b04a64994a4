"""
Claims of storage that are bound when a node is chosen for their pod.

As kube-scheduler: before the pod is bound the node is written to the claim, where the provisioner
of its class finds it and makes the volume; the pod is bound when the claim is. All that the wait
depends on is in the claim: whoever dies in it finds the node there, and chooses no other.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from dryrack.client.endpoints import VOLUME_CLAIMS, VOLUMES
from dryrack.client.errors import NotFoundError
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.placement import SELECTED_NODE
from dryrack.scheduler.claims import UnusableClaimError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.client.client import Client
    from dryrack.client.informer import Informers
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.core import PersistentVolume, PersistentVolumeClaim
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Fleet

# kube-scheduler's bindTimeoutSeconds.
TIMEOUT_SECONDS = 600.0


class _Waiting(NamedTuple):
    """A claim, and the node for whose pod it is to be bound."""

    namespace: str
    name: str
    uid: str
    node: str


class VolumeBinding:
    """Has volumes made where pods go, and waits for them."""

    def __init__(
        self, client: Client, informers: Informers, fleet: Fleet, clock: Timekeeper
    ) -> None:
        self._client = client
        self._claims = informers.of(VOLUME_CLAIMS)
        self._fleet = fleet
        self._clock = clock
        self._changed = asyncio.Event()
        for endpoint in (VOLUME_CLAIMS, VOLUMES):
            informers.of(endpoint).listen(self._on_change)

    def unbound(self, pods: Iterable[tuple[Raw, str]]) -> list[_Waiting]:
        """What has to be bound before pods can be, each with the node that it goes to."""
        return [
            _Waiting(each.metadata.namespace, each.metadata.name, each.metadata.uid, node)
            for pod, node in pods
            if pod["spec"].get("volumes")
            for each, _ in self._fleet.volumes.waiting(decode(pod, Pod))
        ]

    async def bind(self, waiting: Iterable[_Waiting]) -> None:
        """Returns when all claims are bound; raises `UnusableClaimError` if one will not be."""
        left = list(waiting)
        # Pods that share a claim may go to several nodes: its volume is made on one of them.
        for each in {each.uid: each for each in reversed(left)}.values():
            await self._choose(each)
        deadline = self._clock.now() + TIMEOUT_SECONDS
        while left := [each for each in left if not self._is_done(each)]:
            if self._clock.now() >= deadline:
                raise _failure(left[0], f"has no volume after {TIMEOUT_SECONDS:.0f} s")
            timer = self._clock.call_at(deadline, self._look)
            try:
                await self._changed.wait()
            finally:
                timer.cancel()

    async def _choose(self, each: _Waiting) -> None:
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

    def _is_done(self, each: _Waiting) -> bool:
        claim = self._known(each)
        volume = self._fleet.volumes.bound_to(claim)
        if volume is not None:
            self._check_reach(each, volume)
            return True
        if SELECTED_NODE not in claim.metadata.annotations:
            raise _failure(each, f"cannot have its volume on node {each.node}; see its events")
        return False

    def _check_reach(self, each: _Waiting, volume: PersistentVolume) -> None:
        node = self._fleet.get(each.node)
        labels = {} if node is None else node.node.metadata.labels
        if not self._fleet.volumes.reaches(volume, labels):
            raise _failure(each, f"got a volume that node {each.node} cannot use")

    def _known(self, each: _Waiting) -> PersistentVolumeClaim:
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


def _failure(each: _Waiting, problem: str) -> UnusableClaimError:
    name = f"{each.namespace}/{each.name}"
    return UnusableClaimError(name, f'persistentvolumeclaim "{each.name}" {problem}')
