"""Decisions of the scheduler's code on a copy of the cluster: explain, and try a change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from dryrack.base.errors import ContentError, DryrackError
from dryrack.client.endpoints import POD_DISRUPTION_BUDGETS
from dryrack.client.errors import ForbiddenError
from dryrack.cluster import EXPLANATION_KINDS, SeededChance, read_snapshot, typed
from dryrack.dashboard.data.defragmentation import defragmentation_document
from dryrack.dashboard.data.trial import TrialError, apply_change
from dryrack.kinds.decode import decode
from dryrack.kinds.quota_usage.admission_kinds import PodDisruptionBudget
from dryrack.placement import ExplainDocuments, Settings, World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.dashboard.data.trial import Trial
    from dryrack.dashboard.live import Live
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.placement import ExplainDocument

_BUDGETS_UNKNOWN = (
    "PodDisruptionBudgets are not taken into account: the account of the dashboard has no "
    "permission to list them"
)


class Decisions:
    """Explain objects and try changes, without a write to the cluster."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def explain(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return the document that `dryrack explain -o json` prints."""
        known, rest = await self._read()
        try:
            return await asyncio.to_thread(lambda: _case(_world(known, rest), kind, name).document)
        except DryrackError as error:
            # The request names an object that does not exist or cannot be explained.
            raise ContentError(str(error)) from None

    async def attempt(self, trial: Trial) -> Mapping[str, Any]:
        """Return the explanation after a change, and the present one."""
        known, rest = await self._read()
        try:
            return await asyncio.to_thread(lambda: _attempt(_world(known, rest), trial))
        except DryrackError as error:
            raise TrialError(str(error)) from None

    async def defragment(self, driver: str) -> Mapping[str, Any]:
        """Return the pods whose move frees whole nodes of a driver."""
        known, rest = await self._read()
        notes = []
        try:
            listing = await self._live.client.list(POD_DISRUPTION_BUDGETS)
            budgets = [decode(each, PodDisruptionBudget) for each in listing.items]
        except ForbiddenError:
            budgets = []
            notes.append(_BUDGETS_UNKNOWN)
        document = await asyncio.to_thread(
            lambda: defragmentation_document(_world(known, [*rest, *budgets]), driver)
        )
        return {**document, "notes": notes}

    async def _read(self) -> tuple[dict[Endpoint, Sequence[Raw]], Sequence[KubernetesObject]]:
        """Return the watched objects, and those that only decisions need."""
        watched = [kind for kind in EXPLANATION_KINDS if kind in self._live.kinds]
        others = [kind for kind in EXPLANATION_KINDS if kind not in watched]
        rest = (await read_snapshot(self._live.client, others)).objects
        return {kind: self._live.objects(kind) for kind in watched}, rest


def _world(known: Mapping[Endpoint, Sequence[Raw]], rest: Sequence[KubernetesObject]) -> World:
    objects = [each for endpoint, raws in known.items() for each in typed(endpoint, raws)]
    return World.of([*objects, *rest])


def _case(world: World, kind: str, name: str, node: str | None = None) -> ExplainDocument:
    def settings() -> Settings:
        return Settings(chance=SeededChance(), node=node, assumes_nodes=False)

    return ExplainDocuments(world=world, settings=settings).of(kind, name)


def _attempt(world: World, trial: Trial) -> Mapping[str, Any]:
    after = _case(apply_change(world, trial), trial.kind, trial.full_name, trial.change.node)
    before = _case(world, trial.kind, trial.full_name)
    return {
        "change": msgspec.to_builtins(trial.change),
        "fits": _fits(after.document),
        "after": after.document,
        "before": before.document,
    }


def _fits(case: Mapping[str, Any]) -> bool | None:
    """Return whether the object gets or has all its devices; None if unknown."""
    if "gangs" in case:
        fits = [each.get("fits", each.get("status") == "placed") for each in case["gangs"]]
        return None if None in fits and False not in fits else all(fits)
    if "pod" in case:
        return bool(case["wouldGoTo"] or case["node"])
    return bool(case.get("allocated") or case.get("devices"))
