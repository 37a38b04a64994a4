"""
The state machine of one key: what reconciling the slices of a node remembers from look to look.

`step` is the only way a state changes. It is told what happened, and answers with the state as it
now is and the effects that the engine carries out: a plan of writes, or events for people. It never
waits, reads a clock or asks the server.

A key is found to differ from what is desired (`Differs`) or not to (`Matches`), and what was
planned is written (`Ended`) or refused (`Failed`).

Retry order: writes of a key end with the first that is refused. A pool that the server refuses
again and again would keep those after it from being written at all, so it is written last.

Rate limit: two publishers that want different things on one node would drive each other as fast as
the server answers. After a burst that no change of mind of a person ever needs, a key has to wait.

Unconfirmed writes: a plan made from a cache that lags could begin a generation beside one that is
there already. So after a write that came to an unknown end, or that the cache does not show, the
engine asks the server for the slices named in `unconfirmed`, until the cache knows as much.

Invariants: a key that is settled has nothing open; of any seconds, at most `BURST` and one plan for
each of them has writes; a refusal is told once, until another takes its place or it is gone.
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
"""All that a decision was made from; the same things make the same decision."""

# Ten changes at once are a person with a script; more than one a second for long is a fight.
BURST = 10.0
PER_SECOND = 1.0


@dataclass(frozen=True, slots=True)
class KeyState:
    """How far one key has come."""

    settled: Seen | None = None
    """What it was judged from when it was right; None: it may not be."""
    is_open: bool = False
    """Whether something was to be written when it was last looked at."""
    failure: str = ""
    head: PoolId | None = None
    """The pool that is written first."""
    late: tuple[PoolId, ...] = ()
    """Pools that failed when they were written first."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The events that tell of what is being written, by their subject."""
    unconfirmed: frozenset[Name] = frozenset()
    """Slices that were written since the key was last right."""
    is_doubtful: bool = False
    """Whether the cache may lack what has become of them."""
    spent: float = 0.0
    """What is used up of the burst, at `spent_at`."""
    spent_at: float = 0.0


NEW = KeyState()


@dataclass(frozen=True, slots=True)
class Differs:
    """Pools have to be written, in this order; the texts are for when they are."""

    plans: Mapping[PoolId, Plan]
    texts: Mapping[str, str]
    at: float


@dataclass(frozen=True, slots=True)
class Matches:
    """Nothing has to be written."""

    seen: Seen | None
    """None if the node is gone."""
    is_cached: bool
    """Whether the cache alone says the same."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The plan is carried out."""

    is_cached: bool
    """Whether the cache shows it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A write was refused, or no plan could be made; the key is looked at again."""

    text: str
    is_lasting: bool
    """Whether it takes a person to make it better."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Events for people, by their subject."""

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
            told = (Tell(Reason.DEVICES_PUBLISHED, state.texts),) if state.texts else ()
            is_doubtful = state.is_doubtful or not is_cached
            state = replace(state, failure="", texts={}, is_doubtful=is_doubtful)
            return state, told
        case Failed():
            return _on_failed(state, event)
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


def _on_failed(state: KeyState, event: Failed) -> tuple[KeyState, tuple[Effect, ...]]:
    # If it was not the head's write that was refused, the next attempt shows it.
    late = state.late
    if state.head is not None:
        late = (*(pool for pool in late if pool != state.head), state.head)
    failed = replace(state, failure=event.text, head=None, late=late, texts={}, is_doubtful=True)
    if state.failure == event.text or not event.is_lasting:
        return failed, ()
    texts = dict.fromkeys(state.texts or (THE_NODE,), fitted([event.text]))
    return failed, (Tell(Reason.DEVICES_REFUSED, texts),)


def spent_at(state: KeyState, at: float) -> float:
    """What is used up of the burst at that time."""
    return max(0.0, state.spent - (at - state.spent_at) * PER_SECOND)


def is_forgettable(state: KeyState, at: float) -> bool:
    """Whether a new state would do as well."""
    is_rested = state.settled is None and not spent_at(state, at)
    return is_rested and replace(state, spent=0.0, spent_at=0.0) == NEW


def is_cached(writes: Iterable[Write], cache: Mapping[Name, Raw]) -> bool:
    """Whether a cache shows all these writes of slices."""
    return not any(_is_behind(write, cache.get(name)) for name, write in _named(writes))


def _named(writes: Iterable[Write]) -> Iterator[tuple[Name, Create | Update | Delete]]:
    for write in writes:
        match write:
            case Create(object=obj) | Update(object=obj):
                yield name_of(obj), write
            case Delete(name=name):
                yield name, write
            case _:
                raise AssertionError(f"no write of slices: {write}")


def _is_behind(write: Create | Update | Delete, cached: Raw | None) -> bool:
    if isinstance(write, Delete):
        return cached is not None and uid_of(cached) == write.uid
    if cached is None:
        return True
    before = write.object["metadata"].get("resourceVersion")
    return bool(cached["metadata"]["resourceVersion"] == before)
