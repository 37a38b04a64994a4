"""
The kinds of resource.k8s.io/v1: devices on offer, devices wanted, devices given.

Names are those of the Kubernetes API. Fields that only newer releases or alpha gates have are
empty where a server drops them. Fields for the status of a pool and for node allocatable resources
of 1.37 are kept but not modelled.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from dryrack.kinds.core import NodeSelector
from dryrack.kinds.meta import Condition, Int64, KubernetesObject, Model, ObjectMeta
from dryrack.kinds.quantity import ZERO, Quantity


# Required fields are written even when they are zero: a factory is never taken for "unset".
def _zero() -> Quantity:
    return ZERO


class Counter(Model, frozen=True, kw_only=True):
    value: Quantity = msgspec.field(default_factory=_zero)


class CounterSet(Model, frozen=True, kw_only=True):
    name: str = ""
    counters: Mapping[str, Counter] = {}


class ResourcePool(Model, frozen=True, kw_only=True):
    name: str = ""
    generation: Int64 = msgspec.field(default_factory=int)
    resource_slice_count: Int64 = msgspec.field(default_factory=int)


class DeviceAttribute(Model, frozen=True, kw_only=True):
    """Exactly one field is set in a valid one."""

    int_value: Int64 | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")
    int_values: tuple[Int64, ...] | None = msgspec.field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = msgspec.field(default=None, name="bools")
    string_values: tuple[str, ...] | None = msgspec.field(default=None, name="strings")
    version_values: tuple[str, ...] | None = msgspec.field(default=None, name="versions")


class CapacityRequestPolicyRange(Model, frozen=True, kw_only=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Model, frozen=True, kw_only=True):
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Model, frozen=True, kw_only=True):
    value: Quantity = msgspec.field(default_factory=_zero)
    request_policy: CapacityRequestPolicy | None = None


class DeviceCounterConsumption(Model, frozen=True, kw_only=True):
    counter_set: str = ""
    counters: Mapping[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Model, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeAllocatableResourceMapping(Model, frozen=True, kw_only=True):
    capacity_key: str | None = None
    allocation_multiplier: Quantity | None = None


class NodeAllocatableMapping(Model, frozen=True, kw_only=True):
    """Amount of a resource of the node that the device itself represents."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Model, frozen=True, kw_only=True):
    """Amount of a resource of the node that each user of the device needs in addition."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Model, frozen=True, kw_only=True):
    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Model, frozen=True, kw_only=True):
    name: str = ""
    attributes: Mapping[str, DeviceAttribute] = {}
    capacity: Mapping[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    # In 1.36 only.
    node_allocatable_resource_mappings: Mapping[str, NodeAllocatableResourceMapping] = {}
    # From 1.37 on.
    node_allocatable_resources: Mapping[str, NodeAllocatableResource] = {}


class ResourceSliceSpec(Model, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceSliceSpec = ResourceSliceSpec()


class CELDeviceSelector(Model, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Model, frozen=True, kw_only=True):
    cel: CELDeviceSelector | None = None


class DeviceToleration(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Model, frozen=True, kw_only=True):
    requests: Mapping[str, Quantity] = {}


class DerivedAttribute(Model, frozen=True, kw_only=True):
    """An attribute that a CEL expression computes from a device, for constraints."""

    name: str = ""
    expression: str = ""


class ExactDeviceRequest(Model, frozen=True, kw_only=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceSubRequest(Model, frozen=True, kw_only=True):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceRequest(Model, frozen=True, kw_only=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Model, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueDeviceConfiguration(Model, frozen=True, kw_only=True):
    driver: str = ""
    parameters: Any = None


class DeviceClaimConfiguration(Model, frozen=True, kw_only=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Model, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Model, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Model, frozen=True, kw_only=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Mapping[str, Quantity] = {}
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Model, frozen=True, kw_only=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Model, frozen=True, kw_only=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Model, frozen=True, kw_only=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Model, frozen=True, kw_only=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class NetworkDeviceData(Model, frozen=True, kw_only=True):
    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Model, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: Any = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Model, frozen=True, kw_only=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Model, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassConfiguration(Model, frozen=True, kw_only=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Model, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(Model, frozen=True, kw_only=True):
    """Which devices a rule taints; without any field, every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Model, frozen=True, kw_only=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(Model, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(KubernetesObject, frozen=True, kw_only=True):
    API_VERSION: ClassVar[str] = "resource.k8s.io/v1"

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()
