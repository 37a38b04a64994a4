"""One key of the publisher, through every order of what can happen to it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dryrack.client.endpoints import SLICES
from dryrack.client.informer import Name
from dryrack.controllers.slices.events import Reason
from dryrack.controllers.slices.key_state import (
    BURST,
    NEW,
    PER_SECOND,
    Differs,
    Effect,
    Ended,
    Event,
    Failed,
    KeyState,
    Matches,
    Tell,
    is_cached,
    is_forgettable,
    step,
)
from dryrack.controllers.writes import Create, Delete, Plan, Update
from dryrack.hardware.pool_plan import PoolId

A, B, C = POOLS = [PoolId("d", name) for name in "abc"]


def a_slice(name: str, revision: str = "", uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": revision, "uid": uid}}


def differs(*pools: PoolId, at: float = 0.0) -> Differs:
    plans = {pool: Plan((Create(SLICES, a_slice(pool.name)),)) for pool in pools}
    return Differs(plans, {"": "written"}, at)


def played(*events: Event, state: KeyState = NEW) -> tuple[KeyState, list[Effect]]:
    """The state after these events, and the effects of the last."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        state, effects = step(state, event)
    return state, list(effects)


def order(effects: list[Effect]) -> list[str]:
    [plan] = effects
    assert isinstance(plan, Plan)
    return [write.object["metadata"]["name"] for write in plan.writes if isinstance(write, Create)]


REFUSED = Failed("refused: Invalid", is_lasting=True)
LOST = Failed("no answer", is_lasting=False)
IN_CACHE = Ended(is_cached=True)
NOT_IN_CACHE = Ended(is_cached=False)
RIGHT = Matches(("seen",), is_cached=True)


@st.composite
def stories(draw: st.DrawFn) -> list[Event]:
    """Looks at a key, and what comes of those that plan anything, as time goes by."""
    story: list[Event] = []
    now = 0.0
    for _ in range(draw(st.integers(0, 30))):
        now += draw(st.sampled_from([0.0, 0.1, 0.5, 2.0, 20.0]))
        pools = draw(st.lists(st.sampled_from(POOLS), unique=True))
        is_sure = draw(st.booleans())
        seen = draw(st.sampled_from([("seen",), None]))
        story.append(differs(*pools, at=now) if pools else Matches(seen, is_sure))
        ends: list[Event] = [IN_CACHE, NOT_IN_CACHE, REFUSED, LOST]
        story.append(draw(st.sampled_from(ends)) if pools else IN_CACHE)
    return story


@given(stories())
def test_a_key_is_settled_or_open_and_never_both(story: list[Event]) -> None:
    """A key is open from a difference until it matches, also after failures in between."""
    state = NEW
    is_open = False
    for event in story:
        state, _ = step(state, event)
        is_open = isinstance(event, Differs) or (is_open and not isinstance(event, Matches))

        assert state.is_open == is_open
        assert state.settled is None or not is_open


@given(stories())
def test_no_key_writes_more_than_a_burst_and_once_a_second(story: list[Event]) -> None:
    """In any span of time; a plan that has to wait says for how long, and then it is let."""
    state = NEW
    times = list[float]()
    for event in story:
        state, effects = step(state, event)
        for plan in effects:
            if isinstance(event, Differs) and isinstance(plan, Plan) and plan.writes:
                times.append(event.at)
            elif isinstance(event, Differs) and isinstance(plan, Plan):
                assert plan.again_seconds is not None
                later = differs(A, at=event.at + plan.again_seconds + 1e-6)
                assert order(played(later, state=state)[1]) == ["a"]
    for first, since in enumerate(times):
        for count, until in enumerate(times[first:], 1):
            assert count <= BURST + (until - since) * PER_SECOND + 1e-6


