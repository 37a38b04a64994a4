"""Gangs are placed whole or not at all, and a refusal says how far it went."""

from __future__ import annotations

from tests.placement.gang_worlds import claim, cluster, devices, gang, member, node, pool

from dryrack.placement.gangs.search import (
    GangPlaced,
    GangRefused,
    place_gang_now,
)


def test_a_gang_is_placed_with_all_its_devices() -> None:
    """Three members with a device each, on two nodes with two."""
    here = cluster([node("a"), node("b")], [pool(n, devices(f"{n}0", f"{n}1")) for n in ("a", "b")])
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(3)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced)
    given = [
        result.device
        for each in outcome.placements
        for allocation in each.given.values()
        for result in allocation.devices.results
    ]
    assert sorted(given) == ["a0", "a1", "b0"]


def test_asking_leaves_no_trace() -> None:
    """Two calls have the same answer, because the first one changes nothing."""
    here = cluster([node("a")], [pool("a", devices("a0", "a1"))])
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(2)]

    first = place_gang_now(gang(members), members, here)

    assert isinstance(first, GangPlaced)
    assert place_gang_now(gang(members), members, here) == first


def test_a_gang_that_does_not_fit_is_refused_with_the_proof() -> None:
    """The message has the number that fits, and the message of a pod that does not."""
    here = cluster([node("a")], [pool("a", devices("a0", "a1"))])
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(3)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangRefused)
    assert outcome.message.startswith(
        "pod group ml/training: 2 of 3 pods fit; pod ml/p2 does not fit with them: "
        "0/1 nodes are available: 1 cannot allocate all claims. Node a, claim ml/c2: "
    )
    assert [each.member.name for each in outcome.fitting] == ["ml/p0", "ml/p1"]
    (refusal,) = outcome.refusals(members[2])
    assert {reason.claim for reason in refusal.reasons} == {"ml/c2"}


def test_members_beyond_the_minimum_wait_where_there_is_no_room() -> None:
    """The gang runs with what it needs."""
    here = cluster([node("a")], [pool("a", devices("a0", "a1"))])
    members = [member(f"p{i}", claim(f"c{i}")) for i in range(3)]

    outcome = place_gang_now(gang(members, 2), members, here)

    assert isinstance(outcome, GangPlaced)
    assert [each.member.name for each in outcome.placements] == ["ml/p0", "ml/p1"]
    assert [each.member.name for each in outcome.waiting] == ["ml/p2"]


def test_members_that_run_count_toward_the_minimum() -> None:
    """A late member needs no others than those that are there."""
    here = cluster([node("a")], [pool("a", devices("a0"))])
    running = [member(f"r{i}", nodeName="a") for i in range(2)]
    late = [member("late", claim("c"))]

    outcome = place_gang_now(gang([*running, *late]), late, here)

    assert isinstance(outcome, GangPlaced)


def test_a_claim_that_members_share_is_given_once() -> None:
    """All of them go where it can be used."""
    here = cluster([node("a"), node("b")], [pool("b", devices("b0"))])
    shared = claim("shared")
    members = [member(f"p{i}", shared) for i in range(3)]

    outcome = place_gang_now(gang(members), members, here)

    assert isinstance(outcome, GangPlaced)
    assert {each.node for each in outcome.placements} == {"b"}
    assert [list(each.given) for each in outcome.placements] == [["ml/shared"], [], []]


def test_a_gang_without_enough_pods_is_told_so() -> None:
    """Nothing is searched for pods that are not there."""
    members = [member("p0")]

    outcome = place_gang_now(gang(members, 3), members, cluster([node("a")]))

    assert isinstance(outcome, GangRefused)
    assert outcome.message == (
        "pod group ml/training has 1 pod, needs at least 3; create 2 more, or lower the minimum"
    )
