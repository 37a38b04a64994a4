"""Faults of devices of other drivers: DeviceTaintRules that follow the annotations of a Node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.controllers.nodes.device_faults import plan
from dryrack.controllers.writes import Create, Delete
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

NOW = 1_800_000_000.0
FAULT = "device-fault.dryrack.dev/d0"


def node(**faults: str) -> Raw:
    annotations = {"kwok.x-k8s.io/node": "fake"}
    annotations |= {f"device-fault.dryrack.dev/{name}": fault for name, fault in faults.items()}
    return {"metadata": {"name": "n1", "uid": "n1", "annotations": annotations}}


def piece(labels: dict[str, str] | None = None) -> Raw:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "uid": "s", "labels": labels or {}},
        "spec": {
            "driver": "other.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}, {"name": "d1"}],
        },
    }


def created(seen: Raw | None, *slices: Raw) -> list[Raw]:
    writes = plan(seen, slices, (), NOW).writes
    return [each.object for each in writes if isinstance(each, Create)]


@pytest.mark.parametrize(
    ("fault", "taints"),
    [
        ("unhealthy", ["dryrack.dev/unhealthy:NoSchedule"]),
        ("lost", ["dryrack.dev/lost:NoSchedule"]),
        ("taint=a=b:NoExecute", ["a=b:NoExecute"]),
        ("unhealthy; taint=a:NoSchedule", ["dryrack.dev/unhealthy:NoSchedule", "a:NoSchedule"]),
        ("unknown", []),
        ("unhealthy until 2020-01-01T00:00:00Z", []),
    ],
)
def test_a_fault_becomes_a_rule_for_its_device(fault: str, taints: list[str]) -> None:
    """A rule selects one device and is owned by the node; health alone has no rule."""
    rules = created(node(d0=fault), piece())
    texts = [
        f"{it['key']}{'=' + it['value'] if 'value' in it else ''}:{it['effect']}"
        for it in (rule["spec"]["taint"] for rule in rules)
    ]
    assert sorted(texts) == sorted(taints)
    for rule in rules:
        assert rule["spec"]["deviceSelector"] == {
            "driver": "other.example.com",
            "pool": "n1",
            "device": "d0",
        }
        [owner] = rule["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Node", "n1")


def test_slices_of_dryrack_and_real_nodes_have_no_rules() -> None:
    """Their publishers apply the fault themselves."""
    for labels in (
        {"kwok.x-k8s.io/managed-by": "dra-kwok-driver"},
        {"app.kubernetes.io/managed-by": "dryrack-plugin"},
    ):
        assert created(node(d0="lost"), piece(labels)) == []
    real = node(d0="lost")
    del real["metadata"]["annotations"]["kwok.x-k8s.io/node"]
    assert created(real, piece()) == []


def test_a_rule_without_its_fault_is_deleted() -> None:
    """When the fault ends, changes, or loses its device or node; and nothing is written twice."""
    [rule] = created(node(d0="lost"), piece())
    stored = rule | {"metadata": {**rule["metadata"], "uid": "r"}}
    assert plan(node(d0="lost"), [piece()], [stored], NOW).writes == ()
    for seen, slices in ((node(), [piece()]), (node(d0="lost"), []), (None, [piece()])):
        [write] = plan(seen, slices, [stored], NOW).writes
        assert isinstance(write, Delete)
        assert write.uid == "r"
    writes = plan(node(d0="unhealthy"), [piece()], [stored], NOW).writes
    assert [type(each) for each in writes] == [Delete, Create]


def test_the_rules_of_a_cluster_follow_its_faults() -> None:
    """A tainted device gets no pod; rules end with the fault, its time, and the node."""

    def rules() -> int:
        return len(cluster.list("devicetaintrules"))

    def settle(seconds: float = 2.0) -> None:
        cluster.advance(seconds)

    request: dict[str, Any] = {"name": "g", "exactly": {"deviceClassName": "other"}}
    objects = [
        piece(),
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "other"},
            "spec": {
                "selectors": [{"cel": {"expression": "device.driver == 'other.example.com'"}}]
            },
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "claim"},
            "spec": {"devices": {"requests": [request]}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "containers": [
                    {"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}
                ],
                "resourceClaims": [{"name": "g", "resourceClaimName": "claim"}],
            },
        },
    ]
    objects[0]["metadata"] = {"name": "s"}
    with Cluster() as cluster:
        cluster.add_nodes(name="n1")
        cluster.apply(objects[:2])
        cluster.fail("device n1/d* taint=a=b:NoExecute")
        settle()
        assert rules() == 2
        cluster.apply(objects[2:])
        cluster.expect_pending("p")
        cluster.heal("device n1/*")
        cluster.expect_scheduled("p", devices=1)
        assert rules() == 0
        cluster.fail("device n1/d0 lost for 10s")
        settle()
        assert rules() == 1
        settle(12)
        assert rules() == 0
        cluster.fail("device n1/d0 lost")
        settle()
        cluster.delete("nodes", "n1")
        settle(60)
        assert rules() == 0
