"""Pods and gangs for which others go, and room that is kept for those who wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.scheduler.gang_scenes import NAMESPACE, Faulty, Scene, lone, member, play
from tests.scheduler.test_pod_groups import NATIVE, native_group, native_member

from dryrack.client.endpoints import POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS

if TYPE_CHECKING:
    from dryrack.client.transport import Request

Raw = dict[str, Any]
APP = {"app": "web"}
SEED = "kubenexus-scheduler"


def labelled(pod: Raw, labels: dict[str, str]) -> Raw:
    metadata = pod["metadata"]
    return pod | {"metadata": metadata | {"labels": metadata.get("labels", {}) | labels}}


def test_a_pod_of_lower_priority_goes_with_its_device() -> None:
    """It is told who came, and the other where it will go; nothing else goes."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        written: list[bytes] = []

        async def note(_: int, request: Request) -> None:
            written.append(request.body or b"")

        scene.start(Faulty(scene.cluster.transport, before=note))
        await scene.create(lone("low-0"), lone("low-1"))
        await scene.rest()
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(60)
        assert any(b'"nominatedNodeName":"node-0"' in each for each in written)
        bound = await scene.bound()
        assert "vip" in bound
        assert len(bound) == 2
        (told,) = await scene.events("Preempted")
        assert told[1].startswith("Preempted by pod ")
        await scene.check({})

    play(story, nodes=1, devices=2)


def test_of_equals_the_one_that_started_last_goes() -> None:
    """Although it was made first, and only started late."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        await scene.create(lone("made-first", schedulingGates=[{"name": "a/b"}]))
        await scene.rest()
        await scene.create(lone("started-first"))
        await scene.rest()
        ungated: Raw = {"spec": {"schedulingGates": []}}
        await scene.client.patch(PODS, "made-first", ungated, namespace=NAMESPACE)
        await scene.rest()
        assert await scene.bound() == ["made-first", "started-first"]
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(60)
        assert await scene.bound() == ["started-first", "vip"]

    play(story, nodes=1, devices=2)


def test_pods_without_what_is_needed_stay() -> None:
    """A pod that has no device is not in the way of one that wants a device."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        idle = lone("idle")
        del idle["spec"]["resourceClaims"]
        idle["spec"]["containers"] = [{"name": "c", "image": "i"}]
        await scene.create(idle, lone("busy"))
        await scene.rest()
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(60)
        assert await scene.bound() == ["idle", "vip"]

    play(story, nodes=1, devices=1)


def test_a_pod_that_must_not_preempt_waits() -> None:
    """And is told that this is why."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("polite", 1000, preemption_policy="Never")
        scene.start()
        await scene.create(lone("low"))
        await scene.rest()
        await scene.create(lone("vip", priorityClassName="polite"))
        await scene.rest()
        assert await scene.bound() == ["low"]
        assert "not eligible due to preemptionPolicy=Never" in await scene.told("vip")

    play(story, nodes=1, devices=1)


def test_a_budget_sends_preemption_to_another_node() -> None:
    """As long as there is one whose pods no budget protects."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        budget = {"minAvailable": 1, "selector": {"matchLabels": APP}}
        metadata = {"name": "web", "namespace": NAMESPACE}
        await scene.client.create(POD_DISRUPTION_BUDGETS, {"metadata": metadata, "spec": budget})
        scene.start()
        await scene.create(labelled(lone("protected"), APP), lone("other"))
        await scene.rest()
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(60)
        assert await scene.bound() == ["protected", "vip"]

    play(story, nodes=2, devices=1)


def test_a_gang_sends_away_no_more_than_it_needs() -> None:
    """Three of four devices, of the pods of the lowest priority."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        await scene.make_priority("middle", 500)
        scene.start()
        await scene.create(*(lone(f"low-{n}") for n in range(3)))
        await scene.create(lone("middle", priorityClassName="middle"))
        await scene.rest()
        await scene.create(
            *(member(f"g{n}", "gang", 3, priorityClassName="high") for n in range(3))
        )
        await scene.rest(90)
        assert await scene.bound() == ["g0", "g1", "g2", "middle"]
        await scene.check({"gang": 3})

    play(story)


def test_a_gang_that_could_not_fit_sends_nobody_away() -> None:
    """Five members, four devices."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        await scene.create(*(lone(f"low-{n}") for n in range(4)))
        await scene.rest()
        await scene.create(
            *(member(f"g{n}", "gang", 5, priorityClassName="high") for n in range(5))
        )
        await scene.rest(90)
        assert await scene.bound() == [f"low-{n}" for n in range(4)]
        assert "Preemption is not helpful for scheduling" in await scene.told("g0")

    play(story)


