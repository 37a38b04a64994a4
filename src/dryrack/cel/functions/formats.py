"""The named formats of Kubernetes (`format.dns1123Label()`), and what they complain about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.cel.evaluation.values import NONE, NamedFormat, Optional, Value
from dryrack.cel.functions.urls import UrlError, check_request
from dryrack.kinds.validation import names

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_BYTES_MAX = 63
_UUID = re.compile("[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.I | re.A)
_BASE64 = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _in_characters(complaints: tuple[str, ...]) -> list[str]:
    """These checks are older than the ones that count bytes, and say so."""
    return [complaint.replace(" bytes", " characters") for complaint in complaints]


def _label(text: str) -> list[str]:
    return _in_characters(names.label(text))


def _subdomain(text: str) -> list[str]:
    return _in_characters(names.subdomain(text))


def _label_1035(text: str) -> list[str]:
    problems = []
    if len(text.encode()) > _LABEL_BYTES_MAX:
        problems.append(f"must be no more than {_LABEL_BYTES_MAX} characters")
    if not re.fullmatch(_LABEL_1035, text):
        problems.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
            "with an alphabetic character, and end with an alphanumeric character (e.g. "
            f"'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
        )
    return problems


def _as_prefix(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A name prefix before a generated ending may end with a dash."""

    def check(text: str) -> list[str]:
        masked = text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text
        return problems(masked)

    return check


def _uri(text: str) -> list[str]:
    try:
        check_request(text)
    except UrlError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    if not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1]:
        return False
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return leap or (month, day) != (2, 29)


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text.encode()) < 4 or len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _unless(holds: Callable[[str], object], complaint: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [complaint]


_DATETIME_SIZE = len(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")
_UUID_SIZE = len("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")

FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", 30, _label),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", 60, _subdomain),
    "dns1035Label": NamedFormat("DNS1035Label", 30, _label_1035),
    "qualifiedName": NamedFormat("QualifiedName", 60, lambda text: list(names.label_key(text))),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", 30, _as_prefix(_label)),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", 60, _as_prefix(_subdomain)),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", 30, _as_prefix(_label_1035)),
    "labelValue": NamedFormat("LabelValue", 40, lambda text: list(names.label_value(text))),
    "uri": NamedFormat("URI", 1103, _uri),
    "uuid": NamedFormat(
        "uuid", _UUID_SIZE, _unless(_UUID.fullmatch, "does not match the UUID format")
    ),
    "byte": NamedFormat("byte", 84, _unless(_BASE64.fullmatch, "invalid base64")),
    "date": NamedFormat("date", _DATETIME_SIZE, _unless(_is_date, "invalid date")),
    "datetime": NamedFormat("datetime", _DATETIME_SIZE, _unless(_is_datetime, "invalid datetime")),
}


def _named(name: str) -> Optional:
    known = FORMATS.get(name)
    return NONE if known is None else Optional(known)


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.problems(text)
    return Optional(problems) if problems else NONE


def _constant(named: NamedFormat) -> Callable[[], Value]:
    return lambda: named


OVERLOADS: dict[str, Callable[..., Value]] = {
    "format-named": _named,
    "format-validate": _validate,
    **{f"format.{name}": _constant(named) for name, named in FORMATS.items()},
}
