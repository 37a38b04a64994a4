"""
The publisher: devices that documents describe, as ResourceSlices of nodes without a driver.

`sources` reads documents into the current inventory; `publishing` keeps the slices of all nodes as
the inventory wants them. `engine` combines the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.lazy import exports
from dryrack.controllers.slices.shard import ONLY_SHARD, Shard, parse_shard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.controllers.slices.current_inventory import reader_of
    from dryrack.controllers.slices.desired import SHARED, has_kubelet, is_ours
    from dryrack.controllers.slices.dry_run import (
        DryRun,
        DryRunInput,
        SliceChanges,
        compute_dry_run,
    )
    from dryrack.controllers.slices.publisher import Publisher
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Assignment
    from dryrack.kinds.core import NodeSelector
else:
    # Every command that starts a cluster needs the options; few need the rest.
    __getattr__ = exports(
        __name__,
        {
            "current_inventory": "reader_of",
            "desired": "SHARED has_kubelet is_ours",
            "publisher": "Publisher",
            "dry_run": "DryRun DryRunInput SliceChanges compute_dry_run",
        },
    )

__all__ = [
    "ONLY_SHARD",
    "SHARED",
    "DryRun",
    "DryRunInput",
    "Publisher",
    "PublisherSettings",
    "Shard",
    "SliceChanges",
    "compute_dry_run",
    "engine",
    "has_kubelet",
    "is_ours",
    "parse_shard",
    "reader_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherSettings:
    """The defaults are those of Karpenter's driver, so that its documents work as they are."""

    namespace: str = "karpenter"
    config_map: str = "dra-kwok-configmap"
    key: str = "config.yaml"
    driver: str = ""
    """Replaces the driver names in documents, unless it is ""."""
    catalogue: Mapping[str, Assignment] | None = None
    """Devices by instance type, for nodes that no document matches; None disables them."""
    nodes: NodeSelector | None = None
    """The nodes that have devices; None: those with the annotation `kwok.x-k8s.io/node`."""
    real_nodes: bool = False
    """Whether nodes with a kubelet have devices too; a kubelet deletes slices when it starts."""
    shard: Shard = ONLY_SHARD
    """The nodes of other shards, and their slices, belong to other publishers."""
    resync_seconds: float = 30.0


def engine(context: EngineContext, settings: PublisherSettings) -> Publisher:
    """Return the publisher; it runs until it is cancelled."""
    from dryrack.controllers.slices.publisher import Publisher

    return Publisher(context, settings)
