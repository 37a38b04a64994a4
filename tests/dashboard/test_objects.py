"""Details of nodes, devices, and claims equal the API objects and the scheduler's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.dashboard.small_world import (
    DRIVER,
    allocate,
    allocation,
    bind,
    claim,
    create,
    device,
    node,
    pod,
    resource_slice,
    set_phase,
)
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.dashboard.data.fleet import Fleet
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceTaintRule

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def test_a_node_shows_what_the_scheduler_compares() -> None:
    """The allocatable amounts, and the sum of the requests of the pods that have not ended."""

    async def story(page: Visit) -> None:
        for name, cpu in (("small", "500m"), ("large", "2"), ("over", "4")):
            each = pod(name)
            requests = {"cpu": cpu, "memory": "1Gi"}
            each["spec"]["containers"][0]["resources"] = {"requests": requests}
            await create(page.client, PODS, each)
            await bind(page.client, name, "rack-2")
        await set_phase(page.client, "over", "Succeeded")
        found = await page.get("nodes/rack-2")

        rows = {each["resource"]: each for each in found["resources"]}
        amounts = {name: (each["requested"], each["allocatable"]) for name, each in rows.items()}
        assert amounts == {"cpu": ("2500m", "8"), "memory": ("2Gi", "16Gi"), "pods": ("2", "110")}
        assert rows["cpu"]["requestedPercent"] == 31
        assert [each["name"] for each in found["pods"]] == ["large", "over", "small"]

    visit(story)


def test_a_node_shows_its_labels_taints_and_devices() -> None:
    """The fields of the Node, and its devices by state."""

    async def story(page: Visit) -> None:
        taint = {"key": "example.com/drain", "value": "now", "effect": "NoSchedule"}
        await create(page.client, NODES, node("rack-3", taints=[taint]))
        found = await page.get("nodes/rack-3")
        assert found["taints"] == [taint | {"since": ""}]
        assert found["labels"]["kubernetes.io/hostname"] == "rack-3"
        assert [each["type"] for each in found["conditions"]] == ["Ready"]
        assert found["devices"] == []

        [devices] = (await page.get("nodes/rack-1"))["devices"]
        assert devices == {
            "driver": DRIVER,
            "model": "Example 80GB",
            "free": 1,
            "freeIsAtLeast": False,
            "states": {"free": 1, "allocated": 1},
        }

    visit(story)


def test_partitions_that_overlap_are_free_once() -> None:
    """The free count of a node is what the scheduler can allocate at the same time."""

    async def story(page: Visit) -> None:
        pool = {"name": "rack-3", "generation": 1, "resourceSliceCount": 2}
        counters = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
        sets = resource_slice("rack-3", [], pool=pool, sharedCounters=counters)
        del sets["spec"]["devices"]
        sets["metadata"]["name"] = "rack-3-counters"
        consumed = [{"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}}]
        parts = [device(f"part-{n}", consumesCounters=consumed) for n in range(5)]
        await create(page.client, NODES, node("rack-3"))
        await create(page.client, SLICES, sets, resource_slice("rack-3", parts, pool=pool))

        [devices] = (await page.get("nodes/rack-3"))["devices"]
        assert devices["states"] == {"free": 5}
        assert devices["free"] == 2

    visit(story)


def test_an_unhealthy_device_shows_the_message_of_the_kubelet() -> None:
    """With the pod whose status has the message."""

    async def story(page: Visit) -> None:
        path = f"devices/{DRIVER}/rack-1/gpu-0"
        assert (await page.get(path))["health"] == []
        resource = {
            "resourceID": f"{DRIVER}/rack-1/gpu-0",
            "health": "Unhealthy",
            "message": "double bit error",
        }
        status = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        status["allocatedResourcesStatus"] = [{"name": "claim:c", "resources": [resource]}]
        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            await set_phase(page.client, "train", "Running", containerStatuses=[status])
            await page.clock.advance(0.2)
            await events.next()

        found = await page.get(path)
        assert found["health"] == [{"pod": "team/train", "message": "double bit error"}]
        assert found["state"] == "unhealthy"

    visit(story)


def test_taints_show_their_value_and_their_rule() -> None:
    """A taint of the slice has no rule."""

    own = {"key": "example.com/own", "value": "a", "effect": "NoSchedule"}
    added = {"key": "example.com/added", "value": "b", "effect": "NoExecute"}
    selector = {"driver": DRIVER, "pool": "rack-3", "device": "gpu-0"}
    spec = {"deviceSelector": selector, "taint": added}
    fleet = Fleet()
    devices = [device("gpu-0", taints=[own]), device("gpu-1")]
    fleet.change_slice(None, resource_slice("rack-3", devices))
    rule = decode({"metadata": {"name": "recall"}, "spec": spec}, DeviceTaintRule)
    fleet.change_rule("recall", rule)

    key = (DRIVER, "rack-3")
    values = [tuple(each.values()) for each in fleet.taints_of(key, "gpu-0")]
    assert values == [
        ("example.com/own", "a", "NoSchedule", "", ""),
        ("example.com/added", "b", "NoExecute", "", "recall"),
    ]
    assert list(fleet.taints_of(key, "gpu-1")) == []
    tainted = ["example.com/own:NoSchedule", "example.com/added:NoExecute"]
    assert [list(each.taints) for each in fleet.views_of(key)] == [tainted, []]


def test_a_claim_shows_its_configurations() -> None:
    """Before the allocation those of the claim, then those that the scheduler wrote."""

    async def story(page: Visit) -> None:
        each = claim("configured")
        opaque = {"driver": DRIVER, "parameters": {"kind": "Sharing", "replicas": 2}}
        each["spec"]["devices"]["config"] = [{"requests": ["gpus"], "opaque": opaque}]
        await create(page.client, CLAIMS, each)
        own = {"source": "FromClaim", "requests": ["gpus"], **opaque}
        assert (await page.get("claims/team/configured"))["config"] == [own]

        given = allocation("rack-2", "gpu-0")
        of_class = {"source": "FromClass", "requests": [], "opaque": opaque}
        given["devices"]["config"] = [of_class]
        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            await allocate(page.client, "configured", given)
            await page.clock.advance(0.2)
            await events.next()
        expected = [{"source": "FromClass", "requests": [], **opaque}]
        assert (await page.get("claims/team/configured"))["config"] == expected

    visit(story)


def test_an_object_is_shown_as_yaml_without_secrets() -> None:
    """The YAML equals the object, except for values of environment variables."""

    async def story(page: Visit) -> None:
        each = pod("secretive")
        each["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "s3cret"}]
        last = "kubectl.kubernetes.io/last-applied-configuration"
        each["metadata"]["annotations"] = {last: '{"env": "s3cret"}', "note": "kept"}
        await create(page.client, PODS, each)
        document = await page.get("objects/pod/team/secretive")

        assert "s3cret" not in document["yaml"]
        shown: Raw = yaml.safe_load(document["yaml"])
        stored = await page.client.get(PODS, "secretive", "team")
        assert (shown["apiVersion"], shown["kind"]) == ("v1", "Pod")
        assert shown["metadata"]["annotations"]["note"] == "kept"
        assert shown["metadata"]["uid"] == stored["metadata"]["uid"]
        assert shown["spec"]["containers"][0]["image"] == "i"
        assert document["commands"] == [
            "kubectl get pod secretive -n team -o yaml",
            "kubectl describe pod secretive -n team",
        ]

    visit(story)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("objects/secret/team/x", "kind 'secret' not found; use one of: pod, claim"),
        ("objects/claim/team/none", "claim 'team/none' not found"),
        ("nodes/none", "node 'none' not found"),
        ("objects/gang/team/pair", "gang 'team/pair' has no object: labels of its Pods define it"),
    ],
)
def test_an_unknown_object_is_an_error(path: str, error: str) -> None:
    """Only the kinds that the dashboard watches can be read."""

    async def story(page: Visit) -> None:
        async with page.http.get(f"/api/v1/{path}", headers=BEARER) as response:
            assert response.status == 404
            assert error in (await response.json())["error"]

    visit(story)
