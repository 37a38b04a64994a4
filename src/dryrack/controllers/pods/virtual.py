"""Which nodes are played: those marked for KWOK, and those that dryrack made."""

import zlib
from collections.abc import Callable
from ipaddress import IPv4Address

from dryrack.controllers.objects import annotations_of, labels_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

KWOK_NODE = "kwok.x-k8s.io/node"

OWN_NODE = "dryrack.dev/node"

SILENT = "dryrack.dev/silent"


_NODES = int(IPv4Address("10.0.0.0"))

_PODS = int(IPv4Address("10.64.0.0"))

_SIZE = 2**22


def is_virtual(node: Raw) -> bool:
    """Whether no machine stands behind a node."""
    marks = (KWOK_NODE, OWN_NODE)
    return any(mark in annotations_of(node) or mark in labels_of(node) for mark in marks)


def is_played(node: Raw | None) -> bool:
    """Whether a virtual node acts: one that is annotated as silent has lost its kubelet."""
    if node is None or not is_virtual(node):
        return False
    return annotations_of(node).get(SILENT) != "true"


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
