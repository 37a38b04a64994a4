"""Gangs of PodGroups, native ones and those of the coscheduling plugin, and their statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.client.planes import refusal
from tests.scheduler.builders import EACH_NATIVE, Native, native_group, native_member
from tests.scheduler.gang_scenes import NAMESPACE, GangStage, lone

from dryrack.client.endpoints import COSCHEDULING_POD_GROUPS, DEFINITIONS, PODS
from dryrack.cluster.rights import MANIFESTS

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(kind=GangStage)


async def condition(stage: GangStage, native: Native, name: str) -> tuple[str, str, str]:
    group = await stage.client.get(native.endpoint, name, NAMESPACE)
    [found] = group.get("status", {}).get("conditions", [])
    assert found["type"] == native.condition
    return found["status"], found["reason"], found["message"]


@EACH_NATIVE
async def test_a_native_group_is_told_when_it_waits_and_when_it_is_scheduled(
    stage: GangStage, native: Native
) -> None:
    """Its condition turns true once, and stays so when members go."""
    stage.start()
    await stage.create_pods(native_member("a", "group"), native_member("b", "group"))
    await stage.rest()
    told = "PodGroup default/group does not exist; create it, or remove the pods from it"
    assert await stage.refusal("a") == told
    await stage.client.create(native.endpoint, native_group("group", 3))
    await stage.rest()
    status, reason, message = await condition(stage, native, "group")
    assert (status, reason) == ("False", "Unschedulable")
    assert message.startswith("PodGroup default/group has 2 pods, needs at least 3")
    assert await stage.refusal("a") == message
    await stage.create_pods(native_member("c", "group"))
    await stage.rest()
    assert await stage.bound() == ["a", "b", "c"]
    assert await condition(stage, native, "group") == ("True", "Scheduled", "")
    for name in ("a", "b"):
        await stage.client.delete(PODS, name, namespace=NAMESPACE, grace_seconds=0)
    await stage.rest()
    assert await stage.bound() == ["c"]
    assert await condition(stage, native, "group") == ("True", "Scheduled", "")


@EACH_NATIVE
async def test_a_native_group_that_does_not_fit_is_told_the_proof(
    stage: GangStage, native: Native
) -> None:
    """The condition of the group says what the conditions of its pods say."""
    stage.start()
    await stage.client.create(native.endpoint, native_group("group", 5))
    await stage.create_pods(*(native_member(f"p{n}", "group") for n in range(5)))
    await stage.rest()
    status, reason, message = await condition(stage, native, "group")
    assert (status, reason) == ("False", "Unschedulable")
    assert "PodGroup default/group: 4 of 5 pods fit" in message
    assert await stage.allocated_devices() == []


@dataclass(slots=True)
class Forbidding:
    """Refuse bindings, like a server whose roles do not allow them."""

    inner: Transport

    async def send(self, request: Request) -> Response:
        if request.path.endswith("/binding"):
            return refusal(403, "Forbidden")
        return await self.inner.send(request)


@EACH_NATIVE
async def test_what_the_server_refuses_is_told_to_the_group_and_its_pods(
    stage: GangStage, native: Native
) -> None:
    """As an error of the scheduler; nothing stays reserved, and it is tried again ever later."""
    stage.start(Forbidding(stage.transport))
    await stage.client.create(native.endpoint, native_group("group", 2))
    await stage.create_pods(native_member("a", "group"), native_member("b", "group"), lone("c"))
    await stage.rest(200)
    status, reason, message = await condition(stage, native, "group")
    assert (status, reason) == ("False", "SchedulerError")
    assert message in await stage.refusal("a")
    assert (await stage.refusal("c")).startswith("pod default/c could not be bound: ")
    conditions = (await stage.pods())["a"]["status"]["conditions"]
    assert [each["reason"] for each in conditions] == ["SchedulerError"]
    assert await stage.allocated_devices() == []


def coscheduling_member(name: str, group: str) -> Raw:
    pod = lone(name)
    pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": group}
    return pod


async def define(stage: GangStage) -> None:
    text = (MANIFESTS / "podgroups.yaml").read_text()
    await stage.client.create(DEFINITIONS, yaml.safe_load(text))


async def phase(stage: GangStage, name: str) -> Raw:
    group = await stage.client.get(COSCHEDULING_POD_GROUPS, name, NAMESPACE)
    status = dict(group["status"])
    status.pop("scheduleStartTime", None)
    return status


async def test_a_coscheduling_group_has_a_phase_and_counts(stage: GangStage) -> None:
    """Its kind may be defined after the scheduler has started, and after its pods were made."""
    stage.start()
    await stage.create_pods(coscheduling_member("a", "group"), coscheduling_member("b", "group"))
    await stage.rest()
    what = "PodGroup.scheduling.x-k8s.io default/group"
    assert (await stage.refusal("a")).startswith(f"{what} does not exist")
    await define(stage)
    await stage.rest(60)
    spec = {"minMember": 3, "scheduleTimeoutSeconds": 100}
    metadata = {"name": "group", "namespace": NAMESPACE}
    await stage.client.create(COSCHEDULING_POD_GROUPS, {"metadata": metadata, "spec": spec})
    await stage.rest()
    assert await phase(stage, "group") == {"phase": "Pending"}
    assert (await stage.refusal("a")).startswith(f"{what} has 2 pods, needs at least 3")
    await stage.create_pods(coscheduling_member("c", "group"))
    await stage.rest()
    assert await stage.bound() == ["a", "b", "c"]
    assert await phase(stage, "group") == {"phase": "Running", "running": 3}


async def test_a_coscheduling_group_says_how_long_it_may_take(stage: GangStage) -> None:
    """After scheduleTimeoutSeconds its pods report that it timed out; it is tried again."""
    await define(stage)
    stage.start()
    await stage.rest()
    spec = {"minMember": 5, "scheduleTimeoutSeconds": 100}
    metadata = {"name": "group", "namespace": NAMESPACE}
    await stage.client.create(COSCHEDULING_POD_GROUPS, {"metadata": metadata, "spec": spec})
    await stage.create_pods(*(coscheduling_member(f"p{n}", "group") for n in range(5)))
    await stage.rest(90)
    assert "Timed out" not in await stage.refusal("p0")
    assert await phase(stage, "group") == {"phase": "Scheduling"}
    await stage.rest(20)
    assert "Timed out after 100 s" in await stage.refusal("p0")
