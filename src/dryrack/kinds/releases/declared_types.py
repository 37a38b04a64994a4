"""
Checks that the types of a release declare for their fields; `kinds.validation.declared` runs them.

Only checks that the API server enforces are listed: those without a stage, and those in beta.
"""

from collections.abc import Mapping
from types import MappingProxyType

from dryrack.kinds.releases.release import Release

_REQUESTS = "max=32 unique"
_CONFIG_DRIVER = "required caseless-name length=63"
_EFFECTS = "one-of=NoExecute,NoSchedule,None"
_REQUEST = {
    "selectors": "max=32",
    "allocationMode": "one-of=All,ExactCount",
    "tolerations": "[]DeviceToleration",
    "derivedAttributes": "max=32 []DeviceDerivedAttribute",
}
_DEVICES: Mapping[str, Mapping[str, str]] = {
    "ResourceSlice": {"spec": "ResourceSliceSpec"},
    "ResourceSliceSpec": {
        "devices": "[]Device",
        "sharedCounters": "max=8 unique=name []CounterSet",
        "partitionTypeAttribute": "pointer fully-qualified-name",
        "skipNodeOperations": "unique each=skip-node-operation",
    },
    "CounterSet": {
        "name": "required short-name",
        "counters": "required keys=short-name",
    },
    "Device": {
        "attributes": "{}DeviceAttribute",
        "consumesCounters": "max=2 unique=counterSet []DeviceCounterConsumption",
        "taints": "[]DeviceTaint",
        "bindingConditions": "max=4",
        "bindingFailureConditions": "max=4",
        "nodeAllocatableResources": "{}NodeAllocatableResource",
    },
    "DeviceAttribute": {"": "int bool string version ints bools strings versions"},
    "DeviceCounterConsumption": {
        "counterSet": "required short-name",
        "counters": "required keys=short-name",
        "compatibilityGroups": "max=2 unique each=short-name",
    },
    "NodeAllocatableResource": {"mapping": "*NodeAllocatableMapping"},
    "NodeAllocatableMapping": {"": "capacityKey deviceMultiplier"},
    "DeviceTaint": {"effect": f"required {_EFFECTS}"},
    "ResourceClaim": {"spec": "immutable ResourceClaimSpec", "status": "ResourceClaimStatus"},
    "ResourceClaimTemplate": {"spec": "ResourceClaimTemplateSpec"},
    "ResourceClaimTemplateSpec": {"spec": "ResourceClaimSpec"},
    "ResourceClaimSpec": {"devices": "DeviceClaim"},
    "DeviceClaim": {
        "requests": "max=32 unique=name []DeviceRequest",
        "constraints": "max=32 []DeviceConstraint",
        "config": "max=32 []DeviceClaimConfiguration",
    },
    "DeviceRequest": {
        "exactly": "*ExactDeviceRequest",
        "firstAvailable": "max=8 unique=name []DeviceSubRequest",
    },
    "ExactDeviceRequest": _REQUEST,
    "DeviceSubRequest": {"deviceClassName": "required long-name", **_REQUEST},
    "DeviceDerivedAttribute": {
        "name": "required fully-qualified-name",
        "expression": "required",
    },
    "DeviceToleration": {
        "key": "label-key",
        "operator": "required one-of=Equal,Exists",
        "effect": _EFFECTS,
    },
    "DeviceConstraint": {
        "requests": _REQUESTS,
        "matchAttribute": "pointer fully-qualified-name",
        "distinctAttribute": "pointer fully-qualified-name",
    },
    "DeviceClaimConfiguration": {
        "requests": _REQUESTS,
        "opaque": "*OpaqueDeviceConfiguration",
    },
    "OpaqueDeviceConfiguration": {"driver": _CONFIG_DRIVER},
    "ResourceClaimStatus": {
        "allocation": "no-modify *AllocationResult",
        "reservedFor": "max=256 unique=uid",
        "devices": "unique=driver,device,pool,shareID []AllocatedDeviceStatus",
    },
    "AllocationResult": {"devices": "DeviceAllocationResult"},
    "DeviceAllocationResult": {
        "results": "max=32 []DeviceRequestAllocationResult",
        "config": "max=64 []DeviceAllocationConfiguration",
    },
    "DeviceRequestAllocationResult": {
        "driver": _CONFIG_DRIVER,
        "pool": "required pool-name",
        "tolerations": "[]DeviceToleration",
        "bindingConditions": "max=4",
        "bindingFailureConditions": "max=4",
        "shareID": "pointer uuid",
        "skipNodeOperations": "unique each=skip-node-operation",
    },
    "DeviceAllocationConfiguration": {
        "source": "required one-of=FromClaim,FromClass",
        "requests": _REQUESTS,
        "opaque": "*OpaqueDeviceConfiguration",
    },
    "AllocatedDeviceStatus": {
        "shareID": "pointer uuid",
        "networkData": "*NetworkDeviceData",
    },
    "NetworkDeviceData": {
        "interfaceName": "bytes=256",
        "ips": "max=16 unique",
        "hardwareAddress": "bytes=128",
    },
    "DeviceClass": {"metadata": "LongNamed", "spec": "DeviceClassSpec"},
    "DeviceClassSpec": {
        "selectors": "max=32",
        "config": "max=32 []DeviceClassConfiguration",
        "extendedResourceName": "pointer extended-resource-name",
    },
    "DeviceClassConfiguration": {"opaque": "*OpaqueDeviceConfiguration"},
    "DeviceTaintRule": {"spec": "DeviceTaintRuleSpec"},
    "DeviceTaintRuleSpec": {"taint": "DeviceTaint"},
    "LongNamed": {"name": "long-name"},
}
_OTHERS: Mapping[str, Mapping[str, str]] = {
    "ClusterRole": {"rules": "[]PolicyRule"},
    "ClusterRoleBinding": {"subjects": "[]Subject", "roleRef": "RoleRef"},
    "CronJob": {"spec": "CronJobSpec"},
    "CronJobSpec": {"schedule": "required"},
    "PolicyRule": {"verbs": "required"},
    "ReplicationController": {"metadata": "LongNamed", "spec": "ReplicationControllerSpec"},
    "ReplicationControllerSpec": {"replicas": "min=0", "minReadySeconds": "min=0"},
    "Role": {"rules": "[]PolicyRule"},
    "RoleBinding": {"subjects": "[]Subject", "roleRef": "RoleRef"},
    "RoleRef": {"name": "required"},
    "StorageClass": {
        "provisioner": "required immutable",
        "parameters": "immutable",
        "reclaimPolicy": "immutable",
        "volumeBindingMode": "immutable",
    },
    "Subject": {"name": "required"},
    "ValidatingAdmissionPolicyBinding": {"spec": "ValidatingAdmissionPolicyBindingSpec"},
    "ValidatingAdmissionPolicyBindingSpec": {
        "policyName": "required",
        "validationActions": "required",
    },
}

# Groups whose kinds have no declared checks in any release; their problems can be repeated.
UNDECLARED_GROUPS = frozenset(("apiextensions.k8s.io", "apiregistration.k8s.io"))

DECLARED_TYPES: Mapping[Release, Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        Release.V1_36: MappingProxyType({}),
        Release.V1_37: MappingProxyType({**_DEVICES, **_OTHERS}),
    }
)
