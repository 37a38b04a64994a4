"""One device, claim, gang or pod with all that belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
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

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


def partition(name: str, memory: str) -> Raw:
    consumed = [{"counterSet": "card-0", "counters": {"memory": {"value": memory}}}]
    return device(name, consumesCounters=consumed)


async def partitioned(page: Visit) -> None:
    """A card of 80 Gi on rack-3, whole or in parts, of which a claim has one."""
    pool = {"name": "rack-3", "generation": 1, "resourceSliceCount": 2}
    counters = [{"name": "card-0", "counters": {"memory": {"value": "80Gi"}}}]
    sets = resource_slice("rack-3", [], pool=pool, sharedCounters=counters)
    del sets["spec"]["devices"]
    sets["metadata"]["name"] = "rack-3-counters"
    parts = [partition("whole", "80Gi"), partition("half-0", "40Gi"), partition("half-1", "40Gi")]
    await create(page.client, NODES, node("rack-3"))
    await create(page.client, SLICES, sets, resource_slice("rack-3", parts, pool=pool))
    await allocate(page.client, "four", allocation("rack-3", "half-0"))


def test_a_partition_is_shown_inside_its_device() -> None:
    """The counters of the card, what is left of them, and every partition with its share."""

    async def story(page: Visit) -> None:
        await partitioned(page)
        found = await page.get(f"devices/{DRIVER}/rack-3/half-1")

        assert found["state"] == "free"
        [card] = found["counters"]
        assert card["name"] == "card-0"
        assert card["counters"]["memory"] == {
            "total": "80Gi",
            "used": "40Gi",
            "left": "40Gi",
            "usedPercent": 50,
        }
        states = {each["device"]: each["state"] for each in card["partitions"]}
        assert states == {"whole": "blocked", "half-0": "allocated", "half-1": "free"}
        assert card["partitions"][1]["claims"] == ["team/four"]
        assert card["partitions"][1]["takes"] == {"memory": "40Gi"}
        fleet = await page.get("fleet")
        sets = [fleet["counterSets"][each] for each in fleet["devices"]["counterSet"]]
        assert sets[-3:] == ["card-0"] * 3

    visit(story)


def test_shared_capacity_is_a_level() -> None:
    """On the map in percent, and of the device with its amounts."""

    async def story(page: Visit) -> None:
        shared = device("nic-0", allowMultipleAllocations=True)
        shared["capacity"] = {"bandwidth": {"value": "100"}}
        await create(page.client, NODES, node("rack-3"))
        await create(page.client, SLICES, resource_slice("rack-3", [shared]))
        given = allocation("rack-3", "nic-0")
        given["devices"]["results"][0] |= {
            "consumedCapacity": {"bandwidth": "30"},
            "shareID": "a671734a-e8e5-11e4-8fde-42010af09327",
        }
        await allocate(page.client, "four", given)
        found = await page.get(f"devices/{DRIVER}/rack-3/nic-0")

        assert found["state"] == "shared"
        assert found["sharesCapacity"]
        assert found["levels"]["bandwidth"]["left"] == "70"
        assert found["levels"]["bandwidth"]["usedPercent"] == 30
        assert found["claims"][0]["consumedCapacity"] == {"bandwidth": "30"}
        assert (await page.get("fleet"))["devices"]["level"][-1] == 30

    visit(story)


def test_a_tainted_and_a_broken_device_differ() -> None:
    """A taint may be there for any reason; some say that the device is ill."""

    async def story(page: Visit) -> None:
        kept = {"key": "example.com/kept", "effect": "NoSchedule"}
        ill = {"key": "example.com/unhealthy", "effect": "NoSchedule"}
        gone = {"key": "example.com/gone", "effect": "NoExecute"}
        devices = [device(f"gpu-{n}", taints=[each]) for n, each in enumerate((kept, ill, gone))]
        await create(page.client, SLICES, resource_slice("rack-3", devices))
        paths = [f"devices/{DRIVER}/rack-3/gpu-{n}" for n in range(3)]

        states = [(await page.get(path))["state"] for path in paths]
        assert states == ["tainted", "unhealthy", "unhealthy"]

    visit(story)


def test_what_a_kubelet_calls_unhealthy_is_shown_so() -> None:
    """Until the pod says otherwise, or is gone."""

    async def story(page: Visit) -> None:
        ill = {"resourceID": f"{DRIVER}/rack-1/gpu-0", "health": "Unhealthy"}
        told = [{"name": "claim:c", "resources": [ill]}]
        status = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        containers = [status | {"allocatedResourcesStatus": told}]
        await set_phase(page.client, "train", "Running", containerStatuses=containers)
        path = f"devices/{DRIVER}/rack-1/gpu-0"
        assert (await page.get(path))["state"] == "unhealthy"

        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            await set_phase(page.client, "train", "Running", containerStatuses=[status])
            await page.clock.advance(0.2)
            [pool] = (await events.next()).data["fleet"]["pools"]
        assert [each["state"] for each in pool["devices"]] == ["prepared", "free"]

    visit(story)


@pytest.mark.parametrize("is_told", [True, False], ids=["in the claim's status", "by its uid"])
def test_a_device_that_is_named_by_its_cdi_device_is_shown_as_unhealthy(is_told: bool) -> None:
    """A kubelet names devices so; which is meant is in the claim's status, or in the name."""

    async def story(page: Visit) -> None:
        found = await page.client.get(CLAIMS, "one", "team")
        name = "any-name" if is_told else f"{found['metadata']['uid']}-gpu-0"
        cdi_id = f"k8s.{DRIVER}/gpu={name}"
        if is_told:
            names = {"driver": DRIVER, "pool": "rack-1", "device": "gpu-0"}
            found["status"]["devices"] = [names | {"data": {"cdiDeviceIDs": [cdi_id]}}]
            await page.client.update(CLAIMS, found, subresource="status")
        path = f"devices/{DRIVER}/rack-1/gpu-0"
        assert (await page.get(path))["state"] == "allocated"
        ill = {"resourceID": cdi_id, "health": "Unhealthy"}
        told = [{"name": "claim:c", "resources": [ill]}]
        status = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        containers = [status | {"allocatedResourcesStatus": told}]
        since = (await page.get("fleet"))["revision"]
        async with page.streaming(f"?since={since}") as events:
            await set_phase(page.client, "train", "Running", containerStatuses=containers)
            await page.clock.advance(0.2)
            [pool] = (await events.next()).data["fleet"]["pools"]
        assert [each["state"] for each in pool["devices"]] == ["unhealthy", "free"]

    visit(story)


