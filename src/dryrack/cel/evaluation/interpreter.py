"""
Evaluation of an expression, step by step, in upstream's order and at upstream's price.

Errors are values. `&&`, `||` and what the quantifier macros expand to look at both sides
before they let an error through; every other step passes on the first error that it is given.
Every step reports to the tracker, which may cancel the evaluation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.cost_factors import LIST_BASE, MAP_BASE, STRUCT_BASE
from dryrack.cel.evaluation.attributes import (
    Attribute,
    ConditionalAttribute,
    LocalAttribute,
    Scope,
    Step,
)
from dryrack.cel.evaluation.runtime_cost import (
    COST_LIMIT,
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
from dryrack.cel.parsing.depth import SHALLOW, raised_recursion_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


CANCELLED = "operation cancelled: actual cost limit exceeded"


def evaluate(step: Step, scope: Scope, depth: int) -> tuple[Value, int]:
    """The value of a planned expression, or its error; and what that cost."""
    tracker = Tracker()
    try:
        if depth <= SHALLOW:
            return step.eval(scope, tracker), tracker.cost
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

    def resolve(self, name: str) -> Value:
        return self.values[name].copy()


class Constant:
    __slots__ = ("id", "value")

    def __init__(self, node_id: int, value: Value) -> None:
        self.id = node_id
        self.value = value

    def eval(self, _scope: Scope, tracker: Tracker) -> Value:
        if tracker.stacked:
            tracker.push(self.id, self.value)
        return self.value


class AttributeStep:
    """Resolves an attribute; with a `test_id`, says whether its last qualifier is there."""

    __slots__ = ("_settled", "attribute", "test_id")

    def __init__(self, attribute: Attribute, test_id: int | None = None) -> None:
        self.attribute = attribute
        self.test_id = test_id
        self._settled: tuple[tuple[int, ...], int, int] | None = None

    @property
    def id(self) -> int:
        return self.attribute.id if self.test_id is None else self.test_id

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.attribute.resolve(scope, tracker)
        if self.test_id is not None and type(value) is Optional:
            value = value.present
        dropped, cost, own_id = self._settled or self._settle()
        for node_id in dropped:
            tracker.drop(node_id)
        tracker.cost += cost
        tracker.push(own_id, value)
        return value

    def _settle(self) -> tuple[tuple[int, ...], int, int]:
        """The ids of its parts, its price and its own id; it grows no more when it is evaluated."""
        attribute = self.attribute
        cost = 1 if self.test_id is None else 0
        parts: tuple[int, ...] = (attribute.id,)
        if isinstance(attribute, ConditionalAttribute):
            parts = (attribute.falsy.id, attribute.truthy.id, attribute.condition.id)
            cost -= 1
        self._settled = parts, cost, self.id
        return self._settled


class LocalStep(AttributeStep):
    """A variable of a macro by itself."""

    __slots__ = ("name",)

    def __init__(self, attribute: LocalAttribute) -> None:
        super().__init__(attribute)
        self.name = attribute.name

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = tracker.variables.get(self.name)
        if value is None or tracker.stacked or type(value) is Optional:
            return super().eval(scope, tracker)
        tracker.cost += 1
        if tracker.cost > COST_LIMIT:
            raise CostLimitExceededError
        return value


class Call:
    """
    A function on its arguments.

    With `stops`, the first argument that fails is the result and the rest are not evaluated;
    otherwise all are, and the first failure among them is the result.
    """

    __slots__ = ("arg_ids", "args", "cost", "id", "priced_first", "run", "stops", "strict", "where")

    def __init__(
        self,
        node_id: int,
        where: tuple[str, str],
        args: Sequence[Step],
        *,
        run: Callable[..., Value],
        stops: bool,
        strict: bool = True,
    ) -> None:
        self.id = node_id
        self.where = where
        self.args = tuple(args)
        self.arg_ids = [arg.id for arg in args]
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
        elif self.priced_first:
            # The work can be in the square of the sizes: it is not begun if it cannot be paid.
            tracker.check(self.cost(values, None))
            value = self.run(*values)
        else:
            value = self.run(*values)
        if tracker.stacked:
            arguments = tracker.drop_arguments(self.arg_ids)
        else:
            arguments = values if len(values) == len(self.args) else None
        if arguments is not None:
            tracker.cost += 1 if self.cost is one else self.cost(arguments, value)
        tracker.push(self.id, value)
        return value


class Equality(Call):
    __slots__ = ()

    def __init__(self, node_id: int, args: Sequence[Step], *, negated: bool) -> None:
        where = ("_!=_", "not_equals") if negated else ("_==_", "equals")
        run = _not_equal if negated else equal
        super().__init__(node_id, where, args, run=run, stops=False)


def _not_equal(left: Value, right: Value) -> bool:
    # A comparison that fails is not an equality, and so is an inequality.
    return equal(left, right) is not True


class Logic:
    """`&&` (decided by False) or `||` (decided by True), in either order of evaluation."""

    __slots__ = ("decisive", "id", "terms")

    def __init__(self, node_id: int, terms: Sequence[Step], *, decisive: bool) -> None:
        self.id = node_id
        self.terms = tuple(terms)
        self.decisive = decisive

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        result: Value = not self.decisive
        for term in self.terms:
            value = term.eval(scope, tracker)
            if value is self.decisive:
                result = value
                break
            result = _join_undecided(result, value)
        if tracker.stacked:
            for term in self.terms:
                tracker.drop(term.id)
            tracker.push(self.id, result)
        return result


def _join_undecided(result: Value, undecided: Value) -> Value:
    """Return the result after a term that does not decide; the first failure stays."""
    if type(undecided) is bool or type(result) is not bool:
        return result
    return undecided if type(undecided) is Err else Err("no such overload")


class ListStep:
    __slots__ = ("element_ids", "elements", "id", "optional")

    def __init__(self, node_id: int, elements: Sequence[Step], optional: frozenset[int]) -> None:
        self.id = node_id
        self.elements = tuple(elements)
        self.element_ids = [element.id for element in elements]
        self.optional = optional

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self._value(scope, tracker)
        tracker.drop_arguments(self.element_ids)
        tracker.cost += LIST_BASE
        tracker.push(self.id, value)
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
    __slots__ = ("entries", "entry_ids", "id")

    def __init__(self, node_id: int, entries: Sequence[tuple[Step, Step, bool]]) -> None:
        self.id = node_id
        self.entries = tuple(entries)
        self.entry_ids = [step.id for entry in entries for step in entry[:2]]

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self._value(scope, tracker)
        tracker.drop_arguments(self.entry_ids)
        tracker.cost += MAP_BASE
        tracker.push(self.id, value)
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

    __slots__ = ("fields", "id", "type_name", "value_ids")

    def __init__(
        self, node_id: int, type_name: str, fields: Sequence[tuple[str, Step, bool]]
    ) -> None:
        self.id = node_id
        self.type_name = type_name
        self.fields = tuple(fields)
        self.value_ids = [step.id for _name, step, _optional in fields]

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self._value(scope, tracker)
        tracker.drop_arguments(self.value_ids)
        tracker.cost += STRUCT_BASE
        tracker.push(self.id, value)
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

    __slots__ = ("arg", "id", "members")

    def __init__(self, node_id: int, arg: Step, members: frozenset[object]) -> None:
        self.id = node_id
        self.arg = arg
        self.members = members

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.arg.eval(scope, tracker)
        if type(value) is not Err:
            value = encode_key(value) in self.members
        tracker.push(self.id, value)
        return value


class OptionalOr:
    """
    `a.or(b)` and `a.orValue(b)`: the second is evaluated only if it is needed.

    `other` is the result if `a` is no optional; None stands for `a` itself.
    """

    __slots__ = ("id", "left", "other", "right", "unwraps")

    def __init__(
        self, node_id: int, left: Step, right: Step, *, unwraps: bool, other: Err | None
    ) -> None:
        self.id = node_id
        self.left = left
        self.right = right
        self.unwraps = unwraps
        self.other = other

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.left.eval(scope, tracker)
        if type(value) is Optional:
            if not value.present:
                value = self.right.eval(scope, tracker)
            elif self.unwraps:
                value = value.value
        elif self.other is not None and type(value) is not Err:
            value = self.other
        tracker.push(self.id, value)
        return value


class Fold:
    """
    A comprehension: folds the elements of a range into an accumulator.

    With `stacks`, what one iteration leaves on the tracker's stack may be the price of another.
    """

    __slots__ = ("condition", "id", "iter_range", "names", "result", "stacks", "step")

    def __init__(
        self,
        node_id: int,
        names: tuple[str, str, str],
        *,
        iter_range: Step,
        condition: Step,
        step: Step,
        result: Step,
        stacks: bool,
    ) -> None:
        self.id = node_id
        self.names = names
        self.iter_range = iter_range
        self.condition = condition
        self.step = step
        self.result = result
        self.stacks = stacks

    def eval(self, scope: Scope, tracker: Tracker) -> Value:
        if self.stacks and not tracker.stacked:
            tracker.stacked = True
            value = self.eval(scope, tracker)
            tracker.unstack()
            return value
        over = self.iter_range.eval(scope, tracker)
        value = over if type(over) is Err else self._fold(over, scope, tracker)
        tracker.drop(self.iter_range.id)
        tracker.push(self.id, value)
        return value

    def _fold(self, over: Value, scope: Scope, tracker: Tracker) -> Value:
        first, second, accumulator = self.names
        two = second != ""
        if not isinstance(over, (list, dict)):
            if two:
                return Err(f"unsupported comprehension range type: {go_name(over)}")
            return Err(f"got '{go_name(over)}', expected iterable type")
        if type(self.step) is Logic and not two and not tracker.stacked:
            return self._quantify(self.step, over, scope, tracker)
        variables = tracker.variables
        variables.pop(accumulator, None)
        for variables[first], variables[second] in _entries(over, two=two):
            if self.condition.eval(scope, tracker) is False:
                break
            variables[accumulator] = self.step.eval(scope, tracker)
        value = self.result.eval(scope, tracker)
        if type(value) is MutableList:
            return list(value)
        return dict(value) if type(value) is MutableMap else value

    def _quantify(
        self, step: Logic, over: list[Value] | dict[object, Value], scope: Scope, tracker: Tracker
    ) -> Value:
        """`all` or `exists` as a plain loop: all that the macro added to it has a fixed price."""
        decisive = step.decisive
        predicate = step.terms[1]
        name = self.names[0]
        # The condition is the accumulator in one call, or for `exists` in two.
        condition_cost = 3 if decisive else 2
        result: Value = not decisive
        variables = tracker.variables
        for variables[name] in over if isinstance(over, list) else keys_of(over):
            if result is decisive:
                tracker.charge_ones(condition_cost)
                break
            tracker.charge_ones(condition_cost + 1)
            value = predicate.eval(scope, tracker)
            result = decisive if value is decisive else _join_undecided(result, value)
        tracker.charge_ones(1)
        return result


def _entries(
    over: list[Value] | dict[object, Value], *, two: bool
) -> Iterator[tuple[Value, Value]]:
    if isinstance(over, list):
        return iter(list(enumerate(over))) if two else ((value, None) for value in over)
    if two:
        return iter([(decode_key(key), value) for key, value in over.items()])
    return ((key, None) for key in keys_of(over))
