"""Claims of storage and volumes at rest: they name each other, and nothing is left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.scenario.invariants.volumes import StoredVolumes

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

PROTECTION = "kubernetes.io/pvc-protection"
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}
CLASSES = (
    {"metadata": {"name": "now"}, "provisioner": "disk"},
    {"metadata": {"name": "late"}, "provisioner": "disk", **LATE},
    {"metadata": {"name": "none"}, "provisioner": "kubernetes.io/no-provisioner"},
)


def claim(name: str, *, volume: str = "", storage: str = "now", **metadata: Any) -> Raw:
    named = {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata}
    spec = {"storageClassName": storage, **({"volumeName": volume} if volume else {})}
    phase = "Bound" if volume else "Pending"
    return {"metadata": named, "spec": spec, "status": {"phase": phase}}


def volume(name: str, claim: str = "", policy: str = "Delete") -> Raw:
    reference = {"namespace": "default", "name": claim, "uid": f"uid-{claim}"}
    spec: Raw = {"persistentVolumeReclaimPolicy": policy}
    spec |= {"claimRef": reference} if claim else {}
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, *, node: str = "n1", phase: str = "Running", **source: Any) -> Raw:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec = {"nodeName": node, "volumes": [{"name": "data", **source}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def mounting(name: str, claim: str, **more: Any) -> Raw:
    return pod(name, persistentVolumeClaim={"claimName": claim}, **more)


def owner(name: str) -> list[Raw]:
    return [{"kind": "Pod", "name": name, "uid": f"uid-{name}"}]


def told(claims: list[Raw], volumes: list[Raw], pods: list[Raw]) -> list[str]:
    by_uid = {each["metadata"]["uid"]: each for each in pods}
    found = StoredVolumes(claims, volumes, CLASSES, pods=by_uid).violations()
    return [str(each) for each in found]


@pytest.mark.parametrize(
    ("claims", "volumes", "pods"),
    [
        ([claim("a", volume="v")], [volume("v", "a")], []),
        ([claim("a", storage="late")], [], []),
        ([claim("a", storage="late")], [], [mounting("p", "a", node="")]),
        ([claim("a", storage="late")], [], [mounting("p", "a", phase="Succeeded")]),
        ([claim("a", storage="none"), claim("b", storage="unknown")], [], []),
        (
            [claim("p-data", volume="v", ownerReferences=owner("p"))],
            [volume("v", "p-data")],
            [pod("p")],
        ),
        (
            [claim("a", volume="v", deletionTimestamp="now", finalizers=[PROTECTION])],
            [volume("v", "a")],
            [mounting("p", "a")],
        ),
        (
            [claim("a", volume="v", deletionTimestamp="now", finalizers=[PROTECTION])],
            [volume("v", "a")],
            [mounting("p", "a", phase="Succeeded")],
        ),
        (
            [claim("a", volume="v", deletionTimestamp="now", finalizers=["somebody.example.com"])],
            [volume("v", "a")],
            [],
        ),
        ([], [volume("kept", "gone", "Retain"), volume("free")], []),
    ],
)
def test_storage_that_is_as_it_should_be_is_sound(
    claims: list[Raw], volumes: list[Raw], pods: list[Raw]
) -> None:
    """Bound both ways, or waiting with a reason; what is retained stays."""
    assert told(claims, volumes, pods) == []


@pytest.mark.parametrize(
    ("claims", "volumes", "pods", "message"),
    [
        (
            [claim("a")],
            [],
            [],
            "claim default/a: is pending, although its class provisions volumes",
        ),
        (
            [claim("a", storage="late")],
            [],
            [mounting("p", "a")],
            "claim default/a: is pending, although its class provisions volumes",
        ),
        (
            [claim("p-data", storage="late", ownerReferences=owner("p"))],
            [],
            [pod("p", ephemeral={"volumeClaimTemplate": {}})],
            "claim default/p-data: is pending, although its class provisions volumes",
        ),
        (
            [claim("a", volume="v")],
            [],
            [],
            "default/a: is bound, but its volume 'v' no longer exists",
        ),
        (
            [claim("a", volume="v"), claim("b", volume="v")],
            [volume("v", "a")],
            [],
            "claim default/b: is bound to volume v, which is bound to another claim",
        ),
        (
            [claim("p-data", volume="v", ownerReferences=owner("p"))],
            [volume("v", "p-data")],
            [],
            "claim default/p-data: was created for pod p, which no longer exists",
        ),
        (
            [claim("a", volume="v", deletionTimestamp="now", finalizers=[PROTECTION])],
            [volume("v", "a")],
            [],
            "claim default/a: has a deletionTimestamp, but still exists",
        ),
        (
            [],
            [volume("v", "gone")],
            [],
            "volume v: belongs to claim default/gone, which no longer exists",
        ),
    ],
)
def test_storage_that_is_not_is_told_of(
    claims: list[Raw], volumes: list[Raw], pods: list[Raw], message: str
) -> None:
    """One thing that is wrong, one line."""
    [found] = told(claims, volumes, pods)

    assert found.endswith(message)


@pytest.mark.parametrize(
    ("claims", "is_held"),
    [
        ([claim("a", volume="v")], False),
        ([claim("a", storage="late")], False),
        ([claim("a", storage="now")], True),
        ([claim("a", storage="none")], True),
        ([claim("a", volume="v", deletionTimestamp="now")], True),
        ([], True),
    ],
)
def test_pods_that_wait_for_their_claims_are_known(claims: list[Raw], *, is_held: bool) -> None:
    """What no node could take does not wait in vain for one."""
    waiting = mounting("p", "a", node="", phase="Pending")
    found = StoredVolumes(claims, [], CLASSES, pods={"uid-p": waiting}).held_pods()

    assert found == ({"uid-p"} if is_held else frozenset())
