"""Valid objects to spoil: at least one for every feature that validation knows."""

from __future__ import annotations

import copy
from typing import Any

Document = dict[str, Any]

STORED_METADATA = {
    "uid": "3a3f1d50-9a1c-4c67-a4f0-2f3f3a1f6d11",
    "resourceVersion": "7",
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "generation": 2,
}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1", "controller": True}


def _object(kind: str, name: str, spec: Document, **more: Any) -> Document:
    version = "resource.k8s.io/v1beta2" if kind == "DeviceTaintRule" else "resource.k8s.io/v1"
    metadata = {
        "name": name,
        "labels": {"app": "x", "example.com/tier": "gold"},
        "annotations": {"example.com/note": "any text"},
        "finalizers": ["example.com/protect"],
        "ownerReferences": [OWNER],
    }
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, **more}


def _selector(key: str, operator: str, values: list[str]) -> Document:
    return {"key": key, "operator": operator, "values": values}


NODE_SELECTOR = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [
                _selector("zone", "In", ["a", "b"]),
                _selector("gpu", "Exists", []),
                _selector("cores", "Gt", ["4"]),
            ],
            "matchFields": [_selector("metadata.name", "In", ["n1"])],
        }
    ]
}
GPU = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "H200"},
        "gpu.example.com/index": {"int": 0},
        "healthy": {"bool": True},
        "driver_version": {"version": "12.4.0-rc.1+b7"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "example.com/cores": {"value": "100"}},
    "taints": [
        {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"},
        {"key": "slow", "effect": "None"},
    ],
    "bindsToNode": True,
    "bindingConditions": ["example.com/ready"],
    "bindingFailureConditions": ["example.com/failed"],
    "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}],
}
SHARED_GPU = {
    "name": "gpu-1",
    "allowMultipleAllocations": True,
    "capacity": {
        "memory": {
            "value": "80Gi",
            "requestPolicy": {
                "default": "10Gi",
                "validRange": {"min": "5Gi", "max": "40Gi", "step": "5Gi"},
            },
        },
        "slots": {
            "value": "8",
            "requestPolicy": {"default": "2", "validValues": ["1", "2", "4"]},
        },
    },
}
POOL = {"name": "n1/gpus", "generation": 3, "resourceSliceCount": 2}
SLICES = (
    _object(
        "ResourceSlice",
        "n1-gpu",
        {
            "driver": "gpu.example.com",
            "pool": POOL,
            "nodeName": "n1",
            "devices": [GPU, SHARED_GPU],
        },
    ),
    _object(
        "ResourceSlice",
        "n1-counters",
        {
            "driver": "gpu.example.com",
            "pool": POOL,
            "nodeSelector": NODE_SELECTOR,
            "sharedCounters": [
                {"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}},
                {"name": "gpu-1", "counters": {"memory": {"value": "80Gi"}, "sm": {"value": "7"}}},
            ],
        },
    ),
    _object(
        "ResourceSlice",
        "fabric",
        {
            "driver": "nic.example.com",
            "pool": {"name": "fabric", "resourceSliceCount": 1},
            "perDeviceNodeSelection": True,
            "devices": [
                {"name": "nic-0", "nodeName": "n1"},
                {"name": "nic-1", "nodeSelector": NODE_SELECTOR},
                {"name": "nic-2", "allNodes": True},
            ],
        },
    ),
    _object(
        "ResourceSlice",
        "everywhere",
        {
            "driver": "lic.example.com",
            "pool": {"name": "licences", "resourceSliceCount": 1},
            "allNodes": True,
            "devices": [{"name": "lic-0", "attributes": {"n": {"int": 1}}}],
        },
    ),
)

CLAIM_SPEC = {
    "devices": {
        "requests": [
            {
                "name": "one",
                "exactly": {
                    "deviceClassName": "gpu.example.com",
                    "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
                    "allocationMode": "ExactCount",
                    "count": 2,
                    "tolerations": [
                        {"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"},
                        {"key": "slow", "value": "yes", "tolerationSeconds": 5},
                    ],
                    "capacity": {"requests": {"memory": "10Gi"}},
                },
            },
            {
                "name": "either",
                "firstAvailable": [
                    {
                        "name": "big",
                        "deviceClassName": "big.example.com",
                        "selectors": [{"cel": {"expression": "true"}}],
                        "tolerations": [{"operator": "Exists"}],
                    },
                    {"name": "small", "deviceClassName": "small", "allocationMode": "All"},
                ],
            },
            {"name": "all", "exactly": {"deviceClassName": "net", "allocationMode": "All"}},
        ],
        "constraints": [
            {"requests": ["one", "either/big"], "matchAttribute": "gpu.example.com/numa"},
            {"requests": ["one"], "distinctAttribute": "gpu.example.com/index"},
        ],
        "config": [
            {
                "requests": ["one"],
                "opaque": {"driver": "gpu.example.com", "parameters": {"kind": "Config"}},
            },
            {"opaque": {"driver": "nic.example.com", "parameters": {}}},
        ],
    }
}
CLAIMS = (
    _object("ResourceClaim", "training", CLAIM_SPEC),
    _object("ResourceClaim", "empty", {"devices": {}}),
)
TEMPLATES = (
    _object(
        "ResourceClaimTemplate",
        "training",
        {
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
            "spec": CLAIM_SPEC,
        },
    ),
)
CLASSES = (
    _object(
        "DeviceClass",
        "gpu.example.com",
        {
            "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
            "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}],
            "extendedResourceName": "example.com/gpu",
        },
    ),
    _object("DeviceClass", "any", {}),
)
RULES = (
    _object(
        "DeviceTaintRule",
        "drain",
        {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "n1/gpus", "device": "gpu-0"},
            "taint": {"key": "example.com/broken", "value": "yes", "effect": "NoExecute"},
        },
    ),
    _object("DeviceTaintRule", "nothing", {"taint": {"key": "a", "effect": "None"}}),
)

