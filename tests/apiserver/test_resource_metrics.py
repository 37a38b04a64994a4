"""The resource metrics API: the values of `kubectl top` for virtual pods and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.apiserver.whole_plane import WholePlane

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

METRICS = "/apis/metrics.k8s.io/v1beta1"
PODS = "/api/v1/namespaces/default/pods"


def container(name: str, **requests: str) -> Raw:
    return {"name": name, "image": "i", "resources": {"requests": requests}}


def run_pod(plane: WholePlane, name: str, *containers: Raw, **labels: str) -> None:
    """A pod on node-1 that says that it runs."""
    meta = {"name": name, "labels": labels}
    spec = {"containers": list(containers), "nodeName": "node-1"}
    made = plane.create(PODS, {"metadata": meta, "spec": spec})
    assert made.status == 201, made.message
    status = {**made.body, "status": {"phase": "Running"}}
    assert plane.ask("PUT", f"{PODS}/{name}/status", status).status == 200


@pytest.fixture
def plane() -> WholePlane:
    made = WholePlane()
    made.create("/api/v1/nodes", {"metadata": {"name": "node-1", "labels": {"zone": "a"}}})
    account = {"metadata": {"name": "default"}}
    made.create("/api/v1/namespaces/default/serviceaccounts", account)
    run_pod(made, "web", container("a", cpu="1", memory="1Gi"), container("b"), app="web")
    return made


def test_a_container_uses_half_of_what_it_requests(plane: WholePlane) -> None:
    """And a little if it requests nothing."""
    found = plane.ask("GET", f"{METRICS}/namespaces/default/pods/web").body

    assert (found["kind"], found["window"]) == ("PodMetrics", "15s")
    assert found["containers"] == [
        {"name": "a", "usage": {"cpu": "500m", "memory": "524288Ki"}},
        {"name": "b", "usage": {"cpu": "1m", "memory": "8192Ki"}},
    ]


def test_a_node_uses_what_its_pods_use_and_a_little_more(plane: WholePlane) -> None:
    """So that the sum over pods is never more than the node."""
    found = plane.ask("GET", f"{METRICS}/nodes").body

    assert found["kind"] == "NodeMetricsList"
    assert [each["usage"] for each in found["items"]] == [
        {"cpu": "601m", "memory": f"{(512 + 512 + 8) * 1024}Ki"}
    ]


def test_pods_are_found_by_label_and_across_namespaces(plane: WholePlane) -> None:
    """As `kubectl top pod -A -l` asks."""
    run_pod(plane, "db", container("a"), app="db")
    some = plane.ask("GET", f"{METRICS}/pods?labelSelector=app%3Ddb").body["items"]

    assert [each["metadata"]["name"] for each in some] == ["db"]
    assert plane.rows(f"{METRICS}/pods") == [
        ["db", "1m", "8Mi", "15s"],
        ["web", "501m", "520Mi", "15s"],
    ]


def test_what_does_not_run_uses_nothing(plane: WholePlane) -> None:
    """A pending pod has no metrics, as metrics-server has none of it."""
    waiting = {"metadata": {"name": "late"}, "spec": {"containers": [container("a", cpu="1")]}}
    plane.create(PODS, waiting)
    missing = plane.ask("GET", f"{METRICS}/namespaces/default/pods/late")

    assert (missing.status, missing.message) == (404, 'pods.metrics.k8s.io "late" not found')


def test_metrics_are_read_only_and_discovered(plane: WholePlane) -> None:
    """kubectl looks for the group before it asks."""
    groups = plane.ask("GET", "/apis").body["groups"]
    listed = plane.ask("GET", METRICS).body["resources"]

    assert "metrics.k8s.io" in [each["name"] for each in groups]
    assert [(each["name"], each["verbs"]) for each in listed] == [
        ("nodes", ["get", "list"]),
        ("pods", ["get", "list"]),
    ]
    assert plane.ask("DELETE", f"{METRICS}/nodes/node-1").status == 405
