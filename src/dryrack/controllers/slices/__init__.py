"""
The publisher: the devices that documents describe, as ResourceSlices of nodes that lack them.

`sources` reads documents into the current inventory; `publishing` keeps the slices of all nodes as
the inventory has them. `engine` puts the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.controllers.slices.publisher import Publisher
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Assignment
    from dryrack.kinds.core import NodeSelector

__all__ = ["PublishOptions", "engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOptions:
    """The defaults are those of Karpenter's driver, so that its documents work as they are."""

    namespace: str = "karpenter"
    config_map: str = "dra-kwok-configmap"
    key: str = "config.yaml"
    driver: str = ""
    """Takes the place of every driver's name that a document gives; "" leaves them."""
    catalogue: Mapping[str, Assignment] | None = None
    """Devices by instance type, for nodes that nothing else speaks of; None: switched off."""
    nodes: NodeSelector | None = None
    """Which nodes have devices; None: those with the annotation `kwok.x-k8s.io/node`."""
    real_nodes: bool = False
    """Whether nodes with a kubelet of their own have them too. It deletes them when it starts."""
    resync_seconds: float = 30.0


def engine(around: EngineContext, options: PublishOptions) -> Publisher:
    """The publisher, to be run until it is cancelled."""
    # Every command that starts a cluster needs the options; only an engine needs the rest.
    from dryrack.controllers.slices.publisher import Publisher

    return Publisher(around, options)
