"""Decisions for the page: explain, on a copy of the cluster as it is, by the scheduler's code."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError, DryrackError
from dryrack.cluster import DECISION_KINDS, SeededChance, read_snapshot, typed
from dryrack.placement import CaseDocuments, Settings, World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.dashboard.live import Live
    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw


class Decisions:
    """What would become of something now; nothing is written."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def explain(self, kind: str, name: str) -> Mapping[str, Any]:
        """The document that `dryrack explain -o json` prints."""
        known, rest = await self._read()
        try:
            return await asyncio.to_thread(_explain, known, rest, kind, name)
        except DryrackError as error:
            # Whatever is wrong then is wrong with what was asked for.
            raise ContentError(str(error)) from None

    async def _read(self) -> tuple[dict[Endpoint, Sequence[Raw]], Sequence[KubernetesObject]]:
        """What is watched, and what only decisions need."""
        watched = [kind for kind in DECISION_KINDS if kind in self._live.kinds]
        others = [kind for kind in DECISION_KINDS if kind not in watched]
        rest = (await read_snapshot(self._live.client, others)).objects
        return {kind: self._live.objects(kind) for kind in watched}, rest


def _explain(
    known: Mapping[Endpoint, Sequence[Raw]],
    rest: Sequence[KubernetesObject],
    kind: str,
    name: str,
) -> Mapping[str, Any]:
    objects = [each for endpoint, raws in known.items() for each in typed(endpoint, raws)]
    world = World.of([*objects, *rest])
    return CaseDocuments(world=world, settings=_settings).of(kind, name).document


def _settings() -> Settings:
    return Settings(chance=SeededChance())
