"""
The frame of every controller whose objects own others: deployments, sets, jobs.

An owner is looked at when it changes, and when something that it controls does, sooner or later
by how large its family is. What is to be done about it is the controller's.
"""

from collections.abc import Callable, Sequence

from dryrack.client.endpoints import PODS, Endpoint
from dryrack.client.informer import Informer, Name, name_of
from dryrack.controllers.loop import Loop, Witness
from dryrack.controllers.objects import is_same_but_status
from dryrack.controllers.workloads import Candidates, owner_key
from dryrack.controllers.writes import NOTHING, EngineContext, Plan
from dryrack.kinds.raw import Raw


class Owners:
    """All objects of a kind, each with those that may belong to it."""

    def __init__(
        self,
        around: EngineContext,
        name: str,
        endpoint: Endpoint,
        *,
        decide: Callable[[Raw], Plan],
        owned: Endpoint = PODS,
        also: Sequence[Informer] = (),
        witness: Witness[Name] | None = None,
        heeds_status: bool = True,
    ) -> None:
        """`also` is read besides; whoever does not heed a status is not woken by its own report."""
        self.every = around.informers.of(endpoint)
        members = around.informers.of(owned)
        self.candidates = Candidates(members)
        self._endpoint = endpoint
        self._plan = decide
        self._heeds_status = heeds_status
        reads = (self.every, members, *also)
        self._loop: Loop[Name] = Loop(around, name, self._decide, reads=reads, witness=witness)
        self.queue = self._loop.queue
        self.every.listen(self._on_owner)
        members.listen(self._on_member)

    async def run(self) -> None:
        await self._loop.run()

    def _on_owner(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and (self._heeds_status or not is_same_but_status(old, new)):
            self.queue.add(name_of(new))

    def _on_member(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            if each is not None and (key := owner_key(each, self._endpoint)):
                self.queue.add_after(key, self.candidates.pace_of(each))

    async def _decide(self, name: Name) -> Plan:
        found = self.every.objects.get(name)
        return NOTHING if found is None else self._plan(found)
