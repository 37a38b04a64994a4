"""
A group of pods stays until the last of its pods has ended.

The server gives every group a finalizer; it is taken away when the group is deleted and no pod
that still runs, or may still run, names it.
"""

from collections.abc import Sequence

from dryrack.client.endpoints import POD_GROUPS, PODS
from dryrack.client.informer import Informer, Name, name_of
from dryrack.controllers.objects import finalizers_of, is_deleted, is_terminal
from dryrack.controllers.reconciler import Reconciler
from dryrack.controllers.writes import NOTHING, EngineContext, Plan, without_finalizer
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

FINALIZER = "scheduling.k8s.io/podgroup-protection"


def plan(group: Raw, active_pods: int) -> Plan:
    """Lets a deleted group go that nobody needs any more."""
    if not is_deleted(group) or FINALIZER not in finalizers_of(group) or active_pods:
        return NOTHING
    return Plan((without_finalizer(POD_GROUPS, group, FINALIZER),))


class GroupProtection(Reconciler[Name]):
    """Watches groups and pods, where groups are served."""

    def __init__(self, context: EngineContext) -> None:
        super().__init__(context, "podgroup-protection-controller")
        self._groups: Informer | None = None
        self._pods = self.watch(PODS, self._on_pod)
        self._active = self._pods.index("active in group", _group_keys)

    async def run(self) -> None:
        self._groups = await self.watch_if_served(POD_GROUPS, self._on_group)
        await super().run()

    def _on_group(self, old: Raw | None, new: Raw | None) -> None:
        if new is not None and is_deleted(new):
            self.queue.add(name_of(new))

    def _on_pod(self, old: Raw | None, new: Raw | None) -> None:
        if old is not None and (new is None or is_terminal(new)):
            for key in _named(old):
                self.queue.add(key)

    async def decide(self, name: Name) -> Plan:
        group = self._groups.objects.get(name) if self._groups else None
        if group is None:
            return NOTHING
        return plan(group, self._active.count(f"{name.namespace}/{name.name}"))


def _named(pod: Raw) -> Sequence[Name]:
    name = get(pod, "spec.schedulingGroup.podGroupName")
    return (Name(pod["metadata"].get("namespace", ""), name),) if name else ()


def _group_keys(pod: Raw) -> Sequence[str]:
    if is_terminal(pod):
        return ()
    return [f"{each.namespace}/{each.name}" for each in _named(pod)]
