"""Preemption for pods and gangs, and reservations for those that wait."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.scheduler.builders import EACH_NATIVE, Native, native_group, native_member
from tests.scheduler.gang_scenes import NAMESPACE, Faulty, GangStage, lone, member

from dryrack.client.endpoints import POD_DISRUPTION_BUDGETS, PODS

if TYPE_CHECKING:
    from dryrack.client.transport import Request
    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(kind=GangStage)

APP = {"app": "web"}
SEED = "kubenexus-scheduler"


def labelled(pod: Raw, labels: dict[str, str]) -> Raw:
    metadata = pod["metadata"]
    return pod | {"metadata": metadata | {"labels": metadata.get("labels", {}) | labels}}


@pytest.mark.stage(nodes=1, devices=2)
async def test_a_pod_of_lower_priority_goes_with_its_device(stage: GangStage) -> None:
    """The victim gets the preemptor, the preemptor its node; no other pod is deleted."""
    await stage.make_priority("high", 1000)
    written: list[bytes] = []

    async def note(_: int, request: Request) -> None:
        written.append(request.body or b"")

    stage.start(Faulty(stage.transport, before=note))
    await stage.create_pods(lone("low-0"), lone("low-1"))
    await stage.rest()
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(60)
    assert any(b'"nominatedNodeName":"node-0"' in each for each in written)
    bound = await stage.bound()
    assert "vip" in bound
    assert len(bound) == 2
    (told,) = await stage.events_of_pods("Preempted")
    assert told[1].startswith("Preempted by pod ")
    await stage.check({})


@pytest.mark.stage(nodes=1, devices=2)
async def test_of_equals_the_one_that_started_last_goes(stage: GangStage) -> None:
    """Although it was made first, and only started late."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(lone("made-first", schedulingGates=[{"name": "a/b"}]))
    await stage.rest()
    await stage.create_pods(lone("started-first"))
    await stage.rest()
    ungated: Raw = {"spec": {"schedulingGates": []}}
    await stage.client.patch(PODS, "made-first", ungated, namespace=NAMESPACE)
    await stage.rest()
    assert await stage.bound() == ["made-first", "started-first"]
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(60)
    assert await stage.bound() == ["started-first", "vip"]


@pytest.mark.stage(nodes=1, devices=1)
async def test_pods_without_what_is_needed_stay(stage: GangStage) -> None:
    """A pod that has no device is not in the way of one that wants a device."""
    await stage.make_priority("high", 1000)
    stage.start()
    idle = lone("idle")
    del idle["spec"]["resourceClaims"]
    idle["spec"]["containers"] = [{"name": "c", "image": "i"}]
    await stage.create_pods(idle, lone("busy"))
    await stage.rest()
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(60)
    assert await stage.bound() == ["idle", "vip"]


@pytest.mark.stage(nodes=1, devices=1)
async def test_a_pod_that_must_not_preempt_waits(stage: GangStage) -> None:
    """The report contains this reason."""
    await stage.make_priority("polite", 1000, preemption_policy="Never")
    stage.start()
    await stage.create_pods(lone("low"))
    await stage.rest()
    await stage.create_pods(lone("vip", priorityClassName="polite"))
    await stage.rest()
    assert await stage.bound() == ["low"]
    assert "not eligible due to preemptionPolicy=Never" in await stage.refusal("vip")


@pytest.mark.stage(nodes=2, devices=1)
async def test_a_budget_sends_preemption_to_another_node(stage: GangStage) -> None:
    """As long as there is one whose pods no budget protects."""
    await stage.make_priority("high", 1000)
    budget = {"minAvailable": 1, "selector": {"matchLabels": APP}}
    metadata = {"name": "web", "namespace": NAMESPACE}
    await stage.client.create(POD_DISRUPTION_BUDGETS, {"metadata": metadata, "spec": budget})
    stage.start()
    await stage.create_pods(labelled(lone("protected"), APP), lone("other"))
    await stage.rest()
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(60)
    assert await stage.bound() == ["protected", "vip"]


async def test_a_gang_sends_away_no_more_than_it_needs(stage: GangStage) -> None:
    """Three of four devices, of the pods of the lowest priority."""
    await stage.make_priority("high", 1000)
    await stage.make_priority("middle", 500)
    stage.start()
    await stage.create_pods(*(lone(f"low-{n}") for n in range(3)))
    await stage.create_pods(lone("middle", priorityClassName="middle"))
    await stage.rest()
    await stage.create_pods(
        *(member(f"g{n}", "gang", 3, priorityClassName="high") for n in range(3))
    )
    await stage.rest(90)
    assert await stage.bound() == ["g0", "g1", "g2", "middle"]
    await stage.check({"gang": 3})


