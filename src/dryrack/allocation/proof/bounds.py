"""
Bounds that show, without a search, that the open requests cannot be satisfied.

A demand is a number of devices that one request, or several alike, still need, and the sorts
of devices that would do. Each bound asks for less than the search does, so that "impossible"
here is impossible there:

- supply: any set of demands needs as many devices as it has together (Hall's condition);
- matchAttribute: some one value must supply all covered demands;
- distinctAttribute: covered demands need as many different values as they have devices;
- no choice: a demand with just as many devices as it needs takes them and what they draw,
  which must leave enough for the others;
- totals: the cheapest devices that would do must not draw more from all counters of one name,
  or consume more of all shared capacity of one name, than is left.

Sorts, not devices, are counted, so the cost depends on how many devices differ.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from dryrack.allocation.demand.constraints import (
    MISSING,
    ConstraintKind,
    DistinctState,
    LastDistinctState,
    MatchState,
)
from dryrack.allocation.demand.open_requests import Demand, Group, Question
from dryrack.allocation.search.problem import USABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.allocation.demand.constraints import Constraint
    from dryrack.allocation.proof.symmetry import DeviceSymmetry
    from dryrack.allocation.search.problem import Problem, RequestRow
    from dryrack.allocation.search.walk import Walk


class Forced:
    """The counters after all draws that no choice can avoid."""

    def __init__(self, walk: Walk, problem: Problem) -> None:
        self._walk = walk
        self._left = problem.ledger.left
        self._more: Counter[int] = Counter()

    def take(self, device: int, times: int) -> None:
        for number, amount in self._walk.draw(device):
            self._more[number] += times * amount

    def overdrawn(self) -> bool:
        return any(self._rest(number) < 0 for number in self._more)

    def leaves(self, device: int) -> bool:
        """Return whether the counters still suffice for the device."""
        return all(self._rest(number) >= amount for number, amount in self._walk.draw(device))

    def _rest(self, number: int) -> int:
        return self._left[number] - self._walk.drawn.get(number, 0) - self._more[number]


class Bounds:
    """The bounds of one problem, with the facts that never change."""

    def __init__(self, problem: Problem, symmetry: DeviceSymmetry) -> None:
        self._problem = problem
        self._symmetry = symmetry
        self._sample: dict[int, int] = {}
        self._total: Counter[int] = Counter()
        for device, sort in enumerate(symmetry.sort):
            self._sample.setdefault(sort, device)
            self._total[sort] += 1
        self._served = {
            number: [s for s, d in self._sample.items() if status[d] == USABLE]
            for number, status in enumerate(symmetry.statuses)
        }
        needs: dict[frozenset[tuple[int, tuple[int, ...]]], int] = {}
        self._needs_of = {
            id(way): needs.setdefault(frozenset(way.needs.items()), len(needs))
            for ways in problem.requests
            for way in ways
        }
        self._valued: dict[tuple[int, int], dict[object, list[int]]] = {}
        self._drawing = [s for s, d in self._sample.items() if problem.draws.get(d)]
        self._counter_names = self._names_of_counters()
        self._capacity_names = self._names_of_capacity()

    def plan(self, demands: Iterable[Demand]) -> Sequence[Group]:
        """Return the demands, grouped by the devices that are suitable."""
        groups: dict[object, Group] = {}
        for demand in demands:
            known = groups.setdefault(self._group_key(demand), Group((), 0))
            groups[self._group_key(demand)] = Group(
                (*known.demands, demand), known.need + demand.need
            )
        return tuple(groups.values())

    def impossible(self, walk: Walk, question: Question) -> bool:
        """Return whether the walk has too little left for the demands."""
        # The number of devices left of each sort; 0 for a sort whose counters are drained.
        free = dict(self._total)
        for device in {frame.chosen for frame in walk.stack}:
            if device >= 0 and walk.holds[device]:
                free[self._symmetry.sort[device]] -= 1
        for sort in self._drawing:
            if walk.is_drained(self._sample[sort]):
                free[sort] = 0
        now = question.now
        groups: list[Group] = []
        for each in (*((Group((now,), now.need),) if now else ()), *question.later):
            group = self._with_supply(walk, each, free)
            if group is None or self._most(group) < group.need:
                return True
            groups.append(group)
        left = self._without_choice(walk, groups)
        return left is None or (
            self._short_of_supply(left, free)
            or self._short_of_match(walk, left)
            or self._short_of_distinct(walk, left, groups)
            or self._short_of_totals(walk, left)
        )

    # Supply of each demand.

    def _group_key(self, demand: Demand) -> object:
        if demand.cursor is not None:
            return demand.request
        return tuple(
            # Where a large share no longer fits, a small one may.
            (
                self._symmetry.status_of[id(way)],
                self._needs_of[id(way)],
                way.claim,
                way.constraints,
                way.ask.admin,
            )
            for way in demand.ways
        )

    def _with_supply(self, walk: Walk, group: Group, free: Mapping[int, int]) -> Group | None:
        """Return the group with its supply, without ways that lack devices; None without a way."""
        supplies = [self._supply(walk, way, group.demand, free) for way in group.demand.ways]
        if len(supplies) == 1:
            return replace(group, supply=supplies[0])
        most = [sum(supply.values()) for supply in supplies]
        need = 0
        supply = dict[int, int]()
        for demand in group.demands:
            enough = [n for n, way in enumerate(demand.ways) if 0 < way.count <= most[n]]
            if not enough:
                return None
            need += min(demand.ways[n].count for n in enough)
            for number in enough:
                supply |= supplies[number]
        return replace(group, need=need, supply=supply)

    def _supply(
        self, walk: Walk, way: RequestRow, demand: Demand, free: Mapping[int, int]
    ) -> dict[int, int]:
        """Return the number of suitable devices of each sort for a way to satisfy a request."""
        counts: Mapping[int, int]
        if demand.cursor is None and not way.ask.admin:
            counts = {sort: free[sort] for sort in self._suitable_sorts(walk, way)}
        else:
            sort_of = self._symmetry.sort
            places = way.order[demand.cursor : demand.end]
            usable = (device for device in places if way.status[device] == USABLE)
            if way.ask.admin:
                claim = way.claim
                counts = Counter(sort_of[d] for d in usable if (claim, d) not in walk.held)
            else:
                left = Counter(sort_of[d] for d in usable if not walk.holds[d])
                counts = {sort: min(number, free[sort]) for sort, number in left.items()}
        return {
            sort: number
            for sort, number in counts.items()
            if number > 0 and self._is_admitted(walk, way, sort)
        }

    def _suitable_sorts(self, walk: Walk, way: RequestRow) -> Iterable[int]:
        """Return the suitable sorts for an ask, without those that a fixed value rules out."""
        status = self._symmetry.status_of[id(way)]
        for constraint in way.constraints:
            state = walk.states[constraint.number]
            if isinstance(state, MatchState) and state.count:
                by_value = self._sorts_by_value(status, constraint)
                sorts = (sort for member in state.shared for sort in by_value.get(member, ()))
                return dict.fromkeys(sorts)
        return self._served[status]

    def _sorts_by_value(
        self, status: int, constraint: Constraint
    ) -> Mapping[object, Sequence[int]]:
        sorts = self._valued.get((status, constraint.number))
        if sorts is None:
            column = self._problem.columns[constraint.number]
            sorts = self._valued[status, constraint.number] = {}
            for sort in self._served[status]:
                value = column[self._sample[sort]]
                for member in column.members[value] if value >= 0 else ():
                    sorts.setdefault(member, []).append(sort)
        return sorts

    def _is_admitted(self, walk: Walk, way: RequestRow, sort: int) -> bool:
        """Return whether constraints and shared capacity allow a device of the sort now."""
        device = self._sample[sort]
        if device in way.needs and walk.is_crowded(way, device):
            return False
        for constraint in way.constraints:
            column = self._problem.columns[constraint.number]
            value = column[device]
            state = walk.states[constraint.number]
            if value == MISSING:
                return False
            if isinstance(state, MatchState):
                if state.count and (value < 0 or column.members[value].isdisjoint(state.shared)):
                    return False
            elif column.scalar and value in state.others(way.name_of, walk.ongoing):
                return False
        return True

    # Supply after the demands without a choice.

    def _without_choice(self, walk: Walk, groups: list[Group]) -> list[Group] | None:
        """
        Return the demands without the devices that others surely take; None if too few are left.

        A demand with exactly as many devices as it needs takes them all, and what they draw.
        That may leave another without choice in turn.
        """
        if not self._drawing:
            return groups
        forced = Forced(walk, self._problem)
        settled: set[int] = set()
        while True:
            tight = [
                index
                for index, group in enumerate(groups)
                if index not in settled and self._takes_all_it_can(group)
            ]
            if not tight:
                return groups
            settled.update(tight)
            for index in tight:
                for sort, number in groups[index].supply.items():
                    forced.take(self._sample[sort], number)
            if forced.overdrawn():
                return None
            groups = [
                each if index in settled else self._reduce(each, forced)
                for index, each in enumerate(groups)
            ]
            if any(self._most(group) < group.need for group in groups):
                return None

    def _takes_all_it_can(self, group: Group) -> bool:
        if group.demand.ways[0].ask.admin or sum(group.supply.values()) != group.need:
            return False
        return not any(self._problem.shareable(self._sample[sort]) for sort in group.supply)

    def _reduce(self, group: Group, forced: Forced) -> Group:
        supply = {
            sort: number
            for sort, number in group.supply.items()
            if forced.leaves(self._sample[sort])
        }
        return replace(group, supply=supply)

    # The bounds.

    def _most(self, group: Group) -> int:
        return sum(self._within_reach(group, sort) for sort in group.supply)

    def _within_reach(self, group: Group, sort: int) -> int:
        """Return how many devices of a sort the group can use: each request may have a share."""
        shareable = self._problem.shareable(self._sample[sort])
        return group.supply[sort] * (group.requests if shareable else 1)

    def _short_of_supply(self, groups: Sequence[Group], free: Mapping[int, int]) -> bool:
        exclusive = [group for group in groups if not group.demand.ways[0].ask.admin]
        if len(exclusive) < 2:
            return False
        by_mask: Counter[int] = Counter()
        masks: Counter[int] = Counter()
        for index, group in enumerate(exclusive):
            for sort in group.supply:
                masks[sort] |= 1 << index
        for sort, mask in masks.items():
            shareable = self._problem.shareable(self._sample[sort])
            # Every request can have a share; the totals limit their number.
            by_mask[mask] += sum(g.requests for g in exclusive) if shareable else free[sort]
        return _hall_violated([group.need for group in exclusive], by_mask)

    def _short_of_match(self, walk: Walk, groups: Sequence[Group]) -> bool:
        for constraint in self._open_constraints(walk, groups, ConstraintKind.MATCH):
            covered = [group for group in groups if _covers(constraint, group.demand)]
            if sum(group.need for group in covered) < 2:
                continue
            column = self._problem.columns[constraint.number]
            by_value: dict[object, list[int]] = {}
            for sort in {sort: None for group in covered for sort in group.supply}:
                value = column[self._sample[sort]]
                for member in column.members[value] if value >= 0 else ():
                    by_value.setdefault(member, []).append(sort)
            if not any(self._value_suffices(covered, sorts) for sorts in by_value.values()):
                return True
        return False

    def _value_suffices(self, covered: Sequence[Group], sorts: Iterable[int]) -> bool:
        by_mask: Counter[int] = Counter()
        for sort in sorts:
            mask = 0
            number = 0
            for index, group in enumerate(covered):
                if sort in group.supply:
                    mask |= 1 << index
                    number = max(number, group.supply[sort])
            if self._problem.shareable(self._sample[sort]):
                number = sum(group.requests for group in covered)
            by_mask[mask] += number
        return not _hall_violated([group.need for group in covered], by_mask)

    def _short_of_distinct(
        self, walk: Walk, groups: Sequence[Group], seen: Sequence[Group]
    ) -> bool:
        """
        Return whether there are too few values.

        Up to 1.36 a device that is only tried, in vain, can separate others: so there the devices
        that the search sees count, and not those that are available in the end.
        """
        for constraint in self._open_constraints(walk, groups, ConstraintKind.DISTINCT):
            column = self._problem.columns[constraint.number]
            state = walk.states[constraint.number]
            among = groups if isinstance(state, DistinctState) else seen
            covered = [group for group in among if _covers(constraint, group.demand)]
            if not column.scalar or not covered:
                continue
            masks: Counter[int] = Counter()
            for index, group in enumerate(covered):
                for sort in group.supply:
                    masks[column[self._sample[sort]]] |= 1 << index
            needs = [group.need for group in covered]
            # Up to 1.36 only the last device of a request is compared with other requests'.
            if isinstance(state, LastDistinctState):
                needs = _last_needs(constraint, covered)
            if _hall_violated(needs, Counter(masks.values())):
                return True
        return False

    def _open_constraints(
        self, walk: Walk, groups: Sequence[Group], kind: ConstraintKind
    ) -> Iterator[Constraint]:
        seen: set[int] = set()
        for group in groups:
            for constraint in group.demand.ways[0].constraints:
                if constraint.kind is not kind or constraint.number in seen:
                    continue
                seen.add(constraint.number)
                state = walk.states[constraint.number]
                if not (isinstance(state, MatchState) and state.count):
                    yield constraint

    def _short_of_totals(self, walk: Walk, groups: Sequence[Group]) -> bool:
        resources = [
            (costs, self._counters_left(walk, numbers)) for numbers, costs in self._counter_names
        ]
        resources += [
            (costs, self._capacity_left(walk, groups, costs, places))
            for places, costs in self._capacity_names
        ]
        if any(self._least(groups, costs) > left for costs, left in resources):
            return True
        scarce = [(costs, left) for costs, left in resources if left > 0]
        return len(scarce) > 1 and self._short_of_all_together(groups, scarce)

    def _short_of_all_together(
        self, groups: Sequence[Group], resources: Sequence[tuple[Mapping[int, int], int]]
    ) -> bool:
        """Return whether even the shares of all resources, added up, exceed what there is."""
        whole = prod(left for _, left in resources)
        together: Counter[int] = Counter()
        for costs, left in resources:
            for sort, cost in costs.items():
                together[sort] += cost * (whole // left)
        return self._least(groups, together) > whole * len(resources)

    def _least(self, groups: Sequence[Group], costs: Mapping[int, int]) -> int:
        """Return the least cost of all demands together, each met by its cheapest sorts."""
        total = 0
        for group in groups:
            need = group.need
            priced = sorted((costs.get(sort, 0), sort) for sort in group.supply)
            for cost, sort in priced:
                taken = min(need, self._within_reach(group, sort))
                total += cost * taken
                need -= taken
                if not need:
                    break
        return total

    def _names_of_counters(self) -> list[tuple[list[int], dict[int, int]]]:
        """For each counter name: the counters that have it, and what a device of a sort draws."""
        numbers: dict[str, list[int]] = {}
        for number, name in enumerate(self._problem.ledger.names):
            numbers.setdefault(name.counter, []).append(number)
        return [(each, self._costs(set(each))) for each in numbers.values()]

    def _costs(self, numbers: set[int]) -> dict[int, int]:
        costs: dict[int, int] = {}
        for sort, device in self._sample.items():
            if not self._problem.shareable(device):
                draw = self._problem.draws.get(device, ())
                costs[sort] = sum(amount for number, amount in draw if number in numbers)
        return costs

    def _counters_left(self, walk: Walk, numbers: Iterable[int]) -> int:
        left = self._problem.ledger.left
        drawn = walk.drawn
        return sum(max(0, left[number] - drawn.get(number, 0)) for number in numbers)

    def _names_of_capacity(self) -> list[tuple[dict[int, int], dict[int, int]]]:
        """For each capacity name: its place in each shareable device, and the least of a share."""
        places: dict[str, dict[int, int]] = {}
        costs: dict[str, dict[int, int]] = {}
        for sort, device in self._sample.items():
            if not self._problem.shareable(device):
                continue
            needs = [
                w.needs[device]
                for ways in self._problem.requests
                for w in ways
                if device in w.needs
            ]
            for place, name in enumerate(self._problem.devices[device].device.capacity):
                if needs:
                    places.setdefault(name, {})[sort] = place
                    costs.setdefault(name, {})[sort] = min(need[place] for need in needs)
        return [(places[name], costs[name]) for name in places]

    def _capacity_left(
        self,
        walk: Walk,
        groups: Sequence[Group],
        costs: Mapping[int, int],
        places: Mapping[int, int],
    ) -> int:
        concerned = {sort: None for group in groups for sort in group.supply if sort in costs}
        return sum(max(0, walk.room(self._sample[sort])[places[sort]]) for sort in concerned)


def _covers(constraint: Constraint, demand: Demand) -> bool:
    return all(constraint in way.constraints for way in demand.ways)


def _last_needs(constraint: Constraint, covered: Sequence[Group]) -> list[int]:
    """
    Return the values needed at once where only the last device of a request is compared.

    One for each request; and the latest, if it has not begun, must find a second one for its
    second device while the last devices of all others stand, and its own first. Unless another
    constraint has its say later: a device that it refuses makes this one forget the first.
    """
    latest = max(group.last.request for group in covered)
    return [
        group.requests + (group.last.request == latest and _needs_a_second(constraint, group.last))
        for group in covered
    ]


def _needs_a_second(constraint: Constraint, demand: Demand) -> bool:
    begins_with_two = demand.cursor is None and demand.need > 1
    return begins_with_two and all(way.constraints[-1] is constraint for way in demand.ways)


def _hall_violated(needs: Sequence[int], by_mask: Mapping[int, int]) -> bool:
    """Return whether some set of demands has fewer devices than it needs; found by a flow."""
    spare = dict(by_mask)
    given: list[Counter[int]] = [Counter() for _ in needs]
    for demand, need in enumerate(needs):
        open_need = need
        while open_need:
            moved = _serve(demand, open_need, spare, given)
            if not moved:
                return True
            open_need -= moved
    return False


def _serve(demand: int, need: int, spare: dict[int, int], given: list[Counter[int]]) -> int:
    """Serve a demand from spare supply, or by moving others to it, and return the amount."""
    came_from: dict[int, tuple[int, int] | None] = {demand: None}
    queue = [demand]
    for current in queue:
        for mask, left in spare.items():
            if not mask >> current & 1:
                continue
            if left > 0:
                return _move(current, mask, need, (came_from, spare, given))
            for other, counter in enumerate(given):
                if other not in came_from and counter[mask] > 0:
                    came_from[other] = (current, mask)
                    queue.append(other)
    return 0


def _move(
    last: int,
    mask: int,
    need: int,
    network: tuple[dict[int, tuple[int, int] | None], dict[int, int], list[Counter[int]]],
) -> int:
    came_from, spare, given = network
    amount = min(need, spare[mask])
    step = last
    while (origin := came_from[step]) is not None:
        amount = min(amount, given[step][origin[1]])
        step = origin[0]
    spare[mask] -= amount
    step = last
    into = mask
    while True:
        given[step][into] += amount
        origin = came_from[step]
        if origin is None:
            return amount
        given[step][origin[1]] -= amount
        step, into = origin
