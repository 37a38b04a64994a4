"""
The exact tier: evaluates step by step, in upstream's order and at upstream's price.

Errors are values. `&&`, `||` and what the quantifier macros expand to look at both sides
before they let an error through; every other step passes on the first error that it is given.
Every step that costs anything charges the tracker, which may cancel the evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.cost_factors import LIST_BASE, MAP_BASE, STRUCT_BASE
from dryrack.cel.evaluation.attributes import Attribute, ConditionalAttribute, Scope, Step
from dryrack.cel.evaluation.runtime_cost import (
    PRICED_FIRST,
    CostLimitExceededError,
    Tracker,
    call_cost,
    one,
)
from dryrack.cel.evaluation.values import (
    Err,
    MutableList,
    MutableMap,
    Optional,
    PanicError,
    Value,
    decode_key,
    encode_key,
    go_name,
    keys_of,
)
from dryrack.cel.functions.equality import equal
from dryrack.cel.functions.formatting import go_text
from dryrack.cel.functions.messages import make_message
from dryrack.cel.parsing.depth import raised_recursion_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


CANCELLED = "operation cancelled: actual cost limit exceeded"


def evaluate(step: Step, scope: Scope, depth: int) -> tuple[Value, int]:
    """The value of a planned expression, or its error; and what that cost."""
    tracker = Tracker()
    try:
        with raised_recursion_limit(depth):
            return step.eval(scope, tracker), tracker.cost
    except CostLimitExceededError:
        return Err(CANCELLED), tracker.cost
    except PanicError as panic:
        return Err(f"internal error: {panic}"), tracker.cost


class Variables:
    """The outermost scope: the variables of the environment, each a new object when asked for."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, dict[str, Value]]) -> None:
        self.values = values

    def resolve(self, name: str, _tracker: Tracker) -> Value:
        return self.values[name].copy()


class Constant:
    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def eval(self, _scope: Scope, _tracker: Tracker) -> Value:
        return self.value


class AttributeStep:
    """Resolves an attribute; with `tests`, says whether its last qualifier is there."""

    __slots__ = ("attribute", "cost", "tests")

    def __init__(self, attribute: Attribute, *, tests: bool = False) -> None:
        self.attribute = attribute
        self.tests = tests
        self.cost = int(not tests) - isinstance(attribute, ConditionalAttribute)

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.attribute.resolve(scope, tracker)
        tracker.spend(self.cost)
        if self.tests and type(value) is Optional:
            return value.present
        return value


class Call:
    """
    A function on its arguments.

    With `stops`, the first argument that fails is the result and the rest are not evaluated;
    otherwise all are, and the first failure among them is the result.
    """

    __slots__ = ("args", "cost", "priced_first", "run", "stops", "strict", "where")

    def __init__(
        self,
        where: tuple[str, str],
        args: Sequence[Step],
        *,
        run: Callable[..., Value],
        stops: bool,
        strict: bool = True,
    ) -> None:
        self.where = where
        self.args = tuple(args)
        self.run = run
        self.stops = stops
        self.strict = strict
        self.cost = call_cost(*where)
        self.priced_first = bool(PRICED_FIRST.intersection(where))

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        values: list[Value] = []
        failed: Err | None = None
        for arg in self.args:
            value = arg.eval(scope, tracker)
            values.append(value)
            if type(value) is Err and self.strict:
                failed = failed or value
                if self.stops:
                    break
        if failed is not None:
            value = failed
        else:
            if self.priced_first:
                # Work in the square of the sizes is not begun if it cannot be paid.
                tracker.check(self.cost(values, None))
            value = self.run(*values)
        if len(values) == len(self.args):
            tracker.spend(1 if self.cost is one else self.cost(values, value))
        return value


class Equality(Call):
    __slots__ = ()

    def __init__(self, args: Sequence[Step], *, negated: bool) -> None:
        where = ("_!=_", "not_equals") if negated else ("_==_", "equals")
        run = _not_equal if negated else equal
        super().__init__(where, args, run=run, stops=False)


def _not_equal(left: Value, right: Value) -> bool:
    # A comparison that fails is not an equality, and so is an inequality.
    return equal(left, right) is not True


class Logic:
    """`&&` (decided by False) or `||` (decided by True), in either order of evaluation."""

    __slots__ = ("decisive", "terms")

    def __init__(self, terms: Sequence[Step], *, decisive: bool) -> None:
        self.terms = tuple(terms)
        self.decisive = decisive

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        failed: Err | None = None
        for term in self.terms:
            value = term.eval(scope, tracker)
            if type(value) is bool:
                if value is self.decisive:
                    return value
            elif failed is None:
                failed = value if type(value) is Err else Err("no such overload")
        return not self.decisive if failed is None else failed


class ListStep:
    __slots__ = ("elements", "optional")

    def __init__(self, elements: Sequence[Step], optional: frozenset[int]) -> None:
        self.elements = tuple(elements)
        self.optional = optional

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self._value(scope, tracker)
        tracker.spend(LIST_BASE)
        return value

    def _value(self, scope: Scope, tracker: Tracker) -> Value:
        values: list[Value] = []
        for position, element in enumerate(self.elements):
            value = element.eval(scope, tracker)
            if type(value) is Err:
                return value
            if position in self.optional:
                if type(value) is not Optional:
                    return Err(
                        "cannot initialize optional list element from non-optional value "
                        f"{go_text(value)}"
                    )
                if not value.present:
                    continue
                value = value.value
            values.append(value)
        return values


