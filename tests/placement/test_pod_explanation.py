"""Explanations of pods: their node, or the causes and the tried changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace as changed

from dryrack.base.errors import DryrackError
from dryrack.cluster import SeededChance
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import (
    PodExplanation,
    Settings,
    World,
    explain_pod,
    party_of,
    what_if,
    with_only_pending,
)
from dryrack.placement.plugins import DEFAULT_PROFILE

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

SETTINGS = Settings(chance=SeededChance())
BACKFILL = {"scheduling.kubenexus.io/backfill": "true"}
SIZE = {"cpu": "8", "memory": "16Gi", "pods": "10"}


def node(name: str, **spec: Any) -> Node:
    labels = spec.pop("labels", {})
    document = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    return decode({**document, "status": {"allocatable": SIZE}}, Node)


def pod(name: str, *, cpu: str = "1", claim: str = "", **spec: Any) -> Pod:
    requests = {"requests": {"cpu": cpu}}
    entries = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
    own = {"containers": [{"name": "c", "image": "i", "resources": requests}]}
    metadata = {"name": name, "namespace": "team", "uid": name}
    document = {"metadata": metadata, "spec": {**own, "resourceClaims": entries, **spec}}
    return decode(document, Pod)


def gpus(on: str, count: int) -> ResourceSlice:
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(count)]
    spec = {"driver": "gpu.example.com", "nodeName": on, "pool": pool, "devices": devices}
    return decode({"metadata": {"name": on}, "spec": spec}, ResourceSlice)


def claim(name: str, count: int, *, has: str = "", by: str = "") -> ResourceClaim:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    status: Raw = {}
    if has:
        names = [{"key": "metadata.name", "operator": "In", "values": [has]}]
        place = {"request": "gpu", "driver": "gpu.example.com", "pool": has}
        results = [{**place, "device": f"gpu-{number}"} for number in range(count)]
        selector = {"nodeSelectorTerms": [{"matchFields": names}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
        status["reservedFor"] = [{"resource": "pods", "name": by, "uid": by}]
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    metadata = {"name": name, "namespace": "team"}
    return decode({"metadata": metadata, "spec": spec, "status": status}, ResourceClaim)


CLASS = decode({"metadata": {"name": "gpu"}}, DeviceClass)


def explained(name: str, *objects: Any, traced: bool = False) -> PodExplanation:
    world = with_only_pending(World.of(objects), {f"team/{name}"})
    return explain_pod(world, f"team/{name}", SETTINGS, traced=traced)


@pytest.mark.parametrize(
    ("nodes", "asking", "help_"),
    [
        ([node("a", unschedulable=True)], pod("p"), "uncordon node a"),
        (
            [node("a", taints=[{"key": "gpu", "value": "only", "effect": "NoSchedule"}])],
            pod("p"),
            "tolerate gpu=only:NoSchedule of node a",
        ),
        (
            [node("a")],
            pod("p", nodeSelector={"disk": "fast"}),
            "remove the nodeSelector disk: fast, or add this label to a node",
        ),
        ([node("a")], pod("p", cpu="12"), "request 8 CPUs instead of 12"),
        (
            [node("a"), pod("other", cpu="6", nodeName="a")],
            pod("p", cpu="4"),
            "delete pod team/other of node a",
        ),
    ],
)
def test_a_change_that_would_find_the_pod_a_node_is_named(
    nodes: list[Any], asking: Pod, help_: str
) -> None:
    """Each was tried, and the pod had a node."""
    told = explained("p", *nodes, asking)

    assert told.chosen == ""
    assert help_ in told.helps


def test_what_does_not_help_is_not_named() -> None:
    """To go elsewhere does not make a pod smaller than every node."""
    told = explained("p", node("a", unschedulable=True), pod("p", cpu="12"))

    assert told.helps == ()


def test_trying_changes_leaves_everything_as_it_was() -> None:
    """A second call has the same answer."""
    objects = (node("a", unschedulable=True), pod("other", nodeName="a"), pod("p"))
    world = World.of(objects)

    assert explain_pod(world, "team/p", SETTINGS) == explain_pod(world, "team/p", SETTINGS)


def test_devices_that_are_lacking_are_told_with_who_has_them() -> None:
    """And freeing them is told once, by the claim that has them."""
    there = (node("a"), gpus("a", 2), CLASS, claim("old", 1, has="a", by="x"))
    told = explained(
        "p", *there, pod("x", claim="old", nodeName="a"), claim("new", 2), pod("p", claim="new")
    )

    assert "in use by claim team/old" in str(told.nodes)
    assert "free the devices of claim team/old" in told.helps
    assert "delete pod team/x of node a" not in told.helps


def test_others_that_wait_are_not_served_before_it() -> None:
    """The explanation shows the decision for the pod now."""
    there = (node("a"), gpus("a", 1), CLASS)
    first = claim("first", 1)
    second = claim("second", 1)
    told = explained("q", *there, first, pod("p", claim="first"), second, pod("q", claim="second"))

    assert told.chosen == "a"
    assert list(told.devices) == ["team/second"]


def test_a_pod_that_is_placed_is_decided_again_without_itself() -> None:
    """It goes where it is, with the devices that it has, though it takes all of the node."""
    there = (node("a"), gpus("a", 2), CLASS, claim("all", 2, has="a", by="p"))
    told = explained("p", *there, pod("p", cpu="8", claim="all", nodeName="a"), traced=True)

    assert (told.node, told.chosen) == ("a", "a")
    assert [each.device for each in told.devices["team/all"].devices.results] == ["gpu-0", "gpu-1"]
    assert told.trace is not None
    assert told.trace.chosen == "a"


def test_what_is_missing_is_told_as_the_scheduler_tells_it() -> None:
    """In its words, and with what to do."""
    told = explained("p", node("a"), pod("p", claim="none"))

    assert told.message == 'resourceclaim "none" not found; create it'
    assert "which does not exist" in str(told.nodes)


def test_nodes_that_refuse_for_the_same_are_told_together() -> None:
    """However much each of them has left."""
    used = [pod(f"on-{number}", cpu=str(number), nodeName=f"n{number}") for number in range(1, 5)]
    told = explained("p", *(node(f"n{number}") for number in range(5)), *used, pod("p", cpu="9"))

    assert [(story.node, len(story.alike)) for story in told.nodes] == [("n0", 4)]


def test_nodes_with_different_taints_are_not_alike() -> None:
    """A toleration that would do for the second node is not hidden behind the first."""
    down, new = (
        node(name, taints=[{"key": key, "effect": "NoSchedule"}], labels={"zone": name})
        for name, key in (("a", "not-ready"), ("b", "unregistered"))
    )
    story = explained("p", down, new, pod("p", nodeSelector={"zone": "b"}))

    assert [each.node for each in story.nodes] == ["b", "a"]
    assert "tolerate unregistered:NoSchedule of node b" in story.helps


def test_a_pod_is_decided_by_the_profile_of_its_scheduler() -> None:
    """One that does not look at resources has room where kube-scheduler's has none."""
    blind = replace(DEFAULT_PROFILE, filters=(), scores=())
    settings = replace(SETTINGS, profiles={"blind": blind})
    world = World.of([node("a"), pod("p", cpu="9"), pod("q", cpu="9", schedulerName="blind")])
    told = {name: explain_pod(world, f"team/{name}", settings).chosen for name in ("p", "q")}

    assert told == {"p": "", "q": "a"}
    assert what_if(world, settings).nodes == {"team/q": "a"}


