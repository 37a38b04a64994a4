"""
Goes through a text that is no expression as the reference's parser does, for what it says.

That parser repairs as it goes. A token too many is left out if the next one would do; one that is
missing is thought to be there if what follows would follow it. Otherwise the rule is given up,
and tokens are skipped until one comes that a rule which is still open can go on with. After a
mistake nothing more is said until a token is right again. It gives up altogether after so many
repairs, or after skipping so many tokens in one of them.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from dryrack.cel import literals
from dryrack.cel.depth import room_for
from dryrack.cel.lexer import EOF, Token, texts
from dryrack.cel.source import Problem
from dryrack.cel.syntax import grammar as g
from dryrack.cel.syntax.grammar import RULES, Place
from dryrack.cel.syntax.prediction import BOTTOM, NoneViable, Predictor, Returns
from dryrack.cel.syntax.reading import Node, problems_in
from dryrack.cel.syntax.wording import extraneous, mismatched, missing, not_viable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REPAIRS_MAX = 30
SKIPPED_MAX = 256
PROBLEMS_MAX = 100
DEPTH_MAX = 250

# Rules that nest to the limit, with all that lies between two of one kind.
_LEVELS_MAX = 3000
_NOTHING: frozenset[str] = frozenset()
# Stands for what may follow a rule.
_AFTER = "<after>"

_PREDICTOR = Predictor()
_SINGLE = frozenset((*literals.READERS, "ident"))
_DEEPER = frozenset((*".[({", EOF))
_CLOSING = frozenset(",]}):")
# Rules that may come to one token, and what is inside them then.
_SHORT = {"expr": "conditionalOr", "unary": "member"}
# The alternative of a primary.
_LITERAL = 7
_RESERVED = re.compile("no viable alternative at input '.(true|false|null)'", re.DOTALL)


class _GivenUp(Exception):  # noqa: N818 - it is an outcome
    """No more can be said."""


class _Mistake(Exception):  # noqa: N818 - it is an outcome
    """A rule cannot go on."""

    def __init__(self, token: Token, message: str) -> None:
        super().__init__(message)
        self.token = token
        self.message = message


def explain(text: str, tokens: Sequence[Token], problems: Iterable[Problem]) -> list[Problem]:
    """All that is wrong with the form of a text, given its tokens and what is none."""
    run = _Run(text, tokens, list(problems))
    with room_for(_LEVELS_MAX), suppress(_GivenUp):
        understood = run.rule("start", 0)
        # It is looked at too, unless there was no end to the mistakes.
        run.said += problems_in(understood)
    return run.said


class _Run:
    def __init__(self, text: str, tokens: Sequence[Token], unread: list[Problem]) -> None:
        self._text = text
        self._tokens = tokens
        self._unread = unread
        self._index = 0
        self._state = RULES.starts["start"]
        # Where the rules that are open were called.
        self._calls: list[g.State] = []
        # The states that they return to, for none of them, the first, the first two and so on.
        self._chains: list[Returns] = [BOTTOM]
        self._depths: Counter[str] = Counter()
        self._repairs = 0
        self._recovering = False
        self._last: tuple[int, set[int]] = (-1, set())
        self._node = Node("", tokens[0])
        self.said: list[Problem] = []

    # Tokens.

    def _token(self, ahead: int = 0) -> Token:
        token = self._tokens[min(self._index + ahead, len(self._tokens) - 1)]
        while self._unread and (self._unread[0].position or 0) < token.position:
            self._tell(self._unread.pop(0))
        return token

    def _kind(self, ahead: int = 0) -> str:
        return self._token(ahead).kind

    def _consume(self) -> None:
        if self._kind() != EOF:
            self._index += 1
            self._token()

    # Rules.

    def rule(self, name: str, tightness: int) -> Node:
        self._depths[name] += 1
        if self._depths[name] > DEPTH_MAX:
            limit = f"expression recursion limit exceeded: {DEPTH_MAX}"
            self.said.append(Problem(None, limit))
            raise _GivenUp
        outer, self._node = self._node, Node(name, self._token())
        try:
            self._sequence(RULES.bodies[name], tightness)
        except _Mistake as mistake:
            self._report(mistake.token, mistake.message)
            self._recover()
        self._depths[name] -= 1
        node, self._node = self._node, outer
        return node

    def _sequence(self, elements: Sequence[g.Element], tightness: int) -> None:
        for element in elements:
            self._state = element.state
            match element:
                case g.Match():
                    self._match(element)
                case g.Call():
                    self._call(element)
                case g.Perhaps():
                    self._synchronize()
                    if self._kind() in element.first:
                        self._sequence(element.body, tightness)
                case g.Loop():
                    self._loop(element, tightness)
                case g.Choice():
                    self._sequence(self._chosen(element), tightness)

    def _call(self, element: g.Call) -> None:
        node = self._single(element.rule)
        if node is None:
            self._calls.append(element.state)
            node = self.rule(element.rule, element.tightness)
            self._calls.pop()
            del self._chains[len(self._calls) + 1 :]
        self._node.parts.append(node)

    def _single(self, rule: str) -> Node | None:
        """A rule that comes to one token, without going through all that it could have been."""
        kind, after = self._kind(), self._kind(1)
        if kind not in _SINGLE or after in _DEEPER or rule not in _SHORT:
            return None
        if (rule == "expr" and after not in _CLOSING) or max(self._depths.values()) >= DEPTH_MAX:
            return None
        node = primary = Node("primary", self._token(), 1)
        if kind != "ident":
            node = Node("literal", self._token(), 1)
            primary.alternative, primary.parts = _LITERAL, [node]
        self._be_right()
        node.parts.append(self._token())
        self._consume()
        return Node(rule, primary.start, 1, [Node(_SHORT[rule], primary.start, 0, [primary])])

    def _loop(self, loop: g.Loop, tightness: int) -> None:
        self._synchronize()
        more = loop.once or self._goes_on(loop, tightness)
        while more:
            if loop.tightness is None:
                self._sequence(loop.body, tightness)
            else:
                self._combine(loop.body, tightness)
            self._state = loop.again
            self._synchronize()
            more = self._goes_on(loop, tightness)

    def _combine(self, body: Sequence[g.Element], tightness: int) -> None:
        """What there is becomes the left part of what comes."""
        left = self._node
        combined = Node(left.rule, left.start, parts=[left])
        if isinstance(body[0], g.Choice):
            self._state = body[0].state
            number = self._number(body[0])
            combined.alternative = number
            body = body[0].alternatives[number - 1]
        self._node = combined
        self._sequence(body, tightness)

    def _goes_on(self, loop: g.Loop, tightness: int) -> bool:
        if loop.first is not None:
            return self._kind() in loop.first
        if loop.tightness is not None:
            return loop.tightness.get(self._kind(), -1) >= tightness
        return self._predicted(loop.again if loop.once else loop.state) == 1

    def _chosen(self, choice: g.Choice) -> Sequence[g.Element]:
        number = self._number(choice)
        self._node.alternative = number
        return choice.alternatives[number - 1]

    def _number(self, choice: g.Choice) -> int:
        self._synchronize()
        if choice.by_token is None:
            return self._predicted(choice.state)
        if self._kind() in choice.by_token:
            return choice.by_token[self._kind()]
        raise self._not_viable(0)

    def _predicted(self, decision: g.State) -> int:
        try:
            return _PREDICTOR.predict(decision, self._kind, self._returns)
        except NoneViable as none:
            raise self._not_viable(none.ahead) from None

    def _returns(self) -> Returns:
        for call in self._calls[len(self._chains) - 1 :]:
            self._chains.append(frozenset(((_follow(call).id, self._chains[-1]),)))
        return self._chains[-1]

    # Mistakes.

    def _not_viable(self, ahead: int) -> _Mistake:
        first, last = self._token(), self._token(ahead)
        end = len(self._text) if last.kind == EOF else last.position + len(last.text)
        read = EOF if first.kind == EOF else texts(self._text, first.position, end)
        return _Mistake(last, not_viable(read))

    def _match(self, element: g.Match) -> None:
        if self._kind() in element.kinds:
            self._be_right()
            self._take()
            return
        self._count_repair()
        if self._leave_out():
            self._take()
        elif self._kind() in _next(element.state.edges[0][1], self._calls):
            self._report(self._token(), missing(self._token(), self._expected()))
            imagined = Token(min(element.kinds), "", self._token().position)
            self._node.parts.append(imagined)
        else:
            raise self._mismatched()

    def _take(self) -> None:
        self._node.parts.append(self._token())
        self._consume()

    def _be_right(self) -> None:
        self._recovering = False
        self._last = (-1, set())

    def _mismatched(self) -> _Mistake:
        return _Mistake(self._token(), mismatched(self._token(), self._expected()))

    def _leave_out(self) -> bool:
        """Whether the token is one too many, and was passed over."""
        expected = self._expected()
        if self._kind(1) not in expected:
            return False
        self._report(self._token(), extraneous(self._token(), expected))
        self._consume()
        self._be_right()
        return True

    def _synchronize(self) -> None:
        """Sees to it that a decision can be made."""
        if self._recovering:
            return
        following = _next(self._state)
        if _AFTER in following or self._kind() in following:
            return
        if self._state.place is Place.AGAIN:
            self._report(self._token(), extraneous(self._token(), self._expected()))
            self._skip_to(self._expected() | self._goals(), None)
        elif not self._leave_out():
            raise self._mismatched()

    def _recover(self) -> None:
        self._count_repair()
        at, states = self._last
        skipped_max = SKIPPED_MAX
        if at == self._index and self._state.id in states:
            # Otherwise the same mistake would be made for ever.
            self._consume()
            skipped_max -= 1
        self._last = (self._index, {*states, self._state.id})
        self._skip_to(self._goals(), skipped_max)

    def _skip_to(self, goals: frozenset[str], skipped_max: int | None) -> None:
        skipped = 0
        while self._kind() != EOF and self._kind() not in goals:
            if skipped == skipped_max:
                limit = f"error recovery token lookahead limit exceeded: {SKIPPED_MAX}"
                self.said.append(Problem(None, limit))
                raise _GivenUp
            self._consume()
            skipped += 1

    def _count_repair(self) -> None:
        if self._repairs == REPAIRS_MAX:
            self._tell_syntax(
                self._token(), f"error recovery attempt limit exceeded: {REPAIRS_MAX}"
            )
            raise _GivenUp
        self._repairs += 1

    def _expected(self) -> frozenset[str]:
        """What could have been here, in the rules that are open."""
        following = _next(self._state)
        expected = following
        for call in reversed(self._calls):
            if _AFTER not in following:
                break
            following = _next(_follow(call))
            expected |= following
        if _AFTER in following:
            expected |= {EOF}
        return expected - {_AFTER}

    def _goals(self) -> frozenset[str]:
        """What rules that are open could go on with."""
        goals = _NOTHING.union(*(_next(_follow(call)) for call in self._calls))
        return goals - {_AFTER}

    # What is said.

    def _report(self, token: Token, message: str) -> None:
        if not self._recovering:
            self._recovering = True
            self._tell_syntax(token, message)

    def _tell_syntax(self, token: Token, message: str) -> None:
        said = _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
        # Where there is no text there is no first column either.
        position = token.position if self._text else -1
        self._tell(Problem(position, f"Syntax error: {said}"))

    def _tell(self, problem: Problem) -> None:
        if len(self.said) >= PROBLEMS_MAX:
            limit = f"Syntax error: More than {PROBLEMS_MAX} syntax errors"
            self.said.append(Problem(problem.position, limit))
            raise _GivenUp
        self.said.append(problem)


def _follow(call: g.State) -> g.State:
    """Where the caller goes on."""
    [(_, after)] = call.edges
    return after


_FOLLOWING: dict[int, frozenset[str]] = {}


def _next(state: g.State, calls: Sequence[g.State] | None = None) -> frozenset[str]:
    """
    The tokens that can come in a state.

    If the rule can end before one comes, there is `_AFTER` among them; or, given the calls that
    are open, what comes then.
    """
    following = _FOLLOWING.get(state.id)
    if following is None:
        following = _FOLLOWING[state.id] = frozenset(_look(state))
    if calls is None or _AFTER not in following:
        return following
    rest = _next(_follow(calls[-1]), calls[:-1]) if calls else frozenset((EOF,))
    return (following - {_AFTER}) | rest


def _look(state: g.State) -> set[str]:
    found: set[str] = set()
    waiting, seen = [state], {state.id}
    while waiting:
        here = waiting.pop()
        if here.place is Place.END:
            found.add(_AFTER)
        for label, target in here.edges:
            if isinstance(label, frozenset):
                found |= label
                continue
            ways = [target]
            if label is not None:
                inside = _next(RULES.starts[label])
                found |= inside - {_AFTER}
                ways = [target] if _AFTER in inside else []
            waiting += [way for way in ways if way.id not in seen]
            seen.update(way.id for way in ways)
    return found
