"""
Claims for PodGroups that name a template: one for all pods of the group.

The claim is made first and told to the group afterwards, as for pods. The pods are told by
`creation`; the scheduler reserves it for the group, once, however many pods there are.
"""

from collections.abc import Mapping, Sequence

from dryrack.client.endpoints import CLAIMS, POD_GROUPS, TEMPLATES
from dryrack.client.informer import Informer, Name, name_of
from dryrack.controllers.claims.creation import make, tell
from dryrack.controllers.claims.references import (
    claims_of,
    group_owner,
    is_made_for,
    made_for_entry,
)
from dryrack.controllers.objects import controller_uids, is_deleted, uid_of
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, EngineContext, Plan
from dryrack.kinds.raw import Raw


def plan(group: Raw, owned: Sequence[Raw], templates: Mapping[Name, Raw]) -> Plan:
    """What the claims of a group need now; `owned` are those that it controls."""
    if is_deleted(group):
        return NOTHING
    entries = [each for each in claims_of(group) if each.template and each.claim != ""]
    found = {made_for_entry(each): each for each in owned if is_made_for(each, group)}
    missing = [each for each in entries if each.name not in found]
    if missing:
        return Plan(tuple(make(group, each, templates, POD_GROUPS) for each in missing))
    return Plan(tuple(tell(group, entries, found, POD_GROUPS)))


class GroupClaimCreation(Reconciler[Name]):
    """Watches groups, templates and claims, where groups are served."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "resource-claim-controller")
        self._groups: Informer | None = None
        self._claims = self.watch(CLAIMS, self._on_claim)
        self._by_owner = self._claims.index("controller", controller_uids)
        self._templates = self.watch(TEMPLATES, self._on_template)

    async def run(self) -> None:
        self._groups = await self.watch_if_served(POD_GROUPS, self._on_group)
        await super().run()

    def _on_group(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and any(claims_of(new)):
            self.queue.add(name_of(new))

    def _on_claim(self, old: Raw | None, new: Raw | None) -> None:
        claim = new or old or {}
        group = group_owner(claim)
        if group:
            self.queue.add(Name(name_of(claim).namespace, group))

    def _on_template(self, old: Raw | None, new: Raw | None) -> None:
        if new is None or self._groups is None:
            return
        name = name_of(new)
        for group in self._groups.all(name.namespace):
            if any(each.template == name.name for each in claims_of(group)):
                self.queue.add(name_of(group))

    async def decide(self, name: Name) -> Plan:
        group = self._groups.objects.get(name) if self._groups else None
        if group is None:
            return NOTHING
        return plan(group, self._by_owner.get(uid_of(group)), self._templates.objects)
