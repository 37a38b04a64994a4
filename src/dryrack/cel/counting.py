"""
The counting tier: for expressions that may be expensive.

It is the exact tier written out as Python statements with one counter. Without errors, and
without the few steps that leave something behind on the exact tier's stack, the price of a
step follows from its arguments alone, so no stack is needed. Whatever raises, other than the
limit itself, is left to the exact tier.

Cost only ever rises, so it is added up and compared with the limit once for many steps. If it
is too high then, the steps are gone through again, one by one, for the one at which the exact
tier stops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.cel import attributes as paths
from dryrack.cel import interpreter as steps
from dryrack.cel.emission import (
    Names,
    Unsupported,
    fast_call,
    look_up_or_raise,
    presence_or_raise,
)
from dryrack.cel.folds import entries_or_raise, iterate_dyn_or_raise, plain_or_raise
from dryrack.cel.functions.arithmetic import OPERATORS
from dryrack.cel.functions.equality import equal
from dryrack.cel.runtime_cost import COST_LIMIT, LIST_COST, CostLimitExceededError, costs_one
from dryrack.cel.values import INT_MAX, INT_MIN, MutableList, MutableMap, Value, encode_key, size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.attributes import Attribute, Qualifier, Step

    Counted: TypeAlias = Callable[[Value], tuple[Value, int]]

_INT_OPERATORS = {"_+_": "+", "_-_": "-", "_*_": "*"}
_ORDERS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
# Loops and branches; Python's own parser allows a hundred levels of indentation.
_DEPTH_MAX = 60
# What is made of more than this is made when the expression runs, if it can be paid.
_FOLDED_SIZE_MAX = 1000


def count(step: Step) -> Counted | None:
    """
    Make a function from the variable `device` to the result and its cost; None if it cannot be.

    It raises `CostLimitExceededError` if that is the end of it, and anything else to say that
    the exact tier must be asked.
    """
    writer = _Writer()
    try:
        result = writer.step(step)
        writer.flush()
        body = "\n".join(writer.lines)
        source = f"def counted(device):\n k = 0\n{body}\n return {result}, k\n"
        code = compile(source, "<selector>", "exec")
    except (Unsupported, SyntaxError, MemoryError, RecursionError):
        return None
    namespace: dict[str, Any] = {**writer.names.constants, "over": _over}
    exec(code, namespace)
    made: Counted = namespace["counted"]
    return made


def _over(total: int, *prices: int) -> CostLimitExceededError:
    """The end of an evaluation whose last steps had these prices, and cost too much in all."""
    cost = total - sum(prices)
    for price in prices:
        cost += price
        if cost > COST_LIMIT:
            break
    return CostLimitExceededError(cost)


def _are_integers(args: list[str]) -> str:
    return " and ".join(f"{arg}.__class__ is int" for arg in args)


def _mutable_if_empty(value: Value) -> Value:
    if isinstance(value, list) and not value:
        return MutableList()
    if isinstance(value, dict) and not value:
        return MutableMap()
    return plain_or_raise(value)


def _finished(value: Value) -> Value:
    if type(value) is MutableList:
        return list(value)
    return dict(value) if type(value) is MutableMap else value


def _sum(prices: list[str]) -> str:
    """The prices that are known as one number, and the names of the others."""
    known = sum(int(price) for price in prices if price.isdigit())
    return " + ".join([str(known), *(price for price in prices if not price.isdigit())])


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = Names()
        self._indent = 1
        self._pending: list[str] = []
        self._known: dict[str, Value] = {}
        self._scopes: list[dict[str, str]] = [{"device": "device"}]

    # Lines, and the prices of the steps since cost was last compared with the limit.

    def _line(self, text: str) -> None:
        if self._indent > _DEPTH_MAX:
            raise Unsupported("nested too deeply")
        self.lines.append(" " * self._indent + text)

    def flush(self) -> None:
        if self._pending:
            self._line(f"k += {_sum(self._pending)}")
            self._line(f"if k > {COST_LIMIT}: raise over(k, {', '.join(self._pending)})")
            self._pending = []

    def _charge(self, price: int | str) -> None:
        self._pending.append(str(price))

    def _assign(self, code: str) -> str:
        name = self.names.temporary()
        self._line(f"{name} = {code}")
        return name

    # Steps: each leaves its value in the name that is returned.

    def step(self, step: Step) -> str:
        match step:
            case steps.Constant():
                return self._constant(step.value)
            case steps.AttributeStep():
                return self._attribute_step(step)
            case steps.Call():
                return self._call(step)
            case steps.Logic():
                return self._logic(step)
            case steps.ListStep() if not step.optional:
                elements = [self.step(element) for element in step.elements]
                self._charge(LIST_COST)
                return self._assign(f"[{', '.join(elements)}]")
            case steps.Fold():
                return self._fold(step)
            case steps.Membership():
                members, key = self.names.constant(step.members), self.names.constant(encode_key)
                return self._assign(f"{key}({self.step(step.arg)}) in {members}")
            case _:
                raise Unsupported("a step that leaves something behind")

    def _constant(self, value: Value) -> str:
        # In parentheses a number can be asked for its class.
        name = f"({self.names.literal_or_constant(value)})"
        self._known[name] = value
        return name

    def _attribute_step(self, step: steps.AttributeStep) -> str:
        value = self._resolve(step.attribute)
        if isinstance(step.attribute, paths.ConditionalAttribute):
            if step.test_id is not None:
                raise Unsupported("a step that lowers the cost")
        elif step.test_id is None:
            self._charge(1)
        return value

    def _resolve(self, attribute: Attribute) -> str:
        if isinstance(attribute, paths.ConditionalAttribute):
            return self._conditional(attribute)
        if isinstance(attribute, paths.VariableAttribute):
            value = self._variable(attribute.name)
        else:
            start = self.names.constant(plain_or_raise)
            value = self._assign(f"{start}({self.step(attribute.operand)})")
        for qualifier in attribute.qualifiers:
            value = self._qualify(value, qualifier)
        return value

    def _variable(self, name: str) -> str:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        raise Unsupported("an unknown variable")

    def _qualify(self, value: str, qualifier: Qualifier) -> str:
        if qualifier.optional:
            raise Unsupported("an optional path")
        look = look_up_or_raise
        if isinstance(qualifier, paths.ConstantQualifier):
            key = self.names.literal_or_constant(qualifier.key)
            look = presence_or_raise if qualifier.test_only else look_up_or_raise
        else:
            key = self._resolve(qualifier.attribute)
        self._charge(1)
        return self._assign(f"{self.names.constant(look)}({value}, {key})")

    def _conditional(self, attribute: paths.ConditionalAttribute) -> str:
        # Under a name, because Python warns of `1 is True`.
        condition = self._assign(self.step(attribute.condition))
        self.flush()
        chosen = self.names.temporary()
        for truth, branch in ((True, attribute.truthy), (False, attribute.falsy)):
            self._line(f"{'if' if truth else 'elif'} {condition} is {truth}:")
            self._indent += 1
            self._line(f"{chosen} = {self._resolve(branch)}")
            self.flush()
            self._indent -= 1
        self._line("else: raise TypeError")
        return chosen

    def _logic(self, step: steps.Logic) -> str:
        first, second = step.terms
        value = self.names.temporary()
        self._line(f"{value} = {self.step(first)}")
        self.flush()
        self._line(f"if {value} is {not step.decisive}:")
        self._indent += 1
        self._line(f"{value} = {self.step(second)}")
        self.flush()
        self._line(f"if {value}.__class__ is not bool: raise TypeError")
        self._indent -= 1
        self._line(f"elif {value} is not {step.decisive}: raise TypeError")
        return value

    def _call(self, step: steps.Call) -> str:
        args = [self.step(arg) for arg in step.args]
        if not step.priced_first and all(arg in self._known for arg in args):
            folded = self._folded(step, [self._known[arg] for arg in args])
            if folded is not None:
                return folded
        listed = ", ".join(args)
        cost = None if costs_one(step.cost) else self.names.constant(step.cost)
        if step.priced_first and cost is not None:
            self.flush()
            price = self._assign(f"{cost}(({listed},), None)")
            self._line(f"if k + {price} > {COST_LIMIT}: raise over(k + {price}, {price})")
        value = self._applied(step, args)
        if cost is None:
            self._charge(1)
        elif step.where[0] in ("_==_", "_!=_"):
            price = f"1 if {args[0]}.__class__ is int else {cost}(({listed},), {value})"
            self._charge(self._assign(price))
        else:
            self._charge(self._assign(f"{cost}(({listed},), {value})"))
        return value

    def _folded(self, step: steps.Call, values: list[Value]) -> str | None:
        """A call that is the same every time; None if that is a failure, or too much to do now."""
        if any(size_of(value) > _FOLDED_SIZE_MAX for value in values):
            return None
        try:
            result = fast_call(step.run)(*values)
            price = step.cost(values, result)
        except Exception:  # noqa: BLE001 - it happens when the expression runs, or not at all
            return None
        self._charge(price)
        return self._constant(result)

    def _applied(self, step: steps.Call, args: list[str]) -> str:
        """Integers have a shortcut, because bombs are made of them."""
        function = step.where[0]
        if function == "@not_strictly_false":
            return self._assign(f"{args[0]} if {args[0]}.__class__ is bool else True")
        run = self.names.constant(fast_call(equal if function == "_==_" else step.run))
        if len(args) == 2 and function in _INT_OPERATORS:
            return self._integers(_INT_OPERATORS[function], run, args)
        general = f"{run}({', '.join(args)})"
        if len(args) == 2 and function in _ORDERS:
            left, right = args
            return self._assign(
                f"{left} {_ORDERS[function]} {right} if {_are_integers(args)} else {general}"
            )
        return self._assign(general)

    def _integers(self, operator: str, run: str, args: list[str]) -> str:
        left, right = args
        value = self.names.temporary()
        self._line(f"if {_are_integers(args)}:")
        self._line(f" {value} = {left} {operator} {right}")
        self._line(f" if not {INT_MIN} <= {value} <= {INT_MAX}: raise OverflowError")
        self._line(f"else: {value} = {run}({left}, {right})")
        return value

    # Folds.

    def _fold(self, fold: steps.Fold) -> str:
        first, second, accumulator = fold.names
        if not isinstance(fold.accu, steps.Constant):
            raise Unsupported("an accumulator made on demand")
        over = self.step(fold.iter_range)
        make = self.names.constant(_mutable_if_empty)
        accumulated = self._assign(f"{make}({self.step(fold.accu)})")
        element, other = self.names.temporary(), self.names.temporary()
        target = f"{element}, {other}" if second else element
        entries = self.names.constant(entries_or_raise if second else iterate_dyn_or_raise)
        self.flush()
        self._line(f"for {target} in {entries}({over}):")
        self._indent += 1
        # The accumulator hides a variable of the same name, and the first variable the second.
        self._scopes.append({second: other, first: element, accumulator: accumulated})
        self._iteration(fold, accumulated)
        self._indent -= 1
        self._scopes[-1] = {accumulator: accumulated}
        result = self.step(fold.result)
        self._scopes.pop()
        return self._assign(f"{self.names.constant(_finished)}({result})")

    def _iteration(self, fold: steps.Fold, accumulated: str) -> None:
        condition = self.step(fold.condition)
        self.flush()
        self._line(f"if {condition} is False: break")
        stepped = self.step(fold.step)
        if not isinstance(fold.step, steps.Logic):
            stepped = f"{self.names.constant(plain_or_raise)}({stepped})"
        self._line(f"{accumulated} = {stepped}")
        self.flush()


assert set(_INT_OPERATORS) | set(_ORDERS) <= set(OPERATORS), "the shortcuts are of operators"