async def nominations(scene: Scene) -> list[str]:
    """The pods for which room is kept on a node."""
    pods = await scene.pods()
    return [name for name, pod in pods.items() if pod["status"].get("nominatedNodeName")]


def waiting_gang() -> list[Raw]:
    return [member(f"g{n}", "gang", 3, schedulerName=SEED) for n in range(3)]


def test_what_a_gang_waits_with_is_kept_from_those_who_come_later() -> None:
    """Two devices are free and the gang needs three; other clients see nothing of it."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(lone("first"), lone("second"))
        await scene.rest()
        await scene.create(*waiting_gang())
        await scene.rest()
        await scene.create(lone("late", schedulerName=SEED))
        await scene.rest()
        assert await scene.bound() == ["first", "second"]
        assert len(await scene.held()) == 2
        await scene.remove("first")
        await scene.rest()
        assert await scene.bound() == ["g0", "g1", "g2", "second"]
        await scene.check({"gang": 3})

    play(story)


def test_what_is_kept_runs_out() -> None:
    """After half an hour others are served, and the gang is kept nothing again."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(lone("first"), lone("second"))
        await scene.rest()
        await scene.create(*waiting_gang())
        await scene.rest()
        await scene.create(lone("late", schedulerName=SEED))
        assert await nominations(scene) == ["g0", "g1"]
        await scene.rest(1900)
        assert await scene.bound() == ["first", "late", "second"]
        assert await nominations(scene) == []
        await scene.create(lone("later", schedulerName=SEED))
        await scene.rest()
        assert await scene.bound() == ["first", "late", "later", "second"]

    play(story)


def test_a_gang_larger_than_the_cluster_is_kept_nothing() -> None:
    """Nobody waits for what cannot be."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(*(member(f"g{n}", "gang", 5, schedulerName=SEED) for n in range(5)))
        await scene.rest()
        await scene.create(lone("late", schedulerName=SEED))
        await scene.rest()
        assert await scene.bound() == ["late"]

    play(story)


def test_backfill_uses_what_is_kept_and_goes_when_the_gang_can_come() -> None:
    """A pod that says so by its label."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(lone("first"), lone("second"))
        await scene.rest()
        await scene.create(*waiting_gang())
        await scene.rest()
        backfill = {"scheduling.kubenexus.io/backfill": "true"}
        await scene.create(labelled(lone("filler", schedulerName=SEED), backfill))
        await scene.rest()
        assert await scene.bound() == ["filler", "first", "second"]
        await scene.remove("first")
        await scene.rest(90)
        assert await scene.bound() == ["g0", "g1", "g2", "second"]
        await scene.check({"gang": 3})

    play(story)


def test_a_group_that_goes_as_one_goes_whole() -> None:
    """One of its two devices is wanted, and its PodGroup says that half of it is of no use."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        group = native_group("group", 2)
        group["spec"]["disruptionMode"] = "PodGroup"
        await scene.client.create(POD_GROUPS, group)
        scene.start()
        await scene.create(native_member("a", "group"), native_member("b", "group"))
        await scene.rest()
        assert await scene.bound() == ["a", "b"]
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(60)
        assert await scene.bound() == ["vip"]
        assert len(await scene.events("Preempted")) == 2
        await scene.check({})

    play(story, nodes=2, devices=1, serving=NATIVE)


@pytest.mark.parametrize(("minimum", "left"), [(3, []), (2, ["g0", "g1"]), (4, [])])
def test_a_pod_takes_no_gang_below_its_minimum(minimum: int, left: list[str]) -> None:
    """
    Of three pods one has to make way: it goes alone where the gang can spare it, else all go.

    A gang of four that has lost one runs on, and goes as a whole too.
    """

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        await scene.create(*(member(f"g{n}", "gang", minimum) for n in range(4)))
        await scene.rest()
        await scene.remove("g3")
        await scene.create(lone("other", priorityClassName="high"))
        await scene.rest()
        assert await scene.bound() == ["g0", "g1", "g2", "other"]
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(60)
        assert await scene.bound() == [*left, "other", "vip"]
        assert len(await scene.events("Preempted")) == 3 - len(left)

    play(story)


def test_two_pods_do_not_both_take_the_one_that_a_gang_can_spare() -> None:
    """The second comes before anybody has seen the first victim go."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        await scene.create(*(member(f"g{n}", "gang", 3) for n in range(4)))
        await scene.rest()
        await scene.create(*(lone(f"vip{n}", priorityClassName="high") for n in range(2)))
        await scene.rest(60)
        assert await scene.bound() == ["vip0", "vip1"]

    play(story)


