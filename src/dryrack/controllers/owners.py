"""
The base of controllers whose objects own others: workloads and cron jobs.

An owner is decided when it changes, and when one of the objects that it controls changes: at once
if it has few of them, later if it has many.
"""

from dryrack.client.endpoints import PODS, Endpoint
from dryrack.client.informer import Name, name_of
from dryrack.controllers.objects import is_same_but_status
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.workloads import Candidates, owner_key
from dryrack.controllers.writes import NOTHING, EngineContext, Plan
from dryrack.kinds.raw import Raw


class OwnerReconciler(Reconciler[Name]):
    """Decides the owners of a kind; a subclass has `plan_owner`."""

    def __init__(
        self,
        context: EngineContext,
        name: str,
        endpoint: Endpoint,
        *,
        owned: Endpoint = PODS,
        ignores_status: bool = False,
    ) -> None:
        """With `ignores_status`, a change of an owner's status alone does not queue the owner."""
        super().__init__(context, name)
        self._endpoint = endpoint
        self._ignores_status = ignores_status
        self.owners = self.watch(endpoint, self._on_owner)
        self.members = self.watch(owned)
        self.candidates = Candidates(self.members)
        self.members.listen(self._on_member)

    def plan_owner(self, owner: Raw) -> Plan:
        """Return what to write about an owner and the objects that it controls."""
        raise NotImplementedError

    async def decide(self, name: Name) -> Plan:
        owner = self.owners.objects.get(name)
        return NOTHING if owner is None else self.plan_owner(owner)

    def _on_owner(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and not (self._ignores_status and is_same_but_status(old, new)):
            self.queue.add(name_of(new))

    def _on_member(self, old: Raw | None, new: Raw | None) -> None:
        for each in (old, new):
            if each is not None and (key := owner_key(each, self._endpoint)):
                self.queue.add_after(key, self.candidates.pace_of(each))