async def test_a_gang_that_could_not_fit_sends_nobody_away(stage: GangStage) -> None:
    """Five members, four devices."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(*(lone(f"low-{n}") for n in range(4)))
    await stage.rest()
    await stage.create_pods(
        *(member(f"g{n}", "gang", 5, priorityClassName="high") for n in range(5))
    )
    await stage.rest(90)
    assert await stage.bound() == [f"low-{n}" for n in range(4)]
    assert "Preemption is not helpful for scheduling" in await stage.refusal("g0")


async def nominations(stage: GangStage) -> list[str]:
    """Return the pods with a reservation on a node."""
    pods = await stage.pods()
    return [name for name, pod in pods.items() if pod["status"].get("nominatedNodeName")]


def waiting_gang() -> list[Raw]:
    return [member(f"g{n}", "gang", 3, schedulerName=SEED) for n in range(3)]


async def test_what_a_gang_waits_with_is_kept_from_those_who_come_later(stage: GangStage) -> None:
    """Two devices are free and the gang needs three; other clients see nothing of it."""
    stage.start()
    await stage.create_pods(lone("first"), lone("second"))
    await stage.rest()
    await stage.create_pods(*waiting_gang())
    await stage.rest()
    await stage.create_pods(lone("late", schedulerName=SEED))
    await stage.rest()
    assert await stage.bound() == ["first", "second"]
    assert len(await stage.allocated_devices()) == 2
    await stage.remove("first")
    await stage.rest()
    assert await stage.bound() == ["g0", "g1", "g2", "second"]
    await stage.check({"gang": 3})


async def test_what_is_kept_runs_out(stage: GangStage) -> None:
    """After half an hour others are served, and the gang is kept nothing again."""
    stage.start()
    await stage.create_pods(lone("first"), lone("second"))
    await stage.rest()
    await stage.create_pods(*waiting_gang())
    await stage.rest()
    await stage.create_pods(lone("late", schedulerName=SEED))
    assert await nominations(stage) == ["g0", "g1"]
    await stage.rest(1900)
    assert await stage.bound() == ["first", "late", "second"]
    assert await nominations(stage) == []
    await stage.create_pods(lone("later", schedulerName=SEED))
    await stage.rest()
    assert await stage.bound() == ["first", "late", "later", "second"]


async def test_a_gang_larger_than_the_cluster_is_kept_nothing(stage: GangStage) -> None:
    """A gang that can never fit reserves nothing."""
    stage.start()
    await stage.create_pods(*(member(f"g{n}", "gang", 5, schedulerName=SEED) for n in range(5)))
    await stage.rest()
    await stage.create_pods(lone("late", schedulerName=SEED))
    await stage.rest()
    assert await stage.bound() == ["late"]


async def test_backfill_uses_what_is_kept_and_goes_when_the_gang_can_come(stage: GangStage) -> None:
    """A pod that says so by its label."""
    stage.start()
    await stage.create_pods(lone("first"), lone("second"))
    await stage.rest()
    await stage.create_pods(*waiting_gang())
    await stage.rest()
    backfill = {"scheduling.kubenexus.io/backfill": "true"}
    await stage.create_pods(labelled(lone("filler", schedulerName=SEED), backfill))
    await stage.rest()
    assert await stage.bound() == ["filler", "first", "second"]
    await stage.remove("first")
    await stage.rest(90)
    assert await stage.bound() == ["g0", "g1", "g2", "second"]
    await stage.check({"gang": 3})


@EACH_NATIVE
@pytest.mark.stage(nodes=2, devices=1)
async def test_a_group_that_goes_as_one_goes_whole(stage: GangStage, native: Native) -> None:
    """One of its two devices is wanted, and its PodGroup says that half of it is of no use."""
    await stage.make_priority("high", 1000)
    group = native_group("group", 2)
    group["spec"]["disruptionMode"] = native.whole
    await stage.client.create(native.endpoint, group)
    stage.start()
    await stage.create_pods(native_member("a", "group"), native_member("b", "group"))
    await stage.rest()
    assert await stage.bound() == ["a", "b"]
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(60)
    assert await stage.bound() == ["vip"]
    assert len(await stage.events_of_pods("Preempted")) == 2
    await stage.check({})


@pytest.mark.parametrize(("minimum", "left"), [(3, []), (2, ["g0", "g1"]), (4, [])])
async def test_a_pod_takes_no_gang_below_its_minimum(
    stage: GangStage, minimum: int, left: list[str]
) -> None:
    """
    One of three pods is a victim: it is deleted alone if its gang can spare it, else all are.

    A gang of four that has lost one runs on, and goes as a whole too.
    """
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(*(member(f"g{n}", "gang", minimum) for n in range(4)))
    await stage.rest()
    await stage.remove("g3")
    await stage.create_pods(lone("other", priorityClassName="high"))
    await stage.rest()
    assert await stage.bound() == ["g0", "g1", "g2", "other"]
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(60)
    assert await stage.bound() == [*left, "other", "vip"]
    assert len(await stage.events_of_pods("Preempted")) == 3 - len(left)


async def test_two_pods_do_not_both_take_the_one_that_a_gang_can_spare(stage: GangStage) -> None:
    """The second comes before anybody has seen the first victim go."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(*(member(f"g{n}", "gang", 3) for n in range(4)))
    await stage.rest()
    await stage.create_pods(*(lone(f"vip{n}", priorityClassName="high") for n in range(2)))
    await stage.rest(60)
    assert await stage.bound() == ["vip0", "vip1"]


