"""Builders of worlds and settings for the tests of what-ifs."""

from __future__ import annotations

from typing import Any

from tests.allocation.builders import Counting

from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import read
from dryrack.placement import Settings, WhatIf, World, what_if

SLICES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: one}
spec:
  driver: gpu.example.com
  nodeName: one
  pool: {name: one, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0}
  - name: gpu-1
    taints: [{key: sick, effect: NoSchedule}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: two}
spec:
  driver: gpu.example.com
  nodeName: two
  pool: {name: two, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]
---
"""


def claim(name: str, count: int = 1, more: str = "") -> str:
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}}}
spec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: gpu, count: {count}}}}}]}}}}
{more}
---
"""


def world(text: str) -> World:
    found = [typed(document) for document in read(text.encode(), "test.yaml").documents]
    objects = [each.object for each in found if isinstance(each, Typed)]
    assert len(objects) == len(found), found
    return World.of(objects)


def settings(**fields: Any) -> Settings:
    return Settings(chance=Counting(), **fields)


def reckon(text: str, **fields: Any) -> WhatIf:
    return what_if(world(SLICES + text), settings(**fields))


def places(outcome: WhatIf) -> dict[str, list[str]]:
    return {
        each.claim: [f"{r.pool}/{r.device}" for r in each.allocation.devices.results]
        for each in outcome.given
    }
