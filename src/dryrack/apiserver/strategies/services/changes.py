"""
The effects of an update of a service on its allocated addresses and ports.

An update that leaves out allocated addresses and ports keeps them. A change of the type releases
those that the new type does not use; an update that changes them too is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.json_edit import map_items, with_value, without
from dryrack.kinds.rules.services import needs
from dryrack.kinds.validation.problems import forbidden, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_ONCE = "may not change once set"


def restore_allocations(spec: Raw, old: Raw) -> Raw:
    """Return the spec with the stored allocations where the update leaves them out."""
    made = spec
    if needs.has_cluster_ip(old) and needs.has_cluster_ip(spec):
        for key in ("clusterIP", "clusterIPs"):
            if not made.get(key) and old.get(key):
                made = {**made, key: old[key]}
    if needs.has_node_ports(old) and needs.has_node_ports(spec):
        made = _with_known_ports(made, old)
    if (
        needs.has_health_check_port(old)
        and needs.has_health_check_port(spec)
        and not spec.get("healthCheckNodePort")
    ):
        made = with_value(made, "healthCheckNodePort", old.get("healthCheckNodePort"))
    return made


def _with_known_ports(spec: Raw, old: Raw) -> Raw:
    used = _node_ports(spec) & _node_ports(old)
    known = {port.get("name") or "": port.get("nodePort") or 0 for port in get(old, "ports", ())}

    def remembered(port: Raw) -> Raw:
        before = known.get(port.get("name") or "", 0)
        if port.get("nodePort") or not before or before in used:
            return port
        return {**port, "nodePort": before}

    return map_items(spec, "ports", remembered)


def _node_ports(spec: Raw) -> set[int]:
    return {port["nodePort"] for port in get(spec, "ports", ()) if port.get("nodePort")}


def release_allocations(spec: Raw, old: Raw) -> Raw:
    """Return the spec without allocations that its type does not use."""
    made = spec
    if needs.has_cluster_ip(old) and not needs.has_cluster_ip(spec):
        made = _without_addresses(made, old)
    if _opens_ports(old) and not _opens_ports(spec) and _node_ports(spec) <= _node_ports(old):
        made = map_items(made, "ports", lambda port: without(port, "nodePort"))
    if needs.has_health_check_port(old) and not needs.has_health_check_port(spec):
        made = _unless_changed(made, old, "healthCheckNodePort")
    if old.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        made = _unless_changed(made, old, "allocateLoadBalancerNodePorts")
        made = _unless_changed(made, old, "loadBalancerClass")
    if needs.is_external(old) and not needs.is_external(spec):
        made = _unless_changed(made, old, "externalTrafficPolicy")
    if not needs.has_cluster_ip(spec):
        made = without(made, "internalTrafficPolicy")
    return made


def _opens_ports(spec: Raw) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort")


def _without_addresses(spec: Raw, old: Raw) -> Raw:
    made = spec
    if all(spec.get(key) == old.get(key) for key in ("clusterIP", "clusterIPs")):
        made = without(made, "clusterIP", "clusterIPs")
    for key in ("ipFamilies", "ipFamilyPolicy"):
        made = _unless_changed(made, old, key)
    return made


def _unless_changed(spec: Raw, old: Raw, key: str) -> Raw:
    return without(spec, key) if spec.get(key) == old.get(key) else spec


def changes(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    """Changes of what is fixed."""
    if needs.has_cluster_ip(spec) and needs.has_cluster_ip(old):
        yield from _addresses(spec, old)
    balanced = all(each.get("type") == "LoadBalancer" for each in (spec, old))
    if balanced and spec.get("loadBalancerClass") != old.get("loadBalancerClass"):
        yield invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), _ONCE)
    port = spec.get("healthCheckNodePort")
    before = old.get("healthCheckNodePort")
    if needs.has_health_check_port(spec) and needs.has_health_check_port(old) and port != before:
        yield forbidden("spec.healthCheckNodePort", "field is immutable")


def _addresses(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    if needs.is_headless(spec) and needs.is_headless(old):
        return
    now = get(spec, "clusterIPs", [])
    before = get(old, "clusterIPs", [])
    if before and not now:
        yield invalid("spec.clusterIPs[0]", now, "primary clusterIP can not be unset")
    # Of as many as before each stays; of fewer or more the first.
    compared = before if len(now) == len(before) else before[:1]
    for position, (new, known) in enumerate(zip(now, compared, strict=False)):
        if new != known:
            yield invalid(f"spec.clusterIPs[{position}]", now, _ONCE)
