"""A selector that fails on any node ends the attempt, whatever fits elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.allocation.builders import allocator

from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice
from dryrack.placement import Cluster, Fleet, Placed, Unplaced, place
from dryrack.placement.attempt import nodes_to_find

GOOD = {"name": "good", "attributes": {"kind": {"string": "gpu"}}}
BAD = {"name": "bad"}
MESSAGE = (
    "claim default/k: selector #0 on device d/node-001/bad: CEL runtime error: no such key: kind"
)


class NoChance:
    """Nothing here is shared, so nobody needs an identifier."""

    def uuid(self) -> str:
        raise AssertionError("no identifier is needed")


def fleet(size: int, *, cordoned: str = "") -> Fleet:
    made = Fleet()
    for number in range(size):
        name = f"node-{number:03}"
        spec = {"unschedulable": True} if name == cordoned else {}
        status = {"allocatable": {"cpu": "4", "pods": "10"}}
        made.put(decode({"metadata": {"name": name}, "spec": spec, "status": status}, Node))
    return made


def slice_of(node: str, *devices: dict[str, Any]) -> ResourceSlice:
    spec = {
        "driver": "d",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    return decode({"metadata": {"name": node}, "spec": spec}, ResourceSlice)


def cluster(nodes: Fleet, *slices: ResourceSlice) -> Cluster:
    classes = [decode({"metadata": {"name": "c"}}, DeviceClass)]
    return Cluster(nodes, allocator(list(slices), classes=classes, chance=NoChance()))


def claim(mode: str = "ExactCount") -> ResourceClaim:
    selectors = [{"cel": {"expression": 'device.attributes["d"].kind == "gpu"'}}]
    exactly: dict[str, object] = {"deviceClassName": "c", "selectors": selectors}
    exactly["allocationMode"] = mode
    exactly |= {"count": 1} if mode == "ExactCount" else {}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    return decode({"metadata": {"name": "k", "namespace": "default"}, "spec": spec}, ResourceClaim)


def placed(where: Cluster, mode: str = "ExactCount") -> Placed | Unplaced:
    pod = decode({"metadata": {"name": "p", "namespace": "default"}, "spec": {}}, Pod)
    return place(pod, [claim(mode)], [], where)


def fleet_of(size: int, bad: int) -> Cluster:
    """Return nodes of which the last `bad` have a device that the selector fails on."""
    slices = [
        slice_of(f"node-{number:03}", BAD if number >= size - bad else GOOD)
        for number in range(size)
    ]
    return cluster(fleet(size), *slices)


def test_a_failure_on_another_node_ends_the_attempt() -> None:
    """kube-scheduler asks all nodes of a small cluster, and an error of one is the answer."""
    outcome = placed(fleet_of(2, bad=1))

    assert isinstance(outcome, Unplaced)
    assert outcome.message.startswith(MESSAGE)


def test_a_device_that_the_search_does_not_come_to_does_no_harm() -> None:
    """On the node with both, the search ends with the first device."""
    both = slice_of("node-001", GOOD, BAD)
    outcome = placed(cluster(fleet(2), slice_of("node-000", GOOD), both))

    assert isinstance(outcome, Placed)


def test_a_request_for_all_devices_comes_to_every_device() -> None:
    """So it fails where a request for one does not."""
    both = slice_of("node-001", GOOD, BAD)
    outcome = placed(cluster(fleet(2), slice_of("node-000", GOOD), both), "All")

    assert isinstance(outcome, Unplaced)
    assert outcome.message.startswith(MESSAGE)


def test_an_incomplete_pool_ends_an_attempt_for_all_devices() -> None:
    """Such an error of one node counts for all nodes, as well."""
    pool = {"name": "node-001", "generation": 1, "resourceSliceCount": 2}
    raw = {"driver": "d", "nodeName": "node-001", "pool": pool, "devices": [GOOD]}
    half = decode({"metadata": {"name": "half"}, "spec": raw}, ResourceSlice)
    where = cluster(fleet(2), slice_of("node-000", GOOD), half)

    outcome = placed(where, "All")
    assert isinstance(outcome, Unplaced)
    assert "is currently being updated" in outcome.message
    assert isinstance(placed(where), Placed)


def test_a_node_that_another_filter_refuses_is_not_asked() -> None:
    """kube-scheduler looks for devices last."""
    where = cluster(
        fleet(2, cordoned="node-001"), slice_of("node-000", GOOD), slice_of("node-001", BAD)
    )
    assert isinstance(placed(where), Placed)


@pytest.mark.parametrize(("bad", "expected"), [(0, Placed), (1, Placed), (250, Unplaced)])
def test_in_a_large_cluster_enough_sound_nodes_avoid_the_failure(
    bad: int, expected: type[Placed | Unplaced]
) -> None:
    """kube-scheduler stops looking at 188 of 400 nodes that fit."""
    assert nodes_to_find(400) == 188
    assert isinstance(placed(fleet_of(400, bad=bad)), expected)


def test_a_change_of_devices_is_noticed() -> None:
    """Remembered answers are dropped when devices or nodes change."""
    where = fleet_of(2, bad=1)
    assert isinstance(placed(where), Unplaced)
    live: Any = where.allocator
    live.put_slice(slice_of("node-001", GOOD))
    assert isinstance(placed(where), Placed)
    live.put_slice(slice_of("node-002", BAD))
    assert isinstance(placed(where), Placed)
    node = {"metadata": {"name": "node-002"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
    where.fleet.put(decode(node, Node))
    assert isinstance(placed(where), Unplaced)
    where.fleet.drop("node-002")
    assert isinstance(placed(where), Placed)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [(1, 1), (99, 99), (100, 100), (150, 100), (400, 188), (1000, 420), (5000, 500), (10000, 500)],
)
def test_as_many_nodes_are_looked_for_as_kube_scheduler_looks_for(nodes: int, found: int) -> None:
    """The default of percentageOfNodesToScore: 50 % less one for every 125 nodes, at least 5 %."""
    assert nodes_to_find(nodes) == found
