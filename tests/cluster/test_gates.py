"""Feature gates of the scheduler: how devices are handed out."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from dryrack.allocation import Features, LiveAllocator
from dryrack.client.endpoints import PODS
from dryrack.client.timekeeping import VirtualClock, settle
from dryrack.cluster.assembly import EngineOptions
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.initial_objects import add_nodes, add_objects
from dryrack.kinds.documents import read

TAINTED = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: one}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    taints: [{key: example.com/broken, effect: NoSchedule}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu}}]
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  containers: [{name: work, image: x}]
  resourceClaims: [{name: gpu, resourceClaimName: one}]
"""


async def phase(gates: dict[str, bool]) -> str:
    """What becomes of a pod whose only device is tainted."""
    clock = VirtualClock()
    allocator = partial(LiveAllocator, features=Features.from_gates(gates))
    engines = EngineOptions(allocator=allocator)
    async with embedded(ControlPlaneOptions(clock=clock), engines=engines) as cluster:
        await add_nodes(cluster.client, 1)
        await add_objects(cluster.plane, read(TAINTED, "tainted.yaml").documents)
        for _ in range(10):
            await settle()
            await clock.advance(0.5)
        pod = await cluster.client.get(PODS, "one", "default")
    return str(pod["status"]["phase"])


@pytest.mark.parametrize(
    ("gates", "outcome"),
    [
        ({}, "Pending"),
        ({"DRADeviceTaints": False, "DRADeviceTaintRules": False}, "Running"),
    ],
)
def test_gates_decide_which_devices_are_given(gates: dict[str, bool], outcome: str) -> None:
    """Without the gate for taints nobody looks at them, as in Kubernetes' own scheduler."""
    assert asyncio.run(phase(gates)) == outcome
