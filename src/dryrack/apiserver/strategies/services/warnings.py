"""What a service that is accepted is warned of."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from dryrack.kinds.rules.services import needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw

_HINTS = "service.kubernetes.io/topology-aware-hints"
_MODE = "service.kubernetes.io/topology-mode"


def warnings_of(service: Raw) -> Iterator[str]:
    """In the server's order."""
    spec = service["spec"]
    if _HINTS in (service["metadata"].get("annotations") or {}):
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    if needs.is_headless(spec):
        yield from _headless(spec)
    outside = spec.get("externalIPs") or []
    for position, text in enumerate(outside):
        yield from _spelling(f"spec.externalIPs[{position}]", text)
    if outside and not needs.is_headless(spec) and needs.address(spec):
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from _by_type(spec, outside)
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _headless(spec: Raw) -> Iterator[str]:
    for key in ("loadBalancerIP", "externalIPs"):
        if spec.get(key):
            yield f"spec.{key} is ignored for headless services"
    if spec.get("sessionAffinity") != "None":
        yield "spec.SessionAffinity is ignored for headless services"


def _by_type(spec: Raw, outside: list[str]) -> Iterator[str]:
    if spec.get("type") == "ExternalName":
        if outside:
            yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    elif spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'


def _spelling(at: str, text: str) -> Iterator[str]:
    """IPv6 can be written in many ways, of which one is preferred."""
    canonical = str(ipaddress.ip_address(text))
    if ":" in text and canonical != text:
        detail = f'should be in RFC 5952 canonical format ("{canonical}")'
        yield f'{at}: IPv6 address "{text}" {detail}'
