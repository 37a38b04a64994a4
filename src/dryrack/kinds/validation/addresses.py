"""
Addresses of network devices.

The server reads addresses leniently, as Go once did (leading zeros are decimal), and then requires
the canonical form. A wrong form and an invalid address have different messages.
"""

import re
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from dryrack.base.numbers import read_int64
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import FieldProblem, invalid

_is_number = re.compile("[0-9]+").fullmatch
_LEADING_ZEROS = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")


def interface_address(field: str, text: str) -> Iterator[FieldProblem]:
    """An address with the length of its network, in canonical form."""
    canonical = _canonical(text)
    if canonical is None:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid(field, text, detail)
    elif canonical != text:
        detail = f"must be in canonical form ({quoted(canonical)})"
        yield invalid(field, text, detail, fix=f"write {canonical!r}")


def _canonical(text: str) -> str | None:
    address_text, slash, bits_text = text.partition("/")
    address = _read(address_text)
    if not slash or address is None or not _is_number(bits_text):
        return None
    bits = read_int64(bits_text)
    if bits is None or bits > address.max_prefixlen:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if mapped is not None:
        return f"{mapped}/{bits - 96 if bits > 32 else bits}"
    return f"{address}/{bits}"


def _read(text: str) -> IPv4Address | IPv6Address | None:
    if "%" in text:
        return None
    plain = _LEADING_ZEROS.sub("", text)
    try:
        return IPv6Address(plain) if ":" in plain else IPv4Address(plain)
    except AddressValueError:
        return None