def test_a_claim_shows_its_way_to_its_devices() -> None:
    """Alternatives that were passed over, constraints by their values, conditions and pods."""

    async def story(page: Visit) -> None:
        wants = claim("choosy")
        wants["spec"]["devices"] = {
            "requests": [
                {
                    "name": "gpus",
                    "firstAvailable": [
                        {"name": "large", "deviceClassName": "gpu", "count": 8},
                        {"name": "small", "deviceClassName": "gpu", "count": 1},
                        {"name": "none", "deviceClassName": "gpu", "count": 1},
                    ],
                }
            ],
            "constraints": [{"matchAttribute": f"{DRIVER}/model"}],
        }
        await create(page.client, CLAIMS, wants)
        await create(page.client, PODS, pod("chooser", "choosy"))
        given = allocation("rack-1", "gpu-1")
        given["devices"]["results"][0]["request"] = "gpus/small"
        await allocate(page.client, "choosy", given, "chooser")
        found = await page.get("claims/team/choosy")

        [request] = found["requests"]
        ways = [(each["name"], each["isTaken"], each["isPassedOver"]) for each in request["ways"]]
        assert ways == [("large", False, True), ("small", True, False), ("none", False, False)]
        assert request["devices"][0]["device"] == "gpu-1"
        assert request["devices"][0]["node"] == "rack-1"
        [constraint] = found["constraints"]
        assert constraint["values"] == {f"{DRIVER}/rack-1/gpu-1": "Example 80GB"}
        [passed] = found["passedOver"]
        assert found["passedOverOmitted"] == 0
        assert (passed["device"], passed["claims"]) == ("gpu-0", ["team/one"])
        assert [each["name"] for each in found["users"]] == ["chooser"]

    visit(story)


