"""Claims are created once, released completely, and never while a pod uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.controllers.scenes import pod_with_claim, template_in
from tests.controllers.worlds import World

from dryrack.client.endpoints import CLAIMS, PODS, TEMPLATES
from dryrack.client.informer import Name, name_of
from dryrack.controllers.claims import creation, device_taints, eviction, release
from dryrack.controllers.objects import finalizers_of, status_of, uid_of
from dryrack.controllers.writes import Create, Delete, Report
from dryrack.kinds.expansion.pod_claims import (
    DELETE_PROTECTION,
    claim_from_template,
    generate_name,
)

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

POD = Name("default", "worker")


def made(world: World) -> Raw:
    claims = {name_of(each): each for each in world.all(CLAIMS)}
    templates = {name_of(each): each for each in world.all(TEMPLATES)}
    pod = world.get(PODS, POD)
    assert pod is not None
    return {"pod": pod, "claims": claims, "templates": templates}


@given(st.lists(st.integers(0, 3), max_size=10))
def test_a_pod_gets_one_claim_for_each_entry(crashes: list[int]) -> None:
    """One claim is created and its name is written, however often the controller restarts."""
    world = World()
    world.create(TEMPLATES, template_in("default"))
    world.create(PODS, pod_with_claim(POD))
    for up_to in [*crashes, None, None, None]:
        world.carry_out(creation.plan(**made(world)).writes, up_to=up_to)
    (claim,) = world.all(CLAIMS)
    pod = world.get(PODS, POD)
    assert pod is not None

    assert status_of(pod)["resourceClaimStatuses"] == [
        {"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}
    ]
    assert creation.plan(**made(world)).writes == ()


def test_a_claim_looks_as_upstream_makes_it() -> None:
    """Owner, annotation, labels and spec are those that kube-controller-manager writes."""
    world = World()
    template = template_in("default")
    template["spec"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    pod = world.create(PODS, pod_with_claim(POD))

    assert claim_from_template(pod, "gpu", template) == {
        "metadata": {
            "generateName": "worker-gpu-",
            "namespace": "default",
            "labels": {"a": "b"},
            "annotations": {"c": "d", "resource.kubernetes.io/pod-claim-name": "gpu"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": "worker",
                    "uid": uid_of(pod),
                    "controller": True,
                }
            ],
        },
        "spec": template["spec"]["spec"],
    }


@pytest.mark.parametrize(
    ("pod", "entry", "expected"),
    [
        ("web", "gpu", "web-gpu-"),
        ("p" * 53, "c", f"{'p' * 53}-c-"),
        ("p" * 54, "c", f"{'p' * 54}-c-"),
        ("p" * 60, "c" * 60, f"{'p' * 28}-{'c' * 28}"),
        ("p" * 253, "c" * 63, f"{'p' * 45}-{'c' * 11}"),
    ],
)
def test_long_names_are_cut_in_proportion(pod: str, entry: str, expected: str) -> None:
    """Both parts of a generated name keep their share of 57 characters."""
    assert generate_name(pod, entry) == expected


def test_a_missing_template_is_said() -> None:
    """A pod whose template is not there gets an event and no claim."""
    world = World()
    world.create(PODS, pod_with_claim(POD))
    (write,) = creation.plan(**made(world)).writes

    assert isinstance(write, Report)
    assert write.reason == "FailedResourceClaimCreation"
    assert '"gpu"' in write.message


def test_a_deleted_pod_gets_no_claim() -> None:
    """No claim is created for a pod that is being deleted."""
    world = World()
    world.create(TEMPLATES, template_in("default"))
    pod = pod_with_claim(POD, deletionTimestamp="2027-01-15T08:00:00Z", finalizers=["x"])
    world.create(PODS, pod)

    assert not any(isinstance(each, Create) for each in creation.plan(**made(world)).writes)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_gets_no_other_claim(phase: str) -> None:
    """The claim of a pod that has ended goes, and none is made in its place."""
    world = World()
    world.create(TEMPLATES, template_in("default"))
    pod = world.create(PODS, pod_with_claim(POD))
    world.carry_out(creation.plan(**made(world)).writes)
    world.carry_out(creation.plan(**made(world)).writes)
    (claim,) = world.all(CLAIMS)
    status = world.all(PODS)[0]["status"] | {"phase": phase}
    ended = world.put(PODS, pod | {"status": status})
    world.carry_out(release.plan(claim, lambda name: ended).writes)

    assert world.all(CLAIMS) == []
    assert creation.plan(**made(world)).writes == ()


PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "gone", "replaced", "other"])


@given(st.lists(PHASES, max_size=5), st.booleans(), st.booleans(), st.booleans())
def test_reservations_end_with_their_pods(
    phases: list[str], is_allocated: bool, is_protected: bool, is_deleted: bool
) -> None:
    """A pod that may still run keeps the claim; with the last pod it is released."""
    world, claim, pods = _reserved(phases)
    # Only what is allocated can be reserved; the server sees to it.
    is_allocated = is_allocated or bool(phases)
    if is_allocated:
        claim["status"]["allocation"] = {"devices": {}}
    if is_protected:
        claim["metadata"]["finalizers"] = [DELETE_PROTECTION]
    if is_deleted:
        claim["metadata"] |= {"deletionTimestamp": "2027-01-15T08:00:00Z", "held": True}
    stored = world.create(CLAIMS, claim)
    world.carry_out(release.plan(stored, pods.get).writes)
    after = world.get(CLAIMS, name_of(stored))
    assert after is not None

    living = [
        number for number, each in enumerate(phases) if each in ("Pending", "Running", "other")
    ]
    left = [each["uid"] for each in status_of(after).get("reservedFor") or ()]
    assert left == [f"uid-of-{number}" for number in living]
    was_freed = not living and is_protected and (bool(phases) or is_deleted)
    assert ("allocation" in status_of(after)) == (is_allocated and not was_freed)
    assert (DELETE_PROTECTION in finalizers_of(after)) == (is_protected and not was_freed)
    again = release.plan(after, pods.get)
    assert again.writes == ()


def _reserved(phases: list[str]) -> tuple[World, Raw, dict[str, Raw]]:
    consumers = []
    pods = {}
    for number, phase in enumerate(phases):
        name = f"pod-{number}"
        uid = f"uid-of-{number}"
        kind = "widgets" if phase == "other" else "pods"
        consumers.append({"resource": kind, "name": name, "uid": uid})
        if phase not in ("gone", "other"):
            real = "another" if phase == "replaced" else uid
            metadata = {"name": name, "namespace": "default", "uid": real}
            pods[name] = {
                "metadata": metadata,
                "spec": {"nodeName": "n"},
                "status": {"phase": phase},
            }
    status: Raw = {"reservedFor": consumers} if consumers else {}
    metadata = {"name": "claim", "namespace": "default"}
    return World(), {"metadata": metadata, "spec": {}, "status": status}, pods


def test_a_claim_made_for_a_finished_pod_goes() -> None:
    """It is deleted while the pod is still there, and stays while the pod may run."""
    world = World()
    pod = world.create(PODS, pod_with_claim(POD)) | {"spec": {"nodeName": "n"}}
    claim = world.create(CLAIMS, claim_from_template(pod, "gpu", template_in("default")))
    running = release.plan(claim, {POD.name: pod}.get)
    finished = release.plan(claim, {POD.name: pod | {"status": {"phase": "Failed"}}}.get)
    unknown = release.plan(claim, lambda _: None)

    assert running.writes == unknown.writes == ()
    assert finished.writes == (Delete(CLAIMS, name_of(claim), uid_of(claim)),)


def _on_device(tolerations: list[Raw]) -> tuple[Raw, Raw]:
    world = World()
    pod = world.create(PODS, pod_with_claim(POD)) | {"spec": {"nodeName": "n"}}
    result = {"request": "gpu", "driver": "d", "pool": "p", "device": "x"}
    results = [result | {"tolerations": tolerations}]
    claim = {"metadata": {}, "status": {"allocation": {"devices": {"results": results}}}}
    return pod, claim


@pytest.mark.parametrize(
    ("tolerations", "leaves_after"),
    [
        ([], 0),
        ([{"key": "k", "operator": "Exists", "effect": "NoExecute"}], None),
        ([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}], 60),
        ([{"key": "k", "operator": "Equal", "value": "w", "effect": "NoExecute"}], 0),
        ([{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}], 0),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 0),
        # For scheduling it is a toleration of all effects; the real controller passes over it.
        ([{"key": "k", "operator": "Exists"}], 0),
        (
            [
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
            ],
            30,
        ),
        (
            [
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
                {"operator": "Exists", "effect": "NoExecute"},
            ],
            None,
        ),
    ],
)
def test_device_taints_drive_pods_out(tolerations: list[Raw], leaves_after: int | None) -> None:
    """A pod leaves when the shortest toleration of its claim is over, counted from the taint."""
    pod, claim = _on_device(tolerations)
    added = 1_800_000_000.0
    taint = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2027-01-15T08:00:00Z"}
    now = added + 10
    when = device_taints.eviction_from(
        [claim], lambda _: [device_taints.NoExecuteTaint(taint)], now
    )
    plan = eviction.plan(pod, when, now)

    deletes = any(isinstance(each, Delete) for each in plan.writes)
    assert deletes == (leaves_after is not None and leaves_after <= 10)
    wait = leaves_after - 10 if leaves_after is not None and leaves_after > 10 else None
    assert plan.again_seconds == wait


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    """A taint in a slice of an old generation evicts no pod."""

    def published(generation: int, taints: list[Raw]) -> Raw:
        pool = {"name": "p", "generation": generation}
        return {"spec": {"driver": "d", "pool": pool, "devices": [{"name": "x", "taints": taints}]}}

    taint = {"key": "k", "effect": "NoExecute"}

    assert device_taints.taints_of([published(1, [taint]), published(2, [])]) == {}
    assert device_taints.taints_of([published(2, [taint]), published(1, [])]) == {
        ("d", "p", "x"): [taint]
    }
