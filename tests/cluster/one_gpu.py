"""A node with one GPU, its class, and a template of claims for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.endpoints import CLASSES, NODES, SLICES, TEMPLATES
from dryrack.cluster.initial_objects import KWOK_NODE

if TYPE_CHECKING:
    from tests.stage import Stage

    from dryrack.kinds.raw import Raw

_NODE: Raw = {"metadata": {"name": "n1", "annotations": {KWOK_NODE: "fake"}}}
_SLICE: Raw = {
    "metadata": {"name": "n1-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "a100"}}}],
    },
}
_CLASS: Raw = {
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}
_TEMPLATE: Raw = {
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    },
}


async def add_gpu_node(stage: Stage) -> None:
    await stage.create(NODES, _NODE)
    await stage.create(SLICES, _SLICE)
    await stage.create(CLASSES, _CLASS)
    await stage.create(TEMPLATES, _TEMPLATE)


def pod(name: str) -> Raw:
    """Return a pod that asks for a GPU by the template."""
    container = {
        "name": "main",
        "image": "trainer:1",
        "command": ["train"],
        "resources": {"claims": [{"name": "gpu"}]},
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            "containers": [container],
            "terminationGracePeriodSeconds": 2,
        },
    }
