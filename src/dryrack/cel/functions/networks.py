"""IP addresses and CIDR prefixes."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import CIDR, IP, Err, Value
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

_MAPPED = 0xFFFF


class AddressError(ValueError):
    """The text is not an address."""


# Few texts are read, each for very many devices or rounds of a loop.
@lru_cache(maxsize=4096)
def parse_address(text: str) -> tuple[IPv4Address | IPv6Address, str]:
    """Read an address and its zone, or raise `AddressError`."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        raise AddressError(f"ParseAddr({quoted(text)}): unable to parse IP") from None
    zone = text.partition("%")[2]
    if "%" in text and (not zone or address.version == 4):
        raise AddressError(f"ParseAddr({quoted(text)}): not the zone of an IPv6 address")
    return address, zone


def _is_mapped(address: IPv4Address | IPv6Address) -> bool:
    return address.version == 6 and int(address) >> 32 == _MAPPED


def string_to_ip(text: str) -> Value:
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        return Err(f"IP Address {quoted(text)} parse error during conversion from string: {error}")
    if zone:
        return Err(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        return Err(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return IP(address)


def _parse_prefix(text: str) -> CIDR | str:
    """Read a prefix, or give the problem."""
    left, slash, bits = text.rpartition("/")
    start = f"netip.ParsePrefix({quoted(text)}): "
    if not slash:
        return start + "no '/'"
    try:
        address, zone = parse_address(left)
    except AddressError as error:
        return start + str(error)
    if zone:
        return start + "IPv6 zones cannot be present in a prefix"
    if not bits.isascii() or not bits.isdigit() or (len(bits) > 1 and bits[0] == "0"):
        return f"{start}bad bits after slash: {quoted(bits)}"
    if len(bits) > 18 or int(bits) > address.max_prefixlen:
        return start + "prefix length out of range"
    return CIDR(address, int(bits))


def string_to_cidr(text: str) -> Value:
    wrong = "network address parse error during conversion from string: "
    prefix = _parse_prefix(text)
    if isinstance(prefix, str):
        return Err(wrong + wrong + prefix)
    if _is_mapped(prefix.address):
        return Err(f"{wrong}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return prefix


def _top_bits(address: IPv4Address | IPv6Address, bits: int) -> int:
    return int(address) >> (address.max_prefixlen - bits)


def _contains_ip(cidr: CIDR, other: Value) -> Value:
    if type(other) is Err:
        # Upstream forgets why the text was no address.
        return Err("no such overload")
    if cidr.address.version != other.address.version:
        return False
    return _top_bits(cidr.address, cidr.bits) == _top_bits(other.address, cidr.bits)


def _contains_cidr(cidr: CIDR, other: Value) -> Value:
    if type(other) is Err:
        return other
    same = cidr.address.version == other.address.version
    if not same or cidr.bits > other.bits:
        return False
    return _top_bits(cidr.address, cidr.bits) == _top_bits(other.address, cidr.bits)


def _mask(cidr: CIDR) -> CIDR:
    shift = cidr.address.max_prefixlen - cidr.bits
    network = int(cidr.address) >> shift << shift
    return replace(cidr, address=type(cidr.address)(network))


def _is_canonical(text: str) -> Value:
    parsed = string_to_ip(text)
    return parsed if isinstance(parsed, Err) else ip_text(parsed) == text


def ip_text(value: IP) -> str:
    return str(value.address)


def cidr_text(value: CIDR) -> str:
    return f"{value.address}/{value.bits}"


def _is_loopback(value: IP) -> bool:
    if value.address.version == 4:
        return int(value.address) >> 24 == 127
    return int(value.address) == 1


def _is_link_local_unicast(value: IP) -> bool:
    if value.address.version == 4:
        return int(value.address) >> 16 == 0xA9FE
    return int(value.address) >> 118 == 0xFE80 >> 6


def _is_link_local_multicast(value: IP) -> bool:
    if value.address.version == 4:
        return int(value.address) >> 8 == 0xE00000
    return (int(value.address) >> 112) & 0xFF0F == 0xFF02


def _is_multicast(value: IP) -> bool:
    if value.address.version == 4:
        return int(value.address) >> 28 == 0xE
    return int(value.address) >> 120 == 0xFF


def _is_global_unicast(value: IP) -> bool:
    if int(value.address) == 0 or value.address == ip_address("255.255.255.255"):
        return False
    return not (_is_loopback(value) or _is_multicast(value) or _is_link_local_unicast(value))


OVERLOADS: dict[str, Callable[..., Value]] = {
    "string_to_ip": string_to_ip,
    "ip_family": lambda value: value.address.version,
    "ip_is_canonical": _is_canonical,
    "ip_is_unspecified": lambda value: int(value.address) == 0,
    "ip_is_loopback": _is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local_unicast,
    "ip_is_global_unicast": _is_global_unicast,
    "is_ip": lambda text: type(string_to_ip(text)) is IP,
    "ip_to_string": ip_text,
    "string_to_cidr": string_to_cidr,
    "cidr_contains_ip_string": lambda cidr, text: _contains_ip(cidr, string_to_ip(text)),
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_cidr_string": lambda cidr, text: _contains_cidr(cidr, string_to_cidr(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_ip": lambda cidr: IP(cidr.address),
    "cidr_prefix_length": lambda cidr: cidr.bits,
    "cidr_masked": _mask,
    "is_cidr": lambda text: type(string_to_cidr(text)) is CIDR,
    "cidr_to_string": cidr_text,
}
