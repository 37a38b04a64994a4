"""What may not change about a service that is there, and what is wrong with its status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.rules.pods.network import address
from dryrack.kinds.rules.services import needs
from dryrack.kinds.validation.names import checked, subdomain
from dryrack.kinds.validation.problems import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_ONCE = "may not change once set"
_MODES = ("Proxy", "VIP")


def changes(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    """Changes of what is fixed."""
    if needs.address(spec) and needs.address(old):
        yield from _addresses(spec, old)
        if not needs.is_headless(spec) and not needs.is_headless(old):
            yield from _families(spec, old)
    balanced = all(each.get("type") == "LoadBalancer" for each in (spec, old))
    if balanced and spec.get("loadBalancerClass") != old.get("loadBalancerClass"):
        yield invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), _ONCE)
    port, before = spec.get("healthCheckNodePort"), old.get("healthCheckNodePort")
    if needs.health_check(spec) and needs.health_check(old) and port != before:
        yield forbidden("spec.healthCheckNodePort", "field is immutable")


def _addresses(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    if needs.is_headless(spec) and needs.is_headless(old):
        return
    now, before = spec.get("clusterIPs") or [], old.get("clusterIPs") or []
    if before and not now:
        yield invalid("spec.clusterIPs[0]", now, "primary clusterIP can not be unset")
    # Of as many as before each stays; of fewer or more the first.
    compared = before if len(now) == len(before) else before[:1]
    for position, (new, known) in enumerate(zip(now, compared, strict=False)):
        if new != known:
            yield invalid(f"spec.clusterIPs[{position}]", now, _ONCE)


def _families(spec: Raw, old: Raw) -> Iterator[FieldProblem]:
    now, before = spec.get("ipFamilies") or [], old.get("ipFamilies") or []
    if now and before and now[0] != before[0]:
        yield invalid("spec.ipFamilies[0]", now, _ONCE)


def status_problems(service: Raw) -> Iterator[FieldProblem]:
    """The status of a balancer."""
    at = "status.loadBalancer.ingress"
    points = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    if points and service["spec"].get("type") != "LoadBalancer":
        yield forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for position, point in enumerate(points):
        yield from _point(f"{at}[{position}]", point)


def _point(at: str, point: Raw) -> Iterator[FieldProblem]:
    text, mode, host = point.get("ip") or "", point.get("ipMode"), point.get("hostname") or ""
    if text:
        yield from address(f"{at}.ip", text)
    if mode is None and text:
        yield required(f"{at}.ipMode", "must be specified when `ip` is set")
    elif mode is not None and not text:
        yield forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set")
    elif mode is not None and mode not in _MODES:
        yield not_supported(f"{at}.ipMode", mode, _MODES)
    if host:
        yield from checked(f"{at}.hostname", host, subdomain)
        if not list(address("", host)):
            yield invalid(f"{at}.hostname", host, "must be a DNS name, not an IP address")
