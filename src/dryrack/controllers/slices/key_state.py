"""
The state machine of one key: what reconciling the slices of a node remembers between decisions.

`step` is the only way a state changes. It takes an event, and returns the new state and the effects
that the engine carries out: a plan of writes, or events for people. It never waits, reads a clock
or asks the server.

The slices of a key differ from what is desired (`Differs`) or match it (`Matches`), and a plan is
written (`Ended`) or refused (`Failed`).

Retry order: the writes of a key end with the first that is refused. A pool that the server refuses
again and again would prevent the pools after it from being written, so it is written last.

Rate limit: two publishers that want different slices on one node would overwrite each other as fast
as the server answers. After a burst that no person ever needs, a key has to wait.

Unconfirmed writes: a plan made from an outdated cache could begin a generation beside an existing
one. So after a write with an unknown result, or one that the cache does not show, the engine asks
the server for the slices named in `unconfirmed`, until the cache shows them.

Invariants: a settled key has nothing open; in any period, at most `BURST` plans and one for each
second have writes; a refusal is reported once, until its text changes or it is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from dryrack.client.informer import name_of
from dryrack.controllers.objects import uid_of
from dryrack.controllers.slices.events import THE_NODE, Reason, fitted
from dryrack.controllers.writes import Create, Delete, Plan, Update

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.client.informer import Name
    from dryrack.controllers.writes import Write
    from dryrack.hardware.pool_plan import PoolId
    from dryrack.kinds.raw import Raw

Seen = tuple[object, ...]
"""Everything that a decision depends on; equal values lead to the same decision."""

# Ten changes at once are a person with a script; more than one a second for long are two
# publishers that overwrite each other.
BURST = 10.0
PER_SECOND = 1.0


@dataclass(frozen=True, slots=True)
class KeyState:
    """The state of one key."""

    settled: Seen | None = None
    """What the decision depended on when the slices matched; None if they may not match."""
    is_open: bool = False
    """Whether the last decision had writes."""
    failure: str = ""
    head: PoolId | None = None
    """The pool that is written first."""
    late: tuple[PoolId, ...] = ()
    """Pools that failed when they were written first."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The texts of events about the writes that are under way, by their subject."""
    unconfirmed: frozenset[Name] = frozenset()
    """Slices that were written since the slices last matched."""
    is_doubtful: bool = False
    """Whether the cache may lack the results of these writes."""
    spent: float = 0.0
    """The used part of the burst, at `spent_at`."""
    spent_at: float = 0.0


NEW = KeyState()


@dataclass(frozen=True, slots=True)
class Differs:
    """Pools have to be written, in this order; the texts are for the events afterwards."""

    plans: Mapping[PoolId, Plan]
    texts: Mapping[str, str]
    at: float


@dataclass(frozen=True, slots=True)
class Matches:
    """Nothing has to be written."""

    seen: Seen | None
    """None if the node no longer exists."""
    is_cached: bool
    """Whether the cache alone leads to the same decision."""


@dataclass(frozen=True, slots=True)
class Ended:
    """All writes of the plan succeeded."""

    is_cached: bool
    """Whether the cache shows all writes."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A write was refused, or no plan could be made; the key is retried."""

    text: str
    is_lasting: bool
    """Whether a retry cannot solve it."""


@dataclass(frozen=True, slots=True)
class Tell:
    """The texts of events to write, by their subject."""

    reason: Reason
    texts: Mapping[str, str]


Event = Differs | Matches | Ended | Failed
Effect = Plan | Tell


def step(state: KeyState, event: Event) -> tuple[KeyState, tuple[Effect, ...]]:
    match event:
        case Differs():
            return _on_differs(replace(state, settled=None, is_open=True), event)
        case Matches(seen, is_cached):
            state = replace(state, settled=seen, is_open=False, failure="", head=None, late=())
            if is_cached:
                state = replace(state, unconfirmed=frozenset(), is_doubtful=False)
            return state, ()
        case Ended(is_cached):
            effects = (Tell(Reason.DEVICES_PUBLISHED, state.texts),) if state.texts else ()
            is_doubtful = state.is_doubtful or not is_cached
            state = replace(state, failure="", texts={}, is_doubtful=is_doubtful)
            return state, effects
        case Failed():
            # If another pool than the head was refused, the next attempt shows that.
            late = state.late
            if state.head is not None:
                late = (*(pool for pool in late if pool != state.head), state.head)
            failed = replace(
                state, failure=event.text, head=None, late=late, texts={}, is_doubtful=True
            )
            if state.failure == event.text or not event.is_lasting:
                return failed, ()
            texts = dict.fromkeys(state.texts or (THE_NODE,), fitted([event.text]))
            return failed, (Tell(Reason.DEVICES_REFUSED, texts),)
        case _:
            assert_never(event)


def _on_differs(state: KeyState, event: Differs) -> tuple[KeyState, tuple[Effect, ...]]:
    spent = spent_at(state, event.at)
    if spent > BURST - 1:
        return state, (Plan(again_seconds=(spent - (BURST - 1)) / PER_SECOND),)
    prompt = [pool for pool in event.plans if pool not in state.late]
    order = [*prompt, *(pool for pool in state.late if pool in event.plans)]
    writes = tuple(write for pool in order for write in event.plans[pool].writes)
    planned = replace(
        state,
        head=order[0],
        texts=event.texts,
        unconfirmed=state.unconfirmed | {name for name, _ in _named(writes)},
        spent=spent + 1,
        spent_at=event.at,
    )
    return planned, (Plan(writes),)


def spent_at(state: KeyState, at: float) -> float:
    """Return the used part of the burst at a time."""
    return max(0.0, state.spent - (at - state.spent_at) * PER_SECOND)


def is_forgettable(state: KeyState, at: float) -> bool:
    """Return True if a new state would behave the same."""
    is_rested = state.settled is None and not spent_at(state, at)
    return is_rested and replace(state, spent=0.0, spent_at=0.0) == NEW


def is_cached(writes: Iterable[Write], cache: Mapping[Name, Raw]) -> bool:
    """Return True if a cache shows all these writes of slices."""
    for name, write in _named(writes):
        cached = cache.get(name)
        if isinstance(write, Delete):
            if cached is not None and uid_of(cached) == write.uid:
                return False
            continue
        before = write.object["metadata"].get("resourceVersion")
        if cached is None or cached["metadata"]["resourceVersion"] == before:
            return False
    return True


def _named(writes: Iterable[Write]) -> Iterator[tuple[Name, Create | Update | Delete]]:
    for write in writes:
        match write:
            case Create(object=obj) | Update(object=obj):
                yield name_of(obj), write
            case Delete(name=name):
                yield name, write
            case _:
                raise AssertionError(f"no write of slices: {write}")
