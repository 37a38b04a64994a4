"""Room that is kept: it binds those who come later, and nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.placement.builders import PreemptionCluster, pod, wish

from dryrack.placement import Placed, place
from dryrack.placement.gangs.members import Member, MemberPlaced
from dryrack.placement.reservations import Reservation, Reservations

if TYPE_CHECKING:
    from dryrack.placement import Unplaced

EARLY = (0, "1")
LATE = (0, "2")


def ask(world: PreemptionCluster, name: str, count: int = 1) -> Placed | Unplaced:
    return place(pod(name=name), (wish(count, name),), (), world.cluster)


def planned(world: PreemptionCluster, name: str, count: int) -> MemberPlaced:
    found = ask(world, name, count)
    assert isinstance(found, Placed)
    member = Member(pod(name=name), (wish(count, name),))
    return MemberPlaced(member, found.node, found.amounts, found.given)


def kept(world: PreemptionCluster, count: int, *, order: tuple[int, str] = EARLY) -> Reservations:
    """Room for a pod with so many devices is kept for an hour."""
    there = Reservations(world.cluster.fleet, world.allocator)
    there.put(Reservation("gang", order, (planned(world, "member", count),), 3600.0))
    return there


def test_what_is_kept_is_not_given_to_those_who_come_later() -> None:
    """Until it is dropped."""
    world = PreemptionCluster("a")
    there = kept(world, 2)
    there.bind("pod", LATE)
    assert not isinstance(ask(world, "pod"), Placed)
    assert there.drop("gang")
    assert isinstance(ask(world, "pod"), Placed)


def test_its_owner_and_those_before_it_are_decided_without_it() -> None:
    """As are those who may be sent away again."""
    world = PreemptionCluster("a")
    there = kept(world, 2, order=LATE)
    for owner, order, backfill in (
        ("gang", LATE, False),
        ("before", EARLY, False),
        ("after", (1, ""), True),
    ):
        there.bind(owner, order, may_go_again=backfill)
        assert isinstance(ask(world, "pod"), Placed)
        there.bind("later", (0, "3"))
        assert not isinstance(ask(world, "pod"), Placed)


def test_what_is_still_in_use_is_kept_as_soon_as_it_is_free() -> None:
    """The plan was made as if a pod were gone, and it goes."""
    world = PreemptionCluster("a")
    plan = planned(world, "member", 2)
    world.run("victim", "a", gpus=1)
    there = Reservations(world.cluster.fleet, world.allocator)
    there.put(Reservation("gang", EARLY, (plan,), 3600.0))
    there.bind("pod", LATE)
    assert not isinstance(ask(world, "pod"), Placed)
    world.cluster.fleet.remove_pod("victim")
    world.cluster.fleet.reopen(world.allocator.set_allocation("n/victim", None))
    there.bind("pod", LATE)
    assert not isinstance(ask(world, "pod"), Placed)
    there.bind("gang", EARLY)
    assert isinstance(ask(world, "pod", 2), Placed)


def test_it_runs_out() -> None:
    """Nothing is kept for ever."""
    world = PreemptionCluster("a")
    there = kept(world, 2)
    assert there.expire(3599.0) == []
    assert there.expire(3600.0) == ["gang"]
    assert not len(there)
    assert isinstance(ask(world, "pod", 2), Placed)
