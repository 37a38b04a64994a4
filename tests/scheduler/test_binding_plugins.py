"""Plugins between the decision and the binding: Reserve, Permit, PreBind, PostBind, and hints."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.client.client import MERGE_PATCH
from dryrack.client.endpoints import CLAIMS, PODS
from dryrack.client.timekeeping import run_virtual
from dryrack.cluster import EngineOptions
from dryrack.placement import (
    IN_TREE,
    Change,
    Plugin,
    Rejected,
    Wait,
    profile_of,
    read_configuration,
)
from dryrack.scheduler import SchedulerSettings
from dryrack.testing.async_cluster import AsyncCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.kinds.raw import Raw
    from dryrack.placement import ProposedBinding

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Mine}]}}
  pluginConfig: [{name: Mine, args: {seats: 1}}]
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
"""
GANG = "pod-group.scheduling.kubenexus.io"


def pod(name: str, labels: dict[str, str] | None = None) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}],
        },
    }


def member(name: str, count: int) -> Raw:
    return pod(name, {f"{GANG}/name": "gang", f"{GANG}/min-available": str(count)})


def name_of(binding: ProposedBinding) -> str:
    return binding.pod.pod.metadata.name


def settings(plugin: Plugin) -> SchedulerSettings:
    available = {**IN_TREE, plugin.name: plugin}
    reading = read_configuration(CONFIG, "scheduler.yaml", available)
    assert reading.configuration is not None, reading.problems
    profile = profile_of(reading.configuration.profiles[0], "default-scheduler", available)
    return SchedulerSettings(profiles={"default-scheduler": profile})


def play(
    plugin: Plugin, story: Callable[[AsyncCluster], Awaitable[None]], devices: int = 8
) -> None:
    """Run a story on a cluster of one node whose scheduler has the plugin."""

    async def run() -> None:
        engines = EngineOptions(scheduling=settings(plugin))
        async with AsyncCluster(engines=engines) as cluster:
            await cluster.add_nodes(name="n1", devices=f"gpu:{devices}")
            await cluster.apply(CLAIM)
            await story(cluster)

    run_virtual(run())


async def allocated(cluster: AsyncCluster) -> int:
    claims = await cluster.list("resourceclaims")
    return sum(bool(each["status"].get("allocation")) for each in claims)


def test_reserve_counts_and_unreserve_returns_what_is_not_bound() -> None:
    """One seat: the second pod waits with the reason of the plugin, and holds no device."""
    seats: set[str] = set()

    def reserve(binding: ProposedBinding, args: Any) -> Rejected | None:
        if len(seats) >= args["seats"]:
            return Rejected("all seats are taken")
        seats.add(name_of(binding))
        return None

    def unreserve(binding: ProposedBinding, args: Any) -> None:
        seats.discard(name_of(binding))

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("a"))
        await cluster.expect_scheduled("a", devices=1)
        await cluster.apply(pod("b"))
        await cluster.expect_pending("b")
        waiting = await cluster.get("pods", "b")
        [condition] = waiting["status"]["conditions"]
        assert condition["reason"] == "Unschedulable"
        assert condition["message"] == "plugin Mine: all seats are taken"
        assert "plugin Mine: all seats are taken" in await cluster.explain("b")
        assert await allocated(cluster) == 1
        assert seats == {"a"}
        seats.clear()
        await cluster.delete("pods", "a")
        await cluster.expect_scheduled("b")
        await cluster.check_invariants()

    play(Plugin("Mine", reserve=reserve, unreserve=unreserve), story)


def test_permit_lets_pods_wait_for_each_other() -> None:
    """Two pods wait at their node; the third lets all of them go."""

    def permit(binding: ProposedBinding, waited: float, args: Any) -> Wait | None:
        crowd = sum(each.labels.get("crowd") == "yes" for each in binding.node.occupants.values())
        return None if crowd >= 3 else Wait(60, f"{crowd} of 3 are there")

    async def story(cluster: AsyncCluster) -> None:
        for name in "ab":
            await cluster.apply(pod(name, {"crowd": "yes"}))
        await cluster.advance(30)
        assert await cluster.pending() == ["default/a", "default/b"]
        assert (await cluster.get("pods", "a"))["status"]["nominatedNodeName"] == "n1"
        events = [each["message"] for each in await cluster.list("events")]
        assert "plugin Mine: waiting on node n1: 1 of 3 are there" in events
        assert await allocated(cluster) == 0
        await cluster.apply(pod("c", {"crowd": "yes"}))
        for name in "abc":
            await cluster.expect_scheduled(name, within=5)
        await cluster.check_invariants()

    play(Plugin("Mine", permit=permit), story)


