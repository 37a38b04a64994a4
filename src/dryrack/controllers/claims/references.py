"""References between pods or PodGroups and their claims."""

from collections.abc import Iterator
from dataclasses import dataclass

from dryrack.controllers.objects import (
    annotations_of,
    controller_of,
    is_controlled_by,
    is_deleted,
    is_terminal,
    spec_of,
    status_of,
    uid_of,
)
from dryrack.kinds.expansion.pod_claims import GROUPS, POD_CLAIM_NAME, group_of, is_group
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True)
class Reference:
    """
    One entry of the resourceClaims of a pod, or of a group of pods.

    `claim` is the name of the claim object: None if it is not created yet, "" if the status of the
    owner says that none is needed.
    """

    name: str
    claim: str | None
    template: str = ""


def claims_of_pod(pod: Raw) -> Iterator[Reference]:
    """Yield the claims of a pod, also that of its extended resources."""
    yield from claims_of(pod)
    extended = status_of(pod).get("extendedResourceClaimStatus")
    if extended:
        yield Reference("", extended["resourceClaimName"])


def claims_of(owner: Raw) -> Iterator[Reference]:
    """Yield the entries of a pod or a PodGroup, with the names of their claims."""
    statuses = {each["name"]: each for each in get(owner, "status.resourceClaimStatuses", ())}
    for entry in get(owner, "spec.resourceClaims", ()):
        name = entry["name"]
        if entry.get("resourceClaimName"):
            yield Reference(name, entry["resourceClaimName"])
        elif entry.get("resourceClaimTemplateName"):
            status = statuses.get(name)
            claim = None if status is None else status.get("resourceClaimName") or ""
            yield Reference(name, claim, entry["resourceClaimTemplateName"])


def is_done(pod: Raw) -> bool:
    """Return True if a pod will not run again and needs no claim."""
    return is_terminal(pod) or (is_deleted(pod) and not spec_of(pod).get("nodeName"))


def is_reserved_for(claim: Raw, pod: Raw) -> bool:
    """Return True if a claim is reserved for the pod, or for all pods of its group."""
    return any(
        each.get("uid") == uid_of(pod) or (is_group(each) and each["name"] == group_of(pod))
        for each in get(claim, "status.reservedFor", ())
    )


def is_made_for(claim: Raw, owner: Raw) -> bool:
    """Return True if a claim was created from a template for that pod or PodGroup."""
    return is_controlled_by(claim, owner)


def made_for_entry(claim: Raw) -> str:
    """Return the entry of its owner for which a claim was created, or ""."""
    return annotations_of(claim).get(POD_CLAIM_NAME, "")


def pod_owner(claim: Raw) -> Raw | None:
    """Return the reference to the pod for which a claim was created."""
    owner = controller_of(claim)
    if owner is None or owner.get("kind") != "Pod" or owner.get("apiVersion") != "v1":
        return None
    return owner


def group_owner(claim: Raw) -> str:
    """Return the name of the PodGroup for which a claim was created, or ""."""
    owner = controller_of(claim)
    if owner is None or owner.get("kind") != "PodGroup":
        return ""
    return str(owner["name"]) if owner.get("apiVersion", "").startswith(f"{GROUPS[0]}/") else ""
