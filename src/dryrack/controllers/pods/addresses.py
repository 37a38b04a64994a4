"""
Addresses of what is on no network.

They are made from identities, so that the same node or pod has the same one after a restart, and
no two pods share one. Nodes are in 10.0.0.0/10, pods in 10.64.0.0/10; nobody answers there.
"""

import zlib
from collections.abc import Callable
from ipaddress import IPv4Address

from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

_NODES = int(IPv4Address("10.0.0.0"))
_PODS = int(IPv4Address("10.64.0.0"))
_SIZE = 2**22


def host_address(node: Raw) -> str:
    """The address that a node tells, or the one that a virtual node would."""
    for address in get(node, "status.addresses", ()):
        if address.get("type") == "InternalIP":
            return str(address["address"])
    return _within(_NODES, zlib.crc32(node["metadata"]["name"].encode()))


def pod_address(uid: str, is_taken: Callable[[str], bool]) -> str:
    """The first free address from the one that a uid leads to."""
    start = zlib.crc32(uid.encode())
    candidates = (_within(_PODS, start + offset) for offset in range(_SIZE))
    return next(each for each in candidates if not is_taken(each))


def _within(base: int, offset: int) -> str:
    # Neither the first nor the last address of a network belongs to a host.
    return str(IPv4Address(base + 1 + offset % (_SIZE - 2)))
