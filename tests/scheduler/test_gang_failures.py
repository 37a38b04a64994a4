"""
Whatever fails in the middle of a plan, no gang stays half bound and nothing leaks.

Each write of the scheduler in turn fails, is overtaken by somebody else's, or is the last that it
makes before it dies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.scheduler.gang_scenes import Faulty, claimless, lone, member, play

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.client.errors import ForbiddenError, TransportError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.scheduler.gang_scenes import Scene

    from dryrack.client.transport import Request, Response, Transport

MEMBERS = tuple(f"g{number}" for number in range(3))
# The lease of plans is made first. Of each member: the finalizer, the allocation, the binding; and
# its event.
WRITES = 13
MOMENTS = pytest.mark.parametrize("number", range(WRITES))
SIDES = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


def gang() -> list[dict[str, object]]:
    return [member(name, "gang", 3) for name in MEMBERS]


def at(number: int, act: Callable[[], Awaitable[object]]) -> Callable[..., Awaitable[None]]:
    """Something that is done just before the write of that number."""

    async def before(current: int, request: Request) -> None:
        if current == number:
            await act()

    return before


@MOMENTS
@SIDES
def test_a_write_that_fails_once_is_made_good(number: int, *, after: bool) -> None:
    """The gang is bound in the end, each member with a device of its own."""

    async def story(scene: Scene) -> None:
        await scene.create(*gang())
        scene.start(Faulty(scene.cluster.transport, fails_at=number, after=after))
        await scene.rest()
        assert await scene.bound() == list(MEMBERS)
        assert len(await scene.held()) == 3
        await scene.check({"gang": 3})

    play(story)


@MOMENTS
@SIDES
@pytest.mark.parametrize("make", [member, claimless], ids=["devices", "processors"])
def test_what_a_dead_scheduler_began_the_next_one_finishes(
    number: int, *, after: bool, make: Callable[..., dict[str, object]]
) -> None:
    """Dead from any write on; the next one finds what is bound and reserved, and goes on."""

    async def story(scene: Scene) -> None:
        await scene.create(*(make(name, "gang", 3) for name in MEMBERS))
        scene.start(Faulty(scene.cluster.transport, dies_at=number, after=after))
        await scene.rest(2)
        await scene.stop()
        scene.start()
        await scene.rest()
        assert await scene.bound() == list(MEMBERS)
        await scene.check({"gang": 3})

    play(story)


@MOMENTS
@pytest.mark.parametrize("make", [member, claimless], ids=["devices", "processors"])
def test_what_cannot_be_finished_is_undone(
    number: int, make: Callable[..., dict[str, object]]
) -> None:
    """
    A member is deleted while no scheduler lives: what was bound and reserved goes.

    So does a gang whose last member was bound in the last moment of the scheduler.
    """

    async def story(scene: Scene) -> None:
        await scene.create(*(make(name, "gang", 3) for name in MEMBERS))
        transport = Faulty(scene.cluster.transport, dies_at=number)
        scene.start(transport)
        await scene.rest(1)
        await scene.stop()
        left = [name for name in MEMBERS if name not in await scene.bound()]
        await scene.remove(left[-1] if left else "g2")
        scene.start()
        await scene.rest(120)
        await scene.check({"gang": 3})

    play(story)


@pytest.mark.parametrize("restarts", [0, 1, 2])
@pytest.mark.parametrize("make", [member, claimless], ids=["devices", "processors"])
def test_what_was_whole_runs_on_whoever_starts_anew(
    restarts: int, make: Callable[..., dict[str, object]]
) -> None:
    """A member is deleted while no scheduler lives, long after the gang was bound."""

    async def story(scene: Scene) -> None:
        await scene.create(*(make(name, "gang", 3) for name in MEMBERS))
        for seconds in (*([0.5] * restarts), 5):
            scene.start()
            await scene.rest(seconds)
            await scene.stop()
        await scene.remove("g2")
        for _ in range(2):
            scene.start()
            await scene.rest(60)
            await scene.stop()
            assert await scene.bound() == ["g0", "g1"]

    play(story)


def test_a_lease_that_cannot_be_read_at_first_is_kept_up_to_date_later() -> None:
    """What was bound whole before is settled as soon as the server answers."""

    @dataclass
    class Silent:
        """A way to the plane on which leases cannot be read."""

        inner: Transport
        is_silent: bool = True

        async def send(self, request: Request) -> Response:
            if self.is_silent and request.method == "GET" and "/leases/" in request.path:
                raise TransportError("no answer")
            return await self.inner.send(request)

    async def story(scene: Scene) -> None:
        await scene.create(*gang())
        scene.start()
        await scene.rest(0.5)
        await scene.stop()
        silent = Silent(scene.cluster.transport)
        scene.start(silent)
        await scene.rest(10)
        silent.is_silent = False
        await scene.rest(60)
        await scene.stop()
        await scene.remove("g2")
        scene.start()
        await scene.rest(60)
        assert await scene.bound() == ["g0", "g1"]

    play(story)


def test_gangs_of_one_moment_share_the_write_that_says_that_they_are_settled() -> None:
    """A pod costs its finalizer, allocation, binding and event, as one that is in no gang."""

    async def story(scene: Scene) -> None:
        for name in ("a", "b", "c"):
            await scene.create(*(member(f"{name}{n}", name, 2) for n in range(2)))
        transport = Faulty(scene.cluster.transport)
        scene.start(transport)
        await scene.rest(300)
        assert len(await scene.bound()) == 6
        about_leases = [write for write in transport.writes if "/leases" in write]
        assert len(about_leases) == 2
        assert len(transport.writes) - len(about_leases) == 6 * 4

    play(story, devices=3)


def test_a_scheduler_that_may_not_touch_the_lease_binds_gangs_all_the_same() -> None:
    """Only what it leaves in the middle cannot be told by the next one."""

    async def story(scene: Scene) -> None:
        async def before(_: int, request: Request) -> None:
            if "/leases" in request.path:
                raise ForbiddenError({"code": 403, "reason": "Forbidden", "message": "no"})

        await scene.create(*gang())
        scene.start(Faulty(scene.cluster.transport, before=before))
        await scene.rest()
        assert await scene.bound() == list(MEMBERS)
        await scene.check({"gang": 3})

    play(story)


@MOMENTS
def test_a_member_that_is_deleted_in_the_middle_takes_the_gang_with_it(number: int) -> None:
    """Unless it was whole by then; a member that comes in its place makes it run."""

    async def story(scene: Scene) -> None:
        async def delete() -> None:
            pods = await scene.pods()
            unbound = [name for name, pod in pods.items() if not pod["spec"].get("nodeName")]
            if unbound:
                await scene.client.delete(PODS, unbound[-1], namespace="default", grace_seconds=0)

        await scene.create(*gang())
        transport = Faulty(scene.cluster.transport, before=at(number, delete))
        scene.start(transport)
        await scene.rest(120)
        assert len(transport.writes) > number
        await scene.check({"gang": 3})
        lacking = [name for name in MEMBERS if name not in await scene.pods()]
        await scene.create(*(member(name, "gang", 3) for name in lacking))
        await scene.rest()
        assert await scene.bound() == list(MEMBERS)
        await scene.check({"gang": 3})

    play(story)


def test_a_member_that_goes_before_the_first_is_bound_costs_no_other_its_life() -> None:
    """The plan is taken back as a whole: nothing is begun that cannot be finished."""

    async def story(scene: Scene) -> None:
        async def delete() -> None:
            await scene.client.delete(PODS, "g2", namespace="default", grace_seconds=0)

        await scene.create(*gang())
        # The last but one of the six writes to claims.
        transport = Faulty(scene.cluster.transport, before=at(5, delete))
        scene.start(transport)
        await scene.rest(120)
        assert sorted(await scene.pods()) == ["g0", "g1"]
        assert not [write for write in transport.writes if write.endswith("/binding")]
        await scene.check({"gang": 3})

    play(story)


@MOMENTS
def test_a_node_that_goes_in_the_middle_leaves_no_half(number: int) -> None:
    """Members that were to be there go elsewhere, or the gang waits for another node."""

    async def story(scene: Scene) -> None:
        async def lose() -> None:
            await scene.client.delete(NODES, "node-0")
            await scene.client.delete(SLICES, "node-0-gpus")

        await scene.create(*gang())
        scene.start(Faulty(scene.cluster.transport, before=at(number, lose)))
        await scene.rest(200)
        pods = await scene.pods()
        on_nodes = {pods[name]["spec"]["nodeName"] for name in await scene.bound()}
        assert on_nodes <= {"node-1"}

    play(story, devices=3)


@MOMENTS
def test_somebody_who_writes_to_the_claims_all_the_time_does_no_harm(number: int) -> None:
    """Conflicts from any write on, some of them in a row."""

    async def story(scene: Scene) -> None:
        async def before(current: int, request: Request) -> None:
            if number <= current < number + 3:
                for claim in (await scene.client.list(CLAIMS)).items:
                    patch = {"metadata": {"annotations": {"touched": str(current)}}}
                    name = claim["metadata"]["name"]
                    await scene.client.patch(CLAIMS, name, patch, namespace="default")

        await scene.create(*gang())
        scene.start(Faulty(scene.cluster.transport, before=before))
        await scene.rest()
        assert await scene.bound() == list(MEMBERS)
        await scene.check({"gang": 3})

    play(story)


@pytest.mark.parametrize("lag", range(6))
def test_two_schedulers_that_fight_bind_every_gang_once(lag: int) -> None:
    """Both decide about everything; what one has done the other leaves or finishes."""

    async def story(scene: Scene) -> None:
        second = Faulty(scene.cluster.transport)
        first = Faulty(
            scene.cluster.transport,
            before=at(lag, lambda: _started(scene, second)),
        )
        for name in ("a", "b"):
            await scene.create(*(member(f"{name}{n}", name, 2) for n in range(2)))
        await scene.create(lone("single"))
        scene.start(first)
        await scene.rest(120)
        assert len(await scene.bound()) == 5
        await scene.check({"a": 2, "b": 2})

    play(story, devices=3)


async def _started(scene: Scene, transport: Faulty) -> None:
    scene.start(transport)
