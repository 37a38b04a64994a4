"""All that publishing depends on, read from a cluster once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.client import Selection
from dryrack.client.endpoints import CONFIG_MAPS, DRA_CONFIGS, NODE_OVERLAYS, NODES, SLICES
from dryrack.client.errors import ApiError, NotFoundError, TransportError
from dryrack.cluster.attached import AttachError, Need, remedy
from dryrack.controllers.slices import DryRunInput
from dryrack.hardware import MANAGED_BY, MANAGER

if TYPE_CHECKING:
    from dryrack.client.client import Client
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.kinds.raw import Raw


def publisher_needs(options: PublisherSettings) -> tuple[Need, ...]:
    """What a publisher cannot do without."""
    name = f"metadata.name={options.config_map}"
    config_map = Selection(namespace=options.namespace, fields=name)
    return Need(NODES), Need(SLICES), Need(CONFIG_MAPS, config_map)


async def read_world(client: Client, options: PublisherSettings) -> DryRunInput:
    """Everything as it is now; raises with a remedy if that cannot be seen."""
    nodes, slices, config_map = publisher_needs(options)
    ours = Need(slices.endpoint, Selection(labels=f"{MANAGED_BY}={MANAGER}"))
    return DryRunInput(
        nodes=await _listed(client, nodes),
        slices=await _listed(client, ours),
        config_maps=await _listed(client, config_map),
        overlays=await _listed(client, Need(NODE_OVERLAYS, is_optional=True)),
        configs=await _listed(client, Need(DRA_CONFIGS, is_optional=True)),
    )


async def _listed(client: Client, need: Need) -> tuple[Raw, ...]:
    try:
        return (await client.list(need.endpoint, need.selection)).items
    except (ApiError, TransportError) as error:
        # Overlays and the like are of kinds that a cluster need not have.
        if need.is_optional and isinstance(error, NotFoundError):
            return ()
        raise AttachError(f"{error}; {remedy(error, need.endpoint)}") from None
