"""
The demand of a pod: the amounts of resources and host ports that it takes from its node.

The requests of containers are summed as for quotas (see `kinds.usage`); the overhead of the runtime
is added. A host port is an amount, too: a node has each of them once. A pod that binds a port on
one address conflicts with a pod that binds it on all addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dryrack.kinds.quota_usage.pods import sum_needs

if TYPE_CHECKING:
    from dryrack.kinds.core import Pod
    from dryrack.kinds.quantity import Quantity

PODS = "pods"
ONE = 10**9
ANY_ADDRESS = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of the node that a container binds."""

    protocol: str
    number: int
    address: str

    def conflicts(self, other: HostPort) -> bool:
        """Return True if one node cannot provide both; as in Kubernetes, 0.0.0.0 is any address."""
        return self[:2] == other[:2] and (
            self.address == other.address or ANY_ADDRESS in (self.address, other.address)
        )


# Exact amounts in billionths; a pod also takes one of the node's places for pods.
Amounts = Mapping[str | HostPort, int]
Totals = dict[str | HostPort, int]


class Demand(NamedTuple):
    """The amounts that a pod takes from a node, and the amounts that scores count for it."""

    # The fields of the pod that the demand depends on.
    key: bytes
    amounts: Amounts
    # CPU and memory as scores count them, with defaults for containers without requests.
    non_zero: Amounts


# kube-scheduler's defaults for a container without requests: 0.1 CPU, and 200 MiB.
_DEFAULT_REQUESTS: Amounts = {"cpu": ONE // 10, "memory": 200 * 2**20 * ONE}


# Pods come from few templates at a time: one demand serves all pods of a template.
_TEMPLATES_MAX = 1024
_demands: dict[bytes, Demand] = {}
encode = msgspec.json.Encoder(enc_hook=attrgetter("text")).encode


def demand(pod: Pod) -> Amounts:
    """Return all amounts that the pod takes from a node's allocatable resources."""
    return demand_of(pod).amounts


def demand_of(pod: Pod) -> Demand:
    """Return the demand of the pod, which equal pods share; it must not be changed."""
    spec = pod.spec
    key = encode(
        (spec.containers, spec.init_containers, spec.resources, spec.overhead, spec.host_network)
    )
    known = _demands.get(key)
    if known is not None:
        return known
    amounts = _sum_requests(pod, {})
    amounts[PODS] = ONE
    sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
    for container in (*sidecars, *spec.containers):
        for port in container.ports:
            # In the network of the host every port is a host port.
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number > 0:
                host_port = HostPort(port.protocol or "TCP", number, port.host_ip or ANY_ADDRESS)
                amounts[host_port] = ONE
    total = _sum_requests(pod, _DEFAULT_REQUESTS)
    non_zero = {name: total.get(name, 0) for name in _DEFAULT_REQUESTS}
    if len(_demands) >= _TEMPLATES_MAX:
        del _demands[next(iter(_demands))]
    _demands[key] = Demand(key, amounts, non_zero)
    return _demands[key]


def _sum_requests(pod: Pod, defaults: Amounts) -> Totals:
    """Return the requests of the pod, with these defaults for each container."""
    total: Totals = {}
    for container in pod.spec.containers:
        _add(total, {**defaults, **_amounts(container.resources.requests)})
    if pod.spec.init_containers:
        init = [
            ({**defaults, **_amounts(each.resources.requests)}, each.restart_policy == "Always")
            for each in pod.spec.init_containers
        ]
        for name in {**total, **{name: 0 for each, _ in init for name in each}}:
            starting = [(each.get(name, 0), stays) for each, stays in init]
            total[name] = sum_needs(starting, [total.get(name, 0)], nothing=0)
    if pod.spec.resources is not None:
        # Requests of the pod as a whole replace those of its containers.
        total.update(_amounts(pod.spec.resources.requests))
    _add(total, _amounts(pod.spec.overhead))
    return total


def _amounts(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: quantity.nanos for name, quantity in quantities.items()}


def _add(total: Totals, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
