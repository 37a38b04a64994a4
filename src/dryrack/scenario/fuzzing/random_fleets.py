"""
Random fleets: the devices of nodes, and the claims with which pods ask for them.

Fleets have whole devices, partitions that share counters and devices that share capacity, of the
plugin; and devices of catalog machines, published by the plugin or by the publisher, with MIG
partitions and with a second driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.raw import Raw

_COUNT_MAX = 2**63 - 1
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomFleet:
    """The devices that all nodes of a random world have."""

    device_class: str
    places: int
    """How many pods that ask for one device a node can run, whichever device each gets."""
    devices: tuple[str, ...] = ()
    """The simulated devices of the plugin."""
    profile: str = ""
    """The instance type, by which the publisher finds the devices of a node."""
    one: str = ""
    """The expression of pods that ask for one device; "" for any device."""
    large: str = ""
    """An expression for a larger device; "" for two devices."""
    special: str = ""
    """An expression that matches few devices."""
    specials: int = 0
    """How many of those a node has beside another one; 0: the whole fleet has one."""
    capacity: Mapping[str, str] | None = None
    """The requested capacity of a shared device."""
    second_class: str = ""
    """Devices of another driver that pods also request."""
    has_counters: bool = False
    """True if devices draw on common counters."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Return the engines that can crash."""
        return ("scheduler", "controllers", *(("plugin",) if self.devices else ()))

    @property
    def daemon_template(self) -> str:
        """
        Return what a pod on every node can always request; "" for nothing.

        In Kubernetes, admin access draws on counters and on shared capacity like other access.
        """
        return "" if self.has_counters or self.capacity else "admin"

    def description(self, nodes: int) -> Raw:
        """Return the `fleet` of the scenario."""
        group = {"name": "worker", "count": nodes}
        group |= {"profile": self.profile} if self.profile else {}
        return {"devices": list(self.devices), "nodes": [group]}

    def node(self, name: str) -> Raw:
        """Return a node that is added later."""
        labels = {_INSTANCE_TYPE: self.profile} if self.profile else {}
        annotations = {"kwok.x-k8s.io/node": "fake"}
        metadata = {"name": name, "labels": labels, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata}

    def claim_specs(self) -> dict[str, Raw]:
        """Return the specs of claims, by the name of their template."""
        two = self._exactly(self.large) if self.large else self._exactly(self.one, count=2)
        everything = self._exactly(self.special, allocationMode="All")
        admin: Raw = {"deviceClassName": self.device_class, "adminAccess": True}
        if not self.has_counters:
            admin["allocationMode"] = "All"
        either = [
            {"name": "more", **two},
            {"name": "less", **self._exactly(self.one)},
        ]
        beside = [{"name": "beside", "exactly": {"deviceClassName": self.second_class}}]
        return {
            "one": _spec({"name": "gpu", "exactly": self._exactly(self.one)}),
            "two": _spec({"name": "gpu", "exactly": two}),
            "special": _spec({"name": "gpu", "exactly": self._exactly(self.special)}),
            "all": _spec({"name": "gpu", "exactly": everything}),
            # A pod that requests more devices than exist.
            "greedy": _spec({"name": "gpu", "exactly": self._exactly("", count=_COUNT_MAX)}),
            # A pod with admin access to devices in use.
            "admin": _spec({"name": "gpu", "exactly": admin}),
            "either": _spec({"name": "gpu", "firstAvailable": either}),
            "any": _spec({"name": "gpu", "firstAvailable": either[1:]}),
            # Two requests of one class; on a shared device both results can be of that device.
            "same": _spec(
                {"name": "gpu", "exactly": self._exactly(self.one)},
                {"name": "again", "exactly": self._exactly(self.one)},
            ),
            "pair": _spec(
                {"name": "gpu", "exactly": self._exactly(self.one)},
                *(beside if self.second_class else ()),
            ),
        }

    def _exactly(self, expression: str, **more: object) -> Raw:
        asked: Raw = {"deviceClassName": self.device_class, **more}
        if expression:
            asked["selectors"] = [{"cel": {"expression": expression}}]
        if self.capacity:
            asked["capacity"] = {"requests": dict(self.capacity)}
        return asked


def claim_template(name: str, spec: Raw) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": spec},
    }


def _spec(*requests: Raw) -> Raw:
    return {"devices": {"requests": list(requests)}}


def _profile(name: str) -> str:
    return f"device.attributes['gpu.nvidia.com'].profile == '{name}'"


_EXAMPLE = "gpu.example.com"
_FIRST = f"device.attributes['{_EXAMPLE}'].index == 0"
_BUS = "device.attributes['resource.kubernetes.io'].pciBusID"
FLEETS = (
    RandomFleet(places=2, devices=("gpu:2",), device_class=_EXAMPLE, special=_FIRST, specials=1),
    RandomFleet(places=4, devices=("gpu:4",), device_class=_EXAMPLE, special=_FIRST, specials=1),
    RandomFleet(
        places=2,
        devices=("gpu:2,partitions=2",),
        device_class=_EXAMPLE,
        special=_FIRST,
        has_counters=True,
    ),
    RandomFleet(
        places=4,
        devices=("gpu:2,shared=true",),
        device_class=_EXAMPLE,
        special=_FIRST,
        capacity={"memory": "30Gi", "compute": "30"},
    ),
    RandomFleet(
        places=4,
        devices=("catalogue:a2-highgpu-1g,mig=true",),
        device_class="mig.nvidia.com",
        one=_profile("1g.10gb"),
        large=_profile("3g.20gb"),
        special=_profile("2g.10gb"),
        has_counters=True,
    ),
    RandomFleet(
        places=4,
        profile="g4dn.12xlarge",
        device_class="gpu.nvidia.com",
        special=f"{_BUS} in ['0000:00:1b.0', '0000:00:1c.0']",
        specials=2,
    ),
    RandomFleet(
        places=1,
        profile="p5.4xlarge",
        device_class="gpu.nvidia.com",
        special="device.attributes['gpu.nvidia.com'].architecture == 'Hopper'",
        second_class="rdma",
    ),
)