def test_a_pod_that_is_not_there_is_told_with_one_that_was_meant() -> None:
    """By a name that is near."""
    with pytest.raises(
        DryrackError,
        match=r"pod 'team/trian' not found, or it has ended; did you mean 'team/train'\?",
    ):
        party_of(World.of([node("a"), pod("train")]), "team/trian")


def nominated(name: str, on: str, *, created: str = "", **pod_: Any) -> Pod:
    """A pod that waits, and for which room is kept."""
    made = pod(name, **pod_)
    return changed(
        made,
        metadata=changed(made.metadata, creation_timestamp=created),
        status=changed(made.status, nominated_node_name=on),
    )


def test_room_that_is_kept_for_another_pod_is_not_offered() -> None:
    """Neither its CPU nor its devices; a pod that nobody keeps anything for counts as nothing."""
    keeps = nominated("kept", "a", cpu="6", claim="kept")
    world = [CLASS, node("a"), gpus("a", 2), claim("kept", 1), claim("own", 2), keeps]
    large = explained("p", *world, pod("p", cpu="4"))
    greedy = explained("p", *world, pod("p", claim="own"))
    small = explained("p", *world, pod("p", cpu="2"))

    assert large.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert greedy.message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert small.chosen == "a"
    assert explained("p", node("a"), pod("waits", cpu="6"), pod("p", cpu="4")).chosen == "a"


