"""
Addresses and ports for services, out of the cluster's ranges.

What is taken is what services have: nothing else is kept, so nothing leaks. One is given after the
other, and from the beginning again when the end is reached, so that what was let go is not given
away at once. The front of a range is left to those who choose for themselves, for as long as there
is anything behind it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from dryrack.apiserver.answer.status import Subject, internal_error
from dryrack.apiserver.answer.status import invalid as refused
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.rules.json_edit import with_value
from dryrack.kinds.rules.services import needs
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.kinds.raw import Raw

_SERVICE = Subject("", "Service")
# Outside of the ranges of node and pod addresses; no address of these is reachable.
RANGE = ipaddress.ip_network("10.200.0.0/16")
_PORTS = range(30_000, 32_768)
# As much of a range as the real server leaves to those who choose.
_CHOSEN_ADDRESSES = 256
_CHOSEN_PORTS = 86


@dataclass(slots=True)
class Cursor:
    """The next addresses and ports that a cluster allocates."""

    address: int = 0
    port: int = 0


class Allocation:
    """The allocations of one service."""

    def __init__(self, every: Iterable[Raw], name: str, *, cursor: Cursor, is_dry: bool) -> None:
        self._name = name
        self._is_dry = is_dry
        self._cursor = cursor
        self._specs = [spec_of(each) for each in every]
        self._ports: set[int] = (
            set() if is_dry else {port for spec in self._specs for port in ports_of(spec)}
        )

    def with_addresses(self, spec: Raw) -> Raw:
        """Return the spec with a cluster IP."""
        if not needs.has_cluster_ip(spec) or needs.is_headless(spec):
            return spec
        given = get(spec, "clusterIPs", [])
        if given:
            self._claim(given)
            return {**spec, "clusterIP": given[0]}
        address = str(RANGE.network_address) if self._is_dry else self._next_address()
        return {**spec, "clusterIP": address, "clusterIPs": [address]}

    def _taken(self) -> set[str]:
        return {text for spec in self._specs for text in get(spec, "clusterIPs", ())}

    def _claim(self, given: list[str]) -> None:
        try:
            address = ipaddress.ip_address(given[0])
        except ValueError:
            # Validation reports an invalid address.
            return
        detail = ""
        if address not in RANGE or address == RANGE.network_address:
            detail = "the provided network does not match the current range"
        elif not self._is_dry and given[0] in self._taken():
            detail = "provided IP is already allocated"
        if detail:
            what = f"failed to allocate IP {given[0]}: {detail}"
            raise refused(_SERVICE, self._name, (invalid("spec.clusterIPs", given, what),))

    def _next_address(self) -> str:
        taken = self._taken()
        count = RANGE.num_addresses - 1
        for offset in _in_turn(range(1, count), _CHOSEN_ADDRESSES, self._cursor.address):
            text = str(RANGE[offset])
            if text not in taken:
                self._cursor.address = offset
                return text
        what = f'failed to allocate a serviceIP for Service "{self._name}": range is full'
        raise internal_error(what)

    def _port(self, position: int, wanted: int) -> int:
        """The port that is wanted, or any."""
        if not wanted:
            return self._next_port()
        detail = self._take(wanted)
        if detail:
            path = f"spec.ports[{position}].nodePort"
            raise refused(_SERVICE, self._name, (invalid(path, wanted, detail),))
        return wanted

    def _take(self, port: int) -> str:
        """Takes a port, or says why not."""
        if port not in _PORTS:
            valid = f"{_PORTS.start}-{_PORTS.stop - 1}"
            detail = "provided port is not in the valid range. The range of valid ports is"
            return f"{detail} {valid}"
        if port in self._ports:
            return "provided port is already allocated"
        self._ports.add(port)
        return ""

    def _next_port(self) -> int:
        order = _PORTS if self._is_dry else _in_turn(_PORTS, _CHOSEN_PORTS, self._cursor.port)
        for port in order:
            if port not in self._ports:
                self._ports.add(port)
                if not self._is_dry:
                    self._cursor.port = port
                return port
        raise internal_error("failed to allocate a nodePort: range is full")

    def with_ports(self, spec: Raw, old: Raw | None = None) -> Raw:
        """Return the spec with node ports: those that it had, or new ones."""
        if spec.get("type") not in ("LoadBalancer", "NodePort"):
            return spec
        kept = set(ports_of(old or {}))
        by_number: dict[int, int] = {}
        made: list[Raw] = []
        for position, port in enumerate(get(spec, "ports", ())):
            number = port.get("port", 0)
            wanted = port.get("nodePort") or 0
            if wanted or needs.has_node_ports(spec):
                wanted = wanted or by_number.get(number, 0)
                if not wanted or wanted not in kept | set(by_number.values()):
                    wanted = self._port(position, wanted)
                by_number.setdefault(number, wanted)
                port = {**port, "nodePort": wanted}
            made.append(port)
        return with_value(spec, "ports", made or None)

    def with_health_port(self, spec: Raw) -> Raw:
        """Return the spec with a health check node port, if the service needs one."""
        wanted = spec.get("healthCheckNodePort") or 0
        if not wanted:
            return {**spec, "healthCheckNodePort": self._next_port()}
        detail = self._take(wanted)
        if detail:
            what = f"failed to allocate requested HealthCheck NodePort {wanted}: {detail}"
            raise internal_error(what)
        return spec


def _in_turn(every: range, chosen: int, last: int) -> Iterator[int]:
    """All of a range: what comes after the last one, then from the beginning, its front last."""
    front = every[:chosen]
    back = every[chosen:]
    at = back.index(last) + 1 if last in back else 0
    return chain(back[at:], back[:at], front)


def ports_of(spec: Raw) -> list[int]:
    """All ports that nodes open for a service."""
    found = [each["nodePort"] for each in get(spec, "ports", ()) if each.get("nodePort")]
    return [*found, spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else found
