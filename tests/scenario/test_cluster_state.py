"""The invariants of a cluster: what persists, what settles, and what is not checked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.scenario import (
    ClusterState,
    Invariant,
    InvariantResult,
    PreparedClaims,
    check_state,
    find_lasting,
)
from dryrack.testing import Cluster, ExpectationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

NOW = 1_800_000_000.0
RECENT = "2027-01-15T07:59:59Z"
LONG_AGO = "2026-01-01T00:00:00Z"
DRIVER = "gpu.example.com"
PREFIX = "pod-group.scheduling.kubenexus.io"


def pod(name: str, node: str = "n1", phase: str = "Running", **metadata: Any) -> Raw:
    described = {"name": name, "namespace": "default", "uid": name, **metadata}
    described.setdefault("creationTimestamp", LONG_AGO)
    spec = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
    return {"metadata": described, "spec": spec, "status": {"phase": phase}}


def claim(name: str, device: str = "gpu-0", user: str = "", **result: Any) -> Raw:
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    results = [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": device, **result}]
    allocation = {"devices": {"results": results}, "allocationTimestamp": RECENT}
    users = [{"resource": "pods", "name": user, "uid": user}] if user else []
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": allocation, "reservedFor": users},
    }


SLICE: Raw = {
    "metadata": {"name": "s", "uid": "s"},
    "spec": {
        "driver": DRIVER,
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
    },
}
NODE: Raw = {"metadata": {"name": "n1", "uid": "n1"}, "spec": {}, "status": {}}


def state(pods: Sequence[Raw] = (), claims: Sequence[Raw] = (), **more: Any) -> ClusterState:
    objects: Mapping[Endpoint, Sequence[Raw]] = {
        NODES: [NODE],
        SLICES: [SLICE],
        PODS: pods,
        CLAIMS: claims,
    }
    return ClusterState(objects=objects, now=NOW, **more)


def violated(seen: ClusterState) -> list[str]:
    return [str(each) for result in check_state(seen) for each in result.violations]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (state([pod("p")], [claim("c", user="p")]), []),
        (
            state([pod("p")], [claim("c", user="p"), claim("d", user="p")]),
            [("no device is allocated twice: device gpu.example.com/n1/gpu-0: is allocated to "
             "claims default/c, default/d")],
        ),
        (
            state([pod("p")], [claim("c", device="gpu-9", user="p")]),
            [("allocated devices are published: claim default/c: gpu.example.com/n1/gpu-9 is in no "
             "ResourceSlice")],
        ),
        (
            state((), [claim("c", user="ghost")]),
            [("nothing is leaked: claim default/c: is reserved for pod ghost, which no longer "
             "exists")],
        ),
        (state([pod("p", deletionTimestamp=RECENT)]), []),
        (
            state([pod("p", deletionTimestamp=LONG_AGO)]),
            ["nothing is leaked: pod default/p: has a deletionTimestamp, but still exists"],
        ),
        (state([pod("p", phase="Pending", creationTimestamp=RECENT)], [claim("c", user="p")]), []),
        (
            state([pod("p", phase="Pending")], [claim("c", user="p")]),
            [("no schedulable pod stays pending: pod default/p: is bound to node n1, but does not "
             "start")],
        ),
        (
            state([pod("p", node="n9")], []),
            ["nothing is leaked: pod default/p: is bound to node n9, which no longer exists"],
        ),
    ],
)  # fmt: skip
def test_a_violation_names_the_object(seen: ClusterState, expected: list[str]) -> None:
    """Each state has exactly these violations; what a component may still complete has none."""
    assert violated(seen) == expected


def test_every_violation_has_a_fix() -> None:
    """A person who reads a violation learns what to do."""
    seen = state([pod("p", node="n9")], [claim("c"), claim("d", user="x"), claim("e", "gpu-9")])
    found = [each for result in check_state(seen) for each in result.violations]
    assert len(found) >= 5
    assert all(each.fix for each in found)


def test_a_claim_that_waits_for_its_driver_may_be_reserved_for_a_pending_pod() -> None:
    """Binding conditions take up to ten minutes; without them the reservation is left over."""
    waiting = [pod("p", node="", phase="Pending")]
    bound = claim("c", user="p", bindingConditions=["attached"])
    assert violated(state(waiting, [bound], unread=frozenset({"nodes"}))) == []
    leaks = [each for each in violated(state(waiting, [claim("c", user="p")])) if "leaked" in each]
    assert leaks == [
        "nothing is leaked: claim default/c: is reserved for pod p, which is not bound to a node"
    ]


def test_a_pod_that_replaces_a_member_of_a_gang_does_not_make_it_half_bound() -> None:
    """A pod that was pending when another member was bound does."""
    labels = {f"{PREFIX}/name": "gang", f"{PREFIX}/min-available": "2"}
    bound = pod("a", labels=labels)
    old = pod("b", node="", phase="Pending", labels=labels)
    new = pod("b", node="", phase="Pending", labels=labels, creationTimestamp=RECENT)
    halves = [
        [each for each in violated(state([bound, it])) if "gang" in each] for it in (old, new)
    ]
    assert halves[0][0].startswith("no gang is partly bound: pod group default/gang: 1 of 2")
    assert [each for each in halves[1] if each.startswith("no gang")] == []


def test_an_invariant_without_its_objects_is_not_checked() -> None:
    """It has no violation, and the result gives the reason."""
    seen = state((), [claim("c", user="ghost")], unread=frozenset({"pods"}))
    results = {each.invariant: each for each in check_state(seen)}
    assert results[Invariant.NO_LEAK].state == "not checked"
    assert results[Invariant.NO_LEAK].unchecked == "the account cannot list pods"
    assert results[Invariant.NO_LEAK].violations == ()
    assert results[Invariant.ONE_HOLDER].state == "ok"


def test_prepared_claims_are_compared_where_a_driver_has_a_record() -> None:
    """Without a record the result names the driver; a record without the claim is a violation."""
    pods, claims = [pod("p")], [claim("c", user="p")]

    def prepared(*records: PreparedClaims) -> tuple[str, list[str]]:
        results = check_state(state(pods, claims, prepared=records))
        [result] = [each for each in results if each.invariant is Invariant.PREPARED]
        leaks = [str(it) for each in results for it in each.violations]
        return result.state, leaks

    assert prepared() == ("not checked", [])
    assert prepared(PreparedClaims(DRIVER, frozenset({"c"}), "n1")) == ("ok", [])
    assert prepared(PreparedClaims(DRIVER, frozenset(), "n2")) == ("ok", [])
    assert prepared(PreparedClaims(DRIVER, frozenset(), "n1"))[0] == "violated"
    _, leaks = prepared(PreparedClaims(DRIVER, frozenset({"c", "old"}), "n1"))
    assert leaks == [
        (
            "nothing is leaked: claim with UID old: is prepared by gpu.example.com on node n1, "
            "and has no device"
        )
    ]


def test_only_violations_that_persist_are_reported() -> None:
    """One that a later look does not find is gone; without any the reading ends early."""
    twice = state([pod("p")], [claim("c", user="p"), claim("d", user="p")])
    ghost = state([pod("p")], [claim("c", user="p"), claim("d", "gpu-1", user="ghost")])
    sound = state([pod("p")], [claim("c", user="p")])

    def look(*states: ClusterState) -> tuple[list[str], int]:
        left = list(states)

        async def read() -> ClusterState:
            return left.pop(0) if len(left) > 1 else left[0]

        async def run() -> list[str]:
            clock = VirtualClock()
            task = asyncio.ensure_future(find_lasting(read, clock, 5.0))
            await clock.advance_until(task.done)
            return [each.subject for it in task.result() for each in it.violations]

        return run_virtual(run()), len(left)

    assert look(sound) == ([], 1)
    assert look(twice) == (["device gpu.example.com/n1/gpu-0"], 1)
    assert look(twice, ghost, sound, twice) == ([], 2)


def test_a_pod_in_the_queue_of_a_busy_scheduler_is_not_starving() -> None:
    """While others are bound, only a pod that is older than one of them is passed over."""
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "20"}
    node = NODE | {"status": {"allocatable": allocatable, "capacity": allocatable}}

    def seen(*pods: Raw) -> ClusterState:
        found = state(pods)
        return replace(found, objects={**found.objects, NODES: [node]})

    def waiting(name: str, created: str) -> Raw:
        return pod(name, node="", phase="Pending", creationTimestamp=f"2026-01-01T00:00:{created}Z")

    old, middle, new = (waiting(name, at) for name, at in (("a", "01"), ("b", "02"), ("c", "03")))
    bound = pod("b", creationTimestamp="2026-01-01T00:00:02Z")

    def starving(first: ClusterState, last: ClusterState) -> tuple[list[str], str]:
        [result] = [it for it in lasting(first, last) if it.invariant is Invariant.NO_STARVATION]
        return [each.subject for each in result.violations], result.unchecked

    assert starving(seen(old, middle, new), seen(old, middle, new)) == (
        ["pod default/a", "pod default/b", "pod default/c"],
        "",
    )
    subjects, reason = starving(seen(old, middle, new), seen(old, bound, new))
    assert subjects == ["pod default/a"]
    assert reason == "the scheduler is busy: 1 pending pods wait for their turn; check again"


def lasting(*states: ClusterState) -> Sequence[InvariantResult]:
    """Return the results of looks at these states, of which the last one stays."""
    left = list(states)

    async def read() -> ClusterState:
        return left.pop(0) if len(left) > 1 else left[0]

    async def run() -> Sequence[InvariantResult]:
        clock = VirtualClock()
        task = asyncio.ensure_future(find_lasting(read, clock, 5.0))
        await clock.advance_until(task.done)
        return task.result()

    return run_virtual(run())


def test_the_fixture_checks_a_cluster() -> None:
    """A cluster with running pods has no violation; a device of two claims fails the test."""
    manifest = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers: [{name: c, image: x, resources: {claims: [{name: g}]}}]
  resourceClaims: [{name: g, resourceClaimName: NAME}]
"""
    with Cluster() as cluster:
        cluster.add_nodes(devices="gpu:2")
        cluster.apply(manifest.replace("NAME", "a"))
        cluster.expect_scheduled("a")
        cluster.check_invariants()
        taken = cluster.get("ResourceClaim", "a")
        metadata = {"name": "b", "namespace": "default"}
        other = cluster.run(cluster.client.create(CLAIMS, taken | {"metadata": metadata}))
        status = {"allocation": taken["status"]["allocation"]}
        cluster.run(cluster.client.update(CLAIMS, other | {"status": status}, subresource="status"))
        with pytest.raises(ExpectationError, match=r"is allocated to claims default/a, default/b"):
            cluster.check_invariants(within=1)
