"""Gangs by PodGroups, native ones and those of the coscheduling plugin, and what these are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from tests.client.planes import refusal
from tests.scheduler.gang_scenes import NAMESPACE, lone, play

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.endpoints import COSCHEDULING_POD_GROUPS, DEFINITIONS, POD_GROUPS, PODS
from dryrack.cluster.rights import MANIFESTS

if TYPE_CHECKING:
    from tests.scheduler.gang_scenes import Scene

    from dryrack.client.transport import Request, Response, Transport

Raw = dict[str, Any]

NATIVE = RuntimeConfig({"scheduling.k8s.io/v1alpha2": True})


def native_group(name: str, minimum: int) -> Raw:
    policy = {"gang": {"minCount": minimum}}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulingPolicy": policy},
    }


def native_member(name: str, group: str) -> Raw:
    return lone(name, schedulingGroup={"podGroupName": group})


async def condition(scene: Scene, name: str) -> tuple[str, str, str]:
    group = await scene.client.get(POD_GROUPS, name, NAMESPACE)
    [found] = group.get("status", {}).get("conditions", [])
    assert found["type"] == "PodGroupScheduled"
    return found["status"], found["reason"], found["message"]


def test_a_native_group_is_told_when_it_waits_and_when_it_is_scheduled() -> None:
    """Its condition turns true once, and stays so when members go."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(native_member("a", "group"), native_member("b", "group"))
        await scene.rest()
        told = "PodGroup default/group does not exist; create it, or remove the pods from it"
        assert await scene.told("a") == told
        await scene.client.create(POD_GROUPS, native_group("group", 3))
        await scene.rest()
        status, reason, message = await condition(scene, "group")
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith("PodGroup default/group has 2 pods, needs at least 3")
        assert await scene.told("a") == message
        await scene.create(native_member("c", "group"))
        await scene.rest()
        assert await scene.bound() == ["a", "b", "c"]
        assert await condition(scene, "group") == ("True", "Scheduled", "")
        for name in ("a", "b"):
            await scene.client.delete(PODS, name, namespace=NAMESPACE, grace_seconds=0)
        await scene.rest()
        assert await scene.bound() == ["c"]
        assert await condition(scene, "group") == ("True", "Scheduled", "")

    play(story, serving=NATIVE)


def test_a_native_group_that_does_not_fit_is_told_the_proof() -> None:
    """The condition of the group says what the conditions of its pods say."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.client.create(POD_GROUPS, native_group("group", 5))
        await scene.create(*(native_member(f"p{n}", "group") for n in range(5)))
        await scene.rest()
        status, reason, message = await condition(scene, "group")
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith("PodGroup default/group: 4 of 5 pods fit")
        assert await scene.held() == []

    play(story, serving=NATIVE)


@dataclass(slots=True)
class Forbidding:
    """Lets nobody bind, as a server does whose roles do not have it."""

    inner: Transport

    async def send(self, request: Request) -> Response:
        if request.path.endswith("/binding"):
            return refusal(403, "Forbidden")
        return await self.inner.send(request)


def test_what_the_server_refuses_is_told_to_the_group_and_its_pods() -> None:
    """As an error of the scheduler; nothing stays reserved, and it is tried again ever later."""

    async def story(scene: Scene) -> None:
        scene.start(Forbidding(scene.cluster.transport))
        await scene.client.create(POD_GROUPS, native_group("group", 2))
        await scene.create(native_member("a", "group"), native_member("b", "group"), lone("c"))
        await scene.rest(200)
        status, reason, message = await condition(scene, "group")
        assert (status, reason) == ("False", "SchedulerError")
        assert message in await scene.told("a")
        assert (await scene.told("c")).startswith("pod default/c could not be bound: ")
        conditions = (await scene.pods())["a"]["status"]["conditions"]
        assert [each["reason"] for each in conditions] == ["SchedulerError"]
        assert await scene.held() == []

    play(story, serving=NATIVE)


def coscheduling_member(name: str, group: str) -> Raw:
    pod = lone(name)
    pod["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": group}
    return pod


async def define(scene: Scene) -> None:
    text = (MANIFESTS / "podgroups.yaml").read_text()
    await scene.client.create(DEFINITIONS, yaml.safe_load(text))


async def phase(scene: Scene, name: str) -> Raw:
    group = await scene.client.get(COSCHEDULING_POD_GROUPS, name, NAMESPACE)
    status = dict(group["status"])
    status.pop("scheduleStartTime", None)
    return status


def test_a_coscheduling_group_has_a_phase_and_counts() -> None:
    """Its kind may be defined after the scheduler has started, and after its pods were made."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(coscheduling_member("a", "group"), coscheduling_member("b", "group"))
        await scene.rest()
        what = "PodGroup.scheduling.x-k8s.io default/group"
        assert (await scene.told("a")).startswith(f"{what} does not exist")
        await define(scene)
        await scene.rest(60)
        spec = {"minMember": 3, "scheduleTimeoutSeconds": 100}
        metadata = {"name": "group", "namespace": NAMESPACE}
        await scene.client.create(COSCHEDULING_POD_GROUPS, {"metadata": metadata, "spec": spec})
        await scene.rest()
        assert await phase(scene, "group") == {"phase": "Pending"}
        assert (await scene.told("a")).startswith(f"{what} has 2 pods, needs at least 3")
        await scene.create(coscheduling_member("c", "group"))
        await scene.rest()
        assert await scene.bound() == ["a", "b", "c"]
        assert await phase(scene, "group") == {"phase": "Running", "running": 3}

    play(story)


def test_a_coscheduling_group_says_how_long_it_may_take() -> None:
    """After scheduleTimeoutSeconds its pods are told that it timed out; it goes on trying."""

    async def story(scene: Scene) -> None:
        await define(scene)
        scene.start()
        await scene.rest()
        spec = {"minMember": 5, "scheduleTimeoutSeconds": 100}
        metadata = {"name": "group", "namespace": NAMESPACE}
        await scene.client.create(COSCHEDULING_POD_GROUPS, {"metadata": metadata, "spec": spec})
        await scene.create(*(coscheduling_member(f"p{n}", "group") for n in range(5)))
        await scene.rest(90)
        assert "Timed out" not in await scene.told("p0")
        assert await phase(scene, "group") == {"phase": "Scheduling"}
        await scene.rest(20)
        assert "Timed out after 100 s" in await scene.told("p0")

    play(story)
