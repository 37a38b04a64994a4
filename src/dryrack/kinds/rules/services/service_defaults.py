"""What a service says by saying nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.rules.copies import at, completed, each, filled, without
from dryrack.kinds.rules.services import needs

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_TYPES_INSIDE = ("ClusterIP", "LoadBalancer", "NodePort")
_AFFINITY_SECONDS = 10_800


def service(obj: Raw) -> Raw:
    """The service with what does not depend on what others have."""
    spec = filled(obj.get("spec") or {}, {"sessionAffinity": "None", "type": "ClusterIP"})
    spec = each(_affine(spec), "ports", _port)
    if needs.is_external(spec):
        spec = filled(spec, {"externalTrafficPolicy": "Cluster"})
    if spec["type"] in _TYPES_INSIDE:
        spec = completed(spec, {"internalTrafficPolicy": "Cluster"})
    made = {**obj, "spec": spec}
    if spec["type"] != "LoadBalancer":
        return made
    made["spec"] = completed(spec, {"allocateLoadBalancerNodePorts": True})
    return at(made, "status.loadBalancer", lambda status: each(status, "ingress", _ingress))


def _affine(spec: Raw) -> Raw:
    if spec["sessionAffinity"] == "None":
        return without(spec, "sessionAffinityConfig")
    client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
    if spec["sessionAffinity"] != "ClientIP" or client.get("timeoutSeconds") is not None:
        return spec
    config = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    return {**spec, "sessionAffinityConfig": config}


def _port(port: Raw) -> Raw:
    made = filled(port, {"protocol": "TCP"})
    if made.get("targetPort") in (None, 0, ""):
        made = {**made, "targetPort": made.get("port", 0)}
    return made


def _ingress(point: Raw) -> Raw:
    return completed(point, {"ipMode": "VIP"}) if point.get("ip") else point
