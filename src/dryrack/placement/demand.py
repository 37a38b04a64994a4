"""
What a pod asks of a node, in amounts.

What containers request together is what quotas count, too (see `kinds.usage`). The overhead of the
runtime comes on top.

A port of the host is an amount, too: a node has each of them once, and whoever binds one of its
addresses is in the way of whoever binds all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dryrack.kinds.quota_usage.pods import needed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.core import Container, Pod
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
        """Whether one node cannot give both; as in Kubernetes, only 0.0.0.0 is any address."""
        return self[:2] == other[:2] and (
            self.address == other.address or ANY_ADDRESS in (self.address, other.address)
        )


# Amounts in billionths, exact; a pod also takes one of the places that a node has for pods.
Amounts = Mapping[str | HostPort, int]
Totals = dict[str | HostPort, int]


class Demand(NamedTuple):
    """What a pod takes of a node, and what scores count for it."""

    # All of the pod that it depends on.
    key: bytes
    amounts: Amounts
    # CPU and memory as scores count them: a container that requests none has some, too.
    non_zero: Amounts


# What kube-scheduler takes a container for that does not say: 0.1 CPU, and 200 MiB.
_DEFAULT_REQUESTS: Amounts = {"cpu": ONE // 10, "memory": 200 * 2**20 * ONE}


# Pods come from few templates at a time: what was worked out for one serves all of its pods.
_TEMPLATES_MAX = 1024
_known: dict[bytes, Demand] = {}
encode = msgspec.json.Encoder(enc_hook=attrgetter("text")).encode


def demand(pod: Pod) -> Amounts:
    """Everything the pod takes from a node's allocatable resources."""
    return demand_of(pod).amounts


def demand_of(pod: Pod) -> Demand:
    """The demand of the pod: one value for all pods that say the same, not to be changed."""
    spec = pod.spec
    key = encode(
        (spec.containers, spec.init_containers, spec.resources, spec.overhead, spec.host_network)
    )
    found = _known.get(key)
    if found is None:
        if len(_known) >= _TEMPLATES_MAX:
            del _known[next(iter(_known))]
        found = _known[key] = Demand(key, _demand(pod), _non_zero(pod))
    return found


def _demand(pod: Pod) -> Totals:
    total = _requested(pod, {})
    total[PODS] = ONE
    total.update(dict.fromkeys(_host_ports(pod), ONE))
    return total


def _non_zero(pod: Pod) -> Amounts:
    total = _requested(pod, _DEFAULT_REQUESTS)
    return {name: total.get(name, 0) for name in _DEFAULT_REQUESTS}


def _requested(pod: Pod, defaults: Amounts) -> Totals:
    total = _while_running(pod, defaults)
    if pod.spec.resources is not None:
        # Requests of the pod as a whole stand for those of its containers.
        total.update(_amounts(pod.spec.resources.requests))
    _add(total, _amounts(pod.spec.overhead))
    return total


def _host_ports(pod: Pod) -> Iterator[HostPort]:
    """Of all containers that stay; on the network of the host every port is one of the host."""
    sidecars = [each for each in pod.spec.init_containers if each.restart_policy == "Always"]
    for container in (*sidecars, *pod.spec.containers):
        for port in container.ports:
            number = port.host_port or (port.container_port if pod.spec.host_network else 0)
            if number > 0:
                yield HostPort(port.protocol or "TCP", number, port.host_ip or ANY_ADDRESS)


def _while_running(pod: Pod, defaults: Amounts) -> Totals:
    total: Totals = {}
    for container in pod.spec.containers:
        _add(total, {**defaults, **_requests(container)})
    if not pod.spec.init_containers:
        return total
    first = [
        ({**defaults, **_requests(each)}, each.restart_policy == "Always")
        for each in pod.spec.init_containers
    ]
    for name in {**total, **{name: 0 for each, _ in first for name in each}}:
        starting = [(each.get(name, 0), stays) for each, stays in first]
        total[name] = needed(starting, [total.get(name, 0)], nothing=0)
    return total


def _requests(container: Container) -> Amounts:
    return _amounts(container.resources.requests)


def _amounts(quantities: Mapping[str, Quantity]) -> Amounts:
    return {name: quantity.nanos for name, quantity in quantities.items()}


def _add(total: Totals, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
