"""A pod is bound when its devices are ready, and decided anew when they do not get ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.scheduler.builders import create_objects, user_of
from tests.scheduler.gang_scenes import PREFIX

from dryrack.cli.scheduler_config import read_config, settings_of_plane
from dryrack.client.endpoints import CLAIMS, CLASSES, PODS, SLICES
from dryrack.client.timekeeping import timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.stage import Stage

    from dryrack.kinds.raw import Raw


pytestmark = pytest.mark.stage(only=())


ATTACHED = "example.com/attached"
LOST = "example.com/lost"
PRE_BIND = 'running PreBind plugin "DynamicResources": '
PENDING = "waiting for binding conditions for device on node n"


async def nominated(stage: Stage, pod: str) -> str:
    status = (await stage.client.get(PODS, pod, "default"))["status"]
    return str(status.get("nominatedNodeName", ""))


async def fabric(stage: Stage, *, devices: int = 2) -> None:
    """A node with devices that have to be attached first, a claim for one, and a pod."""
    await create_objects(stage.client, 0)
    offered = [
        {
            "name": f"fabric-{number}",
            "bindsToNode": True,
            "bindingConditions": [ATTACHED],
            "bindingFailureConditions": [LOST],
        }
        for number in range(devices)
    ]
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "y.example.com", "allNodes": True, "pool": pool, "devices": offered}
    await stage.client.create(SLICES, {"metadata": {"name": "fabric"}, "spec": spec})
    selectors = [{"cel": {"expression": "device.driver == 'y.example.com'"}}]
    await stage.client.create(
        CLASSES, {"metadata": {"name": "y"}, "spec": {"selectors": selectors}}
    )
    requests = [{"name": "r", "exactly": {"deviceClassName": "y"}}]
    metadata = {"name": "fabric", "namespace": "default"}
    await stage.client.create(
        CLAIMS, {"metadata": metadata, "spec": {"devices": {"requests": requests}}}
    )
    await stage.client.create(PODS, user_of("fabric", "user"))


async def status(stage: Stage, claim: str = "fabric") -> Raw:
    found: Raw = (await stage.client.get(CLAIMS, claim, "default")).get("status", {})
    return found


async def driver_sets(stage: Stage, *types: str, claim: str = "fabric") -> None:
    """Set the conditions of the device, as its driver does."""
    known = await stage.client.get(CLAIMS, claim, "default")
    [result] = known["status"]["allocation"]["devices"]["results"]
    now = timestamp(stage.clock.now())
    conditions = [
        {
            "type": each,
            "status": "True",
            "reason": "Seen",
            "message": "by the driver",
            "lastTransitionTime": now,
        }
        for each in types
    ]
    device = {key: result[key] for key in ("driver", "pool", "device")}
    told = {**known["status"], "devices": [{**device, "conditions": conditions}]}
    await stage.client.update(CLAIMS, {**known, "status": told}, subresource="status")


async def test_a_pod_is_bound_when_its_device_is_ready(stage: Stage) -> None:
    """Its claim is allocated and reserved first; other pods are bound meanwhile."""
    await fabric(stage)
    async with stage.scheduler():
        await stage.advance(300)
        claimed = await status(stage)

        assert [each["name"] for each in claimed["reservedFor"]] == ["user"]
        assert claimed["allocation"]["allocationTimestamp"]
        assert await stage.node_of("user") == ""
        assert await stage.events("user", "BindingConditionsPending") == [PENDING]
        assert await nominated(stage, "user") == "n"
        assert await stage.condition("user") == {}

        container = {"name": "c", "image": "i"}
        metadata = {"name": "other", "namespace": "default"}
        await stage.client.create(PODS, {"metadata": metadata, "spec": {"containers": [container]}})
        await stage.advance(1)

        assert await stage.node_of("other") == "n"

        await driver_sets(stage, ATTACHED)
        await stage.advance(1)

        assert await stage.node_of("user") == "n"
        assert await nominated(stage, "user") == ""
        assert (await status(stage))["allocation"] == claimed["allocation"]


async def fails(stage: Stage) -> str:
    await driver_sets(stage, LOST)
    await stage.advance(0.001)
    return f'{PRE_BIND}device binding failed: claim=fabric, reason=Seen, message="by the driver"'


async def is_late(stage: Stage) -> str:
    await stage.advance(598.9)
    assert await stage.refusal("user") == ""
    await stage.advance(0.2)
    return f"{PRE_BIND}device binding timeout: claim=fabric, y.example.com/fabric/fabric-0 lacks"


@pytest.mark.parametrize("ends", [fails, is_late])
async def test_a_device_that_does_not_get_ready_is_given_back(
    ends: Callable[[Stage], Awaitable[str]], stage: Stage
) -> None:
    """The claim loses its allocation, the pod gets the reason, and is decided again."""
    await fabric(stage)
    async with stage.scheduler():
        before = await status(stage)
        words = await ends(stage)

        condition = await stage.condition("user")
        assert condition["reason"] == "SchedulerError"
        assert condition["message"].startswith(words)

        await stage.advance(5)
        after = await status(stage)

        assert "devices" not in after
        assert (
            after["allocation"]["allocationTimestamp"]
            != (before["allocation"]["allocationTimestamp"])
        )
        await driver_sets(stage, ATTACHED)
        await stage.advance(1)
        assert await stage.node_of("user") == "n"


CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - {name: DynamicResources, args: {bindingTimeout: 30s}}
- schedulerName: patient
"""