def test_a_pod_that_is_not_permitted_in_time_leaves_nothing_behind() -> None:
    """The time is that of the answer; the reservation of the plugin and the devices are free."""
    calls: Counter[str] = Counter()
    waits: list[float] = []

    def reserve(binding: ProposedBinding, args: Any) -> None:
        calls["reserve"] += 1

    def unreserve(binding: ProposedBinding, args: Any) -> None:
        calls["unreserve"] += 1

    def permit(binding: ProposedBinding, waited: float, args: Any) -> Wait:
        waits.append(waited)
        return Wait(20, "no license")

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("a"))
        await cluster.advance(19)
        assert calls == {"reserve": 1}
        await cluster.advance(3)
        told = await cluster.get("pods", "a")
        assert told["status"]["conditions"][0]["message"] == (
            "plugin Mine: not permitted within 20 s: no license"
        )
        assert "nominatedNodeName" not in told["status"]
        assert calls["reserve"] == calls["unreserve"] == 1
        assert await allocated(cluster) == 0
        assert waits[0] == 0.0
        assert waits[-1] >= 20.0

    plugin = Plugin("Mine", reserve=reserve, unreserve=unreserve, permit=permit, hints=Change.NODE)
    play(plugin, story)


def test_a_pod_that_is_deleted_while_it_waits_is_unreserved() -> None:
    """The wait ends at once, and not when its time is over."""
    reserved: set[str] = set()

    def reserve(binding: ProposedBinding, args: Any) -> None:
        reserved.add(name_of(binding))

    def unreserve(binding: ProposedBinding, args: Any) -> None:
        reserved.discard(name_of(binding))

    def permit(binding: ProposedBinding, waited: float, args: Any) -> Wait:
        return Wait(600)

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("a"))
        await cluster.advance(2)
        assert reserved == {"a"}
        await cluster.delete("pods", "a")
        await cluster.advance(5)
        assert reserved == set()

    play(Plugin("Mine", reserve=reserve, unreserve=unreserve, permit=permit), story)


@pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind"])
def test_an_exception_is_the_problem_of_one_pod(point: str) -> None:
    """Its condition names the plugin and the exception; other pods are scheduled."""

    def fail(binding: ProposedBinding, *_: Any) -> None:
        if name_of(binding) == "bad":
            raise ValueError("no such license")

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("bad"))
        await cluster.apply(pod("good"))
        await cluster.expect_scheduled("good")
        await cluster.advance(30)
        told = (await cluster.get("pods", "bad"))["status"]["conditions"][0]
        assert told["reason"] == "SchedulerError"
        assert told["message"] == f"plugin Mine: {point}: ValueError('no such license')"
        assert await allocated(cluster) == 1

    points: dict[str, Any] = {point: fail}
    play(Plugin("Mine", **points), story)


def test_a_wrong_answer_names_the_right_ones() -> None:
    """A plugin that returns something else does not permit a pod by accident."""

    def permit(binding: ProposedBinding, waited: float, args: Any) -> Any:
        return True

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("a"))
        await cluster.advance(5)
        told = (await cluster.get("pods", "a"))["status"]["conditions"][0]
        assert told["message"] == (
            "plugin Mine: permit: returned bool; return None or Rejected or Wait"
        )

    play(Plugin("Mine", permit=permit), story)


