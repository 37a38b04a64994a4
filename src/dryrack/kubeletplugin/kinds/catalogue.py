"""
Devices of the hardware catalog: of an instance type or of a model, with the names of their vendors.

Containers have the environment variables of the vendors' drivers. An instance type has devices of
several drivers, so one value of `--devices` can result in several kinds.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.hardware.catalogue import Cards, Fitting, InstanceType, devices_on
from dryrack.kubeletplugin.device_kind import ContainerEdits, DevicesError
from dryrack.kubeletplugin.kinds import example
from dryrack.kubeletplugin.kinds.vendor_env import vendor_env

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware import Batch
    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.resource import CounterSet, Device, DeviceClass
    from dryrack.kubeletplugin.device_kind import AllocatedDevice, KindOptions, PreparingClaim

# The CDI kinds of drivers that do not derive them from the driver's name.
_CDI_KINDS = {
    "dra.cpu": "dra.k8s.io/cpu",
    "gaudi.intel.com": "intel.com/gaudi",
    "gpu.amd.com": "k8s.gpu.amd.com/gpu",
    "gpu.intel.com": "intel.com/gpu",
    "gpu.nvidia.com": "k8s.gpu.nvidia.com/claim",
    "compute-domain.nvidia.com": "k8s.compute-domain.nvidia.com/claim",
    "tpu.google.com": "k8s.tpu.google.com/tpu",
}


# A real node has one entry; the devices of many virtual nodes would need too much memory.
_KNOWN_NODES_MAX = 16


@dataclass(frozen=True, slots=True)
class CatalogueKind:
    """The devices of one driver on an instance type."""

    batch: Batch
    classes: tuple[DeviceClass, ...]
    _known: dict[str, Mapping[str, Device]] = field(default_factory=dict, compare=False, repr=False)
    """Devices by name, for the nodes that were used last."""

    @property
    def driver(self) -> str:
        return self.batch.driver

    @property
    def device_class(self) -> str:
        return self.classes[0].metadata.name if self.classes else self.driver

    @property
    def cdi_kind(self) -> str:
        return _CDI_KINDS.get(self.driver, f"{self.driver}/device")

    def devices(self, node: str) -> tuple[Device, ...]:
        return devices_on(self.batch, node)

    def counter_sets(self) -> tuple[CounterSet, ...]:
        return self.batch.shared_counters

    def device_classes(self) -> tuple[DeviceClass, ...]:
        """Return the classes of the driver."""
        return self.classes

    def host_files(self) -> tuple[str, ...]:
        return ()

    def edits(self, device: AllocatedDevice, claim: PreparingClaim, number: int) -> ContainerEdits:
        node = claim.node
        # A card with partitions is many devices, and every prepare asks for one of them.
        if node not in self._known:
            if len(self._known) >= _KNOWN_NODES_MAX:
                self._known.clear()
            self._known[node] = {each.name: each for each in self.devices(node)}
        devices = self._known[node]
        uuid = devices[device.device].attributes.get("uuid")
        what = (uuid.string_value if uuid is not None else None) or device.device
        variable = f"{self.driver}_DEVICE_{number}".upper().replace(".", "_").replace("-", "_")
        env = ((variable, what), *vendor_env(self.driver, device, claim, devices))
        return ContainerEdits(env=env, numbers=1)


def catalogue_kinds(options: KindOptions, catalogue: Catalogue) -> tuple[CatalogueKind, ...]:
    """`catalogue:p5.48xlarge,mig=true`, `catalogue:h100-sxm5-80gb`; a kind for each driver."""
    taken = options.take({"mig": "false"})
    is_cut = example.boolean_of(options, "mig", taken["mig"])
    machine = _machine(options, catalogue)
    cards = Cards.PARTITIONED if is_cut else Cards.WHOLE
    if cards not in machine.cards:
        raise DevicesError(
            f"--devices {options.kind}:{options.name}: mig=true: dryrack has no MIG partitions "
            "for its GPUs; see: dryrack hardware list -o wide"
        )
    batches = machine.assignment(cards).batches
    classes = catalogue.device_classes
    return tuple(CatalogueKind(batch, _classes_of(batch.driver, classes)) for batch in batches)


def _machine(options: KindOptions, catalogue: Catalogue) -> InstanceType:
    """Return the instance type; for a model, one with a single device of the model."""
    name = options.name
    found = catalogue.instance_types.get(name)
    if found is not None:
        return found
    model = catalogue.models.get(name)
    if model is None:
        known = (*catalogue.instance_types, *catalogue.models)
        near = " or ".join(difflib.get_close_matches(name, known, 2))
        hint = f"did you mean {near}? " if near else ""
        raise DevicesError(
            f"--devices {options.kind}:{name}: unknown instance type or model; {hint}"
            "see: dryrack hardware list"
        )
    machines = catalogue.instance_types.values()
    slots = (slots[0] for machine in machines if (slots := machine.slots_of(name)))
    fitting = Fitting(model, (next(slots, model.sample_slot()),))
    return InstanceType(model.name, model.vendor, (fitting,))


def _classes_of(driver: str, classes: Mapping[str, DeviceClass]) -> tuple[DeviceClass, ...]:
    asks = f"device.driver == '{driver}'"
    return tuple(
        each
        for each in classes.values()
        if any(selector.cel and asks in selector.cel.expression for selector in each.spec.selectors)
    )
