"""
Which ResourceClaims a pod means: by name, or made for it from a template.

A claim that is made from a template is named after the pod and its entry, with a random ending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.kinds.core import Pod, PodResourceClaim
    from dryrack.kinds.raw import Raw

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
# Leaves room for a hyphen and five random characters in a name of 63.
_BASE_LENGTH_MAX = 57


def named_claim(pod: Pod, entry: PodResourceClaim) -> str | None:
    """The name of the claim; None if it is yet to be made, empty if none is needed."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name or ""
    return None


def generate_name(pod: str, entry: str) -> str:
    """What the claim's name begins with: both names, cut in proportion if they are too long."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _BASE_LENGTH_MAX:
        return whole
    return "-".join(part[: len(part) * _BASE_LENGTH_MAX // len(whole)] for part in (pod, entry))


def claim_from_template(pod: Raw, entry: str, template: Raw) -> Raw:
    """The claim for an entry of a pod, as the template has it; of the pod its metadata is read."""
    spec = template.get("spec") or {}
    given = spec.get("metadata") or {}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"]}
    metadata = {
        "generateName": generate_name(pod["metadata"]["name"], entry),
        "namespace": pod["metadata"]["namespace"],
        "annotations": (given.get("annotations") or {}) | {POD_CLAIM_NAME: entry},
        "ownerReferences": [owner | {"uid": pod["metadata"].get("uid") or "", "controller": True}],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"metadata": metadata, "spec": spec.get("spec") or {}}
