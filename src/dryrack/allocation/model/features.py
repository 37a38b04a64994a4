"""
The features of the allocator that feature gates of Kubernetes switch.

Gates have the names that kube-scheduler's `--feature-gates` uses; `kinds.releases` knows their
defaults, locks and dependencies in each release.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dryrack.kinds.releases import DEFAULT_RELEASE, Release, resolve_gates


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
    compatibility_groups: bool = False
    derived_attributes: bool = False
    optional_node_operations: bool = False

    @staticmethod
    def defaults(release: Release = DEFAULT_RELEASE) -> "Features":
        """Return the features with the default feature gates of a release."""
        return Features.from_gates({}, release)

    @staticmethod
    def from_gates(gates: Mapping[str, bool], release: Release = DEFAULT_RELEASE) -> "Features":
        """Return the features after a change of gates; raise `GateError` as Kubernetes does."""
        state = resolve_gates(gates, release)
        fields = dict.fromkeys(FEATURE_GATES.values(), True)
        for gate, field in FEATURE_GATES.items():
            fields[field] = fields[field] and state.get(gate, False)
        return Features(**fields)


# Binding conditions need the device status too, so that feature has two gates.
FEATURE_GATES = {
    "DRAAdminAccess": "admin_access",
    "DRAPrioritizedList": "prioritized_list",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRADeviceTaints": "device_taints",
    "DRADeviceBindingConditions": "device_binding_and_status",
    "DRAResourceClaimDeviceStatus": "device_binding_and_status",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRAListTypeAttributes": "list_type_attributes",
    "DRAFractionalCapacityRange": "fractional_capacity_range",
    "DRADeviceCompatibilityGroups": "compatibility_groups",
    "DRADerivedAttributes": "derived_attributes",
    "DRAOptionalNodeOperations": "optional_node_operations",
}
