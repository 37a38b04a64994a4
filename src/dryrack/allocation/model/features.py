"""
Which behaviour the allocator shows: a release of Kubernetes and its feature gates.

A `Release` decides between behaviours that no gate switches (bugs that a later release put
right); `Features` are the gates that reach into allocation. Gates are known by the names that
kube-scheduler's `--feature-gates` uses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from dryrack.base.errors import DryrackError


class Release(Enum):
    """A release of Kubernetes whose answers are reproduced."""

    V1_36 = "1.36"
    V1_37 = "1.37"


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The features of the allocator; each is off by default."""

    admin_access: bool = False
    prioritized_list: bool = False
    partitionable_devices: bool = False
    device_taints: bool = False
    device_binding_and_status: bool = False
    consumable_capacity: bool = False
    list_type_attributes: bool = False
    fractional_capacity_range: bool = False

    @staticmethod
    def defaults(release: Release = Release.V1_36) -> "Features":
        """Return the default feature gates of a release."""
        return replace(_DEFAULTS, fractional_capacity_range=release is Release.V1_37)

    @staticmethod
    def from_gates(gates: Mapping[str, bool], release: Release = Release.V1_36) -> "Features":
        """Return the defaults of the release with some gates changed; reject other gates."""
        unknown = sorted(name for name in gates if name not in _GATES)
        if unknown:
            known = ", ".join(sorted(_GATES))
            raise DryrackError(f"feature gate {unknown[0]!r}: unknown; use one of: {known}")
        defaults = Features.defaults(release)
        on = {gate: gates.get(gate, getattr(defaults, field)) for gate, field in _GATES.items()}
        fields = dict.fromkeys(_GATES.values(), True)
        for gate, field in _GATES.items():
            fields[field] = fields[field] and on[gate]
        return Features(**fields)


# Binding conditions need the device status too, so that feature has two gates.
_GATES = {
    "DRAAdminAccess": "admin_access",
    "DRAPrioritizedList": "prioritized_list",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRADeviceTaints": "device_taints",
    "DRADeviceBindingConditions": "device_binding_and_status",
    "DRAResourceClaimDeviceStatus": "device_binding_and_status",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRAListTypeAttributes": "list_type_attributes",
    "DRAFractionalCapacityRange": "fractional_capacity_range",
}

_DEFAULTS = Features(
    admin_access=True,
    prioritized_list=True,
    partitionable_devices=True,
    device_taints=True,
    device_binding_and_status=True,
    consumable_capacity=True,
)
