"""What cannot be placed costs nothing until something changes that may help it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes
from tests.scheduler.gang_scenes import Faulty, lone, member, play

from dryrack.client.client import MERGE_PATCH
from dryrack.client.endpoints import NODES, PODS, SLICES, TEMPLATES
from dryrack.client.errors import TransportError
from dryrack.placement import decide, place_gang
from dryrack.scheduler.queue import BACKOFF_SECONDS_MAX, UNSCHEDULABLE_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.scheduler.gang_scenes import Scene

    from dryrack.client.transport import Request


@pytest.fixture
def gang_decisions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs that were decided about, each time."""
    decided: list[str] = []

    def counted(gang: Any, *args: Any, **kwargs: Any) -> Any:
        decided.append(gang.key.name)
        return place_gang(gang, *args, **kwargs)

    monkeypatch.setattr("dryrack.scheduler.gang_cycle.place_gang", counted)
    return decided


@pytest.fixture
def pod_decisions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pods that were decided about by themselves, each time."""
    decided: list[str] = []

    def counted(pod: Any, *args: Any, **kwargs: Any) -> Any:
        decided.append(pod.metadata.name)
        return decide(pod, *args, **kwargs)

    monkeypatch.setattr("dryrack.scheduler.cycle.decide", counted)
    return decided


async def make_large_gang(scene: Scene) -> None:
    """Three members, where there are two devices."""
    await scene.create(*(member(f"g{n}", "large", 3) for n in range(3)))
    # They get their claims.
    await scene.rest(5)


def test_members_that_are_listed_one_after_the_other_are_decided_about_once(
    gang_decisions: list[str],
) -> None:
    """Whoever starts anew does not wait for further members of a gang that it has decided."""

    async def story(scene: Scene) -> None:
        await make_large_gang(scene)
        scene.start()
        await scene.rest(30)
        assert gang_decisions == ["large"]

    play(story, devices=1)


def test_a_refusal_that_could_not_be_told_is_not_decided_anew_at_once(
    gang_decisions: list[str],
) -> None:
    """The others are told all the same, and the one that was not is after the back-off."""

    async def story(scene: Scene) -> None:
        await make_large_gang(scene)
        failures = iter([True])

        async def fail_once(_: int, request: Request) -> None:
            if request.path.endswith("/pods/g0/status") and next(failures, False):
                raise TransportError("the connection was lost before the request was sent")

        scene.start(Faulty(scene.cluster.transport, before=fail_once))
        await scene.rest(0.9)
        assert [bool(await scene.told(name)) for name in ("g0", "g1", "g2")] == [False, True, True]
        assert gang_decisions == ["large"]

        await scene.rest(1)
        assert await scene.told("g0") == await scene.told("g1")
        assert gang_decisions == ["large"] * 2

    play(story, devices=1)


async def patch_node(scene: Scene, patch: dict[str, Any], **options: Any) -> None:
    await scene.client.patch(NODES, "node-0", patch, media_type=MERGE_PATCH, **options)


async def send_heartbeat(scene: Scene) -> None:
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2027-01-01T00:00:00Z"}]
    await patch_node(scene, {"status": {"conditions": conditions}}, subresource="status")


async def cordon_node(scene: Scene) -> None:
    await patch_node(scene, {"spec": {"unschedulable": True}})


async def delete_pod_without_devices(scene: Scene) -> None:
    await scene.remove("plain")


async def taint_devices(scene: Scene) -> None:
    made = await scene.client.get(SLICES, "node-0-gpus")
    made["spec"]["pool"]["generation"] += 1
    made["spec"]["devices"][0]["taints"] = [{"key": "a", "effect": "NoSchedule"}]
    await scene.client.update(SLICES, made)


async def delete_devices(scene: Scene) -> None:
    await scene.client.delete(SLICES, "node-0-gpus")


async def write_condition(scene: Scene) -> None:
    condition = {"type": "example.com/Seen", "status": "True"}
    patch = {"status": {"conditions": [condition]}}
    await scene.client.patch(PODS, "g0", patch, namespace="default", subresource="status")


@pytest.mark.parametrize(
    "happens",
    [
        send_heartbeat,
        cordon_node,
        delete_pod_without_devices,
        taint_devices,
        delete_devices,
        write_condition,
    ],
)
def test_what_cannot_help_those_who_lack_devices_wakes_nobody(
    happens: Callable[[Scene], Awaitable[None]],
    gang_decisions: list[str],
    pod_decisions: list[str],
) -> None:
    """Neither a gang nor a pod is decided about again; at rest they are not, either."""

    async def story(scene: Scene) -> None:
        scene.start()
        plain = lone("plain") | {"spec": scenes.POD_SPEC}
        await scene.create(plain)
        await make_large_gang(scene)
        await scene.create(with_claims("two", 2))
        # The gang is told that its time is over.
        await scene.rest(100)
        before = gang_decisions.copy(), pod_decisions.copy()

        await happens(scene)
        await scene.rest(100)

        assert (gang_decisions, pod_decisions) == before
        assert "two" in pod_decisions

    play(story, devices=1)


def with_claims(name: str, count: int) -> dict[str, Any]:
    """A pod with so many claims for one device each."""
    names = [f"gpu-{number}" for number in range(count)]
    claims = [{"name": each, "resourceClaimTemplateName": "gpu"} for each in names]
    used = [{"name": each} for each in names]
    container = {**scenes.POD_SPEC["containers"][0], "resources": {"claims": used}}
    return lone(name, resourceClaims=claims, containers=[container])


def test_a_device_that_becomes_free_wakes_a_gang_at_once_after_its_back_off(
    gang_decisions: list[str],
) -> None:
    """It is decided about in the moment when its devices are released, and not before."""

    async def story(scene: Scene) -> None:
        await scene.create(lone("one"))
        scene.start()
        await scene.rest(5)
        await scene.create(member("a", "pair", 2), member("b", "pair", 2))
        await scene.rest(100)
        assert sorted(await scene.bound()) == ["one"]
        before = len(gang_decisions)

        await scene.rest(BACKOFF_SECONDS_MAX)
        assert len(gang_decisions) == before
        await scene.remove("one")
        await scene.rest(0.5)

        assert sorted(await scene.bound()) == ["a", "b"]
        assert len(gang_decisions) == before + 1

    play(story, devices=1)


def test_a_node_that_comes_wakes_who_was_refused(pod_decisions: list[str]) -> None:
    """So does a device that loses its taint, both at once."""

    async def story(scene: Scene) -> None:
        scene.start()
        await taint_devices(scene)
        await scene.create(lone("one"))
        await scene.rest(50)
        assert pod_decisions.count("one") == 1
        made = await scene.client.get(SLICES, "node-0-gpus")
        made["spec"]["pool"]["generation"] += 1
        del made["spec"]["devices"][0]["taints"]
        await scene.client.update(SLICES, made)
        await scene.rest(0.5)
        assert await scene.bound() == ["one"]

        await scene.create(lone("two"))
        await scene.rest(50)
        await scenes.make_node(scene.client, "node-1", devices=1)
        await scene.rest(0.5)
        assert sorted(await scene.bound()) == ["one", "two"]

    play(story, nodes=1, devices=1)


def test_what_a_pod_is_told_is_true_after_five_minutes_at_most() -> None:
    """Others take more, which helps nobody; where nothing is new nothing is written."""

    async def story(scene: Scene) -> None:
        scene.start()
        template = scenes.template_in("default")
        template["metadata"]["name"] = "three"
        template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
        await scene.client.create(TEMPLATES, template)
        claims = [{"name": "gpu", "resourceClaimTemplateName": "three"}]
        await scene.create(lone("three", resourceClaims=claims))
        await scene.rest(5)
        assert "2 of 2 are available" in await scene.told("three")
        await scene.create(lone("one"))
        await scene.rest(5)
        assert await scene.bound() == ["one"]
        assert "2 of 2 are available" in await scene.told("three")

        await scene.rest(UNSCHEDULABLE_SECONDS_MAX)
        assert "1 of 2 is available" in await scene.told("three")

        store = scene.cluster.plane.store
        revision = store.revision
        await scene.rest(UNSCHEDULABLE_SECONDS_MAX)
        written = store.events("pods", after=revision), store.events("events", after=revision)
        assert written == ([], [])

    play(story, nodes=1)


def test_a_pod_that_goes_may_help_a_gang_of_which_one_lacks_only_devices() -> None:
    """Another member could go to its node then, and leave the devices here to that one."""

    async def story(scene: Scene) -> None:
        for node in ("node-0", "node-1"):
            labels = {"metadata": {"labels": {"place": node}}}
            await scene.client.patch(NODES, node, labels, media_type=MERGE_PATCH)
        port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
        plain = lone("plain", nodeSelector={"place": "node-1"})
        plain["spec"]["containers"] = [{**scenes.POD_SPEC["containers"][0], **port}]
        del plain["spec"]["resourceClaims"]
        anywhere = member("a", "pair", 2)
        here = member("b", "pair", 2)
        anywhere["spec"]["containers"][0] |= port
        here["spec"]["nodeSelector"] = {"place": "node-0"}
        scene.start()
        await scene.create(plain)
        await scene.rest(5)
        await scene.create(anywhere, here)
        await scene.rest(100)
        assert await scene.bound() == ["plain"]

        await scene.remove("plain")
        await scene.rest(0.5)
        assert sorted(await scene.bound()) == ["a", "b"]

    play(story, devices=1)
