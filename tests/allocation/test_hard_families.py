"""
Problems on which a search without proof does not end, in growing sizes.

Not seconds but steps are counted: how often the search with proof got stuck. That number is
small, and must not grow faster than the problem does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import (
    DRIVER,
    all_devices,
    allocator,
    claim,
    counters,
    device,
    devices,
    drawing,
    node,
    pool,
    request,
    way,
)

from dryrack.allocation import Allocated, Features, Release
from dryrack.allocation.proof.search_proof import SearchProof
from dryrack.allocation.search import allocator as allocator_module
from dryrack.allocation.search.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

Family = tuple[list["ResourceSlice"], list["ResourceClaim"]]


def more_than_there_are(size: int) -> Family:
    return pool(devices(size - 1)), [claim(request("r", size))]


def one_request_each(size: int) -> Family:
    return pool(devices(size - 1)), [claim(*(request(f"r{n}") for n in range(size)))]


def unlike_devices(size: int) -> Family:
    offered = [device(f"gpu-{n}", uuid=f"u{n}") for n in range(size - 1)]
    rule = {"distinctAttribute": f"{DRIVER}/uuid"}
    asked = (request(f"r{n}") for n in range(size))
    return pool(offered), [claim(*asked, constraints=[rule])]


def prioritized(size: int) -> Family:
    ways = [{"name": f"s{n}", **way(8 - n)} for n in range(6)]
    asked = ({"name": f"r{n}", "firstAvailable": ways} for n in range(size // 4))
    return pool(devices(2 * (size // 4) + 2)), [claim(*asked)]


def prioritized_over_the_limit(size: int) -> Family:
    ways = [{"name": "many", **way(8)}, {"name": "few", **way(1, select="false")}]
    asked = ({"name": f"r{n}", "firstAvailable": ways} for n in range(size // 4 + 1))
    return pool(devices(4 * size)), [claim(*asked)]


def one_combination(size: int) -> Family:
    offered = [drawing(f"part-{n}", memory=size - n) for n in range(size)]
    enough = sum(range(1, size // 2 + 1))
    return pool(offered, sets=[counters(memory=enough)]), [claim(request("r", size // 2))]


def two_counters(size: int) -> Family:
    offered = [drawing(f"part-{n}", memory=n + 1, cores=size - n) for n in range(size)]
    half = size // 4 * (size + 1) // 2 - 1
    return pool(offered, sets=[counters(memory=half, cores=half)]), [claim(request("r", size // 4))]


def partitioned(size: int) -> Family:
    """GPUs of seven parts, of which two threes leave no two."""
    offered = []
    sets = []
    for gpu in range(size // 4):
        sets.append(counters(f"gpu-{gpu}", parts=7))
        for part in (3, 2):
            for number in range(7 // part):
                name = f"gpu-{gpu}-{part}g-{number}"
                more = {"consumesCounters": [_drawn(f"gpu-{gpu}", part)]}
                offered.append(device(name, size=part, more=more))
    threes = request("threes", size // 2, select=f'device.attributes["{DRIVER}"].size == 3')
    two = request("two", select=f'device.attributes["{DRIVER}"].size == 2')
    return pool(offered, sets=sets), [claim(threes, two)]


def _drawn(counter_set: str, parts: int) -> Any:
    return {"counterSet": counter_set, "counters": {"parts": {"value": str(parts)}}}


def nearly_enough_values(size: int) -> Family:
    offered = [device(f"gpu-{n}", numa=n % 7) for n in range(2 * size)]
    rule = {"distinctAttribute": f"{DRIVER}/numa"}
    return pool(offered), [claim(*(request(f"r{n}") for n in range(8)), constraints=[rule])]


def two_kinds_of_values(size: int) -> Family:
    offered = [device(f"gpu-{n}", numa=n % 7, root=n % 9) for n in range(2 * size)]
    rules = [{"distinctAttribute": f"{DRIVER}/{name}"} for name in ("root", "numa")]
    return pool(offered), [claim(*(request(f"r{n}") for n in range(8)), constraints=rules)]


def no_root_has_enough(size: int) -> Family:
    offered = [device(f"gpu-{n}", root=n // 7) for n in range(2 * size)]
    rule = {"matchAttribute": f"{DRIVER}/root"}
    return pool(offered), [claim(*(request(f"r{n}") for n in range(8)), constraints=[rule])]


def shares_that_do_not_fit(size: int) -> Family:
    more = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10"}}}
    offered = [device(f"gpu-{n}", more=more) for n in range(size // 4)]
    asked = {"requests": {"memory": "6"}}
    wanted = (request(f"r{n}", capacity=asked) for n in range(size // 4 + 1))
    return pool(offered), [claim(*wanted)]


def some_and_then_all(size: int) -> Family:
    offered = [device(f"gpu-{n}", root=1, uuid=f"u{n}") for n in range(min(size, 28))]
    rule = {"matchAttribute": f"{DRIVER}/root"}
    return pool(offered), [claim(request("some", 4), all_devices("all"), constraints=[rule])]


def a_mine_behind_a_wall(size: int) -> Family:
    """A request that is not reached cannot fail: the second request's selector has no attribute."""
    mine = request("mine", select=f'device.attributes["{DRIVER}"].nothing == 1')
    return pool(devices(size - 1)), [claim(request("wall", size)), claim(mine, name="later")]


