"""
The search, held against one that leaves nothing out, on problems that nobody chose.

Small problems with few values are the hard ones: many devices are nearly alike, and a cut that
is slightly too eager shows.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.builders import DRIVER, allocator, claim, counters, device, node, pool, way
from tests.allocation.entangled import entangled
from tests.allocation.generate import generate
from tests.allocation.naive import Naive, Rule, SelectorFailsError, Thing, Wanted
from tests.oracle.verdicts import our_verdict

from dryrack.allocation import Allocated, AllocationError, Release
from dryrack.allocation import allocator as allocator_module
from dryrack.allocation.bounds import Bounds
from dryrack.allocation.likeness import Likeness
from dryrack.allocation.proof import SearchProof

if TYPE_CHECKING:
    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

ATTRIBUTES = ("a", "b")

values = st.integers(0, 2)
things: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    attributes=st.dictionaries(st.sampled_from(ATTRIBUTES), values, min_size=1),
    draws=st.sampled_from([{}, {}, {"x": 1}, {"x": 2}, {"x": 1, "y": 1}]),
)
wanted = st.builds(
    Wanted,
    count=st.integers(1, 3),
    select=st.none() | st.tuples(st.sampled_from(ATTRIBUTES), values),
)
requests = st.lists(st.lists(wanted, min_size=1, max_size=2), min_size=1, max_size=3)
rules = st.lists(
    st.builds(
        Rule,
        attribute=st.sampled_from(ATTRIBUTES),
        same=st.booleans(),
        requests=st.frozensets(st.integers(0, 2), max_size=2),
    ),
    max_size=2,
)
problems = st.tuples(
    st.lists(things, min_size=1, max_size=6),
    st.fixed_dictionaries({"x": st.integers(0, 5), "y": st.integers(0, 3)}),
    st.lists(st.tuples(requests, rules), min_size=1, max_size=2),
)


@pytest.fixture(params=[0, 3], ids=["always with proof", "with proof after a while"])
def _patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator_module, "_DEAD_ENDS_MAX", request.param)


def in_api(problem: Any) -> tuple[list[ResourceSlice], list[ResourceClaim]]:
    """The problem as slices and claims."""
    made, limits, claims = problem
    offered = [
        device(
            f"gpu-{number}",
            more={
                "consumesCounters": [
                    {
                        "counterSet": "gpu",
                        "counters": {c: {"value": str(n)} for c, n in each["draws"].items()},
                    }
                ]
            }
            if each["draws"]
            else {},
            **each["attributes"],
        )
        for number, each in enumerate(made)
    ]
    return pool(offered, sets=[counters(**limits)]), [
        _claim(number, *each) for number, each in enumerate(claims)
    ]


def _claim(number: int, asked: list[list[Wanted]], under: list[Rule]) -> ResourceClaim:
    written = [
        {"name": f"r{index}", "exactly": _way(ways[0])}
        if len(ways) == 1
        else {
            "name": f"r{index}",
            "firstAvailable": [{"name": f"s{n}", **_way(w)} for n, w in enumerate(ways)],
        }
        for index, ways in enumerate(asked)
    ]
    constraints = [
        {
            "requests": [f"r{n}" for n in sorted(rule.requests) if n < len(asked)],
            "matchAttribute" if rule.same else "distinctAttribute": f"{DRIVER}/{rule.attribute}",
        }
        for rule in under
        if not rule.requests or any(n < len(asked) for n in rule.requests)
    ]
    return claim(*written, name=f"c{number}", constraints=constraints)


def _way(wanted: Wanted) -> Any:
    select = ""
    if wanted.select is not None:
        select = f'device.attributes["{DRIVER}"].{wanted.select[0]} == {wanted.select[1]}'
    return way(wanted.count, select=select)


def naively(problem: Any) -> list[tuple[int, str]] | str | None:
    made, limits, claims = problem
    offered = [Thing(f"gpu-{n}", e["attributes"], e["draws"]) for n, e in enumerate(made)]
    kept = [
        (asked, [r for r in under if not r.requests or any(n < len(asked) for n in r.requests)])
        for asked, under in claims
    ]
    try:
        return Naive(offered, limits, kept).solve()
    except SelectorFailsError:
        return "error"


def ours(problem: Any) -> list[tuple[int, str]] | str | None:
    slices, claims = in_api(problem)
    try:
        outcome = allocator(slices, release=Release.V1_37).allocate(node(), claims)
    except AllocationError:
        return "error"
    if not isinstance(outcome, Allocated):
        assert outcome.reasons, "an attempt failed for no reason"
        return None
    return [
        (number, each.device)
        for number, result in enumerate(outcome.results)
        for each in result.devices.results
    ]


@pytest.mark.usefixtures("_patience")
@settings(max_examples=300, deadline=None)
@given(problems)
def test_cuts_never_change_the_answer(problem: Any) -> None:
    """The first solution, and the first error, are those of a search that leaves nothing out."""
    assert ours(problem) == naively(problem)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_cuts_never_change_the_answer_of_the_reference_release(seed: int) -> None:
    """With everything 1.36 has, slips included, a search with proof ends like one without."""
    case = generate(Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(allocator_module, "_DEAD_ENDS_MAX", 0)
        with_proof = our_verdict(case)
        # Long enough for all but the hopeless, which a plain search would not end.
        patch.setattr(allocator_module, "_DEAD_ENDS_MAX", 3000)
        assert our_verdict(case) == with_proof


@pytest.mark.parametrize("release", Release)
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_cuts_never_change_the_answer_where_all_is_entangled(release: Release, seed: int) -> None:
    """Groups that look alike, shares, lists and mines: with proof as without."""
    slices, claims = entangled(Random(seed))
    told = []
    for dead_ends in (0, 2000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(allocator_module, "_DEAD_ENDS_MAX", dead_ends)
            told.append(_told(slices, claims, release))

    assert told[0] == told[1]


CONTENDED: Any = (
    [{"attributes": {"a": 1}, "draws": {}}, {"attributes": {"a": 0}, "draws": {}}],
    {"x": 0, "y": 0},
    [([[Wanted(1)], [Wanted(1, ("a", 1))]], [])],
)
PLANTED: dict[str, list[tuple[type, str, Any]]] = {
    "supply counted one short": [(Bounds, "_most", lambda self, group: group.need - 1)],
    "everything is a twin": [(Likeness, "twin_key", lambda self, walk, frame, device: 0)],
    # Bounds would spare the search the state that it then takes for another.
    "every state has been seen": [
        (Bounds, "impossible", lambda self, walk, now, plan: False),
        (SearchProof, "_key", lambda self, walk, frame: 0),
    ],
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_cut_that_is_too_eager_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with the plain search can fail: here it does, for each kind of cut."""
    monkeypatch.setattr(allocator_module, "_DEAD_ENDS_MAX", 0)
    assert ours(CONTENDED) == naively(CONTENDED)
    for where, name, wrong in PLANTED[bug]:
        monkeypatch.setattr(where, name, wrong)

    assert ours(CONTENDED) != naively(CONTENDED)


@settings(max_examples=200, deadline=None)
@given(problems, st.randoms(use_true_random=False))
def test_the_order_of_slices_does_not_matter(problem: Any, chance: Random) -> None:
    """Pools and slices have an order of their own, whatever order they arrive in."""
    slices, claims = in_api(problem)
    slices += pool([device("other-0", a=1), device("other-1", b=2)], name="apool")
    shuffled = list(slices)
    chance.shuffle(shuffled)

    assert _told(slices, claims) == _told(shuffled, claims)


def _told(
    slices: list[ResourceSlice], claims: list[ResourceClaim], release: Release = Release.V1_36
) -> object:
    try:
        outcome = allocator(slices, release=release).allocate(node(), claims)
    except AllocationError as error:
        return str(error)
    if isinstance(outcome, Allocated):
        return outcome.results
    assert outcome.reasons, "an attempt failed for no reason"
    return None
