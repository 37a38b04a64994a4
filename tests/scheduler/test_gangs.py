"""Gangs are bound whole or not at all, and are told why they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.scheduler.gang_scenes import claimless, lone, member, play

from dryrack.client.endpoints import PODS
from dryrack.scheduler.gang_table import GangTable

if TYPE_CHECKING:
    import pytest
    from tests.scheduler.gang_scenes import Scene

    from dryrack.client.informer import Name
    from dryrack.placement import GangKey
    from dryrack.scheduler.gang_table import GangState


def test_single_dual_and_gang_run_together() -> None:
    """Two nodes with eight devices each: a pod, a pod with two claims, and a gang of three."""

    async def story(scene: Scene) -> None:
        dual = lone("dual")
        names = ("gpu", "more")
        dual["spec"]["resourceClaims"] = [
            {"name": each, "resourceClaimTemplateName": "gpu"} for each in names
        ]
        scene.start()
        await scene.create(
            lone("single"), dual, *(member(f"gang-{n}", "gang", 3) for n in range(3))
        )
        await scene.rest()
        phases = {name: pod["status"]["phase"] for name, pod in (await scene.pods()).items()}
        assert phases == dict.fromkeys(("single", "dual", "gang-0", "gang-1", "gang-2"), "Running")
        assert len(await scene.held()) == 6
        await scene.check({"gang": 3})

    play(story, devices=8)


def test_a_gang_waits_for_its_last_member() -> None:
    """Two of three are told how many are missing, hold nothing, and run when the third comes."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(member("a", "gang", 3), member("b", "gang", 3))
        await scene.rest()
        assert await scene.bound() == []
        assert await scene.held() == []
        told = "pod group default/gang has 2 pods, needs at least 3"
        assert (await scene.told("a")).startswith(told)
        assert [name for name, _ in await scene.events("FailedScheduling")] == ["a", "b"]
        await scene.create(member("c", "gang", 3))
        await scene.rest(0)
        assert await scene.bound() == ["a", "b", "c"]
        await scene.check({"gang": 3})

    play(story)


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    """Every member is told how many would fit and what the next one lacks; others go on."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(*(member(f"g{n}", "gang", 5) for n in range(5)))
        await scene.rest()
        assert await scene.bound() == []
        assert await scene.held() == []
        told = await scene.told("g0")
        assert told.startswith("pod group default/gang: 4 of 5 pods fit")
        assert "cannot allocate all claims" in told
        assert {await scene.told(f"g{n}") for n in range(5)} == {told}
        await scene.create(*(lone(f"p{n}") for n in range(4)))
        await scene.rest()
        assert await scene.bound() == ["p0", "p1", "p2", "p3"]
        await scene.check({"gang": 5})

    play(story)


def test_two_gangs_never_hold_halves_of_what_both_need() -> None:
    """The older one runs; the other runs when the first has gone."""

    async def story(scene: Scene) -> None:
        for number in range(3):
            await scene.create(member(f"a{number}", "a", 3), member(f"b{number}", "b", 3))
        scene.start()
        await scene.rest()
        assert await scene.bound() == ["a0", "a1", "a2"]
        assert (await scene.told("b0")).startswith("pod group default/b: 1 of 3 pods fit")
        await scene.check({"a": 3, "b": 3})
        for number in range(3):
            await scene.client.delete(PODS, f"a{number}", namespace="default", grace_seconds=0)
        await scene.rest()
        assert await scene.bound() == ["b0", "b1", "b2"]
        await scene.check({"a": 3, "b": 3})

    play(story)


def test_a_late_member_joins_alone() -> None:
    """Once the gang is whole; and what runs goes on when members are deleted."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(member("a", "gang", 2), member("b", "gang", 2))
        await scene.rest()
        await scene.create(member("late", "gang", 2))
        await scene.rest()
        assert await scene.bound() == ["a", "b", "late"]
        for name in ("a", "b"):
            await scene.client.delete(PODS, name, namespace="default", grace_seconds=0)
        await scene.create(member("later", "gang", 2))
        await scene.rest(300)
        assert await scene.bound() == ["late", "later"]

    play(story)