async def test_a_gang_takes_another_one_whole(stage: GangStage) -> None:
    """Two of the three pods of the lesser gang are in the way of the other; all three go."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(*(member(f"g{n}", "lesser", 3) for n in range(3)))
    await stage.rest()
    vips = [member(f"vip{n}", "vips", 2, priorityClassName="high") for n in range(3)]
    await stage.create_pods(*vips)
    await stage.rest(60)
    assert await stage.bound() == ["vip0", "vip1", "vip2"]
    await stage.check({"lesser": 3, "vips": 2})


async def test_a_budget_of_a_gang_makes_another_pod_go(stage: GangStage) -> None:
    """The gang is protected, so the lone pod goes, although it is more important."""
    await stage.make_priority("high", 1000)
    await stage.make_priority("mid", 500)
    stage.start()
    await stage.create_pods(*(labelled(member(f"g{n}", "gang", 2), APP) for n in range(2)))
    await stage.create_pods(*(lone(f"mid{n}", priorityClassName="mid") for n in range(2)))
    metadata = {"name": "budget", "namespace": NAMESPACE}
    spec = {"minAvailable": 2, "selector": {"matchLabels": APP}}
    await stage.client.create(POD_DISRUPTION_BUDGETS, {"metadata": metadata, "spec": spec})
    await stage.rest()
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(60)
    bound = await stage.bound()
    assert {"g0", "g1", "vip"} < set(bound)
    assert len(bound) == 4


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.stage(nodes=1, devices=1)
async def test_a_pod_makes_way_though_a_write_fails(
    stage: GangStage, number: int, *, after: bool
) -> None:
    """Its condition, its deletion and its event are written one after the other."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(lone("low"))
    await stage.rest()
    await stage.stop()
    await stage.create_pods(lone("vip", priorityClassName="high"))
    stage.start(Faulty(stage.transport, fails_at=number, after=after))
    await stage.rest(60)
    assert await stage.bound() == ["vip"]


@pytest.mark.parametrize(("number", "after"), [(5, True), (6, False), (6, True)])
@pytest.mark.stage(nodes=1, devices=2)
async def test_a_gang_is_not_finished_beside_a_member_that_makes_way(
    stage: GangStage, number: int, *, after: bool
) -> None:
    """A scheduler died in the middle of a gang; the next one decides about a greater pod first."""
    await stage.make_priority("high", 1000)
    await stage.create_pods(member("g0", "gang", 2), member("g1", "gang", 2))
    stage.start(Faulty(stage.transport, dies_at=number, after=after))
    await stage.rest(2)
    await stage.stop()
    await stage.create_pods(lone("vip", priorityClassName="high"))
    await stage.rest(2)
    stage.start()
    await stage.rest(60)
    assert await stage.bound() == ["vip"]
    await stage.check({"gang": 2})


@pytest.mark.parametrize("number", range(2))
@pytest.mark.stage(nodes=1, devices=1)
async def test_a_pod_makes_way_that_is_just_being_bound(stage: GangStage, number: int) -> None:
    """Its claim or its binding is being written while the greater one is refused."""
    await stage.make_priority("high", 1000)

    async def overtake(now: int, _request: Request) -> None:
        if now == number:
            await stage.create_pods(lone("vip", priorityClassName="high"))
            for _ in range(1000):
                await asyncio.sleep(0)

    await stage.create_pods(lone("low"))
    stage.start(Faulty(stage.transport, before=overtake))
    await stage.rest(60)
    assert await stage.bound() == ["vip"]


@pytest.mark.stage(nodes=1, devices=1)
async def test_who_is_gone_while_another_makes_way_ends_no_scheduler(stage: GangStage) -> None:
    """The greater pod is deleted in the very moment in which the eviction cannot be written."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(lone("low"))
    await stage.rest()
    await stage.stop()
    await stage.create_pods(lone("vip", priorityClassName="high"))

    async def overtake(number: int, _request: Request) -> None:
        if number == 1:
            await stage.remove("vip")
            for _ in range(100):
                await asyncio.sleep(0)

    stage.start(Faulty(stage.transport, fails_at=1, before=overtake))
    await stage.rest(60)
    await stage.create_pods(lone("next", priorityClassName="high"))
    await stage.rest(60)
    assert await stage.bound() == ["next"]
