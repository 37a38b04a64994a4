"""The whole publisher: those who read, those who write, and what they tell of themselves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dryrack.controllers.slices.ledger import Ledger
from dryrack.controllers.slices.metrics import watch_failures, watch_ledger, watch_sources
from dryrack.controllers.slices.publishing import Publishing
from dryrack.controllers.slices.shelf import Shelf
from dryrack.controllers.slices.sources import Sources

if TYPE_CHECKING:
    from dryrack.controllers.slices.options import PublishOptions
    from dryrack.controllers.writes import Surroundings


class Publisher:
    """An engine: `run` keeps it going."""

    def __init__(self, around: Surroundings, options: PublishOptions) -> None:
        shelf, self.ledger = Shelf(), Ledger()
        self.sources = Sources(around, options, shelf=shelf, ledger=self.ledger)
        self.publishing = Publishing(
            around, options, shelf=shelf, ledger=self.ledger, asker=self.sources.asker
        )
        if around.metrics is not None:
            watch_sources(around.metrics, self.sources.verdicts)
            watch_ledger(around.metrics, self.ledger)
            watch_failures(around.metrics, self.publishing.failing)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.sources.run(), name="sources of devices")
            group.create_task(self.publishing.run(), name="slices of nodes")

    def lacking(self) -> tuple[str, ...]:
        """The kinds that have to be known before anything is published."""
        return self.sources.lacking()
