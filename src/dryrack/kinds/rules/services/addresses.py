"""Addresses and their families: how they are written, and what of them goes together."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.pods.network import address
from dryrack.kinds.rules.services import needs
from dryrack.kinds.validation.problems import Token, duplicate, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_IPS = "spec.clusterIPs"


def related_problems(spec: Raw) -> Iterator[FieldProblem]:
    """What is wrong with the address, the addresses, and their families."""
    if not needs.address(spec):
        return
    addresses = get(spec, "clusterIPs", [])
    first = spec.get("clusterIP") or ""
    if first and not addresses:
        yield required(_IPS)
    elif first and addresses[0] != first:
        yield invalid(_IPS, addresses, "first value must match `clusterIP`")
    elif not first and addresses:
        yield invalid(_IPS, addresses, "must be empty when `clusterIP` is not specified")
    yield from _families(spec)
    for position, text in enumerate(addresses):
        if position == 0 and text == needs.NONE:
            if len(addresses) > 1:
                yield invalid(_IPS, addresses, "'None' must be the first and only value")
        else:
            yield from address(f"{_IPS}[{position}]", text)
    if len(addresses) > len(FAMILIES):
        yield invalid(_IPS, addresses, "may only hold up to 2 values")


def _families(spec: Raw) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, family in enumerate(get(spec, "ipFamilies", ())):
        path = f"spec.ipFamilies[{position}]"
        if family not in FAMILIES:
            yield not_supported(path, family, FAMILIES)
        if family in seen:
            yield duplicate(path, Token(family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _POLICIES)


def source_range(at: str, text: str) -> Iterator[FieldProblem]:
    """A range of addresses."""
    try:
        ipaddress.ip_network(text)
        is_range = "/" in text
    except ValueError:
        is_range = False
    if not is_range:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        yield invalid(at, text, detail)
