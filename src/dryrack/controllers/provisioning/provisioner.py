"""The provisioner: its controllers, on one set of caches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dryrack.controllers.provisioning.disruption import Disruption
from dryrack.controllers.provisioning.draining import Draining
from dryrack.controllers.provisioning.node_claims import NodeClaims
from dryrack.controllers.provisioning.node_pools import NodePools
from dryrack.controllers.provisioning.nominations import Nominations
from dryrack.controllers.provisioning.provisioning import NodesForPods
from dryrack.controllers.provisioning.stand_ins import StandIns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.controllers.provisioning import ProvisionerSettings
    from dryrack.controllers.reconciler import Controller
    from dryrack.controllers.writes import EngineContext


class Provisioner:
    """
    Creates nodes for pods that fit on no node, and removes nodes that are not needed.

    With Karpenter, it only creates stand-ins: Karpenter creates and removes the nodes.
    """

    def __init__(self, context: EngineContext, settings: ProvisionerSettings) -> None:
        self._parts: tuple[Controller, ...]
        if settings.uses_karpenter:
            self._parts = (StandIns(context, settings),)
            return
        nominations = Nominations()
        self._parts = (
            NodesForPods(context, settings, nominations),
            Disruption(context, settings, nominations),
            NodeClaims(context, settings.machines),
            Draining(context),
            NodePools(context),
        )

    def lacking(self) -> Sequence[str]:
        """Return the kinds that are not cached yet, apart from those of the shared caches."""
        return ()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for each in self._parts:
                group.create_task(each.run(), name=f"{type(each).__name__} of the provisioner")
