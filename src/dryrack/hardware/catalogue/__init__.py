"""
The hardware catalog: the devices of instance types, as the drivers of their vendors publish them.

    catalogue = parse({"mine.yaml": data}, base=packaged)
    inventory = Inventory(instance_types=catalogue.assignments())
"""

from dryrack.hardware.catalogue.catalogue_files import CatalogueCheck, CatalogueError, parse
from dryrack.hardware.catalogue.identity import devices_on
from dryrack.hardware.catalogue.values import (
    MIG,
    MIG_DYNAMIC,
    Cards,
    Catalogue,
    Fitting,
    InstanceType,
    Model,
)

__all__ = [
    "MIG",
    "MIG_DYNAMIC",
    "Cards",
    "Catalogue",
    "CatalogueCheck",
    "CatalogueError",
    "Fitting",
    "InstanceType",
    "Model",
    "devices_on",
    "parse",
]
