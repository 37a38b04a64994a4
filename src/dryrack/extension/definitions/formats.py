"""
The formats of text that schemas ask for; others are no constraint.

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
_GO_DURATION = re.compile(
    r"[+-]?(?:0|(?:(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:ns|us|µs|μs|ms|s|m|h))++)"
)
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


def _duration(text: str) -> bool:
    return bool(_GO_DURATION.fullmatch(text) or _WORDY_DURATION.fullmatch(text))


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "byte": _reads(_base64),
    "cidr": _reads(_network),
    "date": _reads(_date),
    "datetime": _reads(_date_time),
    "duration": _duration,
    "email": _matches(_EMAIL),
    "hostname": _matches(_HOSTNAME),
    "ipv4": _reads(ipaddress.IPv4Address),
    "ipv6": _reads(ipaddress.IPv6Address),
    "k8slongname": _matches(_LONG_NAME),
    "k8sshortname": _matches(_SHORT_NAME),
    "mac": _matches(_MAC),
    "password": lambda text: True,
    "uri": _reads(_uri),
    "uuid": _matches(_UUID),
    **{name: _matches(pattern) for name, pattern in _UUID_VERSION.items()},
}
