"""The time axis: marks, delays of gangs, and what differs between two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.dashboard.small_world import (
    GANG,
    allocate,
    allocation,
    bind,
    create,
    device,
    pod,
    resource_slice,
    set_phase,
)
from tests.dashboard.visit import BEARER, Visit, visit

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.client.timekeeping import seconds_of
from dryrack.dashboard.data.comparison import compare
from dryrack.dashboard.data.fleet import DeviceRow, PoolRow
from dryrack.dashboard.history import PastState

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


async def marks(page: Visit) -> list[dict[str, int]]:
    return [each["marks"] for each in (await page.get("timeline"))["moments"][1:]]


async def update(page: Visit, kind: Any, name: str, change: Any, namespace: str = "") -> None:
    found = await page.client.get(kind, name, namespace)
    await page.client.update(kind, change(found), subresource="status")
    await page.clock.advance(1)


def condition(kind: str, status: str, reason: str = "", time: str | None = None) -> Any:
    def change(found: Raw) -> Raw:
        own = {"type": kind, "status": status, "reason": reason, "lastTransitionTime": time}
        others = found.get("status", {}).get("conditions", [])
        conditions = [*(each for each in others if each["type"] != kind), own]
        return found | {"status": found.get("status", {}) | {"conditions": conditions}}

    return change


def test_each_kind_of_change_has_its_mark() -> None:
    """Created, bound, failed, preempted and evicted pods, and faults of nodes and devices."""

    async def story(page: Visit) -> None:
        await page.get("fleet")
        await create(page.client, PODS, pod("new"))
        await page.clock.advance(1)
        await bind(page.client, "new", "rack-2")
        await page.clock.advance(1)
        reason = "PreemptionByScheduler"
        await update(page, PODS, "new", condition("DisruptionTarget", "True", reason), "team")
        await update(
            page,
            PODS,
            "train",
            condition("DisruptionTarget", "True", "EvictionByEvictionAPI"),
            "team",
        )
        await set_phase(page.client, "new", "Failed")
        await page.clock.advance(1)
        await update(page, NODES, "rack-2", condition("Ready", "False"))
        tainted = device("gpu-1", taints=[{"key": "example.com/odd", "effect": "NoSchedule"}])
        found = await page.client.get(SLICES, "rack-1-gpus")
        spec = found["spec"] | {"devices": [device("gpu-0"), tainted]}
        await page.client.update(SLICES, found | {"spec": spec})
        await page.clock.advance(1)

        assert await marks(page) == [
            {"created": 1},
            {"bound": 1},
            {"preempted": 1},
            {"evicted": 1},
            {"failed": 1},
            # The node, and its two devices.
            {"fault": 3},
            {"fault": 1},
        ]
        assert (await page.get("pods/team/new"))["disruption"] == reason

    visit(story)


def test_a_device_that_appears_is_no_fault() -> None:
    """A slice may be there before its node; nothing has failed."""

    async def story(page: Visit) -> None:
        await page.get("fleet")
        await create(page.client, SLICES, resource_slice("rack-9", [device("gpu-0")]))
        await page.clock.advance(1)
        assert await marks(page) == [{}]

    visit(story)


def test_the_delay_of_a_gang_ends_when_enough_members_are_bound() -> None:
    """The times are those of the pods, and stay known after the pods are deleted."""

    async def story(page: Visit) -> None:
        await page.get("fleet")
        [waiting] = (await page.get("timeline"))["gangs"]
        assert (waiting["name"], waiting["placed"], waiting["delaySeconds"]) == ("pair", "", None)
        await page.clock.advance(5)
        await create(page.client, PODS, pod("other", gang="pair"))
        for name, second in (("half", "06"), ("other", "09")):
            await bind(page.client, name, "rack-1")
            time = f"2027-01-15T08:00:{second}Z"
            await update(page, PODS, name, condition("PodScheduled", "True", "", time), "team")
        [placed] = (await page.get("timeline"))["gangs"]
        pods = {each["metadata"]["name"]: each for each in (await page.client.list(PODS)).items}
        created = [pods[name]["metadata"]["creationTimestamp"] for name in ("half", "other")]

        assert placed["minCount"] == 2
        assert placed["created"] == min(created)
        assert placed["placed"] == "2027-01-15T08:00:09Z"
        assert placed["delaySeconds"] == seconds_of(placed["placed"]) - seconds_of(min(created))
        assert placed["members"] == [
            {"name": "half", "created": created[0], "scheduled": "2027-01-15T08:00:06Z"},
            {"name": "other", "created": created[1], "scheduled": "2027-01-15T08:00:09Z"},
        ]
        for name in ("half", "other"):
            await page.client.delete(PODS, name, namespace="team")
        await page.clock.advance(1)
        [gone] = (await page.get("timeline"))["gangs"]
        assert gone["delaySeconds"] == placed["delaySeconds"]
        assert gone["members"] == placed["members"]

    assert GANG
    visit(story)


def test_two_moments_differ_by_what_happened_between_them() -> None:
    """Pods, claims, nodes, gangs and devices, each as it was and as it is."""

    async def story(page: Visit) -> None:
        before = (await page.get("fleet"))["revision"]
        await allocate(page.client, "four", allocation("rack-2", "gpu-0", "gpu-1"), "waits")
        await bind(page.client, "waits", "rack-2")
        await page.client.delete(PODS, "half", namespace="team")
        await page.client.delete(CLAIMS, "one", namespace="team")
        await create(page.client, NODES, {"metadata": {"name": "rack-3"}})
        await page.clock.advance(1)
        found = await page.get(f"compare?from={before}")

        assert found["from"]["revision"] == before
        assert found["from"]["states"] == {"free": 3, "allocated": 1}
        assert found["to"]["states"] == (await page.get("fleet"))["summary"][0]["states"]
        assert found["pods"]["changed"] == [
            {"name": "team/half", "was": "Pending", "now": ""},
            {"name": "team/waits", "was": "Pending", "now": "Pending on rack-2"},
        ]
        devices = "gpu.example.com/rack-2/gpu-0, gpu.example.com/rack-2/gpu-1"
        [four, one] = found["claims"]["changed"]
        assert four == {"name": "team/four", "was": "pending", "now": f"reserved: {devices}"}
        assert one["now"] in ("", "reserved: gpu.example.com/rack-1/gpu-0, deleting")
        assert found["nodes"]["changed"] == [{"name": "rack-3", "was": "", "now": "not ready"}]
        assert found["gangs"]["changed"] == [
            {"name": "team/pair", "was": "gathering: 0 of 1 bound", "now": ""}
        ]
        taken = {each["name"]: (each["was"], each["now"]) for each in found["devices"]["changed"]}
        assert taken["gpu.example.com/rack-2/gpu-0"] == ("free", "allocated")
        assert sum(each["count"] for each in found["devices"]["counts"]) == len(taken)
        same = await page.get(f"compare?from={before}&to={before}")
        assert not any(same[kind]["changed"] for kind in ("pods", "claims", "nodes", "devices"))

    visit(story)


def test_devices_without_a_model_are_counted_by_driver() -> None:
    """A shared device of which claims use nothing is free, without a percentage."""

    def state(*devices: DeviceRow) -> PastState:
        pools = {("dra.cpu", "rack-1"): PoolRow("dra.cpu", "rack-1", devices)}
        return PastState(1, "", pools, {}, {}, {}, {})

    old = state(DeviceRow("cpu-0", "rack-1", "", "free", level=0))
    new = state(DeviceRow("cpu-0", "rack-1", "", "allocated", level=50))

    assert compare(old, new)["devices"]["counts"] == [
        {"model": "dra.cpu", "was": "free", "now": "allocated 50%", "count": 1}
    ]


def test_a_comparison_with_an_unknown_moment_is_refused() -> None:
    """The error names the begin of the history."""

    async def story(page: Visit) -> None:
        await page.get("fleet")
        for query, status in (("from=1", 404), ("from=then", 400), ("", 400)):
            async with page.http.get(f"/api/v1/compare?{query}", headers=BEARER) as response:
                assert response.status == status, await response.text()

    visit(story)