def test_a_gang_takes_another_one_whole() -> None:
    """Two of the three pods of the lesser gang are in the way of the other; all three go."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        await scene.create(*(member(f"g{n}", "lesser", 3) for n in range(3)))
        await scene.rest()
        vips = [member(f"vip{n}", "vips", 2, priorityClassName="high") for n in range(3)]
        await scene.create(*vips)
        await scene.rest(60)
        assert await scene.bound() == ["vip0", "vip1", "vip2"]
        await scene.check({"lesser": 3, "vips": 2})

    play(story)


def test_a_budget_of_a_gang_makes_another_pod_go() -> None:
    """The gang is protected, so the lone pod goes, although it is more important."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        await scene.make_priority("mid", 500)
        scene.start()
        await scene.create(*(labelled(member(f"g{n}", "gang", 2), APP) for n in range(2)))
        await scene.create(*(lone(f"mid{n}", priorityClassName="mid") for n in range(2)))
        metadata = {"name": "budget", "namespace": NAMESPACE}
        spec = {"minAvailable": 2, "selector": {"matchLabels": APP}}
        await scene.client.create(POD_DISRUPTION_BUDGETS, {"metadata": metadata, "spec": spec})
        await scene.rest()
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(60)
        bound = await scene.bound()
        assert {"g0", "g1", "vip"} < set(bound)
        assert len(bound) == 4

    play(story)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_pod_makes_way_though_a_write_fails(number: int, *, after: bool) -> None:
    """Its condition, its deletion and its event are written one after the other."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        await scene.create(lone("low"))
        await scene.rest()
        await scene.stop()
        await scene.create(lone("vip", priorityClassName="high"))
        scene.start(Faulty(scene.cluster.transport, fails_at=number, after=after))
        await scene.rest(60)
        assert await scene.bound() == ["vip"]

    play(story, nodes=1, devices=1)


@pytest.mark.parametrize(("number", "after"), [(5, True), (6, False), (6, True)])
def test_a_gang_is_not_finished_beside_a_member_that_makes_way(number: int, *, after: bool) -> None:
    """A scheduler died in the middle of a gang; the next one decides about a greater pod first."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        await scene.create(member("g0", "gang", 2), member("g1", "gang", 2))
        scene.start(Faulty(scene.cluster.transport, dies_at=number, after=after))
        await scene.rest(2)
        await scene.stop()
        await scene.create(lone("vip", priorityClassName="high"))
        await scene.rest(2)
        scene.start()
        await scene.rest(60)
        assert await scene.bound() == ["vip"]
        await scene.check({"gang": 2})

    play(story, nodes=1, devices=2)


@pytest.mark.parametrize("number", range(2))
def test_a_pod_makes_way_that_is_just_being_bound(number: int) -> None:
    """Its claim or its binding is being written while the greater one is refused."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)

        async def overtake(now: int, _request: Request) -> None:
            if now == number:
                await scene.create(lone("vip", priorityClassName="high"))
                for _ in range(1000):
                    await asyncio.sleep(0)

        await scene.create(lone("low"))
        scene.start(Faulty(scene.cluster.transport, before=overtake))
        await scene.rest(60)
        assert await scene.bound() == ["vip"]

    play(story, nodes=1, devices=1)


def test_who_is_gone_while_another_makes_way_ends_no_scheduler() -> None:
    """The greater pod is deleted in the very moment in which the eviction cannot be written."""

    async def story(scene: Scene) -> None:
        await scene.make_priority("high", 1000)
        scene.start()
        await scene.create(lone("low"))
        await scene.rest()
        await scene.stop()
        await scene.create(lone("vip", priorityClassName="high"))

        async def overtake(number: int, _request: Request) -> None:
            if number == 1:
                await scene.remove("vip")
                for _ in range(100):
                    await asyncio.sleep(0)

        scene.start(Faulty(scene.cluster.transport, fails_at=1, before=overtake))
        await scene.rest(60)
        await scene.create(lone("next", priorityClassName="high"))
        await scene.rest(60)
        assert await scene.bound() == ["next"]

    play(story, nodes=1, devices=1)
