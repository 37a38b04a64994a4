"""
What is used of each quota, counted anew when something goes.

The server raises the numbers when it lets something in; this brings them down, and makes them
right if they ever are not. Kinds are watched from the moment on in which a quota names them.
"""

from collections.abc import Iterable
from functools import partial

from dryrack.client.discovery import discover
from dryrack.client.endpoints import QUOTAS
from dryrack.client.informer import Index, Informer, Name, name_of
from dryrack.client.timekeeping import seconds_of
from dryrack.controllers.loop import Loop
from dryrack.controllers.objects import is_deleted, is_terminal, namespaces, spec_of, status_of
from dryrack.controllers.writes import NOTHING, EngineContext, Plan, Update
from dryrack.kinds.quota_usage.amounts import Amounts, read, written
from dryrack.kinds.quota_usage.quotas import counted, resources_of
from dryrack.kinds.raw import Raw

# What comes is counted by the server. It is looked at once more when the caches have surely seen
# it, and then together with all else that came meanwhile.
SECOND_LOOK_SECONDS = 1.0


def plan(quota: Raw, used: Amounts) -> Plan:
    """The status as it should be, if it is not; what nobody can count stays as it was."""
    hard, status = spec_of(quota).get("hard") or {}, status_of(quota)
    kept = {name: amount for name, amount in (status.get("used") or {}).items() if name in hard}
    wanted = {"hard": hard, "used": kept | written(used)}
    known = all(read(status.get(part)) == read(wanted[part]) for part in wanted)
    if known and all(part in status for part in wanted):
        return NOTHING
    return Plan((Update(QUOTAS, quota | {"status": wanted}, "status"),))


class Accounting:
    """Watches quotas, and the kinds that they are about."""

    def __init__(self, around: EngineContext) -> None:
        self._around = around
        self._quotas = around.informers.of(QUOTAS)
        self._by_namespace = self._quotas.index("namespace", namespaces)
        self._sources: dict[str, tuple[Informer, Index]] = {}
        self._loop: Loop[Name] = Loop(
            around, "resourcequota-controller", self._decide, reads=(self._quotas,), workers=1
        )
        self._quotas.listen(self._on_quota)

    async def run(self) -> None:
        await self._loop.run()

    def _on_quota(self, old: Raw | None, new: Raw | None) -> None:
        if new is None:
            return
        hard = spec_of(new).get("hard") or {}
        is_new = old is None or spec_of(old) != spec_of(new)
        if is_new or read(status_of(new).get("hard")) != read(hard):
            self._loop.queue.add(name_of(new))

    def _on_object(self, resource: str, old: Raw | None, new: Raw | None) -> None:
        known = new if new is not None else old
        if known is None:
            return
        for quota in self._by_namespace.get(known["metadata"].get("namespace") or ""):
            if resource not in resources_of(spec_of(quota).get("hard") or {}):
                continue
            if new is None or (old is not None and is_terminal(new) and not is_terminal(old)):
                self._loop.queue.add(name_of(quota))
            elif old is None or spec_of(old) != spec_of(new):
                self._loop.queue.add_after(name_of(quota), SECOND_LOOK_SECONDS)

    async def _decide(self, name: Name) -> Plan:
        quota = self._quotas.objects.get(name)
        if quota is None or is_deleted(quota):
            return NOTHING
        await self._watch(resources_of(spec_of(quota).get("hard") or {}))
        # It may have changed while a kind that is new to us was listed.
        quota = self._quotas.objects.get(name, quota)
        return plan(quota, counted(quota, partial(self._objects, name.namespace), self._is_over))

    def _objects(self, namespace: str, resource: str) -> Iterable[Raw]:
        source = self._sources.get(resource)
        return source[1].get(namespace) if source else ()

    def _is_over(self, pod: Raw) -> bool:
        """Whether a pod has ended, or should have: a lost node must not hold up the others."""
        if is_terminal(pod):
            return True
        meta = pod["metadata"]
        if not is_deleted(pod) or meta.get("deletionGracePeriodSeconds") is None:
            return False
        grace: int = meta["deletionGracePeriodSeconds"]
        until = seconds_of(meta["deletionTimestamp"]) + grace
        return self._around.clock.now() > until

    async def _watch(self, resources: Iterable[str]) -> None:
        informers = self._around.informers
        wanted = [
            each
            for each in resources
            if each not in self._sources
            or informers.known(self._sources[each][0].endpoint) is not self._sources[each][0]
        ]
        if not wanted:
            return
        served = {each.endpoint.resource: each for each in await discover(self._around.client)}
        for resource in wanted:
            found = served.get(resource)
            if found is None or not found.endpoint.is_namespaced:
                continue
            if found.allows("list", "watch"):
                informer = informers.of(found.endpoint)
                self._sources[resource] = (informer, informer.index("namespace", namespaces))
                informer.listen(partial(self._on_object, resource))
                await informer.synced.wait()
