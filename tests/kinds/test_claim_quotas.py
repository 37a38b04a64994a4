"""
The quota usage of claims, by device class and by extended resource.

The cases are those of the evaluator for ResourceClaims in Kubernetes 1.36
(`pkg/quota/v1/evaluator/core`), and a few for what its cases leave open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.kinds.quota_usage.amounts import amounts_to_json
from dryrack.kinds.quota_usage.claims import ClaimContext, claim_names, claim_usage
from dryrack.kinds.quota_usage.pods import is_over
from dryrack.kinds.quota_usage.quotas import count_usage

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu"
EXPLICIT = "requests.example.com/gpu"
BY_CLASS = {"deviceclass.resource.kubernetes.io/gpu": "1"}
BY_NAME = {"example.com/gpu": "1"}


def exactly(count: int = 1, mode: str = "ExactCount", **more: Any) -> Raw:
    return {"exactly": request(count, mode) | more}


def request(count: int = 1, mode: str = "ExactCount", name: str = "gpu") -> Raw:
    counted = {"count": count} if mode == "ExactCount" else {}
    return {"deviceClassName": name, "allocationMode": mode, **counted}


def claim(*requests: Raw, owner: str = "", name: str = "foo", **meta: Any) -> Raw:
    metadata: Raw = {"name": name, "namespace": "ns", **meta}
    if owner:
        pod = {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": "uid", "controller": True}
        metadata["ownerReferences"] = [pod]
        metadata["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    return {"metadata": metadata, "spec": {"devices": {"requests": list(requests)}}}


def pod(name: str, *containers: Raw, first: tuple[Raw, ...] = (), claim: str = "foo") -> Raw:
    def of(requests: Raw) -> Raw:
        return {"name": "c", "resources": {"requests": requests}}

    spec = {"containers": [of(each) for each in containers]}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": claim}} if claim else {}
    metadata = {"name": name, "namespace": "ns", "uid": "uid"}
    spec["initContainers"] = [of(each) for each in first]
    return {"metadata": metadata, "spec": spec, "status": status}


PODS = {
    each["metadata"]["name"]: each
    for each in (
        pod("implicit", BY_CLASS),
        pod("explicit", first=(BY_NAME,)),
        pod("hybrid", BY_NAME | BY_CLASS, first=(BY_NAME | BY_CLASS,)),
        pod("no-status", BY_CLASS, first=(BY_NAME,), claim=""),
        pod("init", BY_NAME | BY_CLASS, first=(BY_NAME | BY_CLASS,) * 2),
        pod("other-claim", BY_NAME | BY_CLASS, claim="bar"),
    )
}
PODS["another"] = PODS["hybrid"] | {"metadata": {"name": "another", "uid": "another"}}
PODS["ended"] = PODS["hybrid"] | {"status": PODS["hybrid"]["status"] | {"phase": "Succeeded"}}


def context(*others: Raw, extended: str = "example.com/gpu") -> ClaimContext:
    return ClaimContext(
        classes={"gpu": extended},
        pod=lambda _, name: PODS.get(name),
        claims=lambda _: others,
        is_over=lambda each: is_over(each, 0.0),
    )


@pytest.mark.parametrize(
    ("owner", "requests", "implicit", "explicit"),
    [
        ("implicit", 1, None, "1"),
        ("explicit", 1, "1", None),
        ("hybrid", 2, "1", "1"),
        ("no-status", 2, "1", "1"),
        ("init", 2, "1", "1"),
        # These pods do not pay for the claim.
        ("other-claim", 2, "2", "2"),
        ("another", 2, "2", "2"),
        ("ended", 2, "2", "2"),
        ("missing", 2, "2", "2"),
        ("", 2, "2", "2"),
    ],
)
def test_a_claim_is_charged_for_what_its_pod_is_not(
    owner: str, requests: int, implicit: str | None, explicit: str | None
) -> None:
    """Extended resources that the pod requests are charged to the pod, and only once."""
    found = amounts_to_json(claim_usage(claim(*[exactly()] * requests, owner=owner), context()))
    wanted = {COUNT: "1", DEVICES: str(requests), IMPLICIT: implicit, EXPLICIT: explicit}
    assert found == {name: amount for name, amount in wanted.items() if amount is not None}


@pytest.mark.parametrize(
    ("other", "is_first"),
    [
        (claim(owner="no-status", name="foo-copy"), True),
        (claim(owner="no-status", name="a"), False),
        (claim(owner="no-status", name="a", creationTimestamp="2026-01-03T00:00:00Z"), True),
        (claim(owner="no-status", name="z", creationTimestamp="2026-01-01T00:00:00Z"), False),
        (claim(name="a"), True),
    ],
    ids=["later name", "earlier name", "newer", "older", "not of the pod"],
)
def test_the_first_claim_of_a_pod_is_paid_by_the_pod(other: Raw, *, is_first: bool) -> None:
    """While the pod names no claim, its oldest one counts as its own; a second one is charged."""
    time = None if "creationTimestamp" not in other["metadata"] else "2026-01-02T00:00:00Z"
    own = claim(exactly(), owner="no-status", **({"creationTimestamp": time} if time else {}))
    found = claim_usage(own, context(own, other))
    assert (EXPLICIT not in found) == is_first


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        ([exactly()], "1"),
        ([exactly()] * 5, "5"),
        ([exactly(5)], "5"),
        ([exactly(mode="All")], "32"),
        ([exactly(mode="future-mode")], "0"),
        ([exactly(adminAccess=True)], "1"),
        ([{"firstAvailable": [request()]}], "1"),
        ([{"firstAvailable": [request(2), request(1)]}], "2"),
        ([{"firstAvailable": [request(), request(mode="All")]}], "32"),
        ([{"firstAvailable": [request(), request(mode="All", name="tpu")]}], "1"),
        ([{}], None),
    ],
)
def test_a_claim_is_charged_for_the_most_it_can_get(
    requests: list[Raw], devices: str | None
) -> None:
    """Each class counts by its own name and by the extended resource that every class has."""
    found = amounts_to_json(claim_usage(claim(*requests), context(extended="")))
    assert found.get(DEVICES) == devices
    assert found.get(IMPLICIT) == (devices if devices != "0" else None)
    assert EXPLICIT not in found
    if "tpu" in str(requests):
        assert found["requests.deviceclass.resource.kubernetes.io/tpu"] == "32"


def test_claims_answer_to_names_of_classes_that_exist() -> None:
    """`requests.NAME` is about claims if a class stands for NAME; the others always are."""
    classes = {"gpu": "example.com/gpu", "plain": ""}
    mine = [COUNT, DEVICES, "gone.deviceclass.resource.k8s.io/devices", EXPLICIT, IMPLICIT]
    mine.append("requests.deviceclass.resource.kubernetes.io/plain")
    others = [
        "resourceclaims",
        "storage",
        "ephemeral-storage",
        "requests.cpu",
        "bronze.deviceclass.resource.k8s.io/storage",
        "gpu.storage.k8s.io/requests.storage",
        "requests.example.com/nic",
        "requests.deviceclass.resource.kubernetes.io/gone",
        "example.com/gpu",
    ]
    assert claim_names([*mine, *others], classes) == mine


def test_a_quota_counts_pods_and_claims_together() -> None:
    """The pod pays for its extended resources, a claim for itself; the sum is what is used."""
    names = {EXPLICIT: "9", IMPLICIT: "9", DEVICES: "9"}
    objects = {
        "pods": [PODS["hybrid"]],
        "resourceclaims.resource.k8s.io": [
            claim(exactly(), exactly(), owner="hybrid"),
            claim(exactly(3), name="bar"),
        ],
    }
    quota = {"spec": {"hard": names}}
    used = count_usage(quota, lambda resource: objects.get(resource, []), context())
    assert amounts_to_json(used) == {DEVICES: "5", EXPLICIT: "5", IMPLICIT: "5"}
