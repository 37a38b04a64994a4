"""
The search has the results of one that leaves nothing out, on generated problems.

Small problems with few values are the hard ones: many devices are nearly alike, and a cut that
is slightly too eager shows.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.allocation.builders import DRIVER, allocator, claim, counters, device, node, pool, way
from tests.allocation.entangled import entangled
from tests.allocation.generate import generate
from tests.allocation.naive import Forgetful, Naive, Rule, SelectorFailsError, Thing, Wanted
from tests.allocation.slippery import slippery
from tests.oracle.verdicts import our_verdict

from dryrack.allocation import (
    Allocated,
    AllocationError,
    Features,
    Release,
    Undecided,
    Unsatisfiable,
)
from dryrack.allocation.proof.bounds import Bounds
from dryrack.allocation.proof.search_proof import SearchProof
from dryrack.allocation.proof.symmetry import DeviceSymmetry
from dryrack.allocation.search import allocator as allocator_module
from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from dryrack.kinds.resource import ResourceClaim, ResourceSlice

ATTRIBUTES = ("a", "b")

CHUNKS = 2
PROBLEMS_IN_A_CHUNK = 250

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


# Walks without proof, with proof or a part of it alone, and both in turns of a few steps.
PATIENCE = {
    "without proof": {"_DEAD_ENDS_MAX": 1 << 60},
    "with proof": {"_DEAD_ENDS_MAX": -1, "_LOOKS_A_TURN": 1 << 60},
    "with proof after a while": {"_DEAD_ENDS_MAX": 3, "_LOOKS_A_TURN": 1 << 60},
    "with memory alone": {"_DEAD_ENDS_MAX": -1, "_LOOKS_A_TURN": 1 << 60},
    "in turns": {"_DEAD_ENDS_MAX": -1, "_LOOKS_A_TURN": 1, "_PLAIN_STEPS": 3},
}


@pytest.fixture(params=list(PATIENCE))
def _patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch, request.param)


def be_patient(patch: pytest.MonkeyPatch, how: str) -> None:
    patch.setattr(allocator_module, "_LOOKS_MAX", 1 << 60)
    for name, value in PATIENCE[how].items():
        patch.setattr(allocator_module, name, value)
    if how == "with memory alone":
        # Bounds would spare the search most of what it has to remember.
        patch.setattr(Bounds, "impossible", lambda self, walk, question: False)


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


def naively(problem: Any, search: type[Naive] = Naive) -> list[tuple[int, str]] | str | None:
    made, limits, claims = problem
    offered = [Thing(f"gpu-{n}", e["attributes"], e["draws"]) for n, e in enumerate(made)]
    kept = [
        (asked, [r for r in under if not r.requests or any(n < len(asked) for n in r.requests)])
        for asked, under in claims
    ]
    try:
        return search(offered, limits, kept).solve()
    except SelectorFailsError:
        return "error"


def ours(problem: Any, release: Release = Release.V1_37) -> list[tuple[int, str]] | str | None:
    slices, claims = in_api(problem)
    try:
        outcome = allocator(slices, release=release).allocate(node(), claims)
    except AllocationError:
        return "error"
    if not isinstance(outcome, Allocated):
        check_reasons(outcome)
        return None
    return [
        (number, each.device)
        for number, result in enumerate(outcome.results)
        for each in result.devices.results
    ]


def check_reasons(outcome: Unsatisfiable | Undecided) -> None:
    """Reasons are those of the first walk, if there was one."""
    if allocator_module._DEAD_ENDS_MAX >= 0:
        assert outcome.reasons, "an attempt failed for no reason"


@pytest.mark.usefixtures("_patience")
@settings(max_examples=300, deadline=None)
@given(problems)
def test_cuts_never_change_the_answer(problem: Any) -> None:
    """The first solution, and the first error, are those of a search that leaves nothing out."""
    assert ours(problem) == naively(problem)


@pytest.mark.usefixtures("_patience")
@pytest.mark.parametrize("seed", range(CHUNKS))
def test_cuts_never_change_the_answer_where_lasts_are_compared(seed: int) -> None:
    """By the rules of 1.36 what was tried in vain decides what is found; cuts know of it."""
    chance = Random(seed)
    for _ in range(PROBLEMS_IN_A_CHUNK):
        problem = unlike_neighbours(chance)
        expected = naively(problem, Forgetful)
        assert ours(problem, Release.V1_36) == expected, problem


def unlike_neighbours(chance: Random) -> Any:
    """Requests for several devices that must differ; some alike side by side, some apart."""
    looks = [_look(chance) for _ in range(chance.randint(2, 5))]
    made = [each for look in looks for each in [look] * chance.randint(1, 3)]
    made += [chance.choice(looks) for _ in range(chance.randint(0, 3))]
    if chance.random() < 0.3:
        chance.shuffle(made)
    claims = [_differing(chance) for _ in range(chance.choice((1, 1, 1, 2)))]
    return made, {"x": chance.randint(1, 4), "y": 1}, claims


def _look(chance: Random) -> Any:
    drawn = {"a": chance.randint(0, 2), "b": chance.choice((0, 0, 1))}
    attributes = {name: each for name, each in drawn.items() if chance.random() < 0.95}
    # What sets others apart may be what is short.
    drawing = chance.random() < (0.1 if drawn["a"] else 0.3)
    return {"attributes": attributes, "draws": {"x": 1} if drawing else {}}


def _differing(chance: Random) -> Any:
    asked = [
        [_wanted(chance) for _ in range(chance.choice((1, 1, 1, 2)))]
        for _ in range(chance.choice((1, 2, 3, 3)))
    ]
    numbers = range(len(asked))
    # None named is all.
    covered = chance.choice((0.0, 0.0, 0.4))
    under = [
        Rule(
            attribute=chance.choice(ATTRIBUTES) if same else chance.choice("aaab"),
            same=same,
            requests=frozenset(n for n in numbers if chance.random() < covered),
        )
        for same in chance.choice(((False,), (False, True), (True, False), (False, True, False)))
    ]
    return asked, under


def _wanted(chance: Random) -> Wanted:
    select = (chance.choice(ATTRIBUTES), chance.randint(0, 2)) if chance.random() < 0.15 else None
    return Wanted(chance.choice((1, 1, 2, 2, 3)), select)


@pytest.mark.parametrize("release", Release)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_cuts_never_change_the_answer_of_a_release(release: Release, seed: int) -> None:
    """A search with proof ends like one without, with all features and errors of the release."""
    case = {**generate(Random(seed)), "release": release.value}
    with pytest.MonkeyPatch.context() as patch:
        be_patient(patch, "with proof")
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
    for how in ("with proof", "without proof"):
        with pytest.MonkeyPatch.context() as patch:
            be_patient(patch, how)
            # Long enough for all but the hopeless, which a plain search would not end.
            patch.setattr(
                allocator_module, "_DEAD_ENDS_MAX", 2000 if how == "without proof" else -1
            )
            told.append(_told(slices, claims, release))

    assert told[0] == told[1]


def test_what_is_tried_in_vain_costs_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices draw on a counter for one; the one stands between others, the other is had."""
    values = [("a", 0), ("a", 1), ("a", 0), ("a", 1), ("a", 0)]
    made = [{"attributes": dict([each]), "draws": {"x": 1} if each[1] else {}} for each in values]
    under = [Rule("a", same=False, requests=frozenset())]
    problem = made, {"x": 1, "y": 0}, [([[Wanted(4)]], under)]

    for how in PATIENCE:
        with monkeypatch.context() as patch:
            be_patient(patch, how)
            found = [(0, f"gpu-{n}") for n in (0, 2, 3, 4)]
            assert ours(problem, Release.V1_36) == found == naively(problem, Forgetful)


