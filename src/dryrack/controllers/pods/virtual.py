"""
Virtual nodes, which are marked for KWOK or made by dryrack, and the addresses on them.

Addresses are computed from identities, so a node or a pod has the same address after a restart, and
no two pods share one. Nodes are in 10.0.0.0/10 and pods in 10.64.0.0/10; nothing listens there.
"""

import zlib
from collections.abc import Callable
from ipaddress import IPv4Address

from dryrack.controllers.objects import annotations_of, labels_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

KWOK_NODE = "kwok.x-k8s.io/node"
OWN_NODE = "dryrack.dev/node"
SILENT = "dryrack.dev/silent"
# On a pod: the local process that runs its program, as HOST/PID.
RUN_BY = "dryrack.dev/process"
_NODES = int(IPv4Address("10.0.0.0"))
_PODS = int(IPv4Address("10.64.0.0"))
_SIZE = 2**22


def is_virtual(node: Raw) -> bool:
    """Return True if a node is not a real machine."""
    marks = (KWOK_NODE, OWN_NODE)
    return any(mark in annotations_of(node) or mark in labels_of(node) for mark in marks)


def is_played(node: Raw | None) -> bool:
    """Return True if dryrack simulates the kubelet of a node, unless an annotation silences it."""
    if node is None or not is_virtual(node):
        return False
    return annotations_of(node).get(SILENT) != "true"


def is_run_elsewhere(pod: Raw) -> bool:
    """Return True if a local process runs the pod's program and writes its status."""
    return RUN_BY in annotations_of(pod)


def host_address(node: Raw) -> str:
    """Return the address in a node's status, or the one that a virtual node reports."""
    for address in get(node, "status.addresses", ()):
        if address.get("type") == "InternalIP":
            return str(address["address"])
    return _within(_NODES, zlib.crc32(node["metadata"]["name"].encode()))


def pod_address(uid: str, is_taken: Callable[[str], bool]) -> str:
    """Return the first free address, from the one that a UID is hashed to."""
    start = zlib.crc32(uid.encode())
    candidates = (_within(_PODS, start + offset) for offset in range(_SIZE))
    return next(each for each in candidates if not is_taken(each))


def _within(base: int, offset: int) -> str:
    # Neither the first nor the last address of a network belongs to a host.
    return str(IPv4Address(base + 1 + offset % (_SIZE - 2)))
