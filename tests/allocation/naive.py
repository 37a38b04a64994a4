"""
The search as one would write it first: try everything, in order, and keep nothing.

It knows exact requests and subrequests, constraints, counters, and selectors that compare one
attribute and fail where it is missing, by the rules of 1.37; `Forgetful` by those of 1.36. It
shares no line with the allocator, so that the two have no common errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LIMIT = 32


class SelectorFailsError(Exception):
    """A selector looked at an attribute that the device does not have."""


@dataclass(frozen=True)
class Thing:
    """A device."""

    name: str
    attributes: dict[str, int]
    draws: dict[str, int]


@dataclass(frozen=True)
class Wanted:
    """One way to satisfy a request: so many devices whose attribute has the value."""

    count: int
    select: tuple[str, int] | None = None


@dataclass(frozen=True)
class Rule:
    """Devices of some requests share an attribute, or all differ in it."""

    attribute: str
    same: bool
    requests: frozenset[int]


@dataclass
class Naive:
    things: list[Thing]
    counters: dict[str, int]
    # For each claim its requests, each with its ways; and the claim's rules.
    claims: list[tuple[list[list[Wanted]], list[Rule]]]
    taken: list[tuple[int, int, Thing]] = field(default_factory=list)

    def solve(self) -> list[tuple[int, str]] | None:
        """Claim and device, in order of choice; or nothing."""
        if self._request(0, 0):
            return [(claim, thing.name) for claim, _, thing in self.taken]
        return None

    def _request(self, claim: int, request: int) -> bool:
        if claim == len(self.claims):
            return True
        requests = self.claims[claim][0]
        if request == len(requests):
            return self._request(claim + 1, 0)
        return any(self._devices(claim, request, way, way.count, 0) for way in requests[request])

    def _devices(self, claim: int, request: int, way: Wanted, left: int, start: int) -> bool:
        if left == 0:
            return self._request(claim, request + 1)
        if sum(taken[0] == claim for taken in self.taken) + left > LIMIT:
            return False
        for place in range(start, len(self.things)):
            thing = self.things[place]
            if any(taken[2] is thing for taken in self.taken):
                continue
            if not self._selected(way, thing) or not self._allowed(claim, request, thing):
                continue
            self.taken.append((claim, request, thing))
            if self._devices(claim, request, way, left - 1, place + 1):
                return True
            self.taken.pop()
            self._forget(claim, request)
        return False

    def _forget(self, claim: int, request: int) -> None:
        """Update the state after a device is taken back; 1.37 does nothing."""

    @staticmethod
    def _selected(way: Wanted, thing: Thing) -> bool:
        if way.select is None:
            return True
        attribute, value = way.select
        if attribute not in thing.attributes:
            raise SelectorFailsError
        return thing.attributes[attribute] == value

    def _allowed(self, claim: int, request: int, thing: Thing) -> bool:
        for counter, amount in thing.draws.items():
            used = sum(taken[2].draws.get(counter, 0) for taken in self.taken)
            if used + amount > self.counters[counter]:
                return False
        return self._by_rules(claim, request, thing)

    def _by_rules(self, claim: int, request: int, thing: Thing) -> bool:
        for rule in self._rules(claim, request):
            others = self._values(claim, rule)
            mine = thing.attributes.get(rule.attribute)
            if mine is None or (others and (mine in others) is not rule.same):
                return False
        return True

    def _rules(self, claim: int, request: int) -> list[Rule]:
        rules = self.claims[claim][1]
        return [rule for rule in rules if not rule.requests or request in rule.requests]

    def _values(self, claim: int, rule: Rule) -> list[int]:
        return [
            taken[2].attributes[rule.attribute]
            for taken in self.taken
            if taken[0] == claim and (not rule.requests or taken[1] in rule.requests)
        ]


@dataclass
class Forgetful(Naive):
    """
    The search with the errors of 1.36.

    Devices need only differ from the last of each request, which is written down as soon as it
    is allowed, and forgotten when it is taken back: also if another rule does not allow it.
    """

    last: dict[tuple[int, int], dict[int, int]] = field(default_factory=dict)

    def _by_rules(self, claim: int, request: int, thing: Thing) -> bool:
        done: list[Rule] = []
        for rule in self._rules(claim, request):
            mine = thing.attributes.get(rule.attribute)
            if mine is None or not self._noted(claim, request, rule, mine):
                for each in done:
                    self._lasts(claim, each).pop(request, None)
                return False
            done.append(rule)
        return True

    def _noted(self, claim: int, request: int, rule: Rule, mine: int) -> bool:
        if rule.same:
            return all(mine == other for other in self._values(claim, rule))
        if mine in self._lasts(claim, rule).values():
            return False
        self._lasts(claim, rule)[request] = mine
        return True

    def _forget(self, claim: int, request: int) -> None:
        for rule in self._rules(claim, request):
            self._lasts(claim, rule).pop(request, None)

    def _lasts(self, claim: int, rule: Rule) -> dict[int, int]:
        place = next(n for n, each in enumerate(self.claims[claim][1]) if each is rule)
        return self.last.setdefault((claim, place), {})