def test_what_is_left_to_others_sets_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device in the middle must go to the second claim; the first has tried it before."""
    made = [
        {"attributes": {"a": 0}, "draws": {}},
        {"attributes": {"a": 1}, "draws": {"x": 1}},
        {"attributes": {"a": 0}, "draws": {}},
    ]
    under = [Rule("a", same=False, requests=frozenset())]
    claims = [([[Wanted(2)]], under), ([[Wanted(1, ("a", 1))]], [])]
    problem = made, {"x": 1, "y": 0}, claims

    for how in PATIENCE:
        with monkeypatch.context() as patch:
            be_patient(patch, how)
            found = [(0, "gpu-0"), (0, "gpu-2"), (1, "gpu-1")]
            assert ours(problem, Release.V1_36) == found == naively(problem, Forgetful)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_cuts_never_change_the_answer_where_what_was_tried_decides(seed: int) -> None:
    """Lists that remember, limits that hide errors, order that matters: with proof as without."""
    slices, claims = slippery(Random(seed))
    lists = replace(Features.defaults(Release.V1_36), list_type_attributes=True)
    told = []
    for how in ("with proof", "without proof"):
        with pytest.MonkeyPatch.context() as patch:
            be_patient(patch, how)
            if how == "without proof":
                # Long enough for all but the hopeless, which a plain search would not end.
                patch.setattr(allocator_module, "_DEAD_ENDS_MAX", 5000)
            told.append(_told(slices, claims, features=lists))

    assert told[0] == told[1]


CONTENDED: Any = (
    [{"attributes": {"a": 1}, "draws": {}}, {"attributes": {"a": 0}, "draws": {}}],
    {"x": 0, "y": 0},
    [([[Wanted(1)], [Wanted(1, ("a", 1))]], [])],
)
PLANTED: dict[str, list[tuple[object, str, Any]]] = {
    "supply counted one short": [(Bounds, "_most", lambda self, group: group.need - 1)],
    "everything is a twin": [(DeviceSymmetry, "twin_key", lambda self, walk, frame, device: 0)],
    # Bounds would spare the search the state that it then takes for another.
    "every state has been seen": [
        (Bounds, "impossible", lambda self, walk, question: False),
        (SearchProof, "key", lambda self, walk, frame: 0),
    ],
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_cut_that_is_too_eager_is_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with the plain search can fail: here it does, for each kind of cut."""
    be_patient(monkeypatch, "with proof")
    assert ours(CONTENDED) == naively(CONTENDED)
    for where, name, wrong in PLANTED[bug]:
        monkeypatch.setattr(where, name, wrong)

    assert ours(CONTENDED) != naively(CONTENDED)


