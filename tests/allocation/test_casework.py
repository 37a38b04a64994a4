"""
Claims that are impossible by several rules together, and by none of them alone.

Each is walked through for long in vain, and proved at once by cases. Rounds of the search are
counted, not seconds.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import (
    DRIVER,
    allocator,
    claim,
    counters,
    device,
    drawing,
    node,
    pool,
    request,
    way,
)

from dryrack.allocation import AllocationError, Undecided, Unsatisfiable
from dryrack.allocation import allocator as allocator_module
from dryrack.allocation.casework import Casework

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.allocation import Outcome
    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

Puzzle = tuple[list["ResourceSlice"], list["ResourceClaim"]]

MATCH_ROOT = {"matchAttribute": f"{DRIVER}/root"}
UNLIKE_SLOTS = {"distinctAttribute": f"{DRIVER}/slot"}


def shared(name: str, room: int, **attributes: object) -> Any:
    more = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": str(room)}}}
    return device(name, more=more, **attributes)


def counters_of_each_root() -> Puzzle:
    """One root's devices draw too much, the other has too few; either could serve the rest."""
    draw = {"consumesCounters": [{"counterSet": "gpu", "counters": {"parts": {"value": "2"}}}]}
    offered = [device(f"a-{n:02}", more=draw, root=0, uuid=n) for n in range(20)]
    offered += [device(f"b-{n:02}", root=0, uuid=n) for n in range(8)]
    offered += [shared(f"c-{n:02}", 10 + n, root=1) for n in range(10)]
    asked = claim(
        request("any", 6),
        request("alike", 12),
        constraints=[{**MATCH_ROOT, "requests": ["alike"]}],
    )
    return pool(offered, sets=[counters(parts=5)]), [asked]


def shares_that_do_not_go_together() -> Puzzle:
    """Large shares and middling ones fit on no device together, small ones beside both."""
    offered = [shared(f"gpu-{n:02}", 40 + n % 3) for n in range(18)]
    sizes = {"small": (2, 7), "large": (11, 30), "middling": (8, 20)}
    claims = [
        claim(request("r", count, capacity={"requests": {"memory": str(size)}}), name=name)
        for name, (count, size) in sizes.items()
    ]
    return pool(offered), claims


def rows_for_two() -> Puzzle:
    """The second request needs what the first leaves of every other device, which is too little."""
    offered = [device(f"gpu-{n:02}", slot=n % 2) for n in range(20)]
    offered += [device(f"last-{n}", slot=2) for n in range(5)]
    asked = claim(request("first", 9), request("second", 13), constraints=[UNLIKE_SLOTS])
    return pool(offered), [asked]


def an_end_that_the_root_does_not_have() -> Puzzle:
    """What the first request would have to end with is on another root than the rest of it."""
    offered = [device(f"gpu-{n:02}", slot=n % 2, root=0, uuid=n) for n in range(24)]
    offered += [device(f"other-{n}", slot=2 + n, root=1) for n in range(4)]
    asked = claim(
        request("first", 6),
        request("second", 10),
        constraints=[{**MATCH_ROOT, "requests": ["first"]}, UNLIKE_SLOTS],
    )
    return pool(offered), [asked]


def counters_that_are_dear_together() -> Puzzle:
    """Each of four counters could pay for its cheapest devices, all of them for none."""
    chance, names = Random(4), ("memory", "cores", "links", "lanes")
    draws = [{name: chance.randint(100, 999) for name in names} for _ in range(60)]
    offered = [drawing(f"part-{n:02}", "gpu", **each) for n, each in enumerate(draws)]
    least = {name: sum(sorted(each[name] for each in draws)[:25]) for name in names}
    limits = {name: 142 * amount // 100 for name, amount in least.items()}
    return pool(offered, sets=[counters("gpu", **limits)]), [claim(request("r", 25))]


PUZZLES: list[Callable[[], Puzzle]] = [
    counters_of_each_root,
    shares_that_do_not_go_together,
    rows_for_two,
    an_end_that_the_root_does_not_have,
    counters_that_are_dear_together,
]


def answer(puzzle: Puzzle, rounds: int, patch: pytest.MonkeyPatch) -> Outcome:
    patch.setattr(allocator_module, "_ROUNDS_MAX", rounds)
    slices, claims = puzzle
    return allocator(slices).allocate(node(), claims)


@pytest.mark.parametrize("puzzle", PUZZLES)
def test_cases_prove_what_a_walk_does_not(
    puzzle: Callable[[], Puzzle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without cases the search is not decided after several rounds; with them it is, at once."""
    outcome = answer(puzzle(), 1, monkeypatch)
    monkeypatch.setattr(Casework, "impossible", lambda self: False)
    without = answer(puzzle(), 3, monkeypatch)

    assert isinstance(outcome, Unsatisfiable)
    assert isinstance(without, Undecided)


def test_a_request_for_all_that_is_shut_has_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails before it could err is no reason to walk through everything before it."""
    offered = [device(f"gpu-{n:02}", slot=n % 3, root=n % 2, uuid=n) for n in range(24)]
    every = {"deviceClassName": "gpu", "allocationMode": "All"}
    ways = [{"name": "two", **way(2)}, {"name": "all", **every}]
    claims = [
        claim(request("a", 3), request("b", 3), name="first"),
        claim({"name": "r", "firstAvailable": ways}, constraints=[UNLIKE_SLOTS], name="second"),
        claim(request("one"), {"name": "all", "exactly": every}, constraints=[MATCH_ROOT]),
    ]

    with pytest.raises(AllocationError, match=r"cannot add device .*gpu-00"):
        answer((pool(offered), claims), 1, monkeypatch)


def test_a_value_that_too_few_devices_share_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request before "all" can only share the root of the first devices, which are short."""
    offered = [shared(f"gpu-{n:02}", 40, root=0, slot=n % 2) for n in range(12)]
    offered.append(shared("odd", 40, root=1, slot=0))
    most, rest = ({"requests": {"memory": amount}} for amount in ("21", "20"))
    every = {"deviceClassName": "gpu", "allocationMode": "All", "capacity": rest}
    like = [{"matchAttribute": f"{DRIVER}/slot"}]
    claims = [
        claim(request("r", 3, capacity=most), constraints=like, name="first"),
        claim(request("r", 5, capacity=most), name="second"),
        claim(
            request("three", 3, capacity=most),
            {"name": "all", "exactly": every},
            constraints=[MATCH_ROOT],
            name="third",
        ),
    ]
    slices = pool(offered)

    assert isinstance(answer((slices, claims), 1, monkeypatch), Unsatisfiable)
