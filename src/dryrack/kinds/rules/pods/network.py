"""Validation of the network of pods: host namespaces, DNS, host aliases."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.validation.names import SUBDOMAIN_BYTES_MAX, checked, subdomain
from dryrack.kinds.validation.problems import byte_length, forbidden, invalid, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_NAMESERVERS_MAX = 3
_SEARCHES_MAX = 32
_SEARCH_CHARS_MAX = 2048
_SEARCH_PART = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_SEARCH_PART}(\.{_SEARCH_PART})*"
_SEARCH_SYNTAX = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
    "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SEARCH}')"
)
# A number of an IPv4 address, also of one at the end of an IPv6 address.
_IPV4_NUMBER = re.compile(r"(?:^|(?<=[.:]))[0-9]++(?=\.)|(?<=\.)[0-9]++")


def host_network(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Check that ports are host ports if the pod uses the host network."""
    if not spec.get("hostNetwork"):
        return
    for index, container in enumerate(get(spec, "containers", ())):
        for position, port in enumerate(get(container, "ports", ())):
            host = port.get("hostPort", 0)
            if host and host != port.get("containerPort"):
                path = f"{at}.containers[{index}].ports[{position}].hostPort"
                yield invalid(path, host, "must match `containerPort` when `hostNetwork` is true")


def host_users(at: str, spec: Raw) -> Iterator[FieldProblem]:
    """Check that a pod with a user namespace shares nothing with the host."""
    if spec.get("hostUsers") is not False:
        return
    # The real server spells the paths in this way.
    for key, path in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if spec.get(key):
            yield forbidden(f"{at}.{path}", "when `hostUsers` is false")
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(key) or ()):
            if container.get("volumeDevices"):
                path = f"{at}.{key}[{position}].volumeDevices"
                yield forbidden(path, "when `hostUsers` is false")


def dns(at: str, given: Raw | None, policy: str) -> Iterator[FieldProblem]:
    """Check the DNS configuration."""
    servers = get(given or {}, "nameservers", [])
    if policy == "None" and given is None:
        yield required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if policy == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(f"{at}.nameservers", detail)
        return
    if len(servers) > _NAMESERVERS_MAX:
        detail = f"must not have more than {_NAMESERVERS_MAX} nameservers"
        yield invalid(f"{at}.nameservers", servers, detail)
    for position, server in enumerate(servers):
        yield from address(f"{at}.nameservers[{position}]", server)
    yield from _searches(f"{at}.searches", get(given or {}, "searches", []))
    for position, option in enumerate(get(given or {}, "options", ())):
        if not option.get("name"):
            yield required(f"{at}.options[{position}]", "must not be empty")


def _searches(at: str, given: Sequence[str]) -> Iterator[FieldProblem]:
    if len(given) > _SEARCHES_MAX:
        yield invalid(at, given, f"must not have more than {_SEARCHES_MAX} search paths")
    if len(" ".join(given)) > _SEARCH_CHARS_MAX:
        bound = f"must not have more than {_SEARCH_CHARS_MAX} characters"
        yield invalid(at, given, f"{bound} (including spaces) in the search list")
    for position, search in enumerate(given):
        if search != ".":
            yield from checked(f"{at}[{position}]", search.removesuffix("."), _search)


def _search(text: str) -> tuple[str, ...]:
    complaints = []
    if byte_length(text) > SUBDOMAIN_BYTES_MAX:
        complaints.append(f"must be no more than {SUBDOMAIN_BYTES_MAX} characters")
    if not re.fullmatch(_SEARCH, text):
        complaints.append(_SEARCH_SYNTAX)
    return tuple(complaints)


def aliases(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    """Check the host aliases."""
    for position, alias in enumerate(given):
        yield from address(f"{at}[{position}].ip", alias.get("ip") or "")
        for index, name in enumerate(get(alias, "hostnames", ())):
            yield from checked(f"{at}[{position}].hostnames[{index}]", name, subdomain)


def address(at: str, text: str) -> Iterator[FieldProblem]:
    """Check an IP address in an unambiguous notation."""
    plain = _IPV4_NUMBER.sub(lambda found: found[0].lstrip("0") or "0", text)
    try:
        # Python would accept a zone.
        found = ipaddress.ip_address(plain.replace("%", " "))
    except ValueError:
        yield invalid(at, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        return
    if plain != text:
        yield invalid(at, text, "must not have leading 0s")
    elif isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        yield invalid(at, text, "must not be an IPv4-mapped IPv6 address")