@pytest.mark.parametrize(
    ("created", "more"),
    [
        ("2026-01-01T00:00:01Z", {"priority": 1}),
        ("2025-12-31T00:00:00Z", {}),
        ("2026-01-01T00:00:01Z", {"schedulerName": "kubenexus-scheduler", "labels": BACKFILL}),
    ],
    ids=["more important", "older", "backfill"],
)
def test_who_comes_first_or_may_be_sent_away_sees_nothing_of_it(created: str, more: Raw) -> None:
    """As in the scheduler: it is kept from those who come later."""
    labels = more.get("labels", {})
    asking = pod("p", cpu="4", **{key: each for key, each in more.items() if key != "labels"})
    metadata = changed(asking.metadata, creation_timestamp=created, labels=labels)
    kept = nominated("kept", "a", cpu="6", created="2026-01-01T00:00:00Z")
    told = explained("p", node("a"), kept, changed(asking, metadata=metadata))

    assert told.chosen == "a"


def test_what_is_kept_for_a_gang_is_kept_from_the_more_important_too() -> None:
    """A gang that waits comes before everybody else after a minute."""
    prefix = "pod-group.scheduling.kubenexus.io"
    labels = {f"{prefix}/name": "gang", f"{prefix}/min-available": "2"}
    kept = nominated("kept", "a", cpu="6", created="2026-01-01T00:00:00Z")
    kept = changed(kept, metadata=changed(kept.metadata, labels=labels))
    told = explained("p", node("a"), kept, pod("p", cpu="4", priority=5))

    assert told.message == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize("count", range(1, 11))
def test_devices_in_the_way_are_those_that_the_pod_needs(count: int) -> None:
    """Without the claims of the ringed devices, the pod fits; without rings, no release helps."""
    holders = [(3, "a"), (2, "b"), (1, "c")]
    objects = [
        node("n1"),
        gpus("n1", 8),
        CLASS,
        *(pod(name, claim=f"claim-{name}", nodeName="n1") for _, name in holders),
        pod("new", claim="claim-new"),
        claim("claim-new", count),
    ]
    held = []
    place = 0
    for size, name in holders:
        own = claim(f"claim-{name}", size, has="n1", by=name)
        allocation = own.status.allocation
        assert allocation is not None
        results = tuple(
            changed(each, device=f"gpu-{place + number}")
            for number, each in enumerate(allocation.devices.results)
        )
        place += size
        devices = changed(allocation.devices, results=results)
        status = changed(own.status, allocation=changed(allocation, devices=devices))
        held.append((name, results, changed(own, status=status)))
    ringed = explained("new", *objects, *(each for _, _, each in held)).in_the_way
    released = {
        name
        for name, results, _ in held
        if any(f"{it.driver}/{it.pool}/{it.device}" in ringed for it in results)
    }
    rest = [each for each in objects if each.metadata.name not in released]
    kept = [each for name, _, each in held if name not in released]
    after = explained("new", *rest, *kept)

    assert bool(ringed) == (2 < count <= 8)
    assert bool(after.chosen) == (count <= 8)
