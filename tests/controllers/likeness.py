"""Compare objects without random names, times and UIDs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from dryrack.client.client import Client, Selection
from dryrack.client.endpoints import (
    CLAIMS,
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
)

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

KINDS = (
    PODS,
    CLAIMS,
    DEPLOYMENTS,
    REPLICA_SETS,
    DAEMON_SETS,
    STATEFUL_SETS,
    JOBS,
    CONTROLLER_REVISIONS,
    SERVICE_ACCOUNTS,
)

_HASHES = ("pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash")
_NUMBERED = ("statefulset.kubernetes.io/pod-name",)
_TIMES = re.compile(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"')
_UIDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOKENS = re.compile(r"kube-api-access-\w{5}")
_ADDRESSES = re.compile(r'"10\.\d+\.\d+\.\d+"')
# Written by the server on its own way, and compared where the server is.
_SERVERS = ("managedFields", "resourceVersion", "generation", "observedGeneration")
_DROPPED = frozenset(_SERVERS)


async def snapshot(client: Client, namespace: str) -> list[Raw]:
    """Everything that controllers make, in a namespace."""
    found: list[Raw] = []
    for endpoint in KINDS:
        found += (await client.list(endpoint, Selection(namespace=namespace))).items
    return found


async def reasons(client: Client, namespace: str) -> set[tuple[str, str]]:
    """Which events were written about which kinds."""
    events = (await client.list(EVENTS, Selection(namespace=namespace))).items
    return {(each["involvedObject"]["kind"], each["reason"]) for each in events}


def likeness(objects: list[Raw]) -> list[Raw]:
    """Comparable, in an order that does not depend on chance."""
    texts = [json.dumps(_kept(each), sort_keys=True) for each in objects]
    for text, word in sorted(_chances(objects).items(), key=lambda each: -len(each[0])):
        texts = [each.replace(text, word) for each in texts]
    replaced = (
        (_TIMES, '"<time>"'),
        (_UIDS, "<uid>"),
        (_ADDRESSES, '"<address>"'),
        (_TOKENS, "kube-api-access-<random>"),
    )
    for pattern, word in replaced:
        texts = [pattern.sub(word, each) for each in texts]
    return [json.loads(each) for each in sorted(texts)]


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _kept(each) for key, each in value.items() if key not in _DROPPED}
    return [_kept(each) for each in value] if isinstance(value, list) else value


def _chances(objects: list[Raw]) -> dict[str, str]:
    """Texts that chance or a hash decided, and what is put in their place."""
    found: dict[str, str] = {}
    for obj in objects:
        metadata = obj["metadata"]
        begin = metadata.get("generateName")
        if begin and not any(label in (metadata.get("labels") or {}) for label in _NUMBERED):
            found[metadata["name"]] = f"{begin}<random>"
        for label in _HASHES:
            if label in (metadata.get("labels") or {}):
                digest = metadata["labels"][label]
                # Pods of stateful sets carry the name of the revision, not its hash alone.
                found[digest.rpartition("-")[2]] = "<hash>"
    return found
