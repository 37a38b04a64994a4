"""
The eviction of preemption victims: report, delete, and wait for them.

`placement.preemption` chooses the victims. The writes are those of kube-scheduler: a victim gets
the condition DisruptionTarget and an event, and is deleted with its own grace period. Until the
victims are gone, no other pods are preempted for the same preemptor; `nominatedNodeName` of the
preemptor is written together with its refusal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dryrack.client.endpoints import PODS
from dryrack.client.errors import ApiError, ConflictError, NotFoundError, TransportError
from dryrack.client.informer import name_of
from dryrack.client.timekeeping import timestamp
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get
from dryrack.placement import DisruptionBudget
from dryrack.scheduler.reporting import patch_status

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from dryrack.client.client import Client
    from dryrack.client.informer import Name
    from dryrack.client.timekeeping import Timekeeper
    from dryrack.kinds.raw import Raw
    from dryrack.placement import Preemption
    from dryrack.scheduler.reporting import Reporter
    from dryrack.scheduler.scheduler_cache import SchedulerCache

_REASON = "PreemptionByScheduler"
# The devices of victims are released after them; a claim that takes longer is not waited for.
RELEASE_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class _Eviction:
    """The uids of victims by name, and until when the release of their claims is waited for."""

    victims: Mapping[Name, str]
    claims: tuple[str, ...]
    until: float


class Evictions:
    """Preempted pods that still exist, by their preemptor."""

    def __init__(
        self, client: Client, clock: Timekeeper, cache: SchedulerCache, reporter: Reporter
    ) -> None:
        self._client = client
        self._clock = clock
        self._cache = cache
        self._reporter = reporter
        self._evictions: dict[Hashable, _Eviction] = {}

    def is_waiting(self, unit: Hashable) -> bool:
        """Return whether the victims of a unit still exist, or their devices are in use."""
        eviction = self._evictions.get(unit)
        if eviction is None:
            return False
        has_victims = any(self._exists(*each) for each in eviction.victims.items())
        is_early = self._clock.now() < eviction.until
        if has_victims or (is_early and any(map(self._cache.is_left_over, eviction.claims))):
            return True
        del self._evictions[unit]
        return False

    def victims(self) -> frozenset[Name]:
        """Return all victims that still exist; informers may not show yet that they terminate."""
        return frozenset(
            name
            for each in self._evictions.values()
            for name, uid in each.victims.items()
            if self._exists(name, uid)
        )

    def _exists(self, name: Name, uid: str) -> bool:
        pod = self._cache.pods.get(*name)
        return pod is not None and bool(pod["metadata"]["uid"] == uid)

    def forget(self, unit: Hashable) -> None:
        """Forget the victims of a unit that is placed or deleted."""
        self._evictions.pop(unit, None)

    async def evict(
        self,
        unit: Hashable,
        preemption: Preemption,
        pods: Sequence[Raw],
        group: Raw | None = None,
    ) -> None:
        """Delete the victims in favour of these pods, or of their group."""
        victims = [
            victim
            for each in preemption.victims
            if (victim := self._cache.pods.get(*each.occupant.name)) is not None
        ]
        self._evictions[unit] = _Eviction(
            {name_of(each): each["metadata"]["uid"] for each in victims},
            tuple(claim for each in preemption.victims for claim in each.occupant.claims),
            self._clock.now() + RELEASE_SECONDS_MAX,
        )
        self._reporter.meter.count_preemption(len(victims))
        for number, victim in enumerate(victims):
            try:
                await self._delete(victim, pods[0], group)
            except (ApiError, TransportError):
                # The other victims stay, unless the next attempt chooses them again. The unit may
                # have been deleted, and forgotten, meanwhile.
                if unit in self._evictions:
                    uids = {name_of(each): each["metadata"]["uid"] for each in victims[:number]}
                    self._evictions[unit] = replace(self._evictions[unit], victims=uids)
                raise

    async def _delete(self, victim: Raw, pod: Raw, group: Raw | None) -> None:
        metadata = victim["metadata"]
        preemptor = (group or pod)["metadata"]
        kind = "podgroup" if group else "pod"
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": _REASON,
            "message": f"{pod['spec'].get('schedulerName')}: preempting to accommodate a higher "
            f"priority {kind}",
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        try:
            if "deletionTimestamp" not in metadata:
                await patch_status(self._client, victim, {"conditions": [condition]})
                await self._client.delete(
                    PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"]
                )
        except (NotFoundError, ConflictError):
            # The victim was deleted meanwhile, or another pod has its name by now.
            return
        # kube-scheduler names all nodes together, from which it preempts for a group.
        node = "cluster" if group else victim["spec"].get("nodeName", "")
        message = f"Preempted by {kind} {preemptor['uid']} on node {node}"
        await self._reporter.record_event(victim, "Preempted", message, type="Normal", by=pod)


def disruption_budgets(budgets: Iterable[Raw]) -> list[DisruptionBudget]:
    """Return the disruptions that PodDisruptionBudgets allow now."""
    decoded = []
    for each in budgets:
        selector = get(each, "spec.selector")
        decoded.append(
            DisruptionBudget(
                each["metadata"]["namespace"],
                None if selector is None else decode(selector, LabelSelector),
                get(each, "status.disruptionsAllowed", 0),
                frozenset(get(each, "status.disruptedPods", ())),
            )
        )
    return decoded
