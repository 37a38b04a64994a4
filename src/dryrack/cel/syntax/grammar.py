"""
The grammar as a graph, for those who must know what could have come next.

The parser that makes trees has the grammar in its code. The reference's parser is generated, and
what it says of a mistake follows from a graph of states: which tokens can come next in a state,
which state follows a rule that is done. The same graph is built here, from the rules below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from dryrack.cel.lexer import EOF

if TYPE_CHECKING:
    from collections.abc import Sequence

Kinds: TypeAlias = frozenset[str]


class Place(Enum):
    """What is decided in a state."""

    NOTHING = 0
    BLOCK = 1
    LOOP = 2
    # Whether to go round again, after a round.
    AGAIN = 3
    END = 4


@dataclass(slots=True, eq=False)
class State:
    id: int
    place: Place
    rule: str
    # Each edge is taken with a token (`Kinds`), through a rule (its name), or for nothing.
    edges: list[tuple[Kinds | str | None, State]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """A token of one of these kinds."""

    state: State
    kinds: Kinds


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Another rule; of one that recurses on its left, operators that bind at least so tightly."""

    state: State
    rule: str
    tightness: int


@dataclass(frozen=True, slots=True, eq=False)
class Perhaps:
    state: State
    first: Kinds
    body: tuple[Element, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """
    Any number of rounds; `once` or more, if it says so.

    With `first` one token decides on another round; with `tightness` it does for each operator,
    by how tightly it binds; else it takes a prediction.
    """

    state: State
    again: State
    body: tuple[Element, ...]
    first: Kinds | None
    tightness: dict[str, int] | None
    once: bool


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of several; with `by_token`, the first token alone decides."""

    state: State
    alternatives: tuple[tuple[Element, ...], ...]
    by_token: dict[str, int] | None


Element: TypeAlias = Match | Call | Perhaps | Loop | Choice


class Rules:
    """All rules, as states and as what a parser does in them."""

    def __init__(self) -> None:
        self.states: list[State] = []
        self.starts: dict[str, State] = {}
        self.ends: dict[str, State] = {}
        self.bodies: dict[str, tuple[Element, ...]] = {}
        # Where a parser may be when a rule is done, whoever called it.
        self.follows: dict[str, list[State]] = {name: [] for name in GRAMMAR}
        for name, parts in GRAMMAR.items():
            self._add(name, parts)

    def _add(self, name: str, parts: Sequence[_Spec]) -> None:
        self.starts[name] = self._state(name)
        self.ends[name] = self._state(name, Place.END)
        last = self._state(name)
        last.edges.append((None, self.ends[name]))
        self.bodies[name] = self._sequence(parts, self.starts[name], last)

    def _state(self, rule: str, place: Place = Place.NOTHING) -> State:
        state = State(len(self.states), place, rule)
        self.states.append(state)
        return state

    def _sequence(self, parts: Sequence[_Spec], start: State, end: State) -> tuple[Element, ...]:
        # The last part leads to the end itself: calls that return to one state are alike.
        elements, here = [], start
        for part, after in zip(parts, [*self._between(parts, start), end], strict=True):
            elements.append(self._element(part, here, after))
            here = after
        return tuple(elements)

    def _between(self, parts: Sequence[_Spec], start: State) -> list[State]:
        return [self._state(start.rule) for _ in parts[1:]]

    def _element(self, part: _Spec, here: State, after: State) -> Element:
        match part:
            case _Token():
                here.edges.append((part.kinds, after))
                return Match(here, part.kinds)
            case _Rule():
                here.edges.append((part.name, after))
                self.follows[part.name].append(after)
                return Call(here, part.name, part.tightness)
            case _Perhaps():
                return self._perhaps(part, here, after)
            case _Loop():
                return self._loop(part, here, after)
            case _Choice():
                return self._choice(part, here, after)

    def _perhaps(self, part: _Perhaps, here: State, after: State) -> Perhaps:
        block = self._enter(here, Place.BLOCK)
        body = self._body(part.parts, block, after)
        block.edges.append((None, after))
        return Perhaps(block, part.first, body)

    def _loop(self, part: _Loop, here: State, after: State) -> Loop:
        entry = self._enter(here, Place.BLOCK if part.once else Place.LOOP)
        again = self._state(here.rule, Place.AGAIN)
        body = self._body(part.parts, entry, again)
        again.edges.append((None, entry))
        (again if part.once else entry).edges.append((None, after))
        return Loop(entry, again, body, part.first, part.tightness, part.once)

    def _choice(self, part: _Choice, here: State, after: State) -> Choice:
        block = self._enter(here, Place.BLOCK)
        bodies = tuple(self._body(parts, block, after) for parts in part.alternatives)
        return Choice(block, bodies, part.by_token)

    def _enter(self, here: State, place: Place) -> State:
        state = self._state(here.rule, place)
        here.edges.append((None, state))
        return state

    def _body(self, parts: Sequence[_Spec], before: State, after: State) -> tuple[Element, ...]:
        return self._sequence(parts, self._enter(before, Place.NOTHING), after)


# How the rules are written down.


@dataclass(frozen=True, slots=True)
class _Token:
    kinds: Kinds


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    tightness: int = 0


@dataclass(frozen=True, slots=True)
class _Perhaps:
    first: Kinds
    parts: tuple[_Spec, ...]


@dataclass(frozen=True, slots=True)
class _Loop:
    parts: tuple[_Spec, ...]
    first: Kinds | None = None
    tightness: dict[str, int] | None = None
    once: bool = False


@dataclass(frozen=True, slots=True)
class _Choice:
    alternatives: tuple[tuple[_Spec, ...], ...]
    by_token: dict[str, int] | None = None


_Spec: TypeAlias = _Token | _Rule | _Perhaps | _Loop | _Choice


def _token(*kinds: str) -> _Token:
    return _Token(frozenset(kinds))


def _perhaps(kind: str) -> _Perhaps:
    return _Perhaps(frozenset((kind,)), (_token(kind),))


def _listed(*parts: _Spec) -> tuple[_Spec, ...]:
    """With commas between; a last comma is somebody else's, so more than it must be seen."""
    return (*parts, _Loop((_token(","), *parts)))


_EXPR, _IDENT = _Rule("expr"), _token("ident")
STARTS = frozenset(
    (*"[{(.-!", "true", "false", "null", "float", "int", "uint", "string", "bytes", "ident")
)
_RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
_ITEM_STARTS = STARTS | {"?"}
_FIELD_STARTS = frozenset(("ident", "escaped", "?"))
_ARGUMENTS = (_token("("), _Perhaps(STARTS, (_Rule("exprList"),)), _token(")"))

GRAMMAR: dict[str, tuple[_Spec, ...]] = {
    "start": (_EXPR, _token(EOF)),
    "expr": (
        _Rule("conditionalOr"),
        _Perhaps(frozenset("?"), (_token("?"), _Rule("conditionalOr"), _token(":"), _EXPR)),
    ),
    "conditionalOr": (
        _Rule("conditionalAnd"),
        _Loop((_token("||"), _Rule("conditionalAnd")), frozenset(("||",))),
    ),
    "conditionalAnd": (
        _Rule("relation"),
        _Loop((_token("&&"), _Rule("relation")), frozenset(("&&",))),
    ),
    "relation": (
        _Rule("calc"),
        _Loop(
            (_token(*_RELATIONS), _Rule("relation", 2)),
            tightness=dict.fromkeys(_RELATIONS, 1),
        ),
    ),
    "calc": (
        _Rule("unary"),
        _Loop(
            (
                _Choice(
                    (
                        (_token(*"*/%"), _Rule("calc", 3)),
                        (_token(*"+-"), _Rule("calc", 2)),
                    )
                ),
            ),
            tightness={**dict.fromkeys("*/%", 2), **dict.fromkeys("+-", 1)},
        ),
    ),
    "unary": (
        _Choice(
            (
                (_Rule("member"),),
                (_Loop((_token("!"),), frozenset("!"), once=True), _Rule("member")),
                (_Loop((_token("-"),), once=True), _Rule("member")),
            )
        ),
    ),
    "member": (
        _Rule("primary"),
        _Loop(
            (
                _Choice(
                    (
                        (_token("."), _perhaps("?"), _Rule("escapeIdent")),
                        (_token("."), _IDENT, *_ARGUMENTS),
                        (_token("["), _perhaps("?"), _EXPR, _token("]")),
                    )
                ),
            ),
            tightness={".": 3, "[": 1},
        ),
    ),
    "primary": (
        _Choice(
            (
                (_perhaps("."), _IDENT),
                (_perhaps("."), _IDENT, *_ARGUMENTS),
                (_token("("), _EXPR, _token(")")),
                (
                    _token("["),
                    _Perhaps(_ITEM_STARTS, (_Rule("listInit"),)),
                    _perhaps(","),
                    _token("]"),
                ),
                (
                    _token("{"),
                    _Perhaps(_ITEM_STARTS, (_Rule("mapInitializerList"),)),
                    _perhaps(","),
                    _token("}"),
                ),
                (
                    _perhaps("."),
                    _IDENT,
                    _Loop((_token("."), _IDENT), frozenset(".")),
                    _token("{"),
                    _Perhaps(_FIELD_STARTS, (_Rule("fieldInitializerList"),)),
                    _perhaps(","),
                    _token("}"),
                ),
                (_Rule("literal"),),
            )
        ),
    ),
    "exprList": (_EXPR, _Loop((_token(","), _EXPR), frozenset(","))),
    "listInit": _listed(_Rule("optExpr")),
    "fieldInitializerList": _listed(_Rule("optField"), _token(":"), _EXPR),
    "optField": (_perhaps("?"), _Rule("escapeIdent")),
    "mapInitializerList": _listed(_Rule("optExpr"), _token(":"), _EXPR),
    "escapeIdent": (_Choice(((_IDENT,), (_token("escaped"),)), {"ident": 1, "escaped": 2}),),
    "optExpr": (_perhaps("?"), _EXPR),
    "literal": (
        _Choice(
            (
                (_perhaps("-"), _token("int")),
                (_token("uint"),),
                (_perhaps("-"), _token("float")),
                *((_token(kind),) for kind in ("string", "bytes", "true", "false", "null")),
            )
        ),
    ),
}

RULES = Rules()
