"""A pod that cannot be placed costs nothing until a change may help it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes
from tests.scheduler.gang_scenes import Faulty, GangStage, lone, member

from dryrack.client.client import MERGE_PATCH
from dryrack.client.endpoints import NODES, PODS, SLICES, TEMPLATES
from dryrack.client.errors import TransportError
from dryrack.placement import decide, place_gang
from dryrack.scheduler.queue import BACKOFF_SECONDS_MAX, UNSCHEDULABLE_SECONDS_MAX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.transport import Request

pytestmark = pytest.mark.stage(kind=GangStage)


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


async def make_large_gang(stage: GangStage) -> None:
    """Three members, where there are two devices."""
    await stage.create_pods(*(member(f"g{n}", "large", 3) for n in range(3)))
    # They get their claims.
    await stage.rest(5)


@pytest.mark.stage(devices=1)
async def test_members_that_are_listed_one_after_the_other_are_decided_about_once(
    stage: GangStage, gang_decisions: list[str]
) -> None:
    """A new scheduler does not wait for further members of a gang that is decided."""
    await make_large_gang(stage)
    stage.start()
    await stage.rest(30)
    assert gang_decisions == ["large"]


@pytest.mark.stage(devices=1)
async def test_a_refusal_that_could_not_be_told_is_not_decided_anew_at_once(
    stage: GangStage, gang_decisions: list[str]
) -> None:
    """The other pods get the report, and the one that failed gets it after the back-off."""
    await make_large_gang(stage)
    failures = iter([True])

    async def fail_once(_: int, request: Request) -> None:
        if request.path.endswith("/pods/g0/status") and next(failures, False):
            raise TransportError("the connection was lost before the request was sent")

    stage.start(Faulty(stage.transport, before=fail_once))
    await stage.rest(0.9)
    assert [bool(await stage.refusal(name)) for name in ("g0", "g1", "g2")] == [False, True, True]
    assert gang_decisions == ["large"]

    await stage.rest(1)
    assert await stage.refusal("g0") == await stage.refusal("g1")
    assert gang_decisions == ["large"] * 2


async def patch_node(stage: GangStage, patch: dict[str, Any], **options: Any) -> None:
    await stage.client.patch(NODES, "node-0", patch, media_type=MERGE_PATCH, **options)


async def send_heartbeat(stage: GangStage) -> None:
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2027-01-01T00:00:00Z"}]
    await patch_node(stage, {"status": {"conditions": conditions}}, subresource="status")


async def cordon_node(stage: GangStage) -> None:
    await patch_node(stage, {"spec": {"unschedulable": True}})


async def delete_pod_without_devices(stage: GangStage) -> None:
    await stage.remove("plain")


async def taint_devices(stage: GangStage) -> None:
    made = await stage.client.get(SLICES, "node-0-gpus")
    made["spec"]["pool"]["generation"] += 1
    made["spec"]["devices"][0]["taints"] = [{"key": "a", "effect": "NoSchedule"}]
    await stage.client.update(SLICES, made)


async def delete_devices(stage: GangStage) -> None:
    await stage.client.delete(SLICES, "node-0-gpus")


async def write_condition(stage: GangStage) -> None:
    condition = {"type": "example.com/Seen", "status": "True"}
    patch = {"status": {"conditions": [condition]}}
    await stage.client.patch(PODS, "g0", patch, namespace="default", subresource="status")


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
@pytest.mark.stage(devices=1)
async def test_what_cannot_help_those_who_lack_devices_wakes_nobody(
    stage: GangStage,
    happens: Callable[[GangStage], Awaitable[None]],
    gang_decisions: list[str],
    pod_decisions: list[str],
) -> None:
    """Neither a gang nor a pod is decided about again; at rest they are not, either."""
    stage.start()
    plain = lone("plain") | {"spec": scenes.POD_SPEC}
    await stage.create_pods(plain)
    await make_large_gang(stage)
    await stage.create_pods(with_claims("two", 2))
    # The condition of the gang contains that it timed out.
    await stage.rest(100)
    before = gang_decisions.copy(), pod_decisions.copy()

    await happens(stage)
    await stage.rest(100)

    assert (gang_decisions, pod_decisions) == before
    assert "two" in pod_decisions


def with_claims(name: str, count: int) -> dict[str, Any]:
    """A pod with so many claims for one device each."""
    names = [f"gpu-{number}" for number in range(count)]
    claims = [{"name": each, "resourceClaimTemplateName": "gpu"} for each in names]
    used = [{"name": each} for each in names]
    container = {**scenes.POD_SPEC["containers"][0], "resources": {"claims": used}}
    return lone(name, resourceClaims=claims, containers=[container])


@pytest.mark.stage(devices=1)
async def test_a_device_that_becomes_free_wakes_a_gang_at_once_after_its_back_off(
    stage: GangStage, gang_decisions: list[str]
) -> None:
    """It is decided about in the moment when its devices are released, and not before."""
    await stage.create_pods(lone("one"))
    stage.start()
    await stage.rest(5)
    await stage.create_pods(member("a", "pair", 2), member("b", "pair", 2))
    await stage.rest(100)
    assert sorted(await stage.bound()) == ["one"]
    before = len(gang_decisions)

    await stage.rest(BACKOFF_SECONDS_MAX)
    assert len(gang_decisions) == before
    await stage.remove("one")
    await stage.rest(0.5)

    assert sorted(await stage.bound()) == ["a", "b"]
    assert len(gang_decisions) == before + 1


@pytest.mark.stage(nodes=1, devices=1)
async def test_a_node_that_comes_wakes_who_was_refused(
    stage: GangStage, pod_decisions: list[str]
) -> None:
    """So does a device that loses its taint, both at once."""
    stage.start()
    await taint_devices(stage)
    await stage.create_pods(lone("one"))
    await stage.rest(50)
    assert pod_decisions.count("one") == 1
    made = await stage.client.get(SLICES, "node-0-gpus")
    made["spec"]["pool"]["generation"] += 1
    del made["spec"]["devices"][0]["taints"]
    await stage.client.update(SLICES, made)
    await stage.rest(0.5)
    assert await stage.bound() == ["one"]

    await stage.create_pods(lone("two"))
    await stage.rest(50)
    await scenes.make_node(stage.client, "node-1", devices=1)
    await stage.rest(0.5)
    assert sorted(await stage.bound()) == ["one", "two"]


@pytest.mark.stage(nodes=1)
async def test_what_a_pod_is_told_is_true_after_five_minutes_at_most(stage: GangStage) -> None:
    """Other pods take more capacity, which helps no pod; without news nothing is written."""
    stage.start()
    template = scenes.template_in("default")
    template["metadata"]["name"] = "three"
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
    await stage.client.create(TEMPLATES, template)
    claims = [{"name": "gpu", "resourceClaimTemplateName": "three"}]
    await stage.create_pods(lone("three", resourceClaims=claims))
    await stage.rest(5)
    assert "2 of 2 are available" in await stage.refusal("three")
    await stage.create_pods(lone("one"))
    await stage.rest(5)
    assert await stage.bound() == ["one"]
    assert "2 of 2 are available" in await stage.refusal("three")

    await stage.rest(UNSCHEDULABLE_SECONDS_MAX)
    assert "1 of 2 is available" in await stage.refusal("three")

    store = stage.control_plane.store
    revision = store.revision
    await stage.rest(UNSCHEDULABLE_SECONDS_MAX)
    written = store.events("pods", after=revision), store.events("events", after=revision)
    assert written == ([], [])


@pytest.mark.stage(devices=1)
async def test_a_pod_that_goes_may_help_a_gang_of_which_one_lacks_only_devices(
    stage: GangStage,
) -> None:
    """Another member could go to its node then, and leave the devices here to that one."""
    for node in ("node-0", "node-1"):
        labels = {"metadata": {"labels": {"place": node}}}
        await stage.client.patch(NODES, node, labels, media_type=MERGE_PATCH)
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    plain = lone("plain", nodeSelector={"place": "node-1"})
    plain["spec"]["containers"] = [{**scenes.POD_SPEC["containers"][0], **port}]
    del plain["spec"]["resourceClaims"]
    anywhere = member("a", "pair", 2)
    here = member("b", "pair", 2)
    anywhere["spec"]["containers"][0] |= port
    here["spec"]["nodeSelector"] = {"place": "node-0"}
    stage.start()
    await stage.create_pods(plain)
    await stage.rest(5)
    await stage.create_pods(anywhere, here)
    await stage.rest(100)
    assert await stage.bound() == ["plain"]

    await stage.remove("plain")
    await stage.rest(0.5)
    assert sorted(await stage.bound()) == ["a", "b"]