@given(stories())
def test_all_writes_since_a_key_was_right_are_in_doubt_after_a_failure(story: list[Event]) -> None:
    """Until the cache alone says that all is right, the server is asked for each of them."""
    state = NEW
    names = set[Name]()
    is_doubtful = False
    for event in story:
        state, effects = step(state, event)
        match event:
            case Differs():
                is_let = any(isinstance(each, Plan) and each.writes for each in effects)
                names |= {Name("", pool.name) for pool in event.plans if is_let}
            case Matches(is_cached=True):
                names = set()
                is_doubtful = False
            case Failed() | Ended(is_cached=False):
                is_doubtful = True

        assert (set(state.unconfirmed), state.is_doubtful) == (names, is_doubtful)


def test_a_pool_that_fails_first_is_written_last() -> None:
    """If two pools fail, the third is written; a success restores the order."""
    state = NEW
    orders = []
    for _ in range(3):
        state, effects = played(differs(A, B, C), state=state)
        orders.append(order(effects))
        state, _ = step(state, LOST)
    after, _ = step(state, RIGHT)

    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    assert order(played(differs(A, B, C), state=after)[1]) == ["a", "b", "c"]


def test_a_burst_is_free_and_then_there_is_one_plan_a_second() -> None:
    """A key that rests has the burst again."""
    burst = int(BURST)
    state, effects = played(*[differs(A)] * burst)

    assert order(effects) == ["a"]
    assert played(differs(A), state=state)[1] == [Plan(again_seconds=1.0)]
    assert order(played(differs(A, at=1.0), state=state)[1]) == ["a"]
    assert order(played(*[differs(A, at=60.0)] * burst, state=state)[1]) == ["a"]


def test_a_refusal_is_told_once_until_it_is_another_or_over() -> None:
    """A failure that passes by itself causes no event."""
    told = [Tell(Reason.DEVICES_REFUSED, {"": "refused: Invalid"})]
    other = Failed("refused: Forbidden", is_lasting=True)

    assert played(differs(A), REFUSED)[1] == told
    assert played(differs(A), REFUSED, differs(A), REFUSED)[1] == []
    assert played(differs(A), REFUSED, differs(A), other, differs(A), REFUSED)[1] == told
    assert played(differs(A), REFUSED, RIGHT, IN_CACHE, differs(A), REFUSED)[1] == told
    assert played(differs(A), LOST)[1] == []


def test_what_was_written_is_told_when_it_is_written() -> None:
    """Not while it has to wait, and not if it fails."""
    told = [Tell(Reason.DEVICES_PUBLISHED, {"": "written"})]
    burst: list[Event] = [differs(A), IN_CACHE] * int(BURST)

    assert played(differs(A), IN_CACHE)[1] == told
    assert played(differs(A), NOT_IN_CACHE)[1] == told
    assert played(*burst, differs(A), IN_CACHE)[1] == []
    assert played(differs(A), LOST, RIGHT, IN_CACHE)[1] == []


def test_a_node_that_is_gone_is_forgotten_when_its_burst_is_whole_again() -> None:
    """One that is settled is not, however long it rests."""
    gone, _ = played(differs(A), IN_CACHE, Matches(None, is_cached=True), IN_CACHE)
    right, _ = played(differs(A), IN_CACHE, RIGHT, IN_CACHE)

    assert [is_forgettable(gone, at) for at in (0.0, 0.9, 1.0)] == [False, False, True]
    assert not is_forgettable(right, 1000.0)


def test_a_cache_shows_a_write_when_it_has_what_came_of_it() -> None:
    """A new slice is there, a changed one has another revision, a deleted one is not there."""
    cache = {Name("", "a"): a_slice("a", "5", "uid")}

    assert is_cached((Create(SLICES, a_slice("a")),), cache)
    assert not is_cached((Create(SLICES, a_slice("b")),), cache)
    assert is_cached((Update(SLICES, a_slice("a", "4")),), cache)
    assert not is_cached((Update(SLICES, a_slice("a", "5")),), cache)
    assert is_cached((Delete(SLICES, Name("", "a"), "another uid"),), cache)
    assert not is_cached((Delete(SLICES, Name("", "a"), "uid"),), cache)
