"""
Which alternative the reference's parser takes, and where it sees that there is none.

It follows all alternatives at once, token by token, until one is left. First it does so without
regard to who called the rule that it is in: whatever can follow the rule anywhere may follow it
here. Only where alternatives cannot be told apart that way does it start again with the calls
that are open. If none is left, one that was complete before the last token is taken; if there
is none either, that is an error, about all tokens that were looked at.

A configuration is a state, the alternative that led to it, and the states to return to. Those of
one state and alternative are kept as one, so the returns are a graph: a set of states, each
with the returns that come after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dryrack.cel.lexer import EOF
from dryrack.cel.syntax.grammar import RULES, Place, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# What is returned to, innermost first; nothing at all is `BOTTOM`.
Returns: TypeAlias = "frozenset[tuple[int, Returns]] | None"
BOTTOM: Returns = None
# Stands for it beside others.
_END = -1
# For a state and an alternative: the returns, and whether the rule in question was left.
Configurations: TypeAlias = "dict[tuple[int, int], tuple[Returns, bool]]"
Frozen: TypeAlias = "frozenset[tuple[tuple[int, int], tuple[Returns, bool]]]"


class NoneViable(Exception):  # noqa: N818 - it is an answer
    """No alternative goes on with the token that is so far ahead."""

    def __init__(self, ahead: int) -> None:
        super().__init__()
        self.ahead = ahead


@dataclass(frozen=True, slots=True)
class _Step:
    """Where a token leads: to one alternative, to a conflict, or on."""

    after: Frozen
    alternative: int
    conflict: bool


_UNKNOWN = _Step(frozenset(), 0, conflict=False)


class Predictor:
    """Remembers where tokens lead, which does not depend on the text."""

    # A few hundred are all that most texts need.
    STEPS_MAX = 2000

    def __init__(self) -> None:
        self._starts: dict[int, Frozen] = {}
        self._steps: dict[tuple[Frozen, str], _Step | None] = {}

    def predict(
        self, decision: State, kind: Callable[[int], str], calls: Callable[[], Returns]
    ) -> int:
        """The alternative, from 1, given the tokens ahead and the returns that are open."""
        configurations = self._starts.get(decision.id)
        if configurations is None:
            configurations = _frozen(_start(decision, BOTTOM, whole=False))
            self._starts[decision.id] = configurations
        ahead = 0
        while True:
            step = self._step(configurations, kind(ahead))
            if step is None:
                return _completed(dict(configurations)) or _raise(ahead)
            if step.conflict:
                return _with_calls(decision, kind, calls())
            if step.alternative:
                return step.alternative
            configurations = step.after
            ahead += 1

    def _step(self, before: Frozen, kind: str) -> _Step | None:
        place = (before, kind)
        # Whatever other threads do to the table meanwhile, the step is the same.
        step = self._steps.get(place, _UNKNOWN)
        if step is _UNKNOWN:
            step = _judged(_advanced(dict(before), kind, whole=False))
            if len(self._steps) >= self.STEPS_MAX:
                self._steps.clear()
            self._steps[place] = step
        return step


def _raise(ahead: int) -> int:
    raise NoneViable(ahead)


def _frozen(configurations: Configurations) -> Frozen:
    return frozenset(configurations.items())


def _judged(after: Configurations) -> _Step | None:
    if not after:
        return None
    alternatives = {alternative for _, alternative in after}
    only = alternatives.pop() if len(alternatives) == 1 else 0
    return _Step(_frozen(after), only, conflict=not only and _conflicts(after))


def _with_calls(decision: State, kind: Callable[[int], str], calls: Returns) -> int:
    """The same again, with the calls that are open."""
    before = _start(decision, calls, whole=True)
    ahead = 0
    while True:
        after = _advanced(before, kind(ahead), whole=True)
        if not after:
            return _completed(before) or _raise(ahead)
        viable = {min(alternatives) for alternatives in _subsets(after)}
        if len(viable) == 1:
            return viable.pop()
        before = after
        ahead += 1


def _completed(configurations: Configurations) -> int:
    """The first alternative that had come to the end of the rule in question, or 0."""
    done = [
        alternative
        for (state, alternative), (returns, left) in configurations.items()
        if left or (RULES.states[state].place is Place.END and _has_bottom(returns))
    ]
    return min(done, default=0)


def _subsets(configurations: Configurations) -> list[set[int]]:
    """Alternatives that are in one state with the same returns cannot be told apart."""
    together: dict[tuple[int, Returns], set[int]] = {}
    for (state, alternative), (returns, _) in configurations.items():
        together.setdefault((state, returns), set()).add(alternative)
    return list(together.values())


def _conflicts(configurations: Configurations) -> bool:
    states: dict[int, set[int]] = {}
    for state, alternative in configurations:
        states.setdefault(state, set()).add(alternative)
    if all(RULES.states[state].place is Place.END for state in states):
        return True
    told_apart = any(len(alternatives) == 1 for alternatives in states.values())
    return not told_apart and any(len(same) > 1 for same in _subsets(configurations))


# Following edges.


def _start(decision: State, returns: Returns, *, whole: bool) -> Configurations:
    begun = [
        (target.id, number, returns, False)
        for number, (_, target) in enumerate(decision.edges, start=1)
    ]
    return _closed(begun, whole=whole)


def _advanced(before: Configurations, kind: str, *, whole: bool) -> Configurations:
    moved = []
    for (state, alternative), (returns, left) in before.items():
        for label, target in RULES.states[state].edges:
            if isinstance(label, frozenset) and kind in label:
                moved.append((target.id, alternative, returns, left))
    after = _closed(moved, whole=whole)
    if kind == EOF:
        # There is nothing after the end, so only those count that are done.
        ended = {place for place in after if RULES.states[place[0]].place is Place.END}
        after = {place: after[place] for place in after if place in ended}
    return after


def _closed(begun: Iterable[tuple[int, int, Returns, bool]], *, whole: bool) -> Configurations:
    """All that can be reached without a token."""
    found: Configurations = {}
    waiting = list(begun)
    seen = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        state = RULES.states[one[0]]
        if state.place is Place.END:
            waiting += _returned(one, found, whole=whole)
        else:
            waiting += _passed(one, found, whole=whole)
    return found


def _passed(
    one: tuple[int, int, Returns, bool], found: Configurations, *, whole: bool
) -> list[tuple[int, int, Returns, bool]]:
    number, alternative, returns, left = one
    onward = []
    for label, target in RULES.states[number].edges:
        if isinstance(label, frozenset):
            _add(found, one, whole=whole)
        elif label is None:
            onward.append((target.id, alternative, returns, left))
        else:
            inside = frozenset(((target.id, returns),))
            onward.append((RULES.starts[label].id, alternative, inside, left))
    return onward


def _returned(
    one: tuple[int, int, Returns, bool], found: Configurations, *, whole: bool
) -> list[tuple[int, int, Returns, bool]]:
    number, alternative, returns, left = one
    if returns is not None:
        if _has_bottom(returns):
            _add(found, (number, alternative, BOTTOM, left), whole=whole)
        return [(state, alternative, rest, left) for state, rest in returns if state != _END]
    follows = RULES.follows[RULES.states[number].rule]
    if whole or not follows:
        _add(found, one, whole=whole)
        return []
    return [(state.id, alternative, BOTTOM, True) for state in follows]


def _add(found: Configurations, one: tuple[int, int, Returns, bool], *, whole: bool) -> None:
    state, alternative, returns, left = one
    place = (state, alternative)
    if place in found:
        known, was_left = found[place]
        returns, left = _merged(known, returns, whole=whole), left or was_left
    found[place] = (returns, left)


def _merged(one: Returns, other: Returns, *, whole: bool) -> Returns:
    """Both; where anything may follow, the other says no more."""
    if one == other:
        return one
    if one is None or other is None:
        if not whole:
            return BOTTOM
        return (one or frozenset()) | (other or frozenset()) | {(_END, BOTTOM)}
    merged = dict(one)
    for state, rest in other:
        merged[state] = _merged(merged[state], rest, whole=whole) if state in merged else rest
    return frozenset(merged.items())


def _has_bottom(returns: Returns) -> bool:
    return returns is None or any(state == _END for state, _ in returns)
