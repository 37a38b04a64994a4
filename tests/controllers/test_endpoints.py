"""Endpoints and EndpointSlices of Services on an embedded cluster in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes

from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    NODES,
    PODS,
    REPLICA_SETS,
    SERVICES,
)
from dryrack.client.errors import NotFoundError
from dryrack.cluster.bootstrap import Bootstrap
from dryrack.cluster.initial_objects import virtual_node
from dryrack.controllers.endpoints import plan_endpoints, plan_slices
from dryrack.controllers.writes import Create
from dryrack.store import Gone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stage import Stage

    from dryrack.controllers.writes import Plan
    from dryrack.kinds.raw import Raw

LABELS = {"app": "web"}
RESOURCES = ("endpoints", "endpointslices.discovery.k8s.io", "events")


def service(name: str = "web", **spec: Any) -> Raw:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "a"}},
        "spec": {"selector": LABELS, "ports": ports} | spec,
    }


def pod(name: str, **metadata: Any) -> Raw:
    named = {"name": name, "namespace": "default", "labels": LABELS}
    return {"metadata": named | metadata, "spec": scenes.POD_SPEC}


async def slices_of(stage: Stage, name: str = "web") -> list[Raw]:
    selection = Selection(namespace="default", labels=f"kubernetes.io/service-name={name}")
    return list((await stage.client.list(ENDPOINT_SLICES, selection)).items)


async def endpoints_of(stage: Stage, name: str = "web") -> Raw:
    return await stage.client.get(ENDPOINTS, name, "default")


async def test_endpoints_follow_pods(stage: Stage) -> None:
    """A running pod is an endpoint; a deleted one is none; nothing is written without a change."""
    zone = {"topology.kubernetes.io/zone": "z1"}
    node = virtual_node("node-1")
    node["metadata"]["labels"] |= zone
    await stage.create(NODES, node)
    [created] = await stage.create(SERVICES, service())
    await stage.advance(1)
    [empty] = await slices_of(stage)
    assert (empty["endpoints"], empty["ports"]) == ([], [])
    assert "subsets" not in await endpoints_of(stage)

    await stage.create(PODS, pod("a"), pod("other", labels={"app": "other"}))
    await stage.advance(5)
    running = await stage.pod("a")
    address = running["status"]["podIP"]
    target = {
        "kind": "Pod",
        "namespace": "default",
        "name": "a",
        "uid": running["metadata"]["uid"],
    }
    [filled] = await slices_of(stage)
    assert filled["metadata"]["name"] == empty["metadata"]["name"]
    assert filled["metadata"]["name"].startswith("web-")
    assert filled["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    [owner] = filled["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (
        "Service",
        created["metadata"]["uid"],
        True,
    )
    assert filled["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert filled["endpoints"] == [
        {
            "addresses": [address],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": target,
            "nodeName": "node-1",
            "zone": "z1",
        }
    ]
    found = await endpoints_of(stage)
    assert found["metadata"]["labels"] == {
        "team": "a",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }
    assert found["subsets"] == [
        {
            "addresses": [{"ip": address, "nodeName": "node-1", "targetRef": target}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }
    ]

    revision = stage.store.revision
    await stage.advance(1800)
    for resource in RESOURCES:
        assert not stage.store.events(resource, after=revision)

    await stage.client.delete(PODS, "a", namespace="default")
    await stage.advance(60)
    [emptied] = await slices_of(stage)
    assert emptied["endpoints"] == []
    assert "subsets" not in await endpoints_of(stage)


async def test_endpoints_go_with_their_service(stage: Stage) -> None:
    """The garbage collector deletes the slices; Endpoints that a user created stay."""
    mine = {"metadata": {"name": "mine", "namespace": "default"}}
    await stage.create(ENDPOINTS, mine)
    await stage.create(SERVICES, service())
    await stage.advance(1)
    await stage.client.delete(SERVICES, "web", namespace="default")
    await stage.advance(5)

    assert await slices_of(stage) == []
    with pytest.raises(NotFoundError):
        await endpoints_of(stage)
    assert await endpoints_of(stage, "mine")


async def test_a_service_without_selector_has_the_endpoints_of_its_user(stage: Stage) -> None:
    """The controllers write nothing about a Service without a selector or of another name."""
    await stage.create(SERVICES, service(selector=None))
    await stage.create(
        SERVICES, service("far", type="ExternalName", externalName="example.com", ports=None)
    )
    await stage.create(PODS, pod("a"))
    await stage.advance(5)

    assert (await stage.client.list(ENDPOINT_SLICES)).items == ()
    assert (await stage.client.list(ENDPOINTS)).items == ()


async def test_many_pods_are_in_slices_of_a_hundred(stage: Stage) -> None:
    """250 pods need few writes, and the deletion of one writes one slice."""
    for number in range(3):
        await stage.create(NODES, virtual_node(f"node-{number}"))
    await stage.create(SERVICES, service())
    revision = stage.store.revision
    template = {"metadata": {"labels": LABELS}, "spec": scenes.POD_SPEC}
    replicas = {"replicas": 250, "selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    await stage.create(REPLICA_SETS, {"metadata": metadata, "spec": replicas})
    await stage.advance(60)
    slices = await slices_of(stage)
    names = [each["targetRef"]["name"] for every in slices for each in every["endpoints"]]

    assert sorted(len(each["endpoints"]) for each in slices) == [50, 100, 100]
    assert len(set(names)) == 250
    assert all(each["conditions"]["ready"] for every in slices for each in every["endpoints"])
    assert len((await endpoints_of(stage))["subsets"][0]["addresses"]) == 250
    for resource in RESOURCES[:2]:
        writes = stage.store.events(resource, after=revision)
        assert not isinstance(writes, Gone)
        assert len(writes) < 60

    fewer = {"spec": {"replicas": 249}}
    await stage.client.patch(REPLICA_SETS, "web", fewer, namespace="default")
    await stage.advance(60)
    after = await slices_of(stage)
    changed = [
        new for old, new in zip(slices, after, strict=True) if old["endpoints"] != new["endpoints"]
    ]
    assert len(changed) == 1


async def test_the_endpoints_of_the_server_follow_its_address(stage: Stage) -> None:
    """The Service `kubernetes` has the address and port of the API server, also after a restart."""
    plane = stage.control_plane
    bootstrap = Bootstrap(plane.store, plane.options.clock, plane.options.chance)
    for port in (6443, 7443):
        bootstrap.own_endpoints("127.0.0.1", port)
    revision = plane.store.revision
    bootstrap.own_endpoints("127.0.0.1", 7443)
    [found] = [each.object for each in plane.store.list("endpoints", "default")[0]]
    [shown] = [each.object for each in plane.store.list(RESOURCES[1], "default")[0]]

    assert found["subsets"] == [
        {
            "addresses": [{"ip": "127.0.0.1"}],
            "ports": [{"name": "https", "port": 7443, "protocol": "TCP"}],
        }
    ]
    assert shown["endpoints"] == [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
    assert plane.store.revision == revision


def stored_pod(
    number: int, *, is_ready: bool = True, ports: Sequence[Raw] = (), **more: Any
) -> Raw:
    """Return a pod with an address, as a plan sees it."""
    metadata = {"name": f"p{number:04}", "namespace": "default", "uid": f"u{number}"}
    ready = {"type": "Ready", "status": str(is_ready)}
    return {
        "metadata": metadata | {"labels": LABELS} | more,
        "spec": {"containers": [{"name": "main", "ports": list(ports)}]},
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{number // 250}.{number % 250 + 1}",
            "conditions": [ready],
        },
    }


def stored_service(**spec: Any) -> Raw:
    made = service(**spec)
    return made | {"metadata": made["metadata"] | {"uid": "s"}}


def created(plan: Plan) -> list[Raw]:
    """Return the objects that a plan creates."""
    return [write.object for write in plan.writes if isinstance(write, Create)]


def test_pods_that_are_not_ready_are_so_in_both_kinds() -> None:
    """Unready and deleted pods get no traffic, unless the Service publishes them."""
    pods = [
        stored_pod(1, is_ready=False),
        stored_pod(2, deletionTimestamp="2026-01-01T00:00:00Z"),
    ]
    made = stored_service()
    [made_slice] = created(plan_slices(made, pods, [], lambda _: ""))
    [subset] = created(plan_endpoints(made, pods, None))[0]["subsets"]

    assert [each["conditions"] for each in made_slice["endpoints"]] == [
        {"ready": False, "serving": False, "terminating": False},
        {"ready": False, "serving": True, "terminating": True},
    ]
    assert "addresses" not in subset
    assert [each["ip"] for each in subset["notReadyAddresses"]] == ["10.0.0.2"]

    made = stored_service(publishNotReadyAddresses=True)
    [made_slice] = created(plan_slices(made, pods, [], lambda _: ""))
    [subset] = created(plan_endpoints(made, pods, None))[0]["subsets"]
    assert [each["conditions"]["ready"] for each in made_slice["endpoints"]] == [True, True]
    assert [each["ip"] for each in subset["addresses"]] == ["10.0.0.2", "10.0.0.3"]


def test_pods_with_different_numbers_for_a_named_port_are_in_different_slices() -> None:
    """A named port is the container port of that name and protocol."""
    made = stored_service(ports=[{"name": "http", "port": 80, "targetPort": "web"}])
    pods = [
        stored_pod(1, ports=[{"name": "web", "containerPort": 1000}]),
        stored_pod(2, ports=[{"name": "web", "containerPort": 2000}]),
        stored_pod(3, ports=[{"name": "web", "containerPort": 3000, "protocol": "UDP"}]),
    ]
    slices = created(plan_slices(made, pods, [], lambda _: ""))
    [endpoints] = created(plan_endpoints(made, pods, None))

    assert [[port["port"] for port in each["ports"]] for each in slices] == [
        [1000],
        [2000],
        [],
    ]
    assert [each["ports"][0]["port"] for each in endpoints["subsets"]] == [1000, 2000]


def test_endpoints_have_a_thousand_addresses_at_most() -> None:
    """Ready addresses come first, and an annotation says that some are missing."""
    pods = [stored_pod(number, is_ready=number > 5) for number in range(1005)]
    [endpoints] = created(plan_endpoints(stored_service(), pods, None))

    [subset] = endpoints["subsets"]
    assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (999, 1)
    assert endpoints["metadata"]["annotations"] == {
        "endpoints.kubernetes.io/over-capacity": "truncated"
    }


async def test_endpoints_of_a_service_without_a_selector_are_mirrored(stage: Stage) -> None:
    """Each subset is a slice, which follows the Endpoints and is deleted with them."""
    await stage.create(SERVICES, service(selector=None))
    ports = [{"name": "http", "port": 8090}]
    subsets = [{"ports": ports, "addresses": [{"ip": "10.1.2.3"}, {"ip": "fd00::1"}]}]
    metadata = {"name": "web", "namespace": "default"}
    [made] = await stage.create(ENDPOINTS, {"metadata": metadata, "subsets": subsets})
    await stage.advance(1)
    mirrors = {each["addressType"]: each for each in await slices_of(stage)}
    shown = [{"name": "http", "port": 8090, "protocol": "TCP"}]

    assert mirrors.keys() == {"IPv4", "IPv6"}
    assert mirrors["IPv4"]["ports"] == shown
    assert mirrors["IPv4"]["endpoints"] == [
        {"addresses": ["10.1.2.3"], "conditions": {"ready": True}}
    ]
    assert mirrors["IPv4"]["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]

    # An invalid address is left out.
    absent = {"ports": ports, "addresses": [{"ip": "here"}]}
    subsets = [{"ports": ports, "notReadyAddresses": [{"ip": "10.1.2.4"}]}, absent]
    await stage.client.patch(ENDPOINTS, "web", {"subsets": subsets}, namespace="default")
    await stage.advance(1)
    [changed] = await slices_of(stage)
    assert changed["metadata"]["uid"] == mirrors["IPv4"]["metadata"]["uid"]
    assert changed["endpoints"] == [{"addresses": ["10.1.2.4"], "conditions": {"ready": False}}]

    await stage.advance(60)
    [later] = await slices_of(stage)
    assert later == changed
    await stage.client.delete(ENDPOINTS, "web", namespace="default")
    await stage.advance(5)
    assert await slices_of(stage) == []
