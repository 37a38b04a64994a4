"""Embedded clusters with a provisioner, on a virtual clock, and what the tests put into them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from dryrack.client.client import Selection
from dryrack.client.endpoints import EVENTS
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.assembly import EngineOptions
from dryrack.cluster.catalogue import load_catalogue
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.cluster.initial_objects import add_device_classes, add_node_pools
from dryrack.controllers.provisioning import (
    ProvisionerSettings,
    catalogue_machines,
    generic_machines,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.hardware.catalogue import Catalogue
    from dryrack.kinds.raw import Raw

TYPES = ("g4dn.xlarge", "g5.xlarge", "g5.12xlarge", "p4d.24xlarge")


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


@cache
def devices() -> Any:
    return catalogue().assignments()


def settings(**changes: Any) -> ProvisionerSettings:
    types = [catalogue().instance_types[name] for name in TYPES]
    prices = {name: float(number + 1) for number, name in enumerate(TYPES)}
    machines = (*generic_machines(), *catalogue_machines(types, prices))
    return ProvisionerSettings(machines=machines, devices=devices(), **changes)


def play(
    scene: Callable[[Client, VirtualClock], Awaitable[None]],
    *,
    without: tuple[str, ...] = (),
    **changes: Any,
) -> None:
    """Run a scene on a cluster with a provisioner."""

    async def run() -> None:
        clock = VirtualClock()
        options = EngineOptions(
            catalogue=catalogue(), provisioner=settings(**changes), without=without
        )
        async with embedded(ControlPlaneOptions(clock=clock), engines=options) as cluster:
            await add_node_pools(cluster.client)
            await add_device_classes(cluster.client, catalogue().device_classes.values())
            await clock.advance(1)
            await scene(cluster.client, clock)

    run_virtual(run())


def pool(name: str = "default", *requirements: Raw, **spec: Any) -> Raw:
    template = {"spec": {"requirements": list(requirements)}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def claim(name: str, *requirements: Raw, **spec: Any) -> Raw:
    return {"metadata": {"name": name}, "spec": {"requirements": list(requirements), **spec}}


def requirement(key: str, operator: str = "In", *values: str, **more: Any) -> Raw:
    return {
        "key": key,
        "operator": operator,
        **({"values": list(values)} if values else {}),
        **more,
    }


def instance_type(*names: str) -> Raw:
    return requirement("node.kubernetes.io/instance-type", "In", *names)


def pod(name: str, *, cpu: str = "", gpus: int = 0, **spec: Any) -> Raw:
    """Return a pod; with `gpus`, its claim is made from the template of `template(gpus)`."""
    resources: Raw = {"requests": {"cpu": cpu}} if cpu else {}
    if gpus:
        resources["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{gpus}"}]
    container = {"name": "main", "image": "example.com/main", "resources": resources}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **spec},
    }


def template(gpus: int, **exactly: Any) -> Raw:
    request = {"deviceClassName": "gpu.nvidia.com", "count": gpus, **exactly}
    devices = {"requests": [{"name": "gpus", "exactly": request}]}
    return {
        "metadata": {"name": f"gpus-{gpus}", "namespace": "default"},
        "spec": {"spec": {"devices": devices}},
    }


async def names(client: Client, endpoint: Endpoint) -> list[str]:
    return sorted(each["metadata"]["name"] for each in (await client.list(endpoint)).items)


async def events(client: Client, reason: str) -> list[Raw]:
    """Return the provisioner's events with a reason, in their order."""
    fields = f"reason={reason}"
    found = (await client.list(EVENTS, Selection(fields=fields))).items
    own = [e for e in found if e["reportingComponent"] == "dryrack-provisioner"]
    return sorted(own, key=lambda each: each["metadata"]["creationTimestamp"])


def deploy(name: str, replicas: int, labels: Mapping[str, str] | None = None, **of_pod: Any) -> Raw:
    """Return a Deployment of pods like those of `pod`."""
    own = {"app": name, **(labels or {})}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": own}, "spec": pod(name, **of_pod)["spec"]},
        },
    }
