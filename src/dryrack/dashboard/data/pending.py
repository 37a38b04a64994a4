"""
Pending pods in groups: the members of a gang, and pods that are equal for the scheduler.

The explanation of one pod of a group holds for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from dryrack.placement import Membership, membership

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from dryrack.dashboard.data.tracked import Tracked
    from dryrack.kinds.core import Pod
    from dryrack.kinds.resource import ResourceClaim

Document = dict[str, Any]

_encode = msgspec.json.Encoder(enc_hook=attrgetter("text")).encode


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pending pod with its row, its claims, and their rows."""

    pod: Pod
    row: Document
    claims: tuple[ResourceClaim, ...]
    claim_rows: tuple[Document, ...]


def pending_pods(tracked: Tracked) -> list[PendingPod]:
    """Return the pods that have no node yet."""
    found = []
    for name, row in tracked.pods.current.items():
        pod = tracked.pod(name)
        if pod is None or not row["pending"]:
            continue
        names = [f"{row['namespace']}/{each}" for each in row["claims"]]
        claims = tuple(it for each in names if (it := tracked.claim(each)) is not None)
        rows = (tracked.claims.current.get(each) for each in names)
        found.append(PendingPod(pod, row, claims, tuple(it for it in rows if it is not None)))
    return found


def pending_documents(pods: Sequence[PendingPod]) -> list[Document]:
    """Return the groups of pending pods: the highest priority first, then the oldest."""
    groups: dict[Hashable, list[PendingPod]] = defaultdict(list)
    for each in pods:
        groups[_key(each)].append(each)
    documents = list(map(_group, groups.values()))
    return sorted(documents, key=lambda it: (-it["priority"], it["oldest"], it["pods"][0]))


def _key(each: PendingPod) -> Hashable:
    member = membership(each.pod)
    if isinstance(member, Membership):
        return member.key
    # The names of claims differ between the pods of a template; their requests do not.
    # Other volumes, such as the token of the service account, do not decide.
    volumes = [it for it in each.pod.spec.volumes if it.persistent_volume_claim or it.ephemeral]
    spec = replace(each.pod.spec, resource_claims=(), volumes=tuple(volumes))
    devices = [claim.spec.devices for claim in each.claims]
    # A claim that does not exist yet has the requests of its template.
    templates = [it.resource_claim_template_name for it in each.pod.spec.resource_claims]
    labels = dict(each.pod.metadata.labels) if _selects(each.pod) else None
    return each.pod.metadata.namespace, _encode((spec, devices, templates, labels))


def _selects(pod: Pod) -> bool:
    """Return whether a rule of the pod is about the labels of pods."""
    affinity = pod.spec.affinity
    about_pods = affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity)
    return bool(about_pods or pod.spec.topology_spread_constraints)


def _group(pods: Sequence[PendingPod]) -> Document:
    row = pods[0].row
    created = sorted(each.row["created"] for each in pods)
    asked = (text for each in pods for it in each.claim_rows for text in it["requests"].values())
    return {
        "namespace": row["namespace"],
        "gang": row["gang"],
        "pods": [each.row["name"] for each in pods],
        "schedulingGates": row["schedulingGates"],
        "requests": list(dict.fromkeys(asked)),
        "claimsMissing": max(0, len(pods[0].pod.spec.resource_claims) - len(pods[0].claims)),
        "priority": max(each.pod.spec.priority or 0 for each in pods),
        "oldest": created[0],
        "newest": created[-1],
        "why": row["why"],
    }
