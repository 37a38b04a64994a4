"""
Claims that nobody uses any more: reservations, allocations and finalizers go.

A reservation ends when its pod is gone, replaced, or will not run any more, or when its PodGroup
is gone. With the last one the allocation ends, in the same write, and then the finalizer that
protected it. A pod or group that the cache does not know is asked for at the server before it
counts as gone: it may be too new to be known.
"""

from collections.abc import Callable

from dryrack.client.endpoints import CLAIMS, POD_GROUPS, PODS
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
    What is to be freed.

    `pod_named` finds a pod of the claim's namespace; None means that there certainly is none. So
    does `group_named` for groups, where they are served.
    """
    status = status_of(claim)
    consumers = get(status, "reservedFor", ())
    remaining = [each for each in consumers if _stays(each, pod_named, group_named)]
    writes = _released(claim, remaining)
    if not remaining:
        writes += _discarded(claim, pod_named)
    return Plan(tuple(writes))


def _stays(
    consumer: Raw,
    pod_named: Callable[[str], Raw | None],
    group_named: Callable[[str], Raw | None] | None,
) -> bool:
    """Consumers of other kinds are somebody else's to judge."""
    if is_group(consumer) and group_named is not None:
        # It stays itself as long as it has pods.
        group = group_named(consumer["name"])
        return group is not None and uid_of(group) == consumer["uid"]
    if consumer.get("apiGroup") or consumer.get("resource") != "pods":
        return True
    pod = pod_named(consumer["name"])
    return pod is not None and uid_of(pod) == consumer["uid"] and not is_done(pod)


def _released(claim: Raw, remaining: list[Raw]) -> list[Write]:
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


def _discarded(claim: Raw, pod_named: Callable[[str], Raw | None]) -> list[Write]:
    """A claim that was made for a pod which will not run goes before the pod does."""
    owner = pod_owner(claim)
    if owner is None or is_deleted(claim):
        return []
    pod = pod_named(owner["name"])
    # Without the pod, the garbage collector sees to it.
    if pod is None or (uid_of(pod) == owner["uid"] and not is_done(pod)):
        return []
    return [Delete(CLAIMS, name_of(claim), uid_of(claim))]


class ClaimRelease(Reconciler[Name]):
    """Watches claims, and pods that end."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "resource-claim-controller")
        self._groups: Informer | None = None
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._by_consumer = self._claims.index("consumer", _consumer_uids)
        self._pods = self.watch(PODS, self._on_pod)

    async def run(self) -> None:
        self._groups = await self.watch_if_served(POD_GROUPS, self._on_group)
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
        known = {each: await self._now(self._pods, name.namespace, each) for each in pods}
        owner = pod_owner(claim)
        if owner is not None and owner["name"] not in known:
            known[owner["name"]] = self._pods.get(name.namespace, owner["name"])
        if self._groups is None:
            return plan(claim, known.get)
        groups = [each["name"] for each in consumers if is_group(each)]
        found = {each: await self._now(self._groups, name.namespace, each) for each in groups}
        return plan(claim, known.get, found.get)

    async def _now(self, informer: Informer, namespace: str, name: str) -> Raw | None:
        """The object of that name; one that is not known may be too new to be known."""
        known = informer.get(namespace, name)
        if known is not None:
            return known
        try:
            return await self._client.get(informer.endpoint, name, namespace)
        except NotFoundError:
            return None


def _consumer_uids(claim: Raw) -> list[str]:
    return [each["uid"] for each in get(claim, "status.reservedFor", ())]