SHARE = "0b6bd9d4-0e3c-44c4-a3c4-0e8a3c0a6c55"
CONDITION = {
    "type": "example.com/Ready",
    "status": "True",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-02T03:04:05Z",
    "reason": "AllGood",
    "message": "fine",
}
ALLOCATION = {
    "devices": {
        "results": [
            {
                "request": "one",
                "driver": "gpu.example.com",
                "pool": "n1/gpus",
                "device": "gpu-0",
                "bindingConditions": ["example.com/ready"],
                "bindingFailureConditions": ["example.com/failed"],
                "tolerations": [{"operator": "Exists"}],
            },
            {
                "request": "either/big",
                "driver": "gpu.example.com",
                "pool": "n1/gpus",
                "device": "gpu-1",
                "shareID": SHARE,
                "consumedCapacity": {"memory": "10Gi"},
            },
        ],
        "config": [
            {
                "source": "FromClass",
                "requests": ["one"],
                "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}},
            },
            {"source": "FromClaim", "opaque": {"driver": "d", "parameters": {}}},
        ],
    },
    "nodeSelector": NODE_SELECTOR,
}
STATUS = {
    "allocation": ALLOCATION,
    "reservedFor": [
        {"resource": "pods", "name": "p1", "uid": "u1"},
        {"apiGroup": "example.com", "resource": "things", "name": "t", "uid": "u2"},
    ],
    "devices": [
        {
            "driver": "gpu.example.com",
            "pool": "n1/gpus",
            "device": "gpu-0",
            "conditions": [CONDITION],
            "data": {"a": [1, 2]},
            "networkData": {
                "interfaceName": "eth0",
                "ips": ["10.9.8.7/24", "2001:db8::1/64"],
                "hardwareAddress": "ab:cd",
            },
        },
        {"driver": "gpu.example.com", "pool": "n1/gpus", "device": "gpu-1", "shareID": SHARE},
    ],
}
RULE_STATUS = {"conditions": [CONDITION]}

PODS = (
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "resourceClaims": [
                {"name": "gpu", "resourceClaimName": "training"},
                {"name": "nic", "resourceClaimTemplateName": "nics"},
            ],
            "initContainers": [
                {"name": "i", "image": "x", "resources": {"claims": [{"name": "nic"}]}}
            ],
            "containers": [
                {
                    "name": "c",
                    "image": "x",
                    "resources": {
                        "claims": [
                            {"name": "gpu", "request": "one"},
                            {"name": "gpu", "request": "two"},
                            {"name": "nic"},
                        ]
                    },
                }
            ],
        },
    },
)

NEW = (*SLICES, *CLAIMS, *TEMPLATES, *CLASSES, *RULES, *PODS)


def stored(document: Document) -> Document:
    """A document as the server keeps it."""
    kept = copy.deepcopy(document)
    kept["metadata"].update(copy.deepcopy(STORED_METADATA))
    if kept["kind"] in ("ResourceClaim", "ResourceClaimTemplate"):
        kept["metadata"].setdefault("namespace", "default")
    for device in kept["spec"].get("devices", ()) if kept["kind"] == "ResourceSlice" else ():
        for taint in device.get("taints", ()):
            taint.setdefault("timeAdded", "2026-01-02T03:04:05Z")
    if kept["kind"] == "DeviceTaintRule":
        kept["spec"]["taint"].setdefault("timeAdded", "2026-01-02T03:04:05Z")
    return kept
