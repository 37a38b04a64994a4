"""
The instance types of Karpenter's KWOK provider, as it reads them from a file.

Karpenter keeps 100m of CPU and 10Mi of memory of each node for the system, and offers a type in
zones and with capacity types. If a name occurs twice, Karpenter uses the first entry.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import DryrackError
from dryrack.controllers.provisioning.machines import ARCH, OS, ZONE, Machine, size_labels
from dryrack.hardware import INSTANCE_TYPE
from dryrack.kinds.paths import get
from dryrack.kinds.provisioning import CAPACITY_TYPE
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_RESERVED = {"cpu": "100m", "memory": "10Mi"}
_PODS = "110"
_UNKNOWN_PRICE = 1_000.0


class InstanceTypesError(DryrackError):
    """The file of instance types cannot be read; the message names the entry."""


def read_instance_types(text: str) -> tuple[Machine, ...]:
    """Return the instance types of a file, or raise `InstanceTypesError`."""
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise InstanceTypesError(f"the file is not JSON: {error}") from None
    if not isinstance(entries, list):
        raise InstanceTypesError("the file must have a list of instance types")
    machines: dict[str, Machine] = {}
    for number, each in enumerate(entries):
        try:
            machine = _read(each)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise InstanceTypesError(f"entry {number}: {problem}") from None
        machines.setdefault(machine.name, machine)
    return tuple(machines.values())


def _read(entry: Mapping[str, Any]) -> Machine:
    systems: Sequence[str] = entry["operatingSystems"]
    capacity = {"pods": _PODS, **{key: str(value) for key, value in entry["resources"].items()}}
    prices = [each["Price"] for each in entry["offerings"] if "Price" in each]
    labels = {
        INSTANCE_TYPE: entry["name"],
        ARCH: entry["architecture"],
        OS: "linux" if "linux" in systems else systems[0],
        **size_labels(entry["name"], capacity),
    }
    machine = Machine(
        entry["name"],
        labels,
        capacity,
        min(prices, default=None),
        zones=tuple(_values(entry["offerings"], ZONE)),
        capacity_types=tuple(sorted(_values(entry["offerings"], CAPACITY_TYPE))),
    )
    return without_reserved(machine)


def _values(offerings: Iterable[Mapping[str, Any]], key: str) -> Iterable[str]:
    """Return the values of a label in the offerings, in their order, each once."""
    requirements = [one for each in offerings for one in each["Requirements"]]
    return dict.fromkeys(v for each in requirements if each["key"] == key for v in each["values"])


def without_reserved(machine: Machine) -> Machine:
    """Return a machine with the resources that Karpenter leaves to pods."""
    left = {
        name: str(Quantity.parse(amount) - Quantity.parse(_RESERVED[name]))
        for name, amount in machine.capacity.items()
        if name in _RESERVED
    }
    return replace(machine, capacity={**machine.capacity, **left})


def write_instance_types(machines: Iterable[Machine]) -> str:
    """Return the file with these instance types, for `--instance-types-file-path` of Karpenter."""
    entries = [
        {
            "name": each.name,
            "architecture": get(each.labels, ARCH, "amd64"),
            "operatingSystems": [get(each.labels, OS, "linux")],
            "resources": dict(each.capacity),
            "offerings": [
                {
                    "Price": each.price or _UNKNOWN_PRICE,
                    "Requirements": [_in(ZONE, zone), _in(CAPACITY_TYPE, kind)],
                }
                for zone in each.zones
                for kind in each.capacity_types
            ],
        }
        for each in machines
    ]
    return json.dumps(entries, indent=1) + "\n"


def _in(key: str, value: str) -> Mapping[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}