def a_hopeless_claim_behind_another(size: int) -> Family:
    """No two devices agree in both attributes; how the first claim is served is no matter."""
    offered = [device(f"gpu-{n}", a=n % 5, b=n // 5, uuid=f"u{n}") for n in range(size)]
    rules = [{"matchAttribute": f"{DRIVER}/{name}"} for name in ("a", "b")]
    unlike = {"distinctAttribute": f"{DRIVER}/uuid"}
    first = claim(*(request(f"r{n}") for n in range(5)), constraints=[unlike], name="first")
    return pool(offered), [first, claim(request("r", 2), constraints=rules)]


def filled_to_the_last_part(size: int) -> Family:
    """GPUs whose large part has one place, and leaves one place each for the smaller ones."""
    offered = []
    sets = []
    for gpu in range(size // 4):
        sets.append(counters(f"gpu-{gpu}", **{f"slice-{n}": 1 for n in range(7)}))
        for part, places in ((1, range(7)), (2, (0, 2, 4)), (4, (0,))):
            for place in places:
                more = {"consumesCounters": [_slices(f"gpu-{gpu}", place, part)]}
                offered.append(device(f"gpu-{gpu}-{part}g-{place}", size=part, more=more))
    asked = (
        request(f"size-{part}", size // 4, select=f'device.attributes["{DRIVER}"].size == {part}')
        for part in (1, 2, 4)
    )
    return pool(offered, sets=sets), [claim(*asked)]


def _slices(counter_set: str, place: int, part: int) -> Any:
    drawn = {f"slice-{n}": {"value": "1"} for n in range(place, place + part)}
    return {"counterSet": counter_set, "counters": drawn}


def too_few_runs(size: int) -> Family:
    """Up to 1.36 a request has one device of each row of equal values, so too few of them."""
    offered = [device(f"gpu-{n}", numa=n // 2 % 3) for n in range(2 * size)]
    rule = {"distinctAttribute": f"{DRIVER}/numa"}
    asked = (request(f"r{n}", size // 4) for n in range(3))
    return pool(offered), [claim(*asked, constraints=[rule])]


def several_that_must_differ(size: int) -> Family:
    """Values are interleaved, so that no two devices can be exchanged; the last claim is short."""
    offered = [device(f"gpu-{n}", numa=n % 5) for n in range(size)]
    rule = {"distinctAttribute": f"{DRIVER}/numa"}
    first = claim(request("a", 3), request("b", 3), constraints=[rule], name="first")
    return pool(offered), [first, claim(request("rest", size - 5))]


def links_in_common(size: int) -> Family:
    """Lists that share a link with their neighbours, but not all one link."""
    offered = [_linked(n, [f"l{n % 5}", f"l{(n + 1) % 5}"]) for n in range(size)]
    rule = {"matchAttribute": f"{DRIVER}/links"}
    return pool(offered), [claim(request("r", 2), request("s", size // 2), constraints=[rule])]


def _linked(number: int, links: list[str]) -> Any:
    return {"name": f"gpu-{number}", "attributes": {"links": {"strings": links}}}


def a_mine_behind_the_limit(size: int) -> Family:
    """Alternatives over the limit of results, and a selector that fails on what is never met."""
    ways = [{"name": "many", **way(31)}, {"name": "few", **way(2)}]
    asked = [{"name": f"r{n}", "firstAvailable": ways} for n in range(3)]
    mine = request("mine", select=f'device.attributes["{DRIVER}"].nothing == 1')
    return pool(devices(5)), [claim(*asked, request("last", size // 4), mine)]


FEASIBLE = (one_combination, filled_to_the_last_part)
FAMILIES: list[Callable[[int], Family]] = [
    more_than_there_are,
    one_request_each,
    unlike_devices,
    prioritized,
    prioritized_over_the_limit,
    one_combination,
    two_counters,
    partitioned,
    nearly_enough_values,
    two_kinds_of_values,
    no_root_has_enough,
    shares_that_do_not_fit,
    some_and_then_all,
    a_mine_behind_a_wall,
    a_hopeless_claim_behind_another,
    filled_to_the_last_part,
    too_few_runs,
    several_that_must_differ,
    links_in_common,
    a_mine_behind_the_limit,
]


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("family", FAMILIES)
def test_steps_do_not_explode(
    family: Callable[[int], Family], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every family is decided within a few dead ends per device."""
    walks: list[Walk] = []
    begin = Walk.__init__

    def init(self: Walk, *of: Any, **limits: Any) -> None:
        walks.append(self)
        begin(self, *of, **limits)

    monkeypatch.setattr(Walk, "__init__", init)
    slices, claims = family(size)
    lists = replace(Features.defaults(Release.V1_36), list_type_attributes=True)
    outcome = allocator(slices, features=lists).allocate(node(), claims)

    assert isinstance(outcome, Allocated) == (family in FEASIBLE)
    # The walk without proof has its turns meanwhile.
    assert sum(walk.dead_ends for walk in walks if walk._proof is not None) <= 8 * size


def test_a_proof_that_cuts_nothing_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing can be cut, the walk without proof ends first, in its own turns."""
    steps: Counter[bool] = Counter()
    run = Walk.run

    def counted(self: Walk, *of: Any, **limits: Any) -> Any:
        before = self.steps
        try:
            return run(self, *of, **limits)
        finally:
            steps[self._proof is not None] += self.steps - before

    monkeypatch.setattr(Walk, "run", counted)
    monkeypatch.setattr(SearchProof, "is_refuted", lambda self: False)
    monkeypatch.setattr(SearchProof, "foresee", lambda self, walk, frame: None)
    monkeypatch.setattr(SearchProof, "twin_key", lambda self, walk, frame, device: device)
    offered = [device(f"gpu-{n}", numa=n % 5) for n in range(10)]
    rule = {"distinctAttribute": f"{DRIVER}/numa"}
    asked = claim(*(request(f"r{n}") for n in range(6)), constraints=[rule])
    outcome = allocator(pool(offered)).allocate(node(), [asked])

    assert not isinstance(outcome, Allocated)
    assert steps[False] > 4096
    assert (
        steps[True] <= steps[False] / allocator_module._PLAIN_STEPS + allocator_module._LOOKS_A_TURN
    )
