"""
All that a publisher does in its life, played with an account of limited rights.

The play is the same on the embedded plane and on a real cluster; what was asked of the server and
what came of it is kept, in the words that rights are given in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml
from tests.cli.command import EXAMPLES

from dryrack.client.discovery import is_served
from dryrack.client.endpoints import (
    CONFIG_MAPS,
    DEFINITIONS,
    DRA_CONFIGS,
    EVENTS,
    NODE_OVERLAYS,
    NODES,
    SLICES,
    Endpoint,
)
from dryrack.client.informer import Name
from dryrack.cluster.definitions import definitions
from dryrack.cluster.rights import Publisher, publisher

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.client.client import Client
    from dryrack.client.transport import Request, Response, Transport

Raw = dict[str, Any]

NAMESPACE = "karpenter"
LEASE = Name(NAMESPACE, "dryrack-publisher")
ACCOUNT = "dryrack-publisher"

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True, order=True)
class Deed:
    """What was asked for: the words of a rule, and where; "" for the whole cluster."""

    verb: str
    group: str
    resource: str
    namespace: str = ""


@dataclass(slots=True)
class Witness:
    """A transport that keeps what was done, and what was forbidden."""

    to: Transport
    done: set[Deed] = field(default_factory=set)
    forbidden: list[str] = field(default_factory=list)

    async def send(self, request: Request) -> Response:
        response = await self.to.send(request)
        if response.status == 403:
            self.forbidden.append(f"{request.method} {request.path}?{request.query}")
        deed = deed_of(request)
        if deed is not None:
            self.done.add(deed)
        return response


def deed_of(request: Request) -> Deed | None:
    """None for documents of discovery, which are everybody's."""
    parts = request.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None
    verb = _VERBS.get(request.method) or ("get" if len(rest) > 1 else "list")
    if "watch=true" in request.query:
        verb = "watch"
    resource = f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0]
    return Deed(verb, group, resource, namespace)


def manifests() -> list[Raw]:
    where = Publisher(config_map=Name(NAMESPACE, "dra-kwok-configmap"), lease=LEASE)
    return list(yaml.safe_load_all(publisher(where)))


def granted() -> Iterator[Deed]:
    """Every single thing that the rules allow."""
    for each in manifests():
        for rule in each.get("rules", ()):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    place = each["metadata"].get("namespace", "")
                    yield Deed(verb, rule["apiGroups"][0], resource, place)


def endpoint_of(obj: Raw) -> Endpoint:
    group, _, version = obj["apiVersion"].rpartition("/")
    plural = f"{obj['kind'].lower()}s"
    return Endpoint(group, version, plural, obj["kind"], "namespace" in obj["metadata"])


def example(name: str) -> Raw:
    found: Raw = yaml.safe_load((EXAMPLES / name).read_text())
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
    await admin.create(CONFIG_MAPS, example("karpenter-gpu.yaml"))
    await until("published", has("nvidia-t4-0", "nvidia-t4-0"))
    await configure("karpenter-gpu-changed.yaml")
    await until("changed", has("nvidia-t4-0", "nvidia-t4-0", "nvidia-t4-1", "nvidia-t4-1"))
    await configure("karpenter-gpu-wrong.yaml")
    await until("told", is_told)
    for each in definitions():
        await admin.create(DEFINITIONS, each)
    await until("defined", are_defined)
    await admin.create(DRA_CONFIGS, DRA_CONFIG)
    await until("shown", is_shown)
    await admin.delete(DRA_CONFIGS, "more")
    overlay = example("overlay-h100.yaml")
    overlay["spec"]["requirements"][0]["values"] = ["c-4x-amd64-linux"]
    await admin.create(NODE_OVERLAYS, overlay)
    await until("taken over", has(*(["nvidia-h100-0"] * 2), *(["nvidia-h100-1"] * 2)))
    await admin.delete(NODES, "node-a")
    await until("parted", has("nvidia-h100-0", "nvidia-h100-1"))
    await admin.delete(NODE_OVERLAYS, overlay["metadata"]["name"])
    await admin.delete(CONFIG_MAPS, "dra-kwok-configmap", namespace=NAMESPACE)
    await until("gone", has())