def test_members_beyond_the_minimum_take_what_is_left() -> None:
    """Five with a minimum of three on four devices: four run, and the fifth is told why not."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(*(member(f"g{n}", "gang", 3) for n in range(5)))
        await scene.rest()
        assert len(await scene.bound()) == 4
        [left] = set(await scene.pods()) - set(await scene.bound())
        assert (await scene.told(left)).startswith("0/2 nodes are available")
        await scene.check({"gang": 3})

    play(story)


def test_members_of_a_gang_may_want_different_things() -> None:
    """One with a device, two with processors."""

    async def story(scene: Scene) -> None:
        scene.start()
        pods = [member("gpu", "gang", 3), *(claimless(f"c{n}", "gang", 3) for n in range(2))]
        await scene.create(*pods)
        await scene.rest()
        assert await scene.bound() == ["c0", "c1", "gpu"]

    play(story)


def test_a_gang_with_a_flaw_is_told_what_to_do_and_keeps_nobody() -> None:
    """A minimum that is no number, pods that disagree, and pods with different schedulers."""

    async def story(scene: Scene) -> None:
        scene.start()
        broken = member("broken", "broken", 2)
        broken["metadata"]["labels"]["pod-group.scheduling.kubenexus.io/min-available"] = "two"
        await scene.create(
            broken,
            member("x", "disagree", 2),
            member("y", "disagree", 3),
            member("u", "names", 2),
            member("v", "names", 2, schedulerName="dryrack"),
            lone("other"),
        )
        await scene.rest()
        assert await scene.bound() == ["other"]
        assert "'two' is not a whole number" in await scene.told("broken")
        assert "its pods have different values of min-available" in await scene.told("x")
        told = "its pods name different schedulers: default-scheduler, dryrack"
        assert told in await scene.told("u")
        assert told in await scene.told("v")
        await scene.check({"broken": 2, "disagree": 2, "names": 2})

    play(story)


def test_a_gang_that_waits_too_long_is_told_so_and_tried_again() -> None:
    """The condition says that it timed out; nothing is held, and it runs when there is room."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(*(lone(f"p{n}") for n in range(2)))
        await scene.rest()
        await scene.create(*(member(f"g{n}", "gang", 3) for n in range(3)))
        await scene.rest(30)
        assert "Timed out" not in await scene.told("g0")
        await scene.rest(60)
        assert "Timed out after 60 s" in await scene.told("g0")
        assert len(await scene.held()) == 2
        await scene.client.delete(PODS, "p0", namespace="default", grace_seconds=0)
        await scene.rest(60)
        assert await scene.bound() == ["g0", "g1", "g2", "p1"]

    play(story)


def test_a_gang_that_starves_comes_before_a_higher_priority() -> None:
    """After a minute it is served first, though pods of a higher priority wait beside it."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(lone("first"), lone("second"), lone("third"))
        await scene.rest()
        await scene.create(member("g0", "gang", 2), member("g1", "gang", 2))
        await scene.rest(61)
        await scene.stop()
        await scene.make_priority("polite", 1000, preemption_policy="Never")
        await scene.create(*(lone(f"vip{n}", priorityClassName="polite") for n in range(3)))
        await scene.client.delete(PODS, "first", namespace="default", grace_seconds=0)
        await scene.rest()
        scene.start()
        await scene.rest()
        assert {"g0", "g1"} <= set(await scene.bound())
        await scene.check({"gang": 2})

    play(story)


def test_a_scheduler_at_rest_writes_and_decides_nothing() -> None:
    """With a whole gang, one that waits for members and one that does not fit."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(member("a", "whole", 2), member("b", "whole", 2))
        await scene.create(member("c", "few", 2))
        await scene.create(*(member(f"g{n}", "large", 3) for n in range(3)))
        await scene.rest(200)
        revision = scene.cluster.plane.store.revision
        await scene.rest(250)
        written = [
            resource
            for resource in scene.cluster.plane.store.resources()
            if resource != "leases.coordination.k8s.io"
            and scene.cluster.plane.store.events(resource, after=revision)
        ]
        assert written == []

    play(story)


def test_a_large_gang_is_looked_at_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for each member that comes, gets its claim or is bound."""
    looks = 0
    state = GangTable.state

    def counted(table: GangTable, key: GangKey, leaving: frozenset[Name]) -> GangState | None:
        nonlocal looks
        looks += 1
        return state(table, key, leaving)

    monkeypatch.setattr(GangTable, "state", counted)

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(*(member(f"g{n}", "gang", 40) for n in range(40)))
        await scene.rest()
        assert len(await scene.bound()) == 40

    play(story, devices=20)

    assert looks < 8


def test_a_gang_that_is_made_again_at_once_is_a_gang_again() -> None:
    """Members of the one before do not let those of the next run alone."""

    async def story(scene: Scene) -> None:
        scene.start()
        await scene.create(member("a", "gang", 3), member("b", "gang", 3), member("c", "gang", 3))
        await scene.rest()
        assert len(await scene.bound()) == 3
        for name in ("a", "b", "c"):
            await scene.client.delete(PODS, name, namespace="default", grace_seconds=0)
        await scene.create(member("a", "gang", 3), member("b", "gang", 3))
        await scene.rest()
        assert await scene.bound() == []
        assert (await scene.told("a")).startswith("pod group default/gang has 2 pods")

    play(story)


def test_of_two_gangs_the_one_with_the_higher_priority_runs() -> None:
    """Though it is the younger one; the other is told what it lacks."""

    async def story(scene: Scene) -> None:
        await scene.create(*(member(f"a{n}", "a", 3) for n in range(3)))
        await scene.rest(5)
        important = {"priorityClassName": "system-cluster-critical"}
        await scene.create(*(member(f"b{n}", "b", 3, **important) for n in range(3)))
        # All claims are made before anybody decides.
        await scene.rest(1)
        scene.start()
        await scene.rest()
        assert await scene.bound() == ["b0", "b1", "b2"]
        await scene.check({"a": 3, "b": 3})

    play(story)
