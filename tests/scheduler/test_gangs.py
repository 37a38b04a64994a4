"""Gangs are bound completely or not at all, and their members get the reason why they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.scheduler.gang_scenes import GangStage, claimless, lone, member

from dryrack.client.endpoints import PODS
from dryrack.scheduler.gang_table import GangTable

if TYPE_CHECKING:
    from dryrack.client.informer import Name
    from dryrack.placement import GangKey
    from dryrack.scheduler.gang_table import GangState

pytestmark = pytest.mark.stage(kind=GangStage)


@pytest.mark.stage(devices=8)
async def test_single_dual_and_gang_run_together(stage: GangStage) -> None:
    """Two nodes with eight devices each: a pod, a pod with two claims, and a gang of three."""
    dual = lone("dual")
    names = ("gpu", "more")
    dual["spec"]["resourceClaims"] = [
        {"name": each, "resourceClaimTemplateName": "gpu"} for each in names
    ]
    stage.start()
    await stage.create_pods(
        lone("single"), dual, *(member(f"gang-{n}", "gang", 3) for n in range(3))
    )
    await stage.rest()
    phases = {name: pod["status"]["phase"] for name, pod in (await stage.pods()).items()}
    assert phases == dict.fromkeys(("single", "dual", "gang-0", "gang-1", "gang-2"), "Running")
    assert len(await stage.allocated_devices()) == 6
    await stage.check({"gang": 3})


async def test_a_gang_waits_for_its_last_member(stage: GangStage) -> None:
    """Two of three get the number of missing members, reserve nothing, and run with the third."""
    stage.start()
    await stage.create_pods(member("a", "gang", 3), member("b", "gang", 3))
    await stage.rest()
    assert await stage.bound() == []
    assert await stage.allocated_devices() == []
    told = "pod group default/gang has 2 pods, needs at least 3"
    assert (await stage.refusal("a")).startswith(told)
    assert [name for name, _ in await stage.events_of_pods("FailedScheduling")] == ["a", "b"]
    await stage.create_pods(member("c", "gang", 3))
    await stage.rest(0)
    assert await stage.bound() == ["a", "b", "c"]
    await stage.check({"gang": 3})


async def test_a_gang_that_does_not_fit_holds_nothing(stage: GangStage) -> None:
    """Every member gets the number that fits and what the next one lacks; others are bound."""
    stage.start()
    await stage.create_pods(*(member(f"g{n}", "gang", 5) for n in range(5)))
    await stage.rest()
    assert await stage.bound() == []
    assert await stage.allocated_devices() == []
    told = await stage.refusal("g0")
    assert told.startswith("pod group default/gang: 4 of 5 pods fit")
    assert "cannot allocate all claims" in told
    assert {await stage.refusal(f"g{n}") for n in range(5)} == {told}
    await stage.create_pods(*(lone(f"p{n}") for n in range(4)))
    await stage.rest()
    assert await stage.bound() == ["p0", "p1", "p2", "p3"]
    await stage.check({"gang": 5})


async def test_two_gangs_never_hold_halves_of_what_both_need(stage: GangStage) -> None:
    """The older one runs; the other runs when the first has gone."""
    for number in range(3):
        await stage.create_pods(member(f"a{number}", "a", 3), member(f"b{number}", "b", 3))
    stage.start()
    await stage.rest()
    assert await stage.bound() == ["a0", "a1", "a2"]
    assert (await stage.refusal("b0")).startswith("pod group default/b: 1 of 3 pods fit")
    await stage.check({"a": 3, "b": 3})
    for number in range(3):
        await stage.client.delete(PODS, f"a{number}", namespace="default", grace_seconds=0)
    await stage.rest()
    assert await stage.bound() == ["b0", "b1", "b2"]
    await stage.check({"a": 3, "b": 3})


async def test_a_late_member_joins_alone(stage: GangStage) -> None:
    """Once the gang is whole; and what runs goes on when members are deleted."""
    stage.start()
    await stage.create_pods(member("a", "gang", 2), member("b", "gang", 2))
    await stage.rest()
    await stage.create_pods(member("late", "gang", 2))
    await stage.rest()
    assert await stage.bound() == ["a", "b", "late"]
    for name in ("a", "b"):
        await stage.client.delete(PODS, name, namespace="default", grace_seconds=0)
    await stage.create_pods(member("later", "gang", 2))
    await stage.rest(300)
    assert await stage.bound() == ["late", "later"]


async def test_members_beyond_the_minimum_take_what_is_left(stage: GangStage) -> None:
    """Four of five run with a minimum of three on four devices, and the fifth gets the reason."""
    stage.start()
    await stage.create_pods(*(member(f"g{n}", "gang", 3) for n in range(5)))
    await stage.rest()
    assert len(await stage.bound()) == 4
    [left] = set(await stage.pods()) - set(await stage.bound())
    assert (await stage.refusal(left)).startswith("0/2 nodes are available")
    await stage.check({"gang": 3})


async def test_members_of_a_gang_may_want_different_things(stage: GangStage) -> None:
    """One with a device, two with processors."""
    stage.start()
    pods = [member("gpu", "gang", 3), *(claimless(f"c{n}", "gang", 3) for n in range(2))]
    await stage.create_pods(*pods)
    await stage.rest()
    assert await stage.bound() == ["c0", "c1", "gpu"]


async def test_a_gang_with_a_flaw_is_told_what_to_do_and_keeps_nobody(stage: GangStage) -> None:
    """A minimum that is no number, pods that disagree, and pods with different schedulers."""
    stage.start()
    broken = member("broken", "broken", 2)
    broken["metadata"]["labels"]["pod-group.scheduling.kubenexus.io/min-available"] = "two"
    await stage.create_pods(
        broken,
        member("x", "disagree", 2),
        member("y", "disagree", 3),
        member("u", "names", 2),
        member("v", "names", 2, schedulerName="dryrack"),
        lone("other"),
    )
    await stage.rest()
    assert await stage.bound() == ["other"]
    assert "'two' is not a whole number" in await stage.refusal("broken")
    assert "its pods have different values of min-available" in await stage.refusal("x")
    told = "its pods name different schedulers: default-scheduler, dryrack"
    assert told in await stage.refusal("u")
    assert told in await stage.refusal("v")
    await stage.check({"broken": 2, "disagree": 2, "names": 2})


async def test_a_gang_that_waits_too_long_is_told_so_and_tried_again(stage: GangStage) -> None:
    """The condition says that it timed out; nothing is reserved; it runs once capacity is free."""
    stage.start()
    await stage.create_pods(*(lone(f"p{n}") for n in range(2)))
    await stage.rest()
    await stage.create_pods(*(member(f"g{n}", "gang", 3) for n in range(3)))
    await stage.rest(30)
    assert "Timed out" not in await stage.refusal("g0")
    await stage.rest(60)
    assert "Timed out after 60 s" in await stage.refusal("g0")
    assert len(await stage.allocated_devices()) == 2
    await stage.client.delete(PODS, "p0", namespace="default", grace_seconds=0)
    await stage.rest(60)
    assert await stage.bound() == ["g0", "g1", "g2", "p1"]


async def test_a_gang_that_starves_comes_before_a_higher_priority(stage: GangStage) -> None:
    """After a minute it is served first, though pods of a higher priority wait beside it."""
    stage.start()
    await stage.create_pods(lone("first"), lone("second"), lone("third"))
    await stage.rest()
    await stage.create_pods(member("g0", "gang", 2), member("g1", "gang", 2))
    await stage.rest(61)
    await stage.stop()
    await stage.make_priority("polite", 1000, preemption_policy="Never")
    await stage.create_pods(*(lone(f"vip{n}", priorityClassName="polite") for n in range(3)))
    await stage.client.delete(PODS, "first", namespace="default", grace_seconds=0)
    await stage.rest()
    stage.start()
    await stage.rest()
    assert {"g0", "g1"} <= set(await stage.bound())
    await stage.check({"gang": 2})


async def test_a_scheduler_at_rest_writes_and_decides_nothing(stage: GangStage) -> None:
    """The test has a complete gang, one that waits for members, and one that does not fit."""
    stage.start()
    await stage.create_pods(member("a", "whole", 2), member("b", "whole", 2))
    await stage.create_pods(member("c", "few", 2))
    await stage.create_pods(*(member(f"g{n}", "large", 3) for n in range(3)))
    await stage.rest(200)
    revision = stage.control_plane.store.revision
    await stage.rest(250)
    written = [
        resource
        for resource in stage.control_plane.store.resources()
        if resource != "leases.coordination.k8s.io"
        and stage.control_plane.store.events(resource, after=revision)
    ]
    assert written == []


@pytest.mark.stage(devices=20)
async def test_a_large_gang_is_looked_at_a_few_times_only(
    stage: GangStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for each member that comes, gets its claim or is bound."""
    looks = 0
    state = GangTable.state

    def counted(table: GangTable, key: GangKey, leaving: frozenset[Name]) -> GangState | None:
        nonlocal looks
        looks += 1
        return state(table, key, leaving)

    monkeypatch.setattr(GangTable, "state", counted)

    stage.start()
    await stage.create_pods(*(member(f"g{n}", "gang", 40) for n in range(40)))
    await stage.rest()
    assert len(await stage.bound()) == 40
    assert looks < 8


