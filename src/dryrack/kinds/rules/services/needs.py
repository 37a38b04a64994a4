"""What follows from the type of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

NONE = "None"


def address(spec: Raw) -> bool:
    """Whether it has an address in the cluster; none at all counts as one."""
    return spec.get("type") != "ExternalName"


def node_ports(spec: Raw) -> bool:
    """Whether every node opens a port for each of its own."""
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def health_check(spec: Raw) -> bool:
    """Whether a balancer asks nodes if they have an endpoint of it."""
    is_local = spec.get("externalTrafficPolicy") == "Local"
    return spec.get("type") == "LoadBalancer" and is_local


def is_external(spec: Raw) -> bool:
    """Whether it can be reached from elsewhere."""
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        return True
    return spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))


def is_headless(spec: Raw) -> bool:
    return get(spec, "clusterIPs", []) == [NONE]
