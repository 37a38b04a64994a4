"""
Claims of whole PodGroups: reserved for the group, once, however many pods it has.

Which entries of a pod are its group's is said in `kinds.expansion.pod_claims`. A claim holds 256
consumers; one that is reserved for a group is open to all its pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.client.informer import name_of
from dryrack.kinds.expansion.pod_claims import (
    consumer_of_group,
    consumer_of_pod,
    entries_of_group,
    named_claim,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.kinds.core import Pod
    from dryrack.kinds.raw import Raw


def consumers(raw: Raw, pod: Pod, claims: Iterable[str], group: Raw | None) -> Mapping[str, Raw]:
    """Who reserves each of the claims, which are "ns/name": the pod, or its whole group."""
    itself = consumer_of_pod(raw)
    if group is None:
        return dict.fromkeys(claims, itself)
    shared = claims_of_group(raw, pod, group)
    of_group = consumer_of_group(group)
    return {name: of_group if name in shared else itself for name in claims}


def claims_of_group(raw: Raw, pod: Pod, group: Raw) -> frozenset[str]:
    """The claims of the pod that are its group's, as "ns/name"."""
    entries = entries_of_group(raw, group)
    names = [named_claim(pod, each) for each in pod.spec.resource_claims if each.name in entries]
    return frozenset(f"{name_of(raw).namespace}/{name}" for name in names if name)
