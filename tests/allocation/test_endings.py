"""A long search is made once for all nodes that are alike."""

from __future__ import annotations

import pytest
from tests.allocation.builders import (
    Counting,
    allocator,
    claim,
    device,
    device_class,
    node,
    pool,
    request,
    used,
)
from tests.allocation.knapsacks import Searches, hard_claim, hard_node

from dryrack.allocation import (
    Allocated,
    LiveAllocator,
    Search,
    Undecided,
    Unsatisfiable,
)
from dryrack.allocation.proof import search_memo as endings_module
from dryrack.allocation.proof.search_memo import Conclusion, SearchMemo
from dryrack.allocation.proof.search_proof import SearchProof
from dryrack.allocation.search import allocator as allocator_module
from dryrack.allocation.search.walk import Ending
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import AllocationResult
from dryrack.placement import Settings, World, what_if


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    return Searches(monkeypatch)


def a_node(name: str) -> Node:
    return decode({"metadata": {"name": name}}, Node)


def test_nodes_that_are_alike_are_searched_once(searches: Searches) -> None:
    """Names, unused attributes, and the use of other devices do not matter."""
    names = [f"node-{number}" for number in range(5)]
    slices = [each for name in names for each in hard_node(name)]
    held = {name: used(f"{name}-nic-0", pool=f"{name}-pool") for name in ("node-2", "node-4")}
    asked = allocator(slices, held=held)
    outcomes = [asked.allocate(a_node(name), [hard_claim(f"of-{name}")]) for name in names]

    assert searches.made == 1
    assert [type(each) for each in outcomes] == [Undecided] * 5
    assert [each.node for each in outcomes if isinstance(each, Undecided)] == names
    told = [each.reasons[0].claim for each in outcomes if isinstance(each, Undecided)]
    assert told == [f"of-{name}" for name in names]


def test_what_matters_is_searched_anew(searches: Searches) -> None:
    """Other sizes, more in a counter, a device in use, another number of devices: all differ."""
    others = [*hard_node("b", seed=6), *hard_node("c", spare=1000), *hard_node("d", spare=1000)]
    held = {"other": used("d-part-00", pool="d-pool")}
    asked = allocator([*hard_node("a"), *others], held=held)
    for name in "abcd":
        asked.allocate(a_node(name), [hard_claim()])
    assert searches.made == 4
    asked.allocate(a_node("a"), [hard_claim(count=24)])
    assert searches.made == 5

    # Then it is like another.
    asked.set_allocation("other", None)
    asked.allocate(a_node("d"), [hard_claim()])
    assert searches.made == 5


def test_a_search_sees_the_use_that_it_began_with() -> None:
    """An allocation during a search does not change the result of the search."""
    taken = decode(
        {
            "devices": {
                "results": [
                    {
                        "request": "r",
                        "driver": "gpu.example.com",
                        "pool": "pool",
                        "device": "gpu-0",
                        "shareID": "0b0e1f3a-5a49-4d53-9b1c-2a7d6b0a0001",
                        "consumedCapacity": {"memory": "7"},
                    }
                ]
            }
        },
        AllocationResult,
    )
    more = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10"}}}
    slices = pool([device(f"gpu-{n}", more=more, n=n) for n in range(10)])
    asked = {"requests": {"memory": "4"}}
    wanted = claim(*(request(f"r{n}", capacity=asked) for n in range(20)))
    live = LiveAllocator(chance=Counting())
    live.put_class(device_class())
    for each in slices:
        live.put_slice(each)
    with pytest.MonkeyPatch.context() as patch:
        # However soon it would be known.
        patch.setattr(allocator_module, "_DEAD_ENDS_MAX", -1)
        patch.setattr(SearchProof, "is_refuted", lambda proof: False)
        search = live.begin(node(), [wanted])
        assert isinstance(search, Search)
        live.set_allocation("other", taken)
        search.finish()
        in_between = live.allocate(node(), [wanted])
        live.set_allocation("other", None)
        after = live.begin(node(), [wanted])

    assert isinstance(in_between, Unsatisfiable)
    assert isinstance(after, Allocated)


def test_a_what_if_searches_once_for_a_fleet(searches: Searches) -> None:
    """`dryrack allocate` asks each of the nodes, and again for the reasons, and searches once."""
    names = [f"node-{number}" for number in range(4)]
    slices = [each for name in names for each in hard_node(name)]
    wishes = [hard_claim("first"), hard_claim("second")]
    world = World.of([device_class(), *map(a_node, names), *slices, *wishes])
    outcome = what_if(world, Settings(chance=Counting()))

    assert [len(each.nodes) for each in outcome.refused] == [4, 4]
    assert searches.made == 1


def test_the_oldest_endings_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory has a limit; what was asked for lately is not what goes."""
    monkeypatch.setattr(endings_module, "ENDINGS_MAX", 2)
    memory = SearchMemo()
    for facts in ("a", "b", "a", "c"):
        if memory.get(facts) is None:
            memory.keep(facts, Conclusion(Ending.FAILED))

    assert [facts for facts in "abc" if memory.get(facts) is not None] == ["a", "c"]
