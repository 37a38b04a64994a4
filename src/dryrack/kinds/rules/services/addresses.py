"""Addresses and their families: how they are written, and what of them goes together."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from dryrack.kinds.rules.pods.network import address
from dryrack.kinds.rules.services import needs
from dryrack.kinds.validation.problems import Token, duplicate, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_IPS = "spec.clusterIPs"


def family_of(text: str) -> str:
    return "IPv6" if ":" in text else "IPv4"


def related_problems(spec: Raw, old: Raw | None) -> Iterator[FieldProblem]:
    """What is wrong with the address, the addresses, and their families."""
    if not needs.address(spec):
        return
    addresses = spec.get("clusterIPs") or []
    yield from _in_step(spec.get("clusterIP") or "", addresses)
    yield from _families(spec)
    known = (old or {}).get("clusterIPs") or ()
    wrong = list(_each(addresses, known))
    yield from wrong
    if len(addresses) > len(FAMILIES):
        yield invalid(_IPS, addresses, "may only hold up to 2 values")
    if not wrong:
        yield from _together(spec, addresses)


def _in_step(first: str, addresses: Sequence[str]) -> Iterator[FieldProblem]:
    if first and not addresses:
        yield required(_IPS)
    elif first and addresses[0] != first:
        yield invalid(_IPS, addresses, "first value must match `clusterIP`")
    elif not first and addresses:
        yield invalid(_IPS, addresses, "must be empty when `clusterIP` is not specified")


def _families(spec: Raw) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for position, family in enumerate(spec.get("ipFamilies") or ()):
        path = f"spec.ipFamilies[{position}]"
        if family not in FAMILIES:
            yield not_supported(path, family, FAMILIES)
        if family in seen:
            yield duplicate(path, Token(family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        yield not_supported("spec.ipFamilyPolicy", policy, _POLICIES)


def _each(addresses: Sequence[str], known: Sequence[str]) -> Iterator[FieldProblem]:
    for position, text in enumerate(addresses):
        if position == 0 and text == needs.NONE:
            if len(addresses) > 1:
                yield invalid(_IPS, addresses, "'None' must be the first and only value")
        elif text not in known:
            yield from address(f"{_IPS}[{position}]", text)


def _together(spec: Raw, addresses: Sequence[str]) -> Iterator[FieldProblem]:
    found = [family_of(text) for text in addresses]
    if len(addresses) > 1 and (len(addresses) > len(FAMILIES) or len(set(found)) < 2):
        yield invalid(_IPS, addresses, "may specify no more than one IP for each IP family")
    if needs.is_headless(spec):
        return
    pairs = zip(addresses, spec.get("ipFamilies") or (), strict=False)
    for position, (text, family) in enumerate(pairs):
        if family in FAMILIES and family != family_of(text):
            detail = f"expected an {family} value as indicated by `ipFamilies[{position}]`"
            yield invalid(f"{_IPS}[{position}]", text, detail)


def outside(at: str, text: str) -> Iterator[FieldProblem]:
    """An address elsewhere that traffic can come from."""
    wrong = list(address(at, text))
    yield from wrong
    if wrong:
        return
    found = ipaddress.ip_address(text)
    if found.is_unspecified:
        yield invalid(at, text, f"may not be unspecified ({text})")
    if found.is_loopback:
        yield invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if found.is_link_local:
        detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
        yield invalid(at, text, detail)
    if any(found in each for each in _LOCAL_MULTICAST if each.version == found.version):
        detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        yield invalid(at, text, detail)


_LOCAL_MULTICAST = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))


def source_range(at: str, text: str) -> Iterator[FieldProblem]:
    """A range of addresses, in a way of writing that everybody reads alike."""
    start, slash, length = text.partition("/")
    wrong = list(address(at, start))
    if not slash or not length.isdigit() or any("valid IP" in each.detail for each in wrong):
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        yield invalid(at, text, detail)
    elif any("leading" in each.detail for each in wrong) or str(int(length)) != length:
        yield invalid(at, text, "must not have leading 0s in IP or prefix length")
    elif wrong:
        yield invalid(at, text, "must not have an IPv4-mapped IPv6 address")
    else:
        yield from _masked(at, text)


def _masked(at: str, text: str) -> Iterator[FieldProblem]:
    try:
        whole = ipaddress.ip_interface(text)
    except ValueError:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        yield invalid(at, text, detail)
        return
    if whole.ip != whole.network.network_address:
        yield invalid(at, text, "must not have bits set beyond the prefix length")
