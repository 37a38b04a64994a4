"""Messages come from the refusal; no node is asked for a message only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.allocation.builders import (
    DRIVER,
    Counting,
    device,
    device_class,
    devices,
    pool,
    request,
    slice_,
)
from tests.allocation.knapsacks import Searches, hard_claim, hard_node
from tests.placement.builders import pod, state, wish

from dryrack.allocation import Allocated, Code, LiveAllocator
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement import (
    Cluster,
    Fleet,
    Placed,
    Settings,
    Unfinished,
    Unplaced,
    World,
    decide,
    explain_claim,
    place,
)
from dryrack.placement.place import SEARCHES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation import Outcome, Search
    from dryrack.kinds.core import Node
    from dryrack.kinds.resource import ResourceSlice

GIVEN_UP = "the search stopped at its limit before it tried all combinations of devices"


class Asked:
    """Notes which node is asked for which claims."""

    def __init__(self, *slices: ResourceSlice) -> None:
        self.inner = LiveAllocator(chance=Counting())
        self.inner.put_class(device_class())
        for each in slices:
            self.inner.put_slice(each)
        self.nodes: list[str] = []

    def begin(self, node: Node, claims: Sequence[ResourceClaim]) -> Outcome | Search:
        self.nodes.append(node.metadata.name)
        return self.inner.begin(node, claims)


def cluster(nodes: str, *slices: ResourceSlice) -> tuple[Cluster, Asked]:
    fleet = Fleet()
    asked = Asked(*slices)
    for name in nodes:
        fleet.put(state(name).node)
    return Cluster(fleet, asked), asked


def some_devices(nodes: str, count: int) -> list[ResourceSlice]:
    return [each for name in nodes for each in pool(devices(count), name=name, node=name)]


def message(of: Placed | Unplaced) -> str:
    assert isinstance(of, Unplaced)
    return of.message


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Searches:
    return Searches(monkeypatch)


def test_a_refusal_is_explained_without_asking_again() -> None:
    """Every node is asked once; the reason is that of the one that was asked first."""
    where, asked = cluster("abc", *some_devices("abc", 2))
    said = message(place(pod(), (wish(4, "one"),), (), where))

    assert asked.nodes == ["a", "b", "c"]
    assert said.startswith("0/3 nodes are available: 3 cannot allocate all claims. ")
    assert " Node a, claim n/one: request r: needs 4 devices; 2 of 2 are available" in said


def test_a_node_that_has_such_devices_is_told_of_before_one_that_has_none() -> None:
    """Though the others were asked first; and nobody is asked for it."""
    where, asked = cluster("abc", *some_devices("c", 2))
    said = message(place(pod(), (wish(4, "one"),), (), where))

    assert asked.nodes == ["a", "b", "c"]
    assert " Node c, claim n/one: request r: needs 4 devices; 2 of 2 are available" in said


def test_who_is_refused_like_another_is_told_the_same_of_its_own_claim() -> None:
    """No node is asked for the second pod, and the reason names its claim."""
    where, asked = cluster("ab", *some_devices("ab", 2))
    first = message(place(pod(), (wish(4, "one"),), (), where))
    asked.nodes.clear()
    second = message(place(pod(), (wish(4, "two"),), (), where))

    assert asked.nodes == []
    assert second == first.replace("n/one", "n/two")


def test_claims_that_speak_of_each_other_are_asked_for_by_name() -> None:
    """The message for two claims is not used for two others."""
    where, asked = cluster("ab", *some_devices("ab", 2))
    place(pod(), (wish(1, "one"), wish(4, "two")), (), where)
    asked.nodes.clear()
    said = message(place(pod(), (wish(1, "three"), wish(4, "four")), (), where))

    assert asked.nodes == ["a"]
    assert "n/three" in said or "n/four" in said


def test_what_was_said_of_a_node_holds_until_something_happens_there() -> None:
    """Then it is asked again, and says what is so now; what happens elsewhere changes nothing."""
    where, asked = cluster("ab", *some_devices("ab", 2))
    said = message(place(pod(), (wish(4, "one"),), (), where))
    where.fleet.reopen(("b",))
    assert message(place(pod(), (wish(4, "one"),), (), where)) == said

    for each in some_devices("a", 3):
        asked.inner.put_slice(each)
    where.fleet.reopen(("a",))
    asked.nodes.clear()
    said = message(place(pod(), (wish(4, "two"),), (), where))
    assert asked.nodes == ["a"]
    assert " Node a, claim n/two: request r: needs 4 devices; 3 of 3 are available" in said


def test_a_node_is_asked_only_to_say_why_if_nobody_else_was() -> None:
    """The node that was explained is gone, and all others refused before."""
    where, asked = cluster("abc", *some_devices("abc", 2))
    place(pod(), (wish(4, "one"),), (), where)
    asked.nodes.clear()
    where.fleet.drop("a")
    said = [message(place(pod(), (wish(4, "two"),), (), where)) for _ in range(2)]

    assert asked.nodes == ["b"]
    assert said[0] == said[1]
    assert " Node b, claim n/two: request r: needs 4 devices; 2 of 2 are available" in said[0]


@pytest.mark.parametrize(
    ("asks", "cause"),
    [
        (
            request("r", select='device.attributes["gpu.example.com"].a == "b"'),
            "the selector requires 'b'",
        ),
        (request("r", 9, select='device.driver != "nic.example.com"'), "2 of 2 are available"),
        (request("r", tolerations=[]), f"has no attribute {DRIVER}/root"),
        (request("r", deviceClassName="fpga"), "class fpga selects none of 5 devices of node a"),
    ],
)
def test_a_pod_is_told_in_the_words_of_explain(asks: Any, cause: str) -> None:
    """The message has the cause; every sentence of it is one that `explain` has for the claim."""
    nics: dict[str, Any] = {"driver": "nic.example.com", "nodeName": "a", "devices": devices(3)}
    nics["pool"] = {"name": "nics", "generation": 1, "resourceSliceCount": 1}
    offered = [device("gpu-0", a="a"), device("gpu-1", a="a")]
    slices = [*pool(offered, name="a", node="a"), slice_("nics", nics)]
    gpus = device_class(select=f'device.driver == "{DRIVER}"')
    fpgas = device_class("fpga", select='device.driver == "fpga.example.com"')
    constraints = [{"matchAttribute": f"{DRIVER}/root"}] if "root" in cause else []
    spec = {"devices": {"requests": [asks], "constraints": constraints}}
    claim = decode({"metadata": {"name": "c", "namespace": "n"}, "spec": spec}, ResourceClaim)
    where, asked = cluster("a", *slices)
    for each in (gpus, fpgas):
        asked.inner.put_class(each)
    world = World.of([state("a").node, *slices, gpus, fpgas, claim])
    [story] = explain_claim(world, "c", Settings(chance=Counting())).nodes
    said = message(place(pod(), (claim,), (), where))

    start = "0/1 nodes are available: 1 cannot allocate all claims. Node a, claim n/c: "
    told = said.removeprefix(start).split(". ")
    assert cause in said
    assert set(told) <= {each.message for each in story.obstacles}


def test_a_message_stays_while_devices_go_from_hand_to_hand() -> None:
    """The message counts devices in use; it does not change with their users."""
    where, asked = cluster("a", *some_devices("a", 2))
    said = []
    for holder in ("n/x", "n/y"):
        placed = asked.inner.allocate(state("a").node, (wish(2, "any"),))
        assert isinstance(placed, Allocated)
        asked.inner.set_allocation(holder, placed.results[0])
        where.fleet.reopen_all()
        said.append(message(place(pod(), (wish(1, "late"),), (), where)))
        asked.inner.set_allocation(holder, None)

    assert said[0] == said[1]
    assert "needs 1 device; 0 of 2 are available (2 in use); 1 more needed" in said[0]


def test_the_one_node_that_could_do_is_asked_once() -> None:
    """A pod of a daemon set that is refused by its node has not asked it twice."""
    name = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    where, asked = cluster("ab", *some_devices("ab", 2))
    said = message(place(pod(affinity=affinity), (wish(4, "one"),), (), where))

    assert asked.nodes == ["b"]
    assert " Node b, claim n/one: request r: needs 4 devices" in said


def test_a_search_is_given_up_once_for_a_fleet(searches: Searches) -> None:
    """Nodes that are alike cost one search, and so do all pods that want the same of them."""
    slices: list[Any] = [each for name in "abcd" for each in hard_node(name)]
    where, _ = cluster("abcd", *slices)
    said = message(place(pod(), (hard_claim("one"),), (), where))
    again = message(place(pod(), (hard_claim("two"),), (), where))
    where.fleet.reopen_all()
    after = message(place(pod(), (hard_claim("three"),), (), where))

    assert searches.made == 1
    counted = "0/4 nodes are available: 4 timed out trying to allocate devices."
    assert said.startswith(f"{counted} Node a, claim one: {GIVEN_UP}; ")
    assert again == said.replace("claim one", "claim two")
    assert after == said.replace("claim one", "claim three")


def test_a_pod_is_not_searched_for_on_any_number_of_nodes(searches: Searches) -> None:
    """If many different nodes need long searches, some count as undecided without one."""
    names = "abcdefghijkl"
    slices = [each for spare, name in enumerate(names) for each in hard_node(name, spare=spare)]
    where, _ = cluster(names, *slices)
    said = message(place(pod(), (hard_claim(),), (), where))

    assert searches.made == SEARCHES_MAX < len(names)
    assert said.startswith("0/12 nodes are available: 12 timed out trying to allocate devices.")


def test_a_decision_goes_on_where_it_stopped() -> None:
    """A few nodes are asked in a turn, none twice; the answer is that of asking them all."""
    names = "abcdefghijklmnopqrstuvwxyz"
    slices = [*some_devices(names[:-1], 1), *some_devices("z", 4)]
    (where, asked), (alike, _) = cluster(names, *slices), cluster(names, *slices)
    turns = [decide(pod(), (wish(4, "one"),), (), where)]
    while isinstance(turns[-1], Unfinished):
        turns.append(decide(pod(), (wish(4, "one"),), (), where))

    assert len(turns) == 4
    assert asked.nodes == list(names)
    assert turns[-1] == place(pod(), (wish(4, "one"),), (), alike)


def test_a_decision_stops_before_a_long_search(searches: Searches) -> None:
    """Nothing is searched in it; once the search was made, the decision goes on behind it."""
    where, _ = cluster("ab", *hard_node("a"), *some_devices("b", 25))
    first = decide(pod(), (hard_claim(),), (), where)
    assert isinstance(first, Unfinished)
    assert first.search is not None
    assert searches.made == 0

    first.search.finish()
    second = decide(pod(), (hard_claim(),), (), where)
    assert isinstance(second, Placed)
    assert (second.node, searches.made) == ("b", 1)


def test_what_is_not_decided_here_may_be_had_elsewhere(searches: Searches) -> None:
    """A node on which the search is given up keeps nobody from another one."""
    where, _ = cluster("abc", *hard_node("a"), *some_devices("b", 2), *some_devices("c", 25))
    placed = place(pod(), (hard_claim(),), (), where)

    assert isinstance(placed, Placed)
    assert (placed.node, searches.made) == ("c", 1)


def test_both_kinds_of_refusal_are_told(searches: Searches) -> None:
    """The reasons of nodes whose devices do not fit, and of undecided ones."""
    where, _ = cluster("ab", *hard_node("a"), *some_devices("b", 2))
    said = message(place(pod(), (hard_claim(),), (), where))

    counted = "1 cannot allocate all claims, 1 timed out trying to allocate devices."
    told = f"0/2 nodes are available: {counted} Node b, claim wish: request r: needs 25 "
    assert said.startswith(told)
    assert f" Node a, claim wish: {GIVEN_UP}; " in said


def test_every_node_says_why_it_refuses() -> None:
    """As values: devices in the words of the allocator, all else in those of the node."""
    where, _ = cluster("ab", *some_devices("ab", 2))
    where.fleet.put(state("c", unschedulable=True).node)
    outcome = place(pod(), (wish(4, "one"),), (), where)

    assert isinstance(outcome, Unplaced)
    told = [(each.node, each.reasons[0].code, each.reasons[0].fact) for each in outcome.refusals]
    assert told == [
        ("a", Code.NOT_ENOUGH, "needs 4 devices; 2 of 2 are available"),
        ("b", Code.NOT_ENOUGH, "needs 4 devices; 2 of 2 are available"),
        ("c", Code.NODE, "the node is cordoned"),
    ]
    assert {reason.claim for each in outcome.refusals for reason in each.reasons} == {"n/one"}
