"""
The provisioner: nodes for pods that fit on no node, and the removal of nodes that are not needed.

It works with Karpenter's kinds. `node_claims` creates and removes the nodes of NodeClaims,
`draining` moves pods away from them, and `node_pools` reports what a pool has. With
Karpenter, `stand_ins` makes it create the nodes instead. `decision` says
which NodeClaims are needed, and `disruption` which of them can go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.lazy import exports
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.allocation import Features
    from dryrack.controllers.provisioning.instance_types import (
        InstanceTypesError,
        read_instance_types,
        without_reserved,
        write_instance_types,
    )
    from dryrack.controllers.provisioning.machines import (
        Machine,
        catalogue_machines,
        generic_machines,
    )
    from dryrack.controllers.provisioning.provisioner import Provisioner
    from dryrack.controllers.slices import PublisherSettings
    from dryrack.controllers.writes import EngineContext
    from dryrack.hardware import Assignment
else:
    __getattr__ = exports(
        __name__,
        {
            "instance_types": (
                "InstanceTypesError read_instance_types without_reserved write_instance_types"
            ),
            "machines": "Machine catalogue_machines generic_machines",
            "provisioner": "Provisioner",
        },
    )

__all__ = [
    "InstanceTypesError",
    "Machine",
    "Provisioner",
    "ProvisionerSettings",
    "catalogue_machines",
    "engine",
    "generic_machines",
    "read_instance_types",
    "without_reserved",
    "write_instance_types",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionerSettings:
    """The defaults of batching and of the second look are those of Karpenter."""

    machines: Sequence[Machine]
    """The instance types that nodes can have."""
    devices: Mapping[str, Assignment] | None = None
    """The devices of the hardware catalog, by instance type; None: nodes have none of these."""
    publisher: PublisherSettings | None = None
    """Where the documents are that give nodes devices; None: where the publisher looks."""
    ignores_claims: bool = False
    """Whether pods with ResourceClaims get no node, as by default in Karpenter."""
    uses_karpenter: bool = False
    """Whether Karpenter creates the nodes; then stand-in pods tell it which ones."""
    release: Release = DEFAULT_RELEASE
    """The release whose allocator decides about devices, with its features."""
    features: Features | None = None
    batch_idle_seconds: float = 1.0
    """A batch of pods is decided when no further pod has come for so long."""
    batch_seconds_max: float = 10.0
    """A batch waits for further pods no longer than this."""
    second_look_seconds: float = 15.0
    """A node is removed if there is a reason for it now, and still after so long."""


def engine(context: EngineContext, settings: ProvisionerSettings) -> Provisioner:
    """Return the provisioner; it runs until it is cancelled."""
    from dryrack.controllers.provisioning.provisioner import Provisioner

    return Provisioner(context, settings)
