"""Properties of a service that follow from its type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

NONE = "None"


def has_cluster_ip(spec: Raw) -> bool:
    """Return whether the service has a cluster IP; "None" counts as one."""
    return spec.get("type") != "ExternalName"


def has_node_ports(spec: Raw) -> bool:
    """Return whether every node opens a port for each port of the service."""
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def has_health_check_port(spec: Raw) -> bool:
    """Return whether a load balancer checks which nodes have an endpoint."""
    is_local = spec.get("externalTrafficPolicy") == "Local"
    return spec.get("type") == "LoadBalancer" and is_local


def is_external(spec: Raw) -> bool:
    """Return whether the service can be reached from outside the cluster."""
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        return True
    return spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))


def is_headless(spec: Raw) -> bool:
    return get(spec, "clusterIPs", []) == [NONE]
