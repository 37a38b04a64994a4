"""
The ResourceClaims of a pod: by name, or created from a template for it or for its PodGroup.

A claim that is made from a template is named after its owner and the entry, with a random ending.
An entry of a pod that the pod's group has as well, under the same name and from the same source, is
the group's: one claim for all its pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get, metadata_of, spec_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.kinds.core import Pod, PodResourceClaim
    from dryrack.kinds.documents import Document
    from dryrack.kinds.raw import Raw

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
# The finalizer of a claim that has devices.
DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
# The API group and the resource by which a claim names a PodGroup that it is reserved for.
GROUPS = ("scheduling.k8s.io", "podgroups")
# The kinds that affect the scheduling of devices; `kubectl get all` omits most of them.
DUMP = (
    "kubectl get nodes,resourceslices,deviceclasses,resourceclaims,resourceclaimtemplates,pods"
    " -A -o yaml"
)
# Short enough for a hyphen and five random characters in a name of 63 characters.
_BASE_LENGTH_MAX = 57


def named_claim(pod: Pod, entry: PodResourceClaim) -> str | None:
    """Return the name of the claim; None if it is not created yet, empty if none is needed."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name or ""
    return None


def dump_problem(documents: Iterable[Document]) -> str:
    """Return the error about objects that are missing in a dump, or ""."""
    first = ""
    for each in documents:
        if each.kind in ("ResourceClaim", "ResourceClaimTemplate"):
            return ""
        if not first and each.kind == "Pod" and each.uid and _has_claims(each.raw):
            first = f"{each.namespace}/{each.name}"
    if not first:
        return ""
    return f"pod {first} has claims, and kubectl get all leaves them out; dump with: {DUMP}"


def _has_claims(pod: Raw) -> bool:
    spec = pod.get("spec")
    status = pod.get("status")
    has_ended = isinstance(status, dict) and status.get("phase") in ("Succeeded", "Failed")
    return isinstance(spec, dict) and bool(spec.get("resourceClaims")) and not has_ended


def generate_name(pod: str, entry: str) -> str:
    """Return the prefix of the claim's name: both names, truncated in proportion."""
    whole = f"{pod}-{entry}-"
    if len(whole) <= _BASE_LENGTH_MAX:
        return whole
    return "-".join(part[: len(part) * _BASE_LENGTH_MAX // len(whole)] for part in (pod, entry))


def claim_from_template(
    owner: Raw, entry: str, template: Raw, kind: tuple[str, str] = ("v1", "Pod")
) -> Raw:
    """Return the claim of an entry from its template; only the metadata of the owner is read."""
    spec = spec_of(template)
    given = metadata_of(spec)
    reference = {"apiVersion": kind[0], "kind": kind[1], "name": owner["metadata"]["name"]}
    reference |= {"uid": owner["metadata"].get("uid") or "", "controller": True}
    metadata = {
        "generateName": generate_name(owner["metadata"]["name"], entry),
        "namespace": owner["metadata"]["namespace"],
        "annotations": get(given, "annotations", {}) | {POD_CLAIM_NAME: entry},
        "ownerReferences": [reference],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"metadata": metadata, "spec": spec_of(spec)}


def group_of(pod: Raw) -> str:
    """Return the name of the group of the pod, or ""."""
    group = get(pod, "spec.schedulingGroup", {})
    return str(group.get("podGroupName") or "")


def entries_of_group(pod: Raw, group: Raw) -> frozenset[str]:
    """Return the names of the entries that the pod shares with its group."""
    entries = get(group, "spec.resourceClaims", ())
    sources = {each["name"]: _source(each) for each in entries}
    asked = get(pod, "spec.resourceClaims", ())
    return frozenset(
        each["name"] for each in asked if sources.get(each["name"], ()) == _source(each)
    )


def _source(entry: Raw) -> tuple[str | None, str | None]:
    return entry.get("resourceClaimName"), entry.get("resourceClaimTemplateName")


def skips_prepare(result: Raw) -> bool:
    """Return whether a kubelet calls no NodePrepareResources for a result of an allocation."""
    skipped = get(result, "skipNodeOperations", ())
    return "*" in skipped or "NodePrepareResources" in skipped


def consumer_of_pod(pod: Raw) -> Raw:
    """Return the entry in `reservedFor` for a pod."""
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}


def consumer_of_group(group: Raw) -> Raw:
    """Return the entry in `reservedFor` for a PodGroup."""
    metadata = group["metadata"]
    named = {"name": metadata["name"], "uid": metadata["uid"]}
    return {"apiGroup": GROUPS[0], "resource": GROUPS[1], **named}


def is_group(consumer: Raw) -> bool:
    """Return whether an entry in `reservedFor` is a PodGroup."""
    return (consumer.get("apiGroup"), consumer.get("resource")) == GROUPS
