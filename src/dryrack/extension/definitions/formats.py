"""
The formats of text that schemas may ask for; others are no constraint.

Names are compared without dashes, as the server does.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_UUID_VERSION = {
    "uuid3": re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "uuid4": re.compile(
        r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"
    ),
    "uuid5": re.compile(
        r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"
    ),
}
_HOSTNAME = re.compile(
    r"(?i)(?=.{1,255}$)[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*\.?"
)
_EMAIL = re.compile(r"[^@\s<>]+@[^@\s<>]+")
_MAC = re.compile(
    r"(?i)(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4,18}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2,9}[0-9a-f]{4}"
)
_SSN = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_HEX_COLOUR = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_BYTE = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_RGB_COLOUR = re.compile(rf"rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)")
_OBJECT_ID = re.compile(r"[0-9a-fA-F]{24}")
_CREDIT_CARD = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)
_GO_DURATION = re.compile(r"[+-]?(?:0|(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+")
_WORDY_DURATION = re.compile(
    r"\d+(?:\.\d+)?\s*(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?"
    r"|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)"
)
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)")
_SHORT_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LONG_NAME = re.compile(
    r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)


def known_format(schema: Mapping[str, Any]) -> str:
    """The format that text of this schema must have, without dashes, or ""."""
    if schema.get("type", "string") != "string":
        return ""
    name = (schema.get("format") or "").replace("-", "")
    return name if name in _CHECKS else ""


def has_format(name: str, text: str) -> bool:
    return _CHECKS[name](text)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _reads(reader: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            reader(text)
        except ValueError:
            return False
        return True

    return check


def _date_time(text: str) -> None:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    datetime.fromisoformat(text.upper())


def _date(text: str) -> None:
    if len(text) != len("2006-01-02"):
        raise ValueError(text)
    date.fromisoformat(text)


def _network(text: str) -> None:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isdigit():
        raise ValueError(text)
    ipaddress.ip_network(f"{address}/{int(bits)}", strict=False)


def _base64(text: str) -> None:
    if not text:
        raise ValueError(text)
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error


def _uri(text: str) -> None:
    parts = urlsplit(text)
    if not parts.scheme and not text.startswith("/"):
        raise ValueError(text)


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{9}[\dXx]", digits):
        return False
    values = [10 if digit in "Xx" else int(digit) for digit in digits]
    return sum((index + 1) * value for index, value in enumerate(values)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{13}", digits):
        return False
    return sum(int(d) * (3 if index % 2 else 1) for index, d in enumerate(digits)) % 10 == 0


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = [int(d) * (2 if index % 2 else 1) for index, d in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _duration(text: str) -> bool:
    return bool(_GO_DURATION.fullmatch(text) or _WORDY_DURATION.fullmatch(text))


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches(_OBJECT_ID),
    "byte": _reads(_base64),
    "cidr": _reads(_network),
    "creditcard": _credit_card,
    "date": _reads(_date),
    "datetime": _reads(_date_time),
    "duration": _duration,
    "email": _matches(_EMAIL),
    "hexcolor": _matches(_HEX_COLOUR),
    "hostname": _matches(_HOSTNAME),
    "ipv4": _reads(ipaddress.IPv4Address),
    "ipv6": _reads(ipaddress.IPv6Address),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": _matches(_LONG_NAME),
    "k8sshortname": _matches(_SHORT_NAME),
    "mac": _matches(_MAC),
    "password": lambda text: True,
    "rgbcolor": _matches(_RGB_COLOUR),
    "ssn": _matches(_SSN),
    "uri": _reads(_uri),
    "uuid": _matches(_UUID),
    **{name: _matches(pattern) for name, pattern in _UUID_VERSION.items()},
}
