"""
The walk over a checked expression that adds up what each node may cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from dryrack.cel.checking import types as t
from dryrack.cel.cost_factors import LIST_BASE, MAP_BASE, STRING_TRAVERSAL, STRUCT_BASE
from dryrack.cel.estimation.arithmetic import NOTHING, ONE, ZERO, CostEstimate, Estimate, fixed
from dryrack.cel.estimation.calls import CallEstimate, CallSite
from dryrack.cel.estimation.knowledge import EntrySizes, Knowledge
from dryrack.cel.estimation.libraries import library_estimate
from dryrack.cel.estimation.paths import ITEMS, VALUES, SizeHints, variable
from dryrack.cel.estimation.standard import standard_estimate
from dryrack.cel.evaluation.trampoline import run
from dryrack.cel.parsing.ast import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cel.checking.checker import Checked
    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.estimation.arithmetic import SizeEstimate
    from dryrack.cel.evaluation.trampoline import Steps
    from dryrack.cel.parsing.ast import Expr

    Walk: TypeAlias = Steps[CostEstimate]


def estimate(checked: Checked, env: Environment) -> CostEstimate:
    """The least and the most that evaluating the expression can cost, on any device."""
    return estimate_by(checked, SizeHints(env))


def estimate_by(checked: Checked, hints: SizeHints) -> CostEstimate:
    """Return the estimate for an expression that is not about a device, with known sizes."""
    return run(_Costs(Knowledge(checked, hints)).of(checked.expr))


class _Costs:
    """Each method yields the walks of its node's parts and is sent their costs."""

    __slots__ = ("_knowledge",)

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def of(self, expr: Expr) -> Walk:
        match expr:
            case Literal():
                return self._literal()
            case Ident():
                return self._ident(expr)
            case Select():
                return self._select(expr)
            case Call():
                return self._dyn(expr) if expr.function == "dyn" else self._call(expr)
            case ListLiteral():
                return self._list(expr)
            case MapLiteral():
                return self._map(expr)
            case StructLiteral():
                return self._struct(expr)
            case Comprehension():
                return self._bind(expr) if _is_bind(expr) else self._comprehension(expr)
            case _:
                assert_never(expr)

    def _literal(self) -> Walk:
        yield from ()
        return ZERO

    def _ident(self, expr: Ident) -> Walk:
        yield from ()
        local = self._knowledge.local(expr)
        self._knowledge.learn_path(expr, local.path if local else variable(expr.name))
        return ONE

    def _select(self, expr: Select) -> Walk:
        cost: CostEstimate = yield self.of(expr.operand)
        if expr.test_only:
            return cost
        path = self._knowledge.path(expr.operand).extend(expr.field)
        self._knowledge.learn_path(expr, path)
        kind = self._knowledge.type(expr.operand).kind
        return cost + ONE if kind in (t.Kind.MAP, t.Kind.STRUCT, t.Kind.TYPE_PARAM) else cost

    def _dyn(self, expr: Call) -> Walk:
        cost: CostEstimate = yield self.of(expr.args[0])
        self._knowledge.learn_same(expr, expr.args[0])
        return cost + ONE

    def _list(self, expr: ListLiteral) -> Walk:
        total = fixed(LIST_BASE)
        sizes = NOTHING if expr.elements else ZERO
        for element in expr.elements:
            total += yield self.of(element)
            sizes |= self._knowledge.size_or_unknown(element)
        self._knowledge.learn_entries(expr, EntrySizes(t.Kind.LIST, ONE, sizes))
        return total

    def _map(self, expr: MapLiteral) -> Walk:
        total = fixed(MAP_BASE)
        keys = values = NOTHING if expr.entries else ZERO
        for entry in expr.entries:
            total += yield self.of(entry.key)
            total += yield self.of(entry.value)
            keys |= self._knowledge.size_or_unknown(entry.key)
            values |= self._knowledge.size_or_unknown(entry.value)
        self._knowledge.learn_entries(expr, EntrySizes(t.Kind.MAP, keys, values))
        return total

    def _struct(self, expr: StructLiteral) -> Walk:
        total = fixed(STRUCT_BASE)
        for field in expr.fields:
            total += yield self.of(field.value)
        return total

    def _bind(self, expr: Comprehension) -> Walk:
        total: CostEstimate = yield self.of(expr.iter_range)
        total += yield self.of(expr.accu_init)
        self._knowledge.bind(expr.accu_var, expr.accu_init)
        total += yield self.of(expr.result)
        self._knowledge.forget(expr.accu_var)
        self._knowledge.learn_same(expr, expr.result)
        return total

    def _comprehension(self, expr: Comprehension) -> Walk:
        knowledge = self._knowledge
        total: CostEstimate = yield self.of(expr.iter_range)
        total += yield self.of(expr.accu_init)
        knowledge.bind(expr.accu_var, expr.accu_init)
        variables = self._bind_variables(expr)
        per_round: CostEstimate = yield self.of(expr.loop_condition)
        per_round += yield self.of(expr.loop_step)
        for name in variables:
            knowledge.forget(name)
        total += yield self.of(expr.result)
        knowledge.forget(expr.accu_var)
        rounds = knowledge.size_or_unknown(expr.iter_range)
        # A macro that starts from a container adds at most one entry per round.
        match expr.accu_init:
            case Literal():
                self._knowledge.learn_size(expr, self._knowledge.size(expr.accu_init))
            case ListLiteral() | MapLiteral():
                self._knowledge.learn_size(expr, rounds)
                self._knowledge.learn_entries(expr, self._knowledge.entries(expr.loop_step))
        return total + rounds * per_round

    def _bind_variables(self, expr: Comprehension) -> tuple[str, ...]:
        if not expr.iter_var2:
            self._knowledge.bind_element(expr.iter_var, expr.iter_range)
            return (expr.iter_var,)
        self._knowledge.bind_key(expr.iter_var, expr.iter_range)
        self._knowledge.bind_value(expr.iter_var2, expr.iter_range)
        return (expr.iter_var, expr.iter_var2)

    def _call(self, expr: Call) -> Walk:
        costs: list[CostEstimate] = []
        operands = []
        for argument in expr.args:
            costs.append((yield self.of(argument)))
            operands.append(self._knowledge.operand(argument))
        target_cost = ZERO
        target = None
        if expr.target is not None:
            target_cost = yield self.of(expr.target)
            target = self._knowledge.operand(expr.target)
        cost = NOTHING
        size = None
        for overload in self._knowledge.overloads(expr):
            site = CallSite(expr.function, overload, target, tuple(operands), self._knowledge.hints)
            estimate = self._overload(expr, site, costs)
            cost |= estimate.cost
            size = self._result_size(expr, overload, _either(size, estimate.result_size))
        self._knowledge.learn_size(expr, size)
        return target_cost + cost

    def _result_size(
        self, expr: Call, overload: str, size: SizeEstimate | None
    ) -> SizeEstimate | None:
        if overload in _INDEXING:
            container = expr.args[0]
            size = self._knowledge.value_size(container)
            path = self._knowledge.path(container).extend(_INDEXING[overload])
            self._knowledge.learn_path(expr, path)
        return size or self._knowledge.size(expr)

    def _overload(self, expr: Call, site: CallSite, costs: Sequence[CostEstimate]) -> CallEstimate:
        """Return the cost of the call with its arguments, if it means this overload."""
        estimate = library_estimate(site)
        if estimate is None:
            match site.overload:
                case "logical_and" | "logical_or":
                    left, right = costs
                    return CallEstimate(Estimate(left.min, (left + right).max))
                case "conditional":
                    _, positive, negative = site.arguments
                    entries = self._knowledge.common_entries(positive.expr, negative.expr)
                    self._knowledge.learn_entries(expr, entries)
                    size = positive.size_or_unknown | negative.size_or_unknown
                    return CallEstimate(costs[0] + (costs[1] | costs[2]), size)
                case "add_string" | "add_bytes" | "add_list":
                    estimate = self._addition(expr, site)
                case _:
                    estimate = standard_estimate(site)
        return CallEstimate(sum(costs, estimate.cost), estimate.result_size)

    def _addition(self, expr: Call, site: CallSite) -> CallEstimate:
        left, right = site.arguments
        size = left.size_or_unknown + right.size_or_unknown
        entries = self._knowledge.common_entries(left.expr, right.expr)
        self._knowledge.learn_entries(expr, entries)
        # Lists are joined, not copied.
        cost = ONE if site.overload == "add_list" else size.scale(STRING_TRAVERSAL)
        return CallEstimate(cost, size)


_INDEXING = {"index_list": ITEMS, "index_map": VALUES}


def _either(one: SizeEstimate | None, other: SizeEstimate | None) -> SizeEstimate | None:
    return one | other if one and other else one or other


def _is_bind(expr: Comprehension) -> bool:
    """The expansion of `cel.bind`: no rounds, only a variable and a result."""
    rounds = expr.iter_range
    condition = expr.loop_condition
    return (
        isinstance(rounds, ListLiteral)
        and not rounds.elements
        and isinstance(condition, Literal)
        and condition.value is False
        and expr.accu_var != "__result__"
    )
