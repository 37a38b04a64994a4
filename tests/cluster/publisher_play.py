"""
All that a publisher does in its life, played with an account of limited rights.

The play is the same on the embedded plane and on a real cluster; what was asked of the server and
what came of it is kept, in the words that rights are given in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import yaml
from tests.cli.command import example_path
from tests.cluster import rights_witness
from tests.cluster.rights_witness import Deed, endpoint_of
from tests.controllers.slices.definitions import definitions

from dryrack.client.discovery import is_served
from dryrack.client.endpoints import (
    CONFIG_MAPS,
    DEFINITIONS,
    DRA_CONFIGS,
    EVENTS,
    NODE_OVERLAYS,
    NODES,
    SLICES,
)
from dryrack.client.informer import Name
from dryrack.cluster.rights import Publisher, publisher

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw


NAMESPACE = "karpenter"
LEASE = Name(NAMESPACE, "dryrack-publisher")
ACCOUNT = "dryrack-publisher"


def manifests() -> list[Raw]:
    where = Publisher(config_map=Name(NAMESPACE, "dra-kwok-configmap"), lease=LEASE)
    return list(yaml.safe_load_all(publisher(where)))


def granted() -> Iterator[Deed]:
    """Every single thing that the rules allow."""
    yield from rights_witness.granted(manifests())


def example(name: str) -> Raw:
    found: Raw = yaml.safe_load(example_path(name).read_text())
    return found


def node(name: str) -> Raw:
    labels = {"node.kubernetes.io/instance-type": "c-4x-amd64-linux"}
    annotations = {"kwok.x-k8s.io/node": "fake"}
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}}


DRA_CONFIG = {
    "metadata": {"name": "more"},
    "spec": {
        "driver": "more.example.com",
        "pools": [
            {
                "name": "more",
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "kubernetes.io/none", "operator": "DoesNotExist"}
                        ]
                    }
                ],
                "resourceSlices": [{"devices": [{"name": "more-0"}]}],
            }
        ],
    },
}

Until = Callable[[str, Callable[[], Awaitable[bool]]], Awaitable[None]]


async def set_up(admin: Client) -> None:
    """The namespace, and the rights, as they are shipped."""
    for each in manifests():
        await admin.create(endpoint_of(each), each)


async def play(admin: Client, until: Until) -> None:
    """A publisher is at work; this is what happens around it."""

    async def devices() -> list[str]:
        listed = await admin.list(SLICES)
        found = [each["spec"].get("devices") or () for each in listed.items]
        return sorted(device["name"] for each in found for device in each)

    def has(*names: str) -> Callable[[], Awaitable[bool]]:
        async def check() -> bool:
            return await devices() == list(names)

        return check

    async def configure(name: str) -> None:
        data = example(name)["data"]
        await admin.patch(CONFIG_MAPS, "dra-kwok-configmap", {"data": data}, namespace=NAMESPACE)

    async def is_told() -> bool:
        listed = await admin.list(EVENTS)
        return any(each["reason"] == "InvalidConfig" for each in listed.items)

    async def are_defined() -> bool:
        return all([await is_served(admin, kind) for kind in (NODE_OVERLAYS, DRA_CONFIGS)])

    async def is_shown() -> bool:
        status = (await admin.get(DRA_CONFIGS, "more")).get("status") or {}
        return status.get("resourceSliceCount") == 2

    await admin.create(NODES, node("node-a"))
    await admin.create(NODES, node("node-b"))
    await admin.create(CONFIG_MAPS, example("karpenter-gpu/config.yaml"))
    await until("published", has("nvidia-t4-0", "nvidia-t4-0"))
    await configure("karpenter-gpu/config-changed.yaml")
    await until("changed", has("nvidia-t4-0", "nvidia-t4-0", "nvidia-t4-1", "nvidia-t4-1"))
    await configure("karpenter-gpu/config-wrong.yaml")
    await until("told", is_told)
    for each in definitions():
        await admin.create(DEFINITIONS, each)
    await until("defined", are_defined)
    await admin.create(DRA_CONFIGS, DRA_CONFIG)
    await until("shown", is_shown)
    await admin.delete(DRA_CONFIGS, "more")
    overlay = example("overlay-h100/overlay.yaml")
    overlay["spec"]["requirements"][0]["values"] = ["c-4x-amd64-linux"]
    await admin.create(NODE_OVERLAYS, overlay)
    await until("taken over", has(*(["nvidia-h100-0"] * 2), *(["nvidia-h100-1"] * 2)))
    await admin.delete(NODES, "node-a")
    await until("parted", has("nvidia-h100-0", "nvidia-h100-1"))
    await admin.delete(NODE_OVERLAYS, overlay["metadata"]["name"])
    await admin.delete(CONFIG_MAPS, "dra-kwok-configmap", namespace=NAMESPACE)
    await until("gone", has())
