"""
The settings of the provisioner: its instance types, their devices and their prices.

The same settings are used by `dryrack up --provisioner`, `dryrack provision`, scenarios and tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    CLAIMS,
    CLASSES,
    CONFIG_MAPS,
    DAEMON_SETS,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SLICES,
    STORAGE_CLASSES,
    TEMPLATES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dryrack.cluster.attached import Need
from dryrack.controllers.provisioning import (
    ProvisionerSettings,
    catalogue_machines,
    generic_machines,
    read_instance_types,
    without_reserved,
)
from dryrack.controllers.slices import PublisherSettings
from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from dryrack.allocation import Features
    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.releases import Release

_NEEDS = (
    *(PODS, NODES, NODE_POOLS, NODE_CLAIMS, DAEMON_SETS, NAMESPACES),
    *(CLAIMS, TEMPLATES, SLICES, CLASSES, VOLUME_CLAIMS, VOLUMES, STORAGE_CLASSES),
)


def provisioner_settings(
    catalogue: Catalogue,
    *,
    ignores_claims: bool = False,
    publisher: PublisherSettings | None = None,
    release: Release = DEFAULT_RELEASE,
    features: Features | None = None,
) -> ProvisionerSettings:
    """Return the settings for the generic instance types and those of the catalog."""
    machines = catalogue_machines(catalogue.instance_types.values(), _prices())
    return ProvisionerSettings(
        machines=(*generic_machines(), *machines),
        devices=catalogue.assignments(),
        publisher=publisher,
        ignores_claims=ignores_claims,
        release=release,
        features=features,
    )


def karpenter_settings(
    catalogue: Catalogue,
    instance_types: str = "",
    *,
    publisher: PublisherSettings | None = None,
    release: Release = DEFAULT_RELEASE,
) -> ProvisionerSettings:
    """
    Return the settings of a provisioner for which Karpenter creates the nodes.

    `instance_types` is the file of its KWOK provider; "" for the types that the provider has by
    default.
    """
    default = tuple(map(without_reserved, generic_machines()))
    return ProvisionerSettings(
        machines=read_instance_types(instance_types) if instance_types else default,
        devices=catalogue.assignments(),
        publisher=publisher,
        uses_karpenter=True,
        release=release,
    )


def _prices() -> dict[str, float]:
    from dryrack.cluster.prices import load_prices

    return {name: float(price.amount) for name, price in load_prices().items()}


def provisioner_needs(settings: ProvisionerSettings) -> tuple[Need, ...]:
    """Return the kinds that a provisioner has to list."""
    publisher = settings.publisher or PublisherSettings()
    name = f"metadata.name={publisher.config_map}"
    config_map = Selection(namespace=publisher.namespace, fields=name)
    own = () if settings.uses_karpenter else (POD_DISRUPTION_BUDGETS,)
    return (*map(Need, (*_NEEDS, *own)), Need(CONFIG_MAPS, config_map))
