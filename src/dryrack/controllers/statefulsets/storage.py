"""
The claims of storage that pods of a stateful set have, one of each template for each pod.

They are made before their pod and outlive it, unless the set says otherwise: whoever owns a claim
takes it along.
"""

from collections.abc import Callable, Sequence

from dryrack.client.endpoints import PODS, STATEFUL_SETS, VOLUME_CLAIMS
from dryrack.client.informer import name_of
from dryrack.controllers.objects import (
    controller_of,
    controller_reference,
    is_deleted,
    owners_of,
    spec_of,
    uid_of,
)
from dryrack.controllers.writes import Create, Patch, Report, Write
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

Known = Callable[[str], Raw | None]
"""A claim of the set's namespace, by name."""

_DELETE = "Delete"


def volumes_of(stateful_set: Raw, pod: str) -> list[Raw]:
    """What a pod mounts of its own."""
    return [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}
        for name in (each["metadata"]["name"] for each in _templates(stateful_set))
    ]


def missing_claims(stateful_set: Raw, pod: str, known: Known) -> list[Write]:
    """The claims that a pod with this name needs and that are not there."""
    made = [_claim(stateful_set, template, pod) for template in _templates(stateful_set)]
    return [
        _creation(stateful_set, claim, pod)
        for claim in made
        if known(claim["metadata"]["name"]) is None
    ]


def going_claim(stateful_set: Raw, pod: str, known: Known) -> str:
    """A claim of a pod that is being deleted, and made anew when it is gone; "" if none is."""
    names = [each["persistentVolumeClaim"]["claimName"] for each in volumes_of(stateful_set, pod)]
    return next((name for name in names if (found := known(name)) and is_deleted(found)), "")


def is_claim_of(stateful_set: Raw, claim: str) -> bool:
    """Whether a claim of this name is one of the set's."""
    stem = claim.rpartition("-")[0]
    name = stateful_set["metadata"]["name"]
    return stem in [f"{each['metadata']['name']}-{name}" for each in _templates(stateful_set)]


def _templates(stateful_set: Raw) -> Sequence[Raw]:
    return get(stateful_set, "spec.volumeClaimTemplates", ())


def _claim(stateful_set: Raw, template: Raw, pod: str) -> Raw:
    given = template["metadata"]
    selector = get(stateful_set, "spec.selector", {})
    metadata = {
        "name": f"{given['name']}-{pod}",
        "namespace": stateful_set["metadata"]["namespace"],
        "labels": get(given, "labels", {}) | get(selector, "matchLabels", {}),
    }
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    return {"metadata": metadata, "spec": spec_of(template)}


def _creation(stateful_set: Raw, claim: Raw, pod: str) -> Write:
    name = claim["metadata"]["name"]
    whose = f"in StatefulSet {stateful_set['metadata']['name']}"
    return Create(
        VOLUME_CLAIMS,
        claim,
        refused=Report(
            stateful_set,
            "Warning",
            "FailedCreate",
            f"Create Claim {name} for Pod {pod} {whose} failed error: {{}}",
        ),
        accepted=Report(
            stateful_set,
            "Normal",
            "SuccessfulCreate",
            f"Create Claim {name} Pod {pod} {whose} success",
        ),
    )


def retention(stateful_set: Raw, pod: Raw, known: Known, *, is_surplus: bool) -> list[Write]:
    """Who takes the claims of a pod along when they go: the set, the pod, or nobody."""
    mounted = volumes_of(stateful_set, pod["metadata"]["name"])
    claims = [known(volume["persistentVolumeClaim"]["claimName"]) for volume in mounted]
    owner = _owner(stateful_set, pod, is_surplus=is_surplus)
    ours = (uid_of(stateful_set), uid_of(pod))
    return [
        write
        for claim in claims
        if claim is not None and _is_ours(claim, ours)
        for write in _owned(claim, owner, ours)
    ]


def _owner(stateful_set: Raw, pod: Raw, *, is_surplus: bool) -> Raw | None:
    policy = get(stateful_set, "spec.persistentVolumeClaimRetentionPolicy", {})
    if is_surplus and policy.get("whenScaled") == _DELETE:
        return controller_reference(pod, PODS)
    if policy.get("whenDeleted") == _DELETE:
        return controller_reference(stateful_set, STATEFUL_SETS)
    return None


def _is_ours(claim: Raw, ours: tuple[str, str]) -> bool:
    controller = controller_of(claim)
    return controller is None or controller["uid"] in ours


def _owned(claim: Raw, owner: Raw | None, ours: tuple[str, str]) -> list[Write]:
    others = [each for each in owners_of(claim) if each["uid"] not in ours]
    owners = [*others, owner] if owner else others
    if owners == list(owners_of(claim)):
        return []
    metadata = claim["metadata"]
    identity = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
    patch = {"metadata": identity | {"ownerReferences": owners or None}}
    return [Patch(VOLUME_CLAIMS, name_of(claim), patch)]
