"""
Count the usage of resource quotas again when objects are deleted.

The server raises the numbers when it admits an object; this controller lowers them, and corrects
them if they are wrong. A kind is watched as soon as a quota names it.
"""

from collections.abc import Iterable
from functools import partial

from dryrack.client.discovery import discover
from dryrack.client.endpoints import CLASSES, PODS, QUOTAS
from dryrack.client.informer import Index, Informer, Name, name_of
from dryrack.controllers.objects import is_deleted, is_terminal, namespaces, spec_of, status_of
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, EngineContext, Plan, Update
from dryrack.kinds.paths import get
from dryrack.kinds.quota_usage.amounts import Amounts, amounts_to_json, parse_amounts
from dryrack.kinds.quota_usage.claims import CLAIMS, ClaimContext, extended_resources
from dryrack.kinds.quota_usage.pods import is_over
from dryrack.kinds.quota_usage.quotas import count_usage, resources_of
from dryrack.kinds.raw import Raw

# The server counts new objects. They are counted again when the caches have surely seen them,
# together with all others that were created meanwhile.
SECOND_LOOK_SECONDS = 1.0


def plan(quota: Raw, used: Amounts) -> Plan:
    """Return the write of a status that is wrong; resources that are not counted stay."""
    hard = get(quota, "spec.hard", {})
    status = status_of(quota)
    kept = {name: amount for name, amount in get(status, "used", {}).items() if name in hard}
    wanted = {"hard": hard, "used": kept | amounts_to_json(used)}
    known = all(parse_amounts(status.get(part)) == parse_amounts(wanted[part]) for part in wanted)
    if known and all(part in status for part in wanted):
        return NOTHING
    return Plan((Update(QUOTAS, quota | {"status": wanted}, "status"),))


class QuotaController(Reconciler[Name]):
    """Keeps the status of resource quotas."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "resourcequota-controller", workers=1)
        self._sources: dict[str, tuple[Informer, Index]] = {}
        self._quotas = self.watch(QUOTAS, self._on_quota)
        self._by_namespace = self._quotas.index("namespace", namespaces)
        self._classes = self.watch(CLASSES, self._on_class)
        self._pods = self.watch(PODS)

    def _on_quota(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            return
        hard = get(new, "spec.hard", {})
        is_new = old is None or spec_of(old) != spec_of(new)
        if is_new or parse_amounts(status_of(new).get("hard")) != parse_amounts(hard):
            self.queue.add(name_of(new))

    def _on_class(self, old: Raw | None, new: Raw | None) -> None:
        """Count claims again when another extended resource stands for their class."""
        before, after = (extended_resources([each] if each else ()) for each in (old, new))
        if before != after:
            for quota in self._quotas.all():
                if CLAIMS in resources_of(get(quota, "spec.hard", {})):
                    self.queue.add(name_of(quota))

    def _on_object(self, resource: str, old: Raw | None, new: Raw | None) -> None:
        known = new if new is not None else old
        if known is None:
            return
        for quota in self._by_namespace.get(known["metadata"].get("namespace") or ""):
            if resource not in resources_of(get(quota, "spec.hard", {})):
                continue
            if new is None or (old is not None and is_terminal(new) and not is_terminal(old)):
                self.queue.add(name_of(quota))
            elif old is None or spec_of(old) != spec_of(new):
                self.queue.add_after(name_of(quota), SECOND_LOOK_SECONDS)

    async def decide(self, name: Name) -> Plan:
        quota = self._quotas.objects.get(name)
        if quota is None or is_deleted(quota):
            return NOTHING
        await self._watch(resources_of(get(quota, "spec.hard", {})))
        # The quota may have changed while a new kind was listed.
        quota = self._quotas.objects.get(name, quota)
        return plan(
            quota, count_usage(quota, partial(self._objects, name.namespace), self._claim_context())
        )

    def _claim_context(self) -> ClaimContext:
        """Return what the usage of objects depends on besides them, as of now."""
        now = self._context.clock.now()
        return ClaimContext(
            classes=extended_resources(self._classes.all()),
            pod=self._pods.get,
            claims=lambda namespace: self._objects(namespace, CLAIMS),
            is_over=lambda pod: is_over(pod, now),
        )

    def _objects(self, namespace: str, resource: str) -> Iterable[Raw]:
        source = self._sources.get(resource)
        return source[1].get(namespace) if source else ()

    async def _watch(self, resources: Iterable[str]) -> None:
        informers = self._context.informers
        wanted = [
            each
            for each in resources
            if each not in self._sources
            or informers.find_existing(self._sources[each][0].endpoint)
            is not self._sources[each][0]
        ]
        if not wanted:
            return
        served = {each.endpoint.resource: each for each in await discover(self._context.client)}
        for resource in wanted:
            kind = served.get(resource)
            if kind is None or not kind.endpoint.is_namespaced:
                continue
            if kind.allows("list", "watch"):
                informer = informers.of(kind.endpoint)
                self._sources[resource] = (informer, informer.index("namespace", namespaces))
                informer.listen(partial(self._on_object, resource))
                await informer.synced.wait()