async def test_a_gang_that_is_made_again_at_once_is_a_gang_again(stage: GangStage) -> None:
    """Members of the one before do not let those of the next run alone."""
    stage.start()
    await stage.create_pods(member("a", "gang", 3), member("b", "gang", 3), member("c", "gang", 3))
    await stage.rest()
    assert len(await stage.bound()) == 3
    for name in ("a", "b", "c"):
        await stage.client.delete(PODS, name, namespace="default", grace_seconds=0)
    await stage.create_pods(member("a", "gang", 3), member("b", "gang", 3))
    await stage.rest()
    assert await stage.bound() == []
    assert (await stage.refusal("a")).startswith("pod group default/gang has 2 pods")


async def test_of_two_gangs_the_one_with_the_higher_priority_runs(stage: GangStage) -> None:
    """It is scheduled although it is younger; the other one gets what it lacks."""
    await stage.create_pods(*(member(f"a{n}", "a", 3) for n in range(3)))
    await stage.rest(5)
    important = {"priorityClassName": "system-cluster-critical"}
    await stage.create_pods(*(member(f"b{n}", "b", 3, **important) for n in range(3)))
    # All claims are made before anybody decides.
    await stage.rest(1)
    stage.start()
    await stage.rest()
    assert await stage.bound() == ["b0", "b1", "b2"]
    await stage.check({"a": 3, "b": 3})
