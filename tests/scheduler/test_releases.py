"""The scheduler of each release: its messages, and the release that a server has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.client.planes import refusal
from tests.scheduler.gang_scenes import NAMESPACE, GangStage, lone
from tests.scheduler.messages import no_victims_text

from dryrack.client.discovery import release_of
from dryrack.client.endpoints import PODS
from dryrack.cluster import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.kinds.releases import NEWEST, Release, nearest_release
from dryrack.placement import profile_named

if TYPE_CHECKING:
    from dryrack.client.transport import Request, Response, Transport
    from dryrack.kinds.raw import Raw

BOTH = [
    pytest.param(each, marks=pytest.mark.stage(kind=GangStage, release=each, nodes=1, devices=1))
    for each in Release
]


async def message_of(stage: GangStage, name: str) -> str:
    pod = await stage.client.get(PODS, name, namespace=NAMESPACE)
    conditions: list[Raw] = pod["status"]["conditions"]
    return next(str(each["message"]) for each in conditions if each["type"] == "PodScheduled")


@pytest.mark.parametrize("release", BOTH)
async def test_a_pod_that_nobody_makes_way_for_gets_the_message_of_the_release(
    stage: GangStage, release: Release
) -> None:
    """From 1.37 on DynamicResources says nothing if it has nothing to do."""
    stage.start()
    await stage.create_pods(lone("first"))
    await stage.rest()
    await stage.create_pods(lone("second"))
    await stage.rest()

    message = await message_of(stage, "second")

    assert message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert message.endswith(no_victims_text(helpful=1, claims=True, release=release))
    has_text = "still not schedulable" in message
    assert has_text == (release is Release.V1_36)


@pytest.mark.parametrize("release", BOTH)
async def test_a_pod_that_preempts_gets_the_message_of_the_release(
    stage: GangStage, release: Release
) -> None:
    """From 1.37 on kube-scheduler names the node and counts the victims."""
    await stage.make_priority("high", 1000)
    stage.start()
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 600}
    await stage.create_pods(lone("low", **spec))
    await stage.rest()
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(5)

    events = await stage.events_of_pods("FailedScheduling")
    messages = " ".join(text for name, text in events if name == "vip")

    text = "preemption: found a potential placement for pod on node node-0, preempting 1 victims"
    assert (text in messages) == (release is not Release.V1_36)


@dataclass(slots=True)
class Busy:
    """Answer the first bindings like a server that is overloaded."""

    inner: Transport
    left: int
    bindings: int = 0
    reservations: int = 0

    async def send(self, request: Request) -> Response:
        is_write = request.method != "GET"
        self.reservations += is_write and "/resourceclaims/" in request.path
        self.bindings += request.path.endswith("/binding")
        if request.path.endswith("/binding") and self.bindings <= self.left:
            return refusal(503, "ServiceUnavailable")
        return await self.inner.send(request)


@pytest.mark.parametrize("release", BOTH)
async def test_a_binding_is_retried_at_once_from_1_37_on(
    stage: GangStage, release: Release
) -> None:
    """Before, each attempt allocates and reserves the claim again."""
    busy = Busy(stage.transport, 3)
    stage.start(busy)
    await stage.create_pods(lone("pod"))
    await stage.rest(60)

    assert await stage.bound() == ["pod"]
    assert busy.bindings == 4
    # The finalizer, and the allocation.
    assert (busy.reservations == 2) == (release is not Release.V1_36), busy.reservations


def test_a_profile_calls_the_filters_in_the_order_of_its_release() -> None:
    """1.37 has the name of the node before its cordon."""
    for release, first in (
        (Release.V1_36, ["NodeUnschedulable", "NodeName"]),
        (Release.V1_37, ["NodeName", "NodeUnschedulable"]),
    ):
        for name in ("default-scheduler", "kubenexus-scheduler"):
            profile = profile_named(name, release)
            assert [each.name for each in profile.filters[:3]] == [*first, "TaintToleration"]


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("v1.34.1", Release.V1_36),
        ("v1.36.4+dryrack", Release.V1_36),
        ("v1.37.1", Release.V1_37),
        ("1.99", NEWEST),
        ("unknown", NEWEST),
    ],
)
def test_a_server_of_any_version_has_a_nearest_release(version: str, release: Release) -> None:
    """The newest one that is not newer, or the oldest one."""
    assert nearest_release(version) is release


async def test_the_release_of_a_cluster_is_that_of_its_server() -> None:
    """The page `/version` names it."""
    async with embedded(ControlPlaneOptions(release=Release.V1_36), engines=()) as cluster:
        assert await release_of(cluster.client) is Release.V1_36
