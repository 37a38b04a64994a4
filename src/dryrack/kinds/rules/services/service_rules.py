"""Defaults and validation of services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import (
    map_items,
    set_defaults,
    set_missing,
    update_at,
    with_value,
    without,
)
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.rules.namespaces import LABEL
from dryrack.kinds.rules.services import needs
from dryrack.kinds.rules.services.service_problems import FAMILIES, problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

# A stand-in for a port that a cluster would allocate.
_GIVEN_PORT = 30000
_TYPES_INSIDE = ("ClusterIP", "LoadBalancer", "NodePort")
_AFFINITY_SECONDS = 10_800


class ServiceRules(KindRules):
    """Service, without the allocation of addresses and ports, which needs a cluster."""

    def __init__(self) -> None:
        super().__init__(namespaced=True, has_status=True, naming=LABEL)

    def default(self, obj: Raw) -> Raw:
        spec = set_defaults(spec_of(obj), {"sessionAffinity": "None", "type": "ClusterIP"})
        spec = map_items(_set_affinity_defaults(spec), "ports", _port)
        if needs.is_external(spec):
            spec = set_defaults(spec, {"externalTrafficPolicy": "Cluster"})
        if spec["type"] in _TYPES_INSIDE:
            spec = set_missing(spec, {"internalTrafficPolicy": "Cluster"})
        made = {**obj, "spec": spec}
        if spec["type"] != "LoadBalancer":
            return made
        made["spec"] = set_missing(spec, {"allocateLoadBalancerNodePorts": True})
        return update_at(
            made, "status.loadBalancer", lambda status: map_items(status, "ingress", _ingress)
        )

    def as_new(self, obj: Raw) -> Raw:
        spec = in_step(obj["spec"])
        if needs.has_health_check_port(spec) and not spec.get("healthCheckNodePort"):
            spec = {**spec, "healthCheckNodePort": _GIVEN_PORT}
        return {**super().as_new(obj), "spec": spec}

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        return problems(obj)


def _set_affinity_defaults(spec: Raw) -> Raw:
    if spec["sessionAffinity"] == "None":
        return without(spec, "sessionAffinityConfig")
    client = get(spec, "sessionAffinityConfig.clientIP", {})
    if spec["sessionAffinity"] != "ClientIP" or client.get("timeoutSeconds") is not None:
        return spec
    config = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
    return {**spec, "sessionAffinityConfig": config}


def _port(port: Raw) -> Raw:
    made = set_defaults(port, {"protocol": "TCP"})
    if made.get("targetPort") in (None, 0, ""):
        made = {**made, "targetPort": made.get("port", 0)}
    return made


def _ingress(point: Raw) -> Raw:
    return set_missing(point, {"ipMode": "VIP"}) if point.get("ip") else point


def in_step(spec: Raw, old: Raw | None = None) -> Raw:
    """Return the spec with clusterIPs in step with clusterIP, which old clients change alone."""
    first = spec.get("clusterIP") or ""
    given = get(spec, "clusterIPs", [])
    if old is None:
        return {**spec, "clusterIPs": [first]} if first and not given else spec
    before = old.get("clusterIP") or ""
    known = get(old, "clusterIPs", [])
    if not given and first == before:
        return with_value(spec, "clusterIPs", known or None)
    if first == before or given != known:
        return spec
    return with_value(spec, "clusterIPs", [first] if first else None)


def with_families(spec: Raw) -> Raw:
    """Return the spec with the default IP family, the only one of a dryrack cluster."""
    if not needs.has_cluster_ip(spec):
        return spec
    is_selectorless = spec.get("clusterIP") == needs.NONE and not spec.get("selector")
    policy = "RequireDualStack" if is_selectorless else "SingleStack"
    families = list(FAMILIES) if is_selectorless else [FAMILIES[0]]
    return set_defaults(
        {**spec, "ipFamilies": spec.get("ipFamilies") or families}, {"ipFamilyPolicy": policy}
    )
