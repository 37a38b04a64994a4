"""
Preemption, carried out: victims are told, deleted, and waited for.

What is decided is in `placement.preemption`. The writes are those of kube-scheduler: a victim gets
the condition DisruptionTarget, an event, and is deleted with its own grace period. Until the
victims are gone nothing more is preempted for the pod in whose favour that is; where room is kept
for it is told with its refusal (`nominatedNodeName`).
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
    from dryrack.scheduler.cluster_view import View
    from dryrack.scheduler.reporting import Reporter

_REASON = "PreemptionByScheduler"
# Devices of victims become free after them; a claim that keeps them longer will not let go.
RELEASE_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Victims by name, with their uids; their claims, and until when these are waited for."""

    victims: Mapping[Name, str]
    claims: tuple[str, ...]
    until: float


class Evictions:
    """Victims that were sent away, by whom they make way for."""

    def __init__(self, client: Client, clock: Timekeeper, view: View, reporter: Reporter) -> None:
        self._client = client
        self._clock = clock
        self._view = view
        self._reporter = reporter
        self._leaving: dict[Hashable, _Leaving] = {}

    def is_waiting(self, unit: Hashable) -> bool:
        """Whether victims of this one, or the devices that they had, have yet to go."""
        leaving = self._leaving.get(unit)
        if leaving is None:
            return False
        are_there = any(self._is_there(*each) for each in leaving.victims.items())
        is_early = self._clock.now() < leaving.until
        if are_there or (is_early and any(map(self._view.is_left_over, leaving.claims))):
            return True
        del self._leaving[unit]
        return False

    def leaving(self) -> frozenset[Name]:
        """All that were sent away; caches may not show it yet."""
        return frozenset(
            name
            for each in self._leaving.values()
            for name, uid in each.victims.items()
            if self._is_there(name, uid)
        )

    def _is_there(self, name: Name, uid: str) -> bool:
        pod = self._view.pods.get(*name)
        return pod is not None and bool(pod["metadata"]["uid"] == uid)

    def forget(self, unit: Hashable) -> None:
        """It is placed, or gone."""
        self._leaving.pop(unit, None)

    async def evict(self, unit: Hashable, preemption: Preemption, pods: Sequence[Raw]) -> None:
        """Sends the victims away in favour of these pods."""
        victims = [self._view.pods.get(*each.occupant.name) for each in preemption.victims]
        there = [victim for victim in victims if victim is not None]
        self._leaving[unit] = _Leaving(
            {name_of(each): each["metadata"]["uid"] for each in there},
            tuple(claim for each in preemption.victims for claim in each.occupant.claims),
            self._clock.now() + RELEASE_SECONDS_MAX,
        )
        self._reporter.meter.preempted(len(there))
        for number, victim in enumerate(there):
            try:
                await self._send_away(victim, pods[0])
            except (ApiError, TransportError):
                # Those that were not reached stay, unless it is decided anew that they go.
                self._keep_leaving(unit, there[:number])
                raise

    def _keep_leaving(self, unit: Hashable, victims: Sequence[Raw]) -> None:
        uids = {name_of(each): each["metadata"]["uid"] for each in victims}
        # Whom they make way for may be gone, and forgotten, by now.
        if unit in self._leaving:
            self._leaving[unit] = replace(self._leaving[unit], victims=uids)

    async def _send_away(self, victim: Raw, pod: Raw) -> None:
        metadata = victim["metadata"]
        preemptor = pod["metadata"]
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": _REASON,
            "message": f"{pod['spec'].get('schedulerName')}: preempting to accommodate a higher "
            "priority pod",
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        try:
            if "deletionTimestamp" not in metadata:
                await patch_status(self._client, victim, {"conditions": [condition]})
                await self._client.delete(
                    PODS, metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"]
                )
        except (NotFoundError, ConflictError):
            # It went by itself, or another has its name by now.
            return
        node = victim["spec"].get("nodeName", "")
        message = f"Preempted by pod {preemptor['uid']} on node {node}"
        await self._reporter.event(victim, "Preempted", message, type="Normal", by=pod)


def disruption_budgets(budgets: Iterable[Raw]) -> list[DisruptionBudget]:
    """What PodDisruptionBudgets allow as they are counted now."""
    return [
        DisruptionBudget(
            each["metadata"]["namespace"],
            _selector(each.get("spec", {}).get("selector")),
            each.get("status", {}).get("disruptionsAllowed", 0),
            frozenset(get(each.get("status", {}), "disruptedPods", ())),
        )
        for each in budgets
    ]


def _selector(said: Raw | None) -> LabelSelector | None:
    return None if said is None else decode(said, LabelSelector)