def test_a_device_refused_by_another_rule_makes_up_for_a_second_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """1.36 forgets the first of two devices over one that only the later rule refuses."""
    offered = [(0, 0), (1, 0), (2, 1), (1, 0)]
    made = [{"attributes": {"a": a, "b": b}, "draws": {}} for a, b in offered]
    everywhere = frozenset[int]()
    under = [Rule("a", same=False, requests=everywhere), Rule("b", same=True, requests=everywhere)]
    problem = made, {"x": 0, "y": 0}, [([[Wanted(1)], [Wanted(2)]], under)]
    be_patient(monkeypatch, "with proof")

    found = [(0, "gpu-0"), (0, "gpu-1"), (0, "gpu-3")]
    assert ours(problem, Release.V1_36) == found == naively(problem, Forgetful)
    assert ours(problem, Release.V1_37) is None


@settings(max_examples=200, deadline=None)
@given(problems, st.randoms(use_true_random=False))
def test_the_order_of_slices_does_not_matter(problem: Any, chance: Random) -> None:
    """The order of pools and slices does not depend on their arrival."""
    slices, claims = in_api(problem)
    slices += pool([device("other-0", a=1), device("other-1", b=2)], name="apool")
    shuffled = list(slices)
    chance.shuffle(shuffled)

    assert _told(slices, claims) == _told(shuffled, claims)


def _told(
    slices: list[ResourceSlice],
    claims: list[ResourceClaim],
    release: Release = DEFAULT_RELEASE,
    *,
    features: Features | None = None,
) -> object:
    try:
        outcome = allocator(slices, release=release, features=features).allocate(node(), claims)
    except AllocationError as error:
        return str(error)
    if isinstance(outcome, Allocated):
        return outcome.results
    check_reasons(outcome)
    return None
