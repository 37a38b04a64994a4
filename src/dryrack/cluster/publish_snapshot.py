"""Read everything that publishing depends on from a cluster, once."""

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
    """Return the kinds that a publisher has to list."""
    name = f"metadata.name={options.config_map}"
    config_map = Selection(namespace=options.namespace, fields=name)
    return Need(NODES), Need(SLICES), Need(CONFIG_MAPS, config_map)


async def read_world(client: Client, options: PublisherSettings) -> DryRunInput:
    """Return the current objects; raise an error with a remedy if they cannot be read."""
    nodes, slices, config_map = publisher_needs(options)
    ours = Need(slices.endpoint, Selection(labels=f"{MANAGED_BY}={MANAGER}"))
    return DryRunInput(
        nodes=await _list(client, nodes),
        slices=await _list(client, ours),
        config_maps=await _list(client, config_map),
        overlays=await _list(client, Need(NODE_OVERLAYS, is_optional=True)),
        configs=await _list(client, Need(DRA_CONFIGS, is_optional=True)),
    )


async def _list(client: Client, need: Need) -> tuple[Raw, ...]:
    try:
        return (await client.list(need.endpoint, need.selection)).items
    except (ApiError, TransportError) as error:
        # Overlays and the like are of kinds that a cluster need not have.
        if need.is_optional and isinstance(error, NotFoundError):
            return ()
        raise AttachError(f"{error}; {remedy(error, need.endpoint)}") from None
