"""
Plan: the cheapest nodes on which the decider places a workload, beside the nodes that exist.

The oracle asks the decider which pods an empty node of each type takes, and each existing node.
Then the covering problem is solved, and its solution is replayed: the decider places each pod on
its planned node. If pods have rules about pods of other nodes, the oracle's answers are necessary
and not sufficient: the bound holds, and if the replay fails, the plan is the one that the scheduler
makes by itself when a node is added for each pod that fits on no other.

The function is pure: the time limit is an argument, and the cluster is the same afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING

from dryrack.base.text import listed
from dryrack.placement import DEFAULT_PROFILE, Unplaced, explain_nodes
from dryrack.planning.additions import Additions, place_anywhere
from dryrack.planning.covering import NOTHING, Column, Covering
from dryrack.planning.limited_solving import EXCEEDED, solve_within
from dryrack.planning.lowering import lowerings
from dryrack.planning.model import (
    Limits,
    OneFewer,
    Plan,
    PlannedNode,
    PlannedPod,
    Reach,
    Unplaceable,
    Workload,
)
from dryrack.planning.oracle import Oracle
from dryrack.planning.replay import Assignment, replay, replay_adding
from dryrack.planning.solving import Solution, solve_covering

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dryrack.placement import Cluster, Counts, Member, NodeState, Profile
    from dryrack.planning.model import NodeType
    from dryrack.planning.replay import Replayed

# A pod that only existing nodes could take costs more than any node if it is left over.
_LEFT_OVER = 10**6
# Reasons and types that an explanation names.
_NAMED_MAX = 3
# The searches for "one node fewer".
_FEWER_KINDS_MAX = 12
_FEWER_PODS_MAX = 8
_FEWER_LOOKS = 500
# Each lower request is a plan of its own.
_LOWERINGS_MAX = 6
_LOWERED_PODS_MAX = 200
_FEWER_STEPS = 300
_TOO_MUCH = "the nodes for it would exceed the limits of the plan"


def plan(
    workload: Workload,
    types: Sequence[NodeType],
    existing: Cluster,
    limits: Limits | None = None,
    *,
    profile: Profile = DEFAULT_PROFILE,
) -> Plan:
    """
    Return the cheapest nodes of these types for the workload, beside the existing nodes.

    `existing` has the nodes, the classes and the devices in use; it may have no nodes. Its
    allocator is a `LiveAllocator`. Pods that no node can take, or that exceed the limits, are in
    the result with the reason, and a gang is in the plan as a whole or not at all.
    """
    return _Planner(types, existing, limits or Limits(), profile).run(workload)


@dataclass(slots=True)
class _Table:
    """The covering problem of a workload, and what its indices stand for."""

    oracle: Oracle
    problem: Covering
    # The existing nodes of each class, which follow the new types.
    classes: list[list[str]]

    def units_of(self, names: Collection[str]) -> Counts:
        """Return how many units of each kind have only these pods."""
        return tuple(
            sum(1 for group in unit.groups if all(each.name in names for each in group))
            for unit in self.oracle.units
        )


class _Planner:
    def __init__(
        self, types: Sequence[NodeType], cluster: Cluster, limits: Limits, profile: Profile
    ) -> None:
        self._types = types
        self._cluster = cluster
        self._limits = limits
        self._profile = profile
        self._refused: list[Unplaceable] = []

    def run(self, workload: Workload) -> Plan:
        """Return the plan for the workload without the pods that are refused."""
        with Additions(self._cluster, self._profile) as additions:
            existing = [state.name for state in self._cluster.fleet.states()]
            templates = [
                additions.add(each.make(self._free_name(f"new-{each.name}", count(1))))
                for each in self._types
            ]
            table = None
            while workload.members:
                table = self._table(workload, templates, existing)
                smaller = self._without_unplaceable(workload, table, templates)
                if smaller is workload:
                    break
                workload = smaller
            if table is None or not workload.members:
                return self._empty()
            solution = solve_covering(
                table.problem, looks_max=self._limits.looks, steps_max=self._limits.steps
            )
            assert solution is not None, "each pod fits on a type, or may be left over"
            workload, solution = self._without_left_over(workload, table, solution)
            workload, solution = self._within_limits(workload, table, solution)
            fewer = self._lower_requests(table, workload, solution, templates, existing)
            fewer = fewer or self._one_fewer(table, workload, solution)
            assignments = list(self._assignments(table, workload, solution))
            is_joint = table.oracle.depends_on_others(
                [state for state in self._cluster.fleet.states() if state.name in existing]
            )
        new_types = {
            each.new.node.metadata.name: type_
            for each, type_ in assignments
            if each.new is not None and type_ is not None
        }
        chosen = [each for each, _ in assignments]
        replayed = replay(chosen, workload, self._cluster, self._profile, is_joint=is_joint)
        if replayed is None:
            replayed, new_types, workload = self._replay_adding(workload)
        return self._plan(workload, solution, replayed, new_types, fewer)

    def _table(
        self, workload: Workload, templates: Sequence[NodeState], existing: Sequence[str]
    ) -> _Table:
        oracle = Oracle(workload.members, self._cluster, self._profile)
        classes: defaultdict[object, list[str]] = defaultdict(list)
        for name in existing:
            state = self._cluster.fleet.get(name)
            assert state is not None, "existing nodes stay while the plan is made"
            signature = oracle.signature(state)
            if oracle.takes_any(state):
                classes[signature].append(name)
        states = [*templates]
        for names in classes.values():
            state = self._cluster.fleet.get(names[0])
            assert state is not None, "existing nodes stay while the plan is made"
            states.append(state)
        oracle.states = states
        own = len(states)

        def ask(type_: int, counts: Counts) -> bool | None:
            if type_ < own:
                return oracle.fits(type_, counts)
            # One pod that is left over.
            return counts == tuple(int(kind == only[type_ - own]) for kind in range(len(counts)))

        prices = [each.price for each in self._types] + [NOTHING] * len(classes)
        supplies = [each.supply for each in self._types]
        supplies += [len(names) for names in classes.values()]
        demand = tuple(len(unit.groups) for unit in oracle.units)
        rows = [oracle.rows(index) for index in range(own)]
        problem = Covering(demand, prices, supplies, ask, rows, self._limits.is_over)
        only: list[int] = []
        limited = [
            kind
            for kind in problem.kinds
            if not any(problem.alone(t, kind) for t in problem.types if supplies[t] is None)
        ]
        for kind in limited:
            if any(problem.alone(type_, kind) for type_ in range(own)):
                only.append(kind)
                prices.append(Fraction(_LEFT_OVER))
                supplies.append(None)
                rows.append(())
        return _Table(oracle, problem, list(classes.values()))

    def _without_unplaceable(
        self, workload: Workload, table: _Table, templates: Sequence[NodeState]
    ) -> Workload:
        """Return the workload without pods that no node takes, with the reasons."""
        refused: dict[str, str] = {}
        problem = table.problem
        for kind, unit in enumerate(table.oracle.units):
            if any(problem.alone(type_, kind) for type_ in problem.types):
                continue
            one = tuple(int(each == kind) for each in problem.kinds)
            is_unknown = any(problem.answer(t, one) is None for t in range(len(templates)))
            for group in unit.groups:
                why = self._why(group, templates, is_unknown=is_unknown)
                refused |= {member.name: why for member in group}
        return self._refuse(workload, refused)

    def _refuse(self, workload: Workload, refused: Mapping[str, str]) -> Workload:
        """Return the workload without these pods, and without gangs that lack too many of them."""
        if not refused:
            return workload
        refused = dict(refused)
        kept = []
        for gang, members in workload.gangs:
            left = tuple(each for each in members if each.name not in refused)
            running = sum(1 for pod in gang.members if pod.spec.node_name)
            if len(left) < len(members) and running + len(left) < gang.min_count:
                why = f"its gang, {gang.key}, needs pods that are not in the plan"
                refused |= {each.name: why for each in left}
            elif left:
                kept.append((gang, left))
        self._refused += [Unplaceable(name, why) for name, why in refused.items()]
        members = tuple(each for each in workload.members if each.name not in refused)
        return Workload(members, tuple(kept))

    def _why(
        self, group: Sequence[Member], templates: Sequence[NodeState], *, is_unknown: bool
    ) -> str:
        """Return why no type takes these pods."""
        if is_unknown:
            return "it is unknown whether a node takes it: the allocator stopped at its limit"
        names = {
            state.name: type_.name for state, type_ in zip(templates, self._types, strict=True)
        }
        for member in group:
            outcome = place_anywhere(member, self._cluster, self._profile)
            if not isinstance(outcome, Unplaced):
                continue
            reasons = []
            for each in explain_nodes(outcome.refusals):
                nodes = [names.get(node, node) for node in (each.node, *each.alike)]
                facts = "; ".join(obstacle.sentence for obstacle in each.obstacles[:_NAMED_MAX])
                if facts:
                    reasons.append(": ".join(filter(None, (listed(filter(None, nodes)), facts))))
            return ". ".join(reasons[:_NAMED_MAX]) or outcome.message
        if len(group) > 1:
            others = listed([member.name for member in group])
            return f"no node takes together the pods that share a claim: {others}"
        return "no node takes it while it has the pods of its DaemonSets"

    def _without_left_over(
        self, workload: Workload, table: _Table, solution: Solution
    ) -> tuple[Workload, Solution]:
        """Return the plan without pods that only existing nodes could take, which are full."""
        own = len(self._types) + len(table.classes)
        over = [each for each in solution.nodes if each.type >= own]
        if not over:
            return workload, solution
        refused: dict[str, str] = {}
        for kind, unit in enumerate(table.oracle.units):
            number = sum(each.counts[kind] for each in over)
            for group in unit.groups[len(unit.groups) - number :]:
                why = "no instance type takes it, and the existing nodes that could are full"
                refused |= {member.name: why for member in group}
        smaller = self._refuse(workload, refused)
        names = {member.name for member in smaller.members}
        less = solve_covering(
            table.problem.with_demand(table.units_of(names)),
            looks_max=self._limits.looks,
            steps_max=self._limits.steps,
            base=solution.columns,
        )
        assert less is not None, "a smaller demand can be covered, too"
        return smaller, less

    def _solve_within(self, table: _Table, workload: Workload, before: Solution) -> Solution | None:
        """Return the nodes within the limits for a part of the workload that `before` is for."""
        names = {member.name for member in workload.members}
        return solve_within(
            table.problem.with_demand(table.units_of(names)),
            [self._uses(table, type_) for type_ in table.problem.types],
            self._limits.cost,
            looks_max=self._limits.looks,
            steps_max=self._limits.steps,
            base=before.columns,
        )

    def _uses(self, table: _Table, type_: int) -> Sequence[Fraction]:
        """Return the part of each limit, except that of the cost, that a node of a type uses."""
        limits = self._limits
        if type_ >= len(self._types):
            # Existing nodes use nothing; the types after them stand for pods that are left over.
            is_existing = type_ < len(self._types) + len(table.classes)
            number = len(limits.amounts) + (limits.nodes is not None)
            return [NOTHING if is_existing else EXCEEDED] * number
        has = table.oracle.states[type_].allocatable
        pairs = [(has.get(name, 0), most) for name, most in limits.amounts.items()]
        if limits.nodes is not None:
            pairs.append((1, limits.nodes))
        return [Fraction(own, most) if most else EXCEEDED * bool(own) for own, most in pairs]

    def _within_limits(
        self, workload: Workload, table: _Table, solution: Solution
    ) -> tuple[Workload, Solution]:
        """Leave pods over until the nodes keep to the limits: the last and least important."""
        if self._is_within(table, solution):
            return workload, solution
        whole = self._solve_within(table, workload, solution)
        if whole is not None:
            return workload, whole
        blocks = sorted(_blocks(workload, table), key=lambda block: -_priority(block))
        low, high = 0, len(blocks)
        best = _EMPTY
        # Each of the first blocks is in the plan.
        while high - low > 1:
            middle = (low + high) // 2
            smaller = _only(workload, blocks[:middle])
            trial = self._solve_within(table, smaller, solution)
            if trial is not None:
                low, best = middle, trial
            else:
                high = middle
        chosen = blocks[:low]
        for block in blocks[low + 1 :]:
            if self._limits.is_over():
                break
            trial = self._solve_within(table, _only(workload, [*chosen, block]), solution)
            if trial is not None:
                chosen.append(block)
                best = trial
        kept = {member.name for block in chosen for member in block}
        over = {each.name: _TOO_MUCH for each in workload.members if each.name not in kept}
        smaller = self._refuse(workload, over)
        return smaller, best

    def _is_within(self, table: _Table, solution: Solution) -> bool:
        limits = self._limits
        new = [each for each in solution.nodes if each.type < len(self._types)]
        if limits.cost is not None and solution.cost > limits.cost:
            return False
        if limits.nodes is not None and len(new) > limits.nodes:
            return False
        for name, most in limits.amounts.items():
            own = [table.oracle.states[each.type].allocatable.get(name, 0) for each in new]
            if sum(own) > most:
                return False
        return True

    def _lower_requests(
        self,
        table: _Table,
        workload: Workload,
        solution: Solution,
        templates: Sequence[NodeState],
        existing: Sequence[str],
    ) -> OneFewer | None:
        """Return the lower request with which the plan costs least, if it then costs less."""
        used = sorted({each.type for each in solution.nodes if each.type < len(self._types)})
        is_small = len(workload.members) <= _LOWERED_PODS_MAX
        if not used or not is_small or not self._limits.seeks_savings:
            return None
        states = [templates[type_] for type_ in used]
        new = sum(1 for each in solution.nodes if each.type < len(self._types))
        best: OneFewer | None = None
        tried = 0
        for kind in table.oracle.kinds:
            amounts = {str(name): each for name, each in kind.constraints[0].amounts.items()}
            for lowering in lowerings(workload, kind.members, amounts, states):
                if tried >= _LOWERINGS_MAX or self._limits.is_over():
                    return best
                tried += 1
                other = self._table(lowering.workload, templates, existing)
                trial = solve_covering(
                    other.problem, looks_max=_FEWER_LOOKS, steps_max=_FEWER_STEPS
                )
                cost = solution.cost - (best.saves if best else 0)
                if trial is not None and trial.cost < cost and self._is_within(other, trial):
                    nodes = sum(1 for each in trial.nodes if each.type < len(self._types))
                    best = OneFewer(lowering.text, solution.cost - trial.cost, new - nodes)
        return best

    def _one_fewer(self, table: _Table, workload: Workload, solution: Solution) -> OneFewer | None:
        """Return the smallest number of pods of a kind without which the plan costs less."""
        new = [each for each in solution.nodes if each.type < len(self._types)]
        if not new or not self._limits.seeks_savings:
            return None
        best: tuple[int, Fraction, int, str] | None = None
        names = {member.name for member in workload.members}
        for change, left_out in _changes(workload, table):
            if self._limits.is_over():
                break
            if best is not None and len(left_out) > best[0]:
                continue
            less = table.units_of(names.difference(left_out))
            trial = solve_covering(
                table.problem.with_demand(less),
                looks_max=_FEWER_LOOKS,
                steps_max=_FEWER_STEPS,
                base=solution.columns,
            )
            if trial is not None and trial.cost < solution.cost and self._is_within(table, trial):
                nodes = sum(1 for each in trial.nodes if each.type < len(self._types))
                option = (len(left_out), trial.cost - solution.cost, len(new) - nodes, change)
                best = option if best is None else min(best, option)
        return None if best is None else OneFewer(best[3], -best[1], best[2])

    def _assignments(
        self, table: _Table, workload: Workload, solution: Solution
    ) -> Iterator[tuple[Assignment, NodeType | None]]:
        """Yield the pods of each node."""
        names = {member.name for member in workload.members}
        groups = [
            iter([group for group in unit.groups if all(each.name in names for each in group)])
            for unit in table.oracle.units
        ]
        free = [iter(each) for each in table.classes]
        numbers = {each.name: count(1) for each in self._types}
        order = table.oracle.units
        for type_, counts in sorted(solution.nodes, key=_largest_first):
            members = tuple(
                member
                for kind in range(len(order))
                for _ in range(counts[kind])
                for member in next(groups[kind])
            )
            if type_ < len(self._types):
                chosen = self._types[type_]
                name = self._free_name(chosen.name, numbers[chosen.name])
                yield Assignment(name, members, chosen.make(name)), chosen
            else:
                yield Assignment(next(free[type_ - len(self._types)]), members), None

    def _free_name(self, base: str, numbers: Iterator[int]) -> str:
        """Return a name for a new node that no node has."""
        base = base.lower().replace("_", "-")
        options = (f"{base}-{number}" for number in numbers)
        return next(name for name in options if self._cluster.fleet.get(name) is None)

    def _replay_adding(self, workload: Workload) -> tuple[Replayed, dict[str, NodeType], Workload]:
        """Let the scheduler place the pods, with a new node for each pod that fits nowhere."""
        numbers = {each.name: count(1) for each in self._types}

        def make(type_: NodeType) -> tuple[str, NodeType]:
            return self._free_name(type_.name, numbers[type_.name]), type_

        added = replay_adding(workload, self._types, self._cluster, self._profile, make)
        smaller = self._refuse(workload, added.refused)
        return added.replayed, added.types, smaller

    def _plan(
        self,
        workload: Workload,
        solution: Solution,
        replayed: Replayed,
        new_types: Mapping[str, NodeType],
        fewer: OneFewer | None,
    ) -> Plan:
        pods: defaultdict[str, list[PlannedPod]] = defaultdict(list)
        kept = {member.name for member in workload.members}
        for each in replayed.placed.values():
            if each.member.name in kept:
                pods[each.node].append(PlannedPod(each.member, each.given))
        nodes = []
        existing = []
        for name, own in pods.items():
            left = replayed.left.get(name, {})
            if name in new_types:
                new = new_types[name]
                nodes.append(PlannedNode(name, tuple(own), new, left))
            else:
                existing.append(PlannedNode(name, tuple(own), None, left))
        cost = sum((each.type.price for each in nodes if each.type is not None), NOTHING)
        is_optimal = solution.is_optimal and cost == solution.cost
        proof = solution.proof
        if cost > solution.cost:
            proof = "pods have rules about other nodes, so that the plan is that of the scheduler"
        bound = min(solution.bound, cost)
        return Plan(
            tuple(nodes),
            tuple(existing),
            cost,
            cost if is_optimal and not solution.bound else bound,
            is_optimal,
            proof,
            replayed.reach,
            tuple(self._refused),
            fewer,
        )

    def _empty(self) -> Plan:
        return replace(_NO_PLAN, unplaceable=tuple(self._refused))


def _largest_first(column: Column) -> tuple[int, int, Counts]:
    return column.type, -sum(column.counts), column.counts


def _blocks(workload: Workload, table: _Table) -> Iterator[tuple[Member, ...]]:
    """Yield the pods that are in the plan together or not at all, in their order."""
    parents = {member.name: member.name for member in workload.members}

    def root(name: str) -> str:
        while parents[name] != name:
            name = parents[name]
        return name

    together = [members for _, members in workload.gangs]
    together += [group for unit in table.oracle.units for group in unit.groups]
    for members in together:
        for member in members[1:]:
            if member.name in parents and members[0].name in parents:
                parents[root(member.name)] = root(members[0].name)
    blocks: defaultdict[str, list[Member]] = defaultdict(list)
    for member in workload.members:
        blocks[root(member.name)].append(member)
    return (tuple(each) for each in blocks.values())


def _changes(workload: Workload, table: _Table) -> Iterator[tuple[str, list[str]]]:
    """Yield smaller workloads: some pods of a kind fewer, or one gang fewer."""
    in_gangs = {member.name for _, members in workload.gangs for member in members}
    names = {member.name for member in workload.members}
    tried = 0
    for unit in table.oracle.units:
        own = [
            group
            for group in unit.groups
            if all(each.name in names and each.name not in in_gangs for each in group)
        ]
        if not own or tried >= _FEWER_KINDS_MAX:
            continue
        tried += 1
        for number in range(1, min(len(own), _FEWER_PODS_MAX) + 1):
            left_out = [member.name for group in own[-number:] for member in group]
            pods = "1 pod" if len(left_out) == 1 else f"{len(left_out)} pods"
            yield f"{pods} fewer like {own[0][0].name}", left_out
    for gang, members in workload.gangs[:_FEWER_KINDS_MAX]:
        yield f"without {gang.key}", [member.name for member in members]


def _priority(block: Sequence[Member]) -> int:
    return min(member.pod.spec.priority or 0 for member in block)


def _only(workload: Workload, blocks: Sequence[Sequence[Member]]) -> Workload:
    return Workload(tuple(member for block in blocks for member in block), workload.gangs)


_EMPTY = Solution((), NOTHING, NOTHING, True, "there are no pods to place", NOTHING)
_NO_PLAN = Plan((), (), NOTHING, NOTHING, True, _EMPTY.proof, Reach.ANY)