def test_a_claim_shows_what_drivers_report() -> None:
    """By device, with the reason."""

    async def story(page: Visit) -> None:
        found = await page.client.get(CLAIMS, "one", "team")
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": "LinkDown",
            "message": "no link",
            "lastTransitionTime": "2027-01-15T08:00:00Z",
        }
        which = {"driver": DRIVER, "pool": "rack-1", "device": "gpu-0"}
        status = found["status"] | {"devices": [which | {"conditions": [condition]}]}
        await page.client.update(CLAIMS, found | {"status": status}, subresource="status")

        [told] = (await page.get("claims/team/one"))["conditions"]
        assert told["device"] == f"{DRIVER}/rack-1/gpu-0"
        assert (told["type"], told["reason"]) == ("Ready", "LinkDown")

    visit(story)


def test_a_gang_shows_its_members_and_what_happened() -> None:
    """In order of time, with what schedulers said."""

    async def story(page: Visit) -> None:
        await page.clock.advance(5)
        await bind(page.client, "half", "rack-2")
        found = await page.get("gangs/team/pair")

        assert [(each["name"], each["node"]) for each in found["members"]] == [("half", "rack-2")]
        assert found["missing"] == 1
        steps = [(each["what"], each["message"]) for each in found["timeline"]]
        assert steps == [("created", ""), ("scheduled", "on node rack-2")]

    visit(story)


def test_a_pod_shows_its_claims_and_events() -> None:
    """Beside its conditions."""

    async def story(page: Visit) -> None:
        await set_phase(page.client, "waits", "Pending")
        found = await page.get("pods/team/waits")
        assert await page.get("pod/team/waits") == found

        assert [each["name"] for each in found["claimsOf"]] == ["four"]
        assert [each["what"] for each in found["timeline"]] == ["FailedScheduling", "created"]
        assert found["schedulerName"] == "default-scheduler"

    visit(story)


def test_slices_classes_and_events_are_listed() -> None:
    """A slice of an old generation is marked."""

    async def story(page: Visit) -> None:
        newer = resource_slice("rack-1", [device("gpu-0")])
        newer["metadata"]["name"] = "rack-1-newer"
        newer["spec"]["pool"] |= {"generation": 2, "resourceSliceCount": 2}
        await create(page.client, SLICES, newer)

        slices = {each["name"]: each for each in (await page.get("slices"))["slices"]}
        told = {name: (each["isCurrent"], each["isPoolComplete"]) for name, each in slices.items()}
        assert told == {
            "rack-1-gpus": (False, False),
            "rack-1-newer": (True, False),
            "rack-2-gpus": (True, True),
        }
        [found] = (await page.get("classes"))["classes"]
        assert found["selectors"] == [f'device.driver == "{DRIVER}"']
        document = await page.get("events")
        [event] = document["events"]
        assert document["omitted"] == 0
        assert event["object"] == {"kind": "Pod", "namespace": "team", "name": "waits"}

    visit(story)


@pytest.mark.parametrize(
    "path", ["devices/a/b/c", "claims/team/none", "gangs/team/none", "pods/team/none"]
)
def test_details_of_what_is_not_there_are_told_so(path: str) -> None:
    """By its name."""

    async def story(page: Visit) -> None:
        async with page.http.get(f"/api/v1/{path}", headers=BEARER) as response:
            assert response.status == 404
            assert (await response.json())["error"].endswith(" not found")

    visit(story)