class MapStep:
    __slots__ = ("entries",)

    def __init__(self, entries: Sequence[tuple[Step, Step, bool]]) -> None:
        self.entries = tuple(entries)

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self._value(scope, tracker)
        tracker.spend(MAP_BASE)
        return value

    def _value(self, scope: Scope, tracker: Tracker) -> Value:
        built: dict[object, Value] = {}
        for key_step, value_step, optional in self.entries:
            key = key_step.eval(scope, tracker)
            if type(key) is Err:
                return key
            value = value_step.eval(scope, tracker)
            if type(value) is Err:
                return value
            if optional and type(value) is not Optional:
                return Err(
                    f"cannot initialize optional entry '{go_text(key)}' from non-optional value "
                    f"{go_text(value)}"
                )
            if optional and not value.present:
                built.pop(encode_key(key), None)
                continue
            built[encode_key(key)] = value.value if optional else value
        return built


class MessageStep:
    """A literal of a well-known message."""

    __slots__ = ("fields", "type_name")

    def __init__(self, type_name: str, fields: Sequence[tuple[str, Step, bool]]) -> None:
        self.type_name = type_name
        self.fields = tuple(fields)

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self._value(scope, tracker)
        tracker.spend(STRUCT_BASE)
        return value

    def _value(self, scope: Scope, tracker: Tracker) -> Value:
        given: dict[str, Value] = {}
        for name, step, optional in self.fields:
            value = step.eval(scope, tracker)
            if type(value) is Err:
                return value
            if optional and type(value) is not Optional:
                return Err(
                    f"cannot initialize optional entry '{name}' from non-optional value "
                    f"{go_text(value)}"
                )
            if optional and not value.present:
                given.pop(name, None)
                continue
            given[name] = value.value if optional else value
        return make_message(self.type_name, given)


class Membership:
    """`x in [constants]`, as a set; it costs only what `x` costs."""

    __slots__ = ("arg", "members")

    def __init__(self, arg: Step, members: frozenset[object]) -> None:
        self.arg = arg
        self.members = members

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.arg.eval(scope, tracker)
        return value if type(value) is Err else encode_key(value) in self.members


class OptionalOr:
    """`a.or(b)` and `a.orValue(b)`: the second is evaluated only if it is needed."""

    __slots__ = ("left", "right", "unwraps")

    def __init__(self, left: Step, right: Step, *, unwraps: bool) -> None:
        self.left = left
        self.right = right
        self.unwraps = unwraps

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.left.eval(scope, tracker)
        if type(value) is Optional:
            if not value.present:
                value = self.right.eval(scope, tracker)
            elif self.unwraps:
                value = value.value
        return value


class Fold:
    """A comprehension: folds the elements of a range into an accumulator."""

    __slots__ = ("accu", "condition", "iter_range", "names", "result", "step")

    def __init__(
        self,
        names: tuple[str, str, str],
        *,
        iter_range: Step,
        accu: Step,
        condition: Step,
        step: Step,
        result: Step,
    ) -> None:
        self.names = names
        self.iter_range = iter_range
        self.accu = accu
        self.condition = condition
        self.step = step
        self.result = result

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        over = self.iter_range.eval(scope, tracker)
        return over if type(over) is Err else self._fold(over, scope, tracker)

    def _fold(self, over: Value, scope: Scope, tracker: Tracker) -> Value:
        two = self.names[1] != ""
        if not isinstance(over, (list, dict)):
            if two:
                return Err(f"unsupported comprehension range type: {go_name(over)}")
            return Err(f"got '{go_name(over)}', expected iterable type")
        folding = Folding(self, scope)
        for folding.first, folding.second in _entries(over, two=two):
            condition = self.condition.eval(folding, tracker)
            if condition is False:
                break
            folding.accumulated = self.step.eval(folding, tracker)
            folding.started = True
        folding.finished = True
        value = self.result.eval(folding, tracker)
        if type(value) is MutableList:
            return list(value)
        return dict(value) if type(value) is MutableMap else value


def _entries(
    over: list[Value] | dict[object, Value], *, two: bool
) -> Iterator[tuple[Value, Value]]:
    if isinstance(over, list):
        return iter(list(enumerate(over))) if two else ((value, None) for value in over)
    if two:
        return iter([(decode_key(key), value) for key, value in over.items()])
    return ((key, None) for key in keys_of(over))


class Folding:
    """The scope inside a fold: its accumulator, made when first asked for, and its variables."""

    __slots__ = ("accumulated", "finished", "first", "fold", "outer", "second", "started")

    def __init__(self, fold: Fold, outer: Scope) -> None:
        self.fold = fold
        self.outer = outer
        self.started = False
        self.finished = False
        self.accumulated: Value = None
        self.first: Value = None
        self.second: Value = None

    def resolve(self, name: str, tracker: Tracker) -> Value:
        first, second, accumulator = self.fold.names
        if name == accumulator:
            return self._accumulator(tracker)
        if not self.finished:
            if name == first:
                return self.first
            if name == second:
                return self.second
        return self.outer.resolve(name, tracker)

    def _accumulator(self, tracker: Tracker) -> Value:
        if not self.started:
            self.started = True
            value = self.fold.accu.eval(self.outer, tracker)
            if isinstance(value, list) and not value:
                value = MutableList()
            elif isinstance(value, dict) and not value:
                value = MutableMap()
            self.accumulated = value
        return self.accumulated
