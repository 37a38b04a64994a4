"""IP addresses and CIDR prefixes, parsed as Go's netip parses them and in its words."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import CIDR, IP, Err, Value
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

_HEX = frozenset("0123456789abcdefABCDEF")
_MAPPED = 0xFFFF


class AddressError(ValueError):
    """The text is not an address; the message is Go's."""


# Few texts are read, each for very many devices or rounds of a loop.
@lru_cache(maxsize=4096)
def parse_address(text: str) -> tuple[IPv4Address | IPv6Address, str]:
    """Read an address and its zone, or raise `AddressError`."""
    for character in text:
        if character == ".":
            return IPv4Address(_ipv4(text, text)), ""
        if character == ":":
            return _ipv6(text)
        if character == "%":
            raise _wrong(text, "missing IPv6 address")
    raise _wrong(text, "unable to parse IP")


def _wrong(text: str, problem: str, at: str = "") -> AddressError:
    where = f" (at {quoted(at)})" if at else ""
    return AddressError(f"ParseAddr({quoted(text)}): {problem}{where}")


def _ipv4(text: str, fields: str) -> int:
    _check_characters(text, fields)
    octets = fields.split(".")
    if len(octets) < 4:
        raise _wrong(text, "IPv4 address too short")
    return int.from_bytes(bytes(map(int, octets)), "big")


def _check_characters(text: str, fields: str) -> None:
    """Go complains about the first thing that it stumbles over, so walk as it does."""
    value, digits, dots = 0, 0, 0
    for index, character in enumerate(fields):
        if character in "0123456789":
            if digits == 1 and value == 0:
                raise _wrong(text, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > 255:
                raise _wrong(text, "IPv4 field has value >255")
        elif character == ".":
            if index in (0, len(fields) - 1) or fields[index - 1] == ".":
                raise _wrong(text, "IPv4 field must have at least one digit", fields[index:])
            if dots == 3:
                raise _wrong(text, "IPv4 address too long")
            value, digits, dots = 0, 0, dots + 1
        else:
            raise _wrong(text, "unexpected character", fields[index:])


def _ipv6(text: str) -> tuple[IPv6Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _wrong(text, "zone must be a non-empty string")
    head: list[int] = []
    ellipsis = -1
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
    while rest and len(head) < 8:
        if _groups_end(text, rest, head=head, ellipsis=ellipsis):
            rest = ""
            break
        rest, found = _after_group(text, rest, head=head)
        if found:
            if ellipsis >= 0:
                raise _wrong(text, "multiple :: in address", ":" + rest)
            ellipsis = len(head)
    if rest:
        raise _wrong(text, "trailing garbage after address", rest)
    return IPv6Address(_expand(text, head, ellipsis)), zone


def _groups_end(text: str, rest: str, *, head: list[int], ellipsis: int) -> bool:
    """Take an embedded IPv4 address, if that is what comes; it is always the last part."""
    length = _hex_length(text, rest)
    if length >= len(rest) or rest[length] != ".":
        return False
    if ellipsis < 0 and len(head) != 6:
        problem = "embedded IPv4 address must replace the final 2 fields of the address"
        raise _wrong(text, problem, rest)
    if len(head) > 6:
        problem = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise _wrong(text, problem, rest)
    value = _ipv4(text, rest)
    head += [value >> 16, value & 0xFFFF]
    return True


def _hex_length(text: str, rest: str) -> int:
    length = 0
    while length < len(rest) and rest[length] in _HEX:
        if length > 3:
            raise _wrong(text, "each group must have 4 or less digits", rest)
        length += 1
    if length == 0:
        raise _wrong(text, "each colon-separated field must have at least one digit", rest)
    return length


def _after_group(text: str, rest: str, *, head: list[int]) -> tuple[str, bool]:
    length = _hex_length(text, rest)
    head.append(int(rest[:length], 16))
    rest = rest[length:]
    if not rest:
        return "", False
    if rest[0] != ":":
        raise _wrong(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _wrong(text, "colon must be followed by more characters", rest)
    return (rest[2:], True) if rest[1] == ":" else (rest[1:], False)


def _expand(text: str, groups: list[int], ellipsis: int) -> int:
    missing = 8 - len(groups)
    if missing and ellipsis < 0:
        raise _wrong(text, "address string too short")
    if not missing and ellipsis >= 0:
        raise _wrong(text, "the :: must expand to at least one field of zeros")
    full = groups[:ellipsis] + [0] * missing + groups[ellipsis:] if missing else groups
    return int.from_bytes(b"".join(group.to_bytes(2, "big") for group in full), "big")


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
    """Read a prefix, or give the problem in Go's words."""
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


def _masked(cidr: CIDR) -> CIDR:
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
    "cidr_masked": _masked,
    "is_cidr": lambda text: type(string_to_cidr(text)) is CIDR,
    "cidr_to_string": cidr_text,
}