async def test_each_profile_has_its_own_binding_timeout(tmp_path: Path, stage: Stage) -> None:
    """Also beside the profiles that a control plane has anyway."""
    (tmp_path / "scheduler.yaml").write_text(CONFIGURATION)
    settings = settings_of_plane(read_config(str(tmp_path / "scheduler.yaml")))

    await gang_of_two(stage)
    for name, claim in (("a", "fabric"), ("b", "other")):
        await stage.client.delete(PODS, name, namespace="default", grace_seconds=0)
        pod = user_of(claim, name)
        pod["spec"]["schedulerName"] = "patient" if name == "b" else "default-scheduler"
        await stage.client.create(PODS, pod)
    async with stage.scheduler(settings=settings):
        await stage.advance(28)
        assert [await stage.refusal(name) for name in ("a", "b")] == ["", ""]
        await stage.advance(2)
        assert "after 30 s" in await stage.refusal("a")
        await stage.advance(560)
        assert await stage.refusal("b") == ""
        await stage.advance(15)
        assert "after 600 s" in await stage.refusal("b")


@pytest.mark.parametrize("waited", [100.0, 400.0])
async def test_a_wait_outlives_the_scheduler(waited: float, stage: Stage) -> None:
    """The next scheduler waits for the rest of the time, with the same allocation."""
    await fabric(stage)
    async with stage.scheduler():
        await stage.advance(waited)
        before = await status(stage)
    assert await status(stage) == before

    async with stage.scheduler():
        await stage.advance(590 - waited)
        assert await status(stage) == before
        await stage.advance(9)
        assert "timeout" in await stage.refusal("user")
        await stage.advance(5)
        await driver_sets(stage, ATTACHED)
        await stage.advance(1)
        assert await stage.node_of("user") == "n"


async def test_a_claim_that_goes_while_its_device_is_awaited_ends_the_wait(stage: Stage) -> None:
    """The pod learns that, is nominated no longer, and waits for another claim of the name."""
    await fabric(stage)
    async with stage.scheduler():
        claim = await stage.client.get(CLAIMS, "fabric", "default")
        bare = {**claim["metadata"], "finalizers": []}
        await stage.client.update(CLAIMS, {**claim, "metadata": bare})
        await stage.client.delete(CLAIMS, "fabric", namespace="default")
        await stage.advance(5)

        condition = await stage.condition("user")
        assert condition["reason"] == "SchedulerError"
        assert condition["message"].startswith(f"{PRE_BIND}claim default/fabric: was deleted")
        assert await stage.node_of("user") == await nominated(stage, "user") == ""


async def gang_of_two(stage: Stage) -> None:
    """Two pods of a gang, each with a claim for a device that has to be attached first."""
    await fabric(stage)
    await stage.client.delete(PODS, "user", namespace="default", grace_seconds=0)
    requests = [{"name": "r", "exactly": {"deviceClassName": "y"}}]
    other = {"metadata": {"name": "other", "namespace": "default"}}
    await stage.client.create(CLAIMS, {**other, "spec": {"devices": {"requests": requests}}})
    for name, claim in (("a", "fabric"), ("b", "other")):
        pod = user_of(claim, name)
        pod["metadata"]["labels"] = {f"{PREFIX}/name": "gang", f"{PREFIX}/min-available": "2"}
        await stage.client.create(PODS, pod)


async def nodes_of_gang(stage: Stage) -> list[str]:
    return [await stage.node_of(name) for name in ("a", "b")]


async def test_a_gang_waits_for_all_its_devices(stage: Stage) -> None:
    """No member is bound before the last device is ready, also after a restart."""
    await gang_of_two(stage)
    async with stage.scheduler():
        await stage.advance(10)
        await driver_sets(stage, ATTACHED)
        await stage.advance(100)
        assert await nodes_of_gang(stage) == ["", ""]
        for name in ("a", "b"):
            assert await stage.events(name, "BindingConditionsPending") == [PENDING]
    before = [await status(stage, name) for name in ("fabric", "other")]
    async with stage.scheduler():
        await stage.advance(10)
        assert [await status(stage, name) for name in ("fabric", "other")] == before
        await driver_sets(stage, ATTACHED, claim="other")
        await stage.advance(10)
        assert await nodes_of_gang(stage) == ["n", "n"]


async def test_a_gang_gives_everything_back_when_one_of_its_devices_fails(stage: Stage) -> None:
    """All its pods are decided again, and its condition contains the reason."""
    await gang_of_two(stage)
    async with stage.scheduler():
        await stage.advance(10)
        before = [await status(stage, name) for name in ("fabric", "other")]
        await driver_sets(stage, LOST, claim="other")
        await stage.advance(20)
        for name in ("a", "b"):
            condition = await stage.condition(name)
            assert condition["reason"] == "SchedulerError"
            assert "device binding failed: claim=other" in condition["message"]
        after = [await status(stage, name) for name in ("fabric", "other")]
        for old, new in zip(before, after, strict=True):
            when = "allocationTimestamp"
            assert old["allocation"][when] != new["allocation"][when]
        for name in ("fabric", "other"):
            await driver_sets(stage, ATTACHED, claim=name)
        await stage.advance(10)
        assert await nodes_of_gang(stage) == ["n", "n"]
