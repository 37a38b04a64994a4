"""
Remove reservations, allocations and finalizers of claims that are no longer used.

A reservation ends when its pod is deleted, replaced, or will not run again, or when its PodGroup is
deleted. With the last reservation the allocation ends, in the same write, and then the finalizer is
removed. A pod or group that is not in the cache may be too new, so the server is asked before it
counts as deleted.
"""

from collections.abc import Callable

from dryrack.client.endpoints import CLAIMS, POD_GROUP_VERSIONS, PODS
from dryrack.client.errors import NotFoundError
from dryrack.client.informer import Informer, Name, name_of
from dryrack.controllers.claims.creation import claim_keys
from dryrack.controllers.claims.references import claims_of, is_done, pod_owner
from dryrack.controllers.objects import (
    finalizers_of,
    is_deleted,
    status_of,
    uid_of,
    with_metadata,
)
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, Delete, EngineContext, Plan, Update, Write
from dryrack.kinds.expansion.pod_claims import DELETE_PROTECTION, is_group
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw


def plan(
    claim: Raw,
    pod_named: Callable[[str], Raw | None],
    group_named: Callable[[str], Raw | None] | None = None,
) -> Plan:
    """
    Return the writes that release a claim.

    `pod_named` returns a pod of the claim's namespace; None means that the pod does not exist.
    `group_named` does the same for PodGroups, if they are served.
    """
    status = status_of(claim)
    consumers = get(status, "reservedFor", ())
    remaining = [each for each in consumers if _is_needed(each, pod_named, group_named)]
    writes = _release(claim, remaining)
    owner = pod_owner(claim)
    if not remaining and owner is not None and not is_deleted(claim):
        # A claim of a pod that will not run is deleted before the pod. Without the pod, the garbage
        # collector deletes it.
        pod = pod_named(owner["name"])
        if pod is not None and (uid_of(pod) != owner["uid"] or is_done(pod)):
            writes.append(Delete(CLAIMS, name_of(claim), uid_of(claim)))
    return Plan(tuple(writes))


def _is_needed(
    consumer: Raw,
    pod_named: Callable[[str], Raw | None],
    group_named: Callable[[str], Raw | None] | None,
) -> bool:
    """Return True if a consumer still needs the claim; consumers of other kinds always do."""
    if is_group(consumer) and group_named is not None:
        # A PodGroup exists as long as it has pods.
        group = group_named(consumer["name"])
        return group is not None and uid_of(group) == consumer["uid"]
    if consumer.get("apiGroup") or consumer.get("resource") != "pods":
        return True
    pod = pod_named(consumer["name"])
    return pod is not None and uid_of(pod) == consumer["uid"] and not is_done(pod)


def _release(claim: Raw, remaining: list[Raw]) -> list[Write]:
    status = status_of(claim)
    is_protected = DELETE_PROTECTION in finalizers_of(claim)
    has_lost = len(remaining) < len(get(status, "reservedFor", ()))
    is_unwanted = is_deleted(claim) and is_protected and not remaining
    if not has_lost and not is_unwanted:
        return []
    kept = {key: value for key, value in status.items() if key != "reservedFor"}
    if remaining:
        kept["reservedFor"] = remaining
    elif is_protected:
        kept.pop("allocation", None)
    writes: list[Write] = []
    if kept != status:
        writes.append(Update(CLAIMS, claim | {"status": kept}, "status"))
    if is_protected and "allocation" not in kept:
        finalizers = [each for each in finalizers_of(claim) if each != DELETE_PROTECTION]
        freed = with_metadata(claim | {"status": kept}, finalizers=finalizers or None)
        writes.append(Update(CLAIMS, freed))
    return writes


class ClaimRelease(Reconciler[Name]):
    """Releases claims whose pods have ended."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "resource-claim-controller")
        self._groups: Informer | None = None
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._by_consumer = self._claims.index("consumer", _consumer_uids)
        self._pods = self.watch(PODS, self._on_pod)

    async def run(self) -> None:
        self._groups = await self.watch_if_served(POD_GROUP_VERSIONS, self._on_group)
        await super().run()

    def _on_group(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and new is None:
            for each in claims_of(old):
                if each.claim:
                    self.queue.add(Name(name_of(old).namespace, each.claim))
            self._add_claims_of(old)

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None:
            self.queue.add(name_of(new))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        pod = new if new is not None else old
        assert pod is not None, "an informer reports an object"
        if new is None or is_done(new):
            for key in claim_keys(pod):
                self.queue.add(Name(*key.split("/", 1)))
            self._add_claims_of(pod)

    def _add_claims_of(self, consumer: Raw) -> None:
        """
        Queue the claims that are reserved for a pod or PodGroup.

        Its status does not name them all: the write of the name can fail after the claim was made.
        """
        for claim in self._by_consumer.get(uid_of(consumer)):
            self.queue.add(name_of(claim))

    async def decide(self, name: Name) -> Plan:
        claim = self._claims.objects.get(name)
        if claim is None:
            return NOTHING
        consumers = get(claim, "status.reservedFor", ())
        pods = [each["name"] for each in consumers if not each.get("apiGroup")]
        known = {each: await self._current(self._pods, name.namespace, each) for each in pods}
        owner = pod_owner(claim)
        if owner is not None and owner["name"] not in known:
            known[owner["name"]] = self._pods.get(name.namespace, owner["name"])
        if self._groups is None:
            return plan(claim, known.get)
        groups = [each["name"] for each in consumers if is_group(each)]
        existing = {g: await self._current(self._groups, name.namespace, g) for g in groups}
        return plan(claim, known.get, existing.get)

    async def _current(self, informer: Informer, namespace: str, name: str) -> Raw | None:
        """Return an object from the cache, or from the server if the cache lacks it."""
        known = informer.get(namespace, name)
        if known is not None:
            return known
        try:
            return await self._client.get(informer.endpoint, name, namespace)
        except NotFoundError:
            return None


def _consumer_uids(claim: Raw) -> list[str]:
    return [each["uid"] for each in get(claim, "status.reservedFor", ())]
