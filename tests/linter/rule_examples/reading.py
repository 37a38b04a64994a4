"""Examples of the rules in `linter.rules.reading`."""

from __future__ import annotations

from tests.linter import examples
from tests.linter.examples import broken

from dryrack.kinds.releases import DEFAULT_RELEASE, Release

_FIELDS_OF_OTHERS = {
    Release.V1_36: "    nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: 2}}}\n",
    Release.V1_37: "    nodeAllocatableResourceMappings: {cpu: {allocationMultiplier: 2}}\n",
}
_GROUP_VERSIONS = {
    Release.V1_36: "scheduling.k8s.io/v1alpha2",
    Release.V1_37: "scheduling.k8s.io/v1beta1",
}

EXAMPLES = {
    "DR001": broken(
        examples.SLICE, ("  nodeName: rack-1\n", "  nodeName: rack-1\n  nodeName: rack-2\n")
    ),
    "DR002": broken(examples.SLICE, ("generation: 1", 'generation: "1"')),
    "DR003": broken(
        examples.SLICE,
        (
            "    capacity:\n      memory: {value: 80Gi}\n  - name: gpu-1",
            "    capacities:\n      memory: {value: 80Gi}\n  - name: gpu-1",
        ),
    ),
    "DR004": broken(examples.CLASS, ("kind: DeviceClass", "kind: DeviceClas")),
    "DR005": broken(examples.CLASS, ("resource.k8s.io/v1\n", "resource.k8s.io/v1beta2\n")),
    "DR006": broken(
        examples.join(
            examples.CLASS,
            examples.CLASS.replace("name: gpu", "name: big-gpu").replace("==", "!="),
        ),
        ("name: big-gpu", "name: gpu"),
    ),
    "DR007": broken(
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n  name: driver\n",
        ("coordination.k8s.io", "coordination.k8s.com"),
    ),
    "DR008": broken(
        "apiVersion: dryrack.dev/v1alpha1\nkind: Scenario\nsteps: [{wait: 1m}]\n",
        ("wait: 1m", "wiat: 1m"),
    ),
    "DR009": broken(
        "apiVersion: resource.nvidia.com/v1beta1\nkind: ComputeDomain\nmetadata:\n  name: imex\n"
        "spec:\n  numNodes: 2\n  channel:\n    resourceClaimTemplate:\n      name: channel\n",
        ("numNodes: 2", 'numNodes: "2"'),
    ),
    "DR010": broken(
        examples.SLICE,
        ("  - name: gpu-1\n", f"  - name: gpu-1\n{_FIELDS_OF_OTHERS[DEFAULT_RELEASE]}"),
    ),
    "DR011": broken(
        f"apiVersion: {_GROUP_VERSIONS[DEFAULT_RELEASE]}\nkind: PodGroup\n"
        "metadata:\n  name: training\n"
        "spec:\n  schedulingPolicy:\n    gang: {minCount: 2}\n",
        (
            _GROUP_VERSIONS[DEFAULT_RELEASE],
            next(
                each
                for each in _GROUP_VERSIONS.values()
                if each != _GROUP_VERSIONS[DEFAULT_RELEASE]
            ),
        ),
    ),
}
