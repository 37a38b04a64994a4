"""
After any failure during a plan, no gang stays bound in part and nothing leaks.

Each write of the scheduler in turn fails, is overtaken by somebody else's, or is the last that it
makes before it dies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.scheduler.gang_scenes import Faulty, GangStage, claimless, lone, member

from dryrack.client.endpoints import CLAIMS, NODES, PODS, SLICES
from dryrack.client.errors import ForbiddenError, TransportError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dryrack.client.transport import Request, Response, Transport

pytestmark = pytest.mark.stage(kind=GangStage)

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
async def test_a_write_that_fails_once_is_made_good(
    stage: GangStage, number: int, *, after: bool
) -> None:
    """The gang is bound in the end, each member with a device of its own."""
    await stage.create_pods(*gang())
    stage.start(Faulty(stage.transport, fails_at=number, after=after))
    await stage.rest()
    assert await stage.bound() == list(MEMBERS)
    assert len(await stage.allocated_devices()) == 3
    await stage.check({"gang": 3})


@MOMENTS
@SIDES
@pytest.mark.parametrize("make", [member, claimless], ids=["devices", "processors"])
async def test_what_a_dead_scheduler_began_the_next_one_finishes(
    stage: GangStage, number: int, *, after: bool, make: Callable[..., dict[str, object]]
) -> None:
    """Dead from any write on; the next one finds what is bound and reserved, and goes on."""
    await stage.create_pods(*(make(name, "gang", 3) for name in MEMBERS))
    stage.start(Faulty(stage.transport, dies_at=number, after=after))
    await stage.rest(2)
    await stage.stop()
    stage.start()
    await stage.rest()
    assert await stage.bound() == list(MEMBERS)
    await stage.check({"gang": 3})


@MOMENTS
@pytest.mark.parametrize("make", [member, claimless], ids=["devices", "processors"])
async def test_what_cannot_be_finished_is_undone(
    stage: GangStage, number: int, make: Callable[..., dict[str, object]]
) -> None:
    """
    A member is deleted while no scheduler lives: what was bound and reserved goes.

    So does a gang whose last member was bound in the last moment of the scheduler.
    """
    await stage.create_pods(*(make(name, "gang", 3) for name in MEMBERS))
    transport = Faulty(stage.transport, dies_at=number)
    stage.start(transport)
    await stage.rest(1)
    await stage.stop()
    left = [name for name in MEMBERS if name not in await stage.bound()]
    await stage.remove(left[-1] if left else "g2")
    stage.start()
    await stage.rest(120)
    await stage.check({"gang": 3})


@pytest.mark.parametrize("restarts", [0, 1, 2])
@pytest.mark.parametrize("make", [member, claimless], ids=["devices", "processors"])
async def test_what_was_whole_runs_on_whoever_starts_anew(
    stage: GangStage, restarts: int, make: Callable[..., dict[str, object]]
) -> None:
    """A member is deleted while no scheduler lives, long after the gang was bound."""
    await stage.create_pods(*(make(name, "gang", 3) for name in MEMBERS))
    for seconds in (*([0.5] * restarts), 5):
        stage.start()
        await stage.rest(seconds)
        await stage.stop()
    await stage.remove("g2")
    for _ in range(2):
        stage.start()
        await stage.rest(60)
        await stage.stop()
        assert await stage.bound() == ["g0", "g1"]


async def test_a_lease_that_cannot_be_read_at_first_is_kept_up_to_date_later(
    stage: GangStage,
) -> None:
    """Gangs that were complete before are settled as soon as the server answers."""

    @dataclass
    class Silent:
        """A way to the plane on which leases cannot be read."""

        inner: Transport
        is_silent: bool = True

        async def send(self, request: Request) -> Response:
            if self.is_silent and request.method == "GET" and "/leases/" in request.path:
                raise TransportError("no answer")
            return await self.inner.send(request)

    await stage.create_pods(*gang())
    stage.start()
    await stage.rest(0.5)
    await stage.stop()
    silent = Silent(stage.transport)
    stage.start(silent)
    await stage.rest(10)
    silent.is_silent = False
    await stage.rest(60)
    await stage.stop()
    await stage.remove("g2")
    stage.start()
    await stage.rest(60)
    assert await stage.bound() == ["g0", "g1"]


@pytest.mark.stage(devices=3)
async def test_gangs_of_one_moment_share_the_write_that_says_that_they_are_settled(
    stage: GangStage,
) -> None:
    """A pod costs its finalizer, allocation, binding and event, as one that is in no gang."""
    for name in ("a", "b", "c"):
        await stage.create_pods(*(member(f"{name}{n}", name, 2) for n in range(2)))
    transport = Faulty(stage.transport)
    stage.start(transport)
    await stage.rest(300)
    assert len(await stage.bound()) == 6
    about_leases = [write for write in transport.writes if "/leases" in write]
    assert len(about_leases) == 2
    assert len(transport.writes) - len(about_leases) == 6 * 4


async def test_a_scheduler_that_may_not_touch_the_lease_binds_gangs_all_the_same(
    stage: GangStage,
) -> None:
    """Only the next scheduler cannot recognize a plan that it interrupts."""

    async def before(_: int, request: Request) -> None:
        if "/leases" in request.path:
            raise ForbiddenError({"code": 403, "reason": "Forbidden", "message": "no"})

    await stage.create_pods(*gang())
    stage.start(Faulty(stage.transport, before=before))
    await stage.rest()
    assert await stage.bound() == list(MEMBERS)
    await stage.check({"gang": 3})


@MOMENTS
async def test_a_member_that_is_deleted_in_the_middle_takes_the_gang_with_it(
    stage: GangStage, number: int
) -> None:
    """Unless it was whole by then; a member that comes in its place makes it run."""

    async def delete() -> None:
        pods = await stage.pods()
        unbound = [name for name, pod in pods.items() if not pod["spec"].get("nodeName")]
        if unbound:
            await stage.client.delete(PODS, unbound[-1], namespace="default", grace_seconds=0)

    await stage.create_pods(*gang())
    transport = Faulty(stage.transport, before=at(number, delete))
    stage.start(transport)
    await stage.rest(120)
    assert len(transport.writes) > number
    await stage.check({"gang": 3})
    lacking = [name for name in MEMBERS if name not in await stage.pods()]
    await stage.create_pods(*(member(name, "gang", 3) for name in lacking))
    await stage.rest()
    assert await stage.bound() == list(MEMBERS)
    await stage.check({"gang": 3})


async def test_a_member_that_goes_before_the_first_is_bound_costs_no_other_its_life(
    stage: GangStage,
) -> None:
    """The plan is taken back as a whole: nothing is begun that cannot be finished."""

    async def delete() -> None:
        await stage.client.delete(PODS, "g2", namespace="default", grace_seconds=0)

    await stage.create_pods(*gang())
    # The last but one of the six writes to claims.
    transport = Faulty(stage.transport, before=at(5, delete))
    stage.start(transport)
    await stage.rest(120)
    assert sorted(await stage.pods()) == ["g0", "g1"]
    assert not [write for write in transport.writes if write.endswith("/binding")]
    await stage.check({"gang": 3})


@MOMENTS
@pytest.mark.stage(devices=3)
async def test_a_node_that_goes_in_the_middle_leaves_no_half(stage: GangStage, number: int) -> None:
    """Members that were to be there go elsewhere, or the gang waits for another node."""

    async def lose() -> None:
        await stage.client.delete(NODES, "node-0")
        await stage.client.delete(SLICES, "node-0-gpus")

    await stage.create_pods(*gang())
    stage.start(Faulty(stage.transport, before=at(number, lose)))
    await stage.rest(200)
    pods = await stage.pods()
    on_nodes = {pods[name]["spec"]["nodeName"] for name in await stage.bound()}
    assert on_nodes <= {"node-1"}


@MOMENTS
async def test_somebody_who_writes_to_the_claims_all_the_time_does_no_harm(
    stage: GangStage, number: int
) -> None:
    """Conflicts from any write on, some of them in a row."""

    async def before(current: int, request: Request) -> None:
        if number <= current < number + 3:
            for claim in (await stage.client.list(CLAIMS)).items:
                patch = {"metadata": {"annotations": {"touched": str(current)}}}
                name = claim["metadata"]["name"]
                await stage.client.patch(CLAIMS, name, patch, namespace="default")

    await stage.create_pods(*gang())
    stage.start(Faulty(stage.transport, before=before))
    await stage.rest()
    assert await stage.bound() == list(MEMBERS)
    await stage.check({"gang": 3})


@pytest.mark.parametrize("lag", range(6))
@pytest.mark.stage(devices=3)
async def test_two_schedulers_that_fight_bind_every_gang_once(stage: GangStage, lag: int) -> None:
    """Both decide about everything; what one has done the other leaves or finishes."""
    second = Faulty(stage.transport)
    first = Faulty(
        stage.transport,
        before=at(lag, lambda: _started(stage, second)),
    )
    for name in ("a", "b"):
        await stage.create_pods(*(member(f"{name}{n}", name, 2) for n in range(2)))
    await stage.create_pods(lone("single"))
    stage.start(first)
    await stage.rest(120)
    assert len(await stage.bound()) == 5
    await stage.check({"a": 2, "b": 2})


async def _started(stage: GangStage, transport: Faulty) -> None:
    stage.start(transport)
