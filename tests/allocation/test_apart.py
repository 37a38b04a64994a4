"""Claims of one problem that are used on different nodes."""

from __future__ import annotations

from tests.placement.gang_worlds import claim, cluster, devices, node, pool

from dryrack.allocation import Allocated, LiveAllocator, Site, Unsatisfiable

A = node("a", rack="r1")
B = node("b", rack="r2")


def allocator(*pools: object) -> LiveAllocator:
    made = cluster([A, B], list(pools)).allocator  # type: ignore[arg-type]
    assert isinstance(made, LiveAllocator)
    return made


def given(outcome: object) -> list[list[str]]:
    assert isinstance(outcome, Allocated)
    return [[each.device for each in result.devices.results] for result in outcome.results]


def only_node(outcome: object, place: int) -> object:
    assert isinstance(outcome, Allocated)
    selector = outcome.results[place].node_selector
    assert selector is not None
    return selector.node_selector_terms[0].match_fields[0].values


def test_each_claim_gets_what_its_own_node_sees() -> None:
    """And can be used there alone."""
    both = allocator(pool("a", devices("a0")), pool("b", devices("b0")))
    outcome = both.begin_apart((claim("x"), claim("y")), (Site((B,)), Site((A,))))

    assert given(outcome) == [["b0"], ["a0"]]
    assert (only_node(outcome, 0), only_node(outcome, 1)) == (("b",), ("a",))


def test_a_device_that_both_nodes_see_is_given_once() -> None:
    """The claim on the node that has one of its own leaves it to the other."""
    shared = pool("0-fabric", devices("f0"), allNodes=True)
    mixed = allocator(shared, pool("a", devices("a0")))
    sites = (Site((A,)), Site((B,)))

    assert given(mixed.begin_apart((claim("x"), claim("y")), sites)) == [["a0"], ["f0"]]
    alone = allocator(shared).begin_apart((claim("x"), claim("y")), sites)
    assert isinstance(alone, Unsatisfiable)


def test_a_claim_that_is_used_on_two_nodes_gets_no_device_of_one() -> None:
    """It gets one that both see, or none."""
    fabric = pool("fabric", devices("f0"), allNodes=True)
    sites = (Site((A, B)),)

    with_fabric = allocator(pool("a", devices("a0")), fabric)
    assert given(with_fabric.begin_apart((claim("x"),), sites)) == [["f0"]]
    without = allocator(pool("a", devices("a0"))).begin_apart((claim("x"),), sites)
    assert isinstance(without, Unsatisfiable)


def test_an_open_site_counts_the_devices_of_all_its_nodes() -> None:
    """Two claims for two devices each need four, wherever these are."""
    both = allocator(pool("a", devices("a0", "a1")), pool("b", devices("b0")))
    claims = (claim("x", 2), claim("y", 1))
    sites = (Site((A, B), is_open=True),) * 2

    assert isinstance(both.begin_apart(claims, sites), Allocated)
    more = both.begin_apart((claim("x", 2), claim("y", 2)), sites)
    assert isinstance(more, Unsatisfiable)


def test_nodes_are_alike_if_theirs_are_and_they_see_the_same_of_others() -> None:
    """Names of nodes and of their own devices do not matter; whose devices they see does."""
    own = [pool("a", devices("a0", "a1")), pool("b", devices("b0", "b1"))]
    rack = {"key": "rack", "operator": "In", "values": ["r1"]}
    of_rack = {"nodeSelectorTerms": [{"matchExpressions": [rack]}]}
    wanted = (claim("x"),)
    alike = allocator(*own, pool("fabric", devices("f0"), allNodes=True))
    unlike = allocator(*own, pool("fabric", devices("f0"), nodeSelector=of_rack))

    assert alike.symmetry_key(A, wanted) == alike.symmetry_key(B, wanted)
    assert unlike.symmetry_key(A, wanted) != unlike.symmetry_key(B, wanted)
    assert (unlike.is_local(A), unlike.is_local(B)) == (False, True)
