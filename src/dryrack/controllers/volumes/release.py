"""Volumes whose claims are gone: they go too, or stay for a person to look at."""

from collections.abc import Iterable

from dryrack.client.endpoints import VOLUME_CLAIMS, VOLUMES
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import is_deleted, spec_of, status_of, uid_of
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Delete, EngineContext, Plan, Update
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw


def plan(volume: Raw, claim: Raw | None) -> Plan:
    """What becomes of a volume; `claim` is the one of the name that it has, if there is one."""
    uid = get(volume, "spec.claimRef.uid")
    if uid and claim is not None and uid_of(claim) == uid:
        return NOTHING
    writes: list[Update | Delete] = []
    phase = "Released" if uid else "Available"
    if status_of(volume).get("phase") != phase:
        status = status_of(volume) | {"phase": phase}
        writes.append(Update(VOLUMES, volume | {"status": status}, "status"))
    is_reclaimed = spec_of(volume).get("persistentVolumeReclaimPolicy") == "Delete"
    if uid and is_reclaimed and not is_deleted(volume):
        writes.append(Delete(VOLUMES, name_of(volume), uid_of(volume)))
    return Plan(tuple(writes))


class VolumeRelease(Reconciler[Name]):
    """Watches volumes, and claims that go."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "persistentvolume-release-controller")
        self._volumes = self.watch(VOLUMES, self._on_volume)
        # By the claim, which may be deleted before it names its volume.
        self._of_claim = self._volumes.index("claim", _claim_uids)
        self._claims = self.watch(VOLUME_CLAIMS, self._on_claim)

    def _on_volume(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            for volume in self._of_claim.get(uid_of(old)):
                self.queue.add(name_of(volume))

    async def decide(self, name: Name) -> Plan:
        volume = self._volumes.objects.get(name)
        if volume is None:
            return NOTHING
        reference = get(volume, "spec.claimRef", {})
        claim = self._claims.get(reference.get("namespace", ""), reference.get("name", ""))
        return plan(volume, claim)


def _claim_uids(volume: Raw) -> Iterable[str]:
    uid = get(volume, "spec.claimRef.uid")
    return (uid,) if uid else ()