def test_pre_bind_writes_before_and_post_bind_after_the_binding() -> None:
    """Both get a client; the pod has no node at the first, and one at the second."""
    nodes: list[tuple[str, str]] = []

    async def record(point: str, binding: ProposedBinding, client: Any) -> None:
        found = await client.get(PODS, name_of(binding), "default")
        nodes.append((point, found["spec"].get("nodeName", "")))

    async def pre_bind(binding: ProposedBinding, client: Any, args: Any) -> None:
        await record("pre", binding, client)
        patch = {"metadata": {"annotations": {"example.com/node": binding.node.node.metadata.name}}}
        await client.patch(
            PODS, name_of(binding), patch, namespace="default", media_type=MERGE_PATCH
        )

    async def post_bind(binding: ProposedBinding, client: Any, args: Any) -> None:
        await record("post", binding, client)
        raise ValueError("logged, and nothing else")

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("a"))
        await cluster.expect_scheduled("a", devices=1)
        found = await cluster.get("pods", "a")
        assert found["metadata"]["annotations"]["example.com/node"] == "n1"
        assert nodes == [("pre", ""), ("post", "n1")]

    play(Plugin("Mine", pre_bind=pre_bind, post_bind=post_bind), story)


def test_a_pre_bind_that_rejects_releases_the_claims() -> None:
    """The devices were written already; they are free again, and the pod is tried again."""
    answers = [Rejected("not attached yet"), None]

    async def pre_bind(binding: ProposedBinding, client: Any, args: Any) -> Rejected | None:
        claims = (await client.list(CLAIMS)).items
        assert all(each["status"]["reservedFor"] for each in claims)
        return answers.pop(0)

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("a"))
        await cluster.expect_pending("a", lasting=0)
        assert await allocated(cluster) == 0
        await cluster.expect_scheduled("a", devices=1)

    play(Plugin("Mine", pre_bind=pre_bind), story)


def test_a_pre_bind_that_never_ends_is_given_up() -> None:
    """After ten minutes the pod is retried; others are scheduled meanwhile."""
    import asyncio

    async def pre_bind(binding: ProposedBinding, client: Any, args: Any) -> None:
        if name_of(binding) == "slow":
            await asyncio.Event().wait()

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("slow"))
        await cluster.apply(pod("quick"))
        await cluster.expect_scheduled("quick")
        await cluster.advance(605)
        told = (await cluster.get("pods", "slow"))["status"]["conditions"][0]
        assert told["message"] == "plugin Mine: pre_bind: took too long"

    play(Plugin("Mine", pre_bind=pre_bind), story)


def test_a_rejected_member_rejects_its_gang() -> None:
    """Nothing of the other members stays: no device, no reservation, no node."""
    reserved: set[str] = set()
    is_open = False

    def reserve(binding: ProposedBinding, args: Any) -> None:
        reserved.add(name_of(binding))

    def unreserve(binding: ProposedBinding, args: Any) -> None:
        reserved.discard(name_of(binding))

    def permit(binding: ProposedBinding, waited: float, args: Any) -> Rejected | None:
        is_rejected = name_of(binding) == "m2" and not is_open
        return Rejected("m2 may not run") if is_rejected else None

    async def story(cluster: AsyncCluster) -> None:
        nonlocal is_open
        for number in range(3):
            await cluster.apply(member(f"m{number}", 3))
        await cluster.expect_pending("gang/gang", because="plugin Mine: m2 may not run")
        assert reserved == set()
        assert await allocated(cluster) == 0
        is_open = True
        await cluster.add_nodes(name="n2")
        await cluster.expect_scheduled("gang/gang", devices=1)
        assert reserved == {"m0", "m1", "m2"}
        await cluster.check_invariants()

    play(Plugin("Mine", reserve=reserve, unreserve=unreserve, permit=permit), story)


def test_a_hint_names_the_changes_that_help() -> None:
    """A rejected pod is retried after a change of the hint, and after no other."""
    tries: list[str] = []

    def permit(binding: ProposedBinding, waited: float, args: Any) -> Rejected | None:
        tries.append(name_of(binding))
        return Rejected("not here") if name_of(binding) == "a" else None

    async def story(cluster: AsyncCluster) -> None:
        await cluster.apply(pod("other"))
        await cluster.expect_scheduled("other")
        await cluster.apply(pod("a"))
        await cluster.advance(20)
        count = tries.count("a")
        await cluster.delete("pods", "other")
        await cluster.advance(60)
        assert tries.count("a") == count
        await cluster.add_nodes(name="n2")
        await cluster.advance(20)
        assert tries.count("a") == count + 1

    play(Plugin("Mine", permit=permit, hints=Change.NODE), story)
