"""
The counting tier: for expressions that may exceed the cost limit.

It is the exact tier written out as Python statements with one counter. Without errors, and
without the few steps that leave something behind on the exact tier's stack, the price of a
step follows from its arguments alone, so no stack is needed. Whatever raises, other than the
limit itself, is left to the exact tier; the limit, once exceeded, is exceeded there too,
because cost only ever rises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.cel import attributes as paths
from dryrack.cel import interpreter as steps
from dryrack.cel.emission import (
    Names,
    Unsupported,
    fast_call,
    look_up_or_raise,
    presence_or_raise,
)
from dryrack.cel.folds import iterate_dyn_or_raise, plain_or_raise
from dryrack.cel.functions.arithmetic import OPERATORS
from dryrack.cel.functions.equality import equal
from dryrack.cel.runtime_cost import COST_LIMIT, LIST_COST, CostLimitExceededError, costs_one
from dryrack.cel.values import INT_MAX, INT_MIN, MutableList, MutableMap, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.attributes import Attribute, Qualifier, Step

_INT_OPERATORS = {"_+_": "+", "_-_": "-", "_*_": "*"}
_ORDERS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
# Loops and branches; Python's own parser allows a hundred levels of indentation.
_DEPTH_MAX = 60


def count(step: Step) -> Callable[[Value], Value] | None:
    """
    Make a function from the variable `device` to the result; None if it cannot be.

    It raises `CostLimitExceededError` if that is the end of it, and anything else to say that
    the exact tier must be asked.
    """
    writer = _Writer()
    try:
        result = writer.step(step)
        writer.flush()
        body = "\n".join(writer.lines)
        source = (
            f"def counted(device):\n k = 0\n{body}\n"
            f" if k > {COST_LIMIT}: raise over\n return {result}\n"
        )
        code = compile(source, "<selector>", "exec")
    except (Unsupported, SyntaxError, MemoryError, RecursionError):
        return None
    namespace: dict[str, Any] = {**writer.names.constants, "over": CostLimitExceededError}
    exec(code, namespace)
    made: Callable[[Value], Value] = namespace["counted"]
    return made


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


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names = Names()
        self._indent = 1
        self._pending = 0
        self._scopes: list[dict[str, str]] = [{"device": "device"}]

    # Lines, and the cost that is known without running.

    def _line(self, text: str) -> None:
        if self._indent > _DEPTH_MAX:
            raise Unsupported("nested too deeply")
        self.lines.append(" " * self._indent + text)

    def flush(self) -> None:
        if self._pending:
            self._line(f"k += {self._pending}")
            self._pending = 0

    def _assign(self, code: str) -> str:
        name = self.names.temporary()
        self._line(f"{name} = {code}")
        return name

    # Steps: each leaves its value in the name that is returned.

    def step(self, step: Step) -> str:
        match step:
            case steps.Constant():
                # In parentheses a number can be asked for its class.
                return f"({self.names.literal_or_constant(step.value)})"
            case steps.AttributeStep():
                return self._attribute_step(step)
            case steps.Call():
                return self._call(step)
            case steps.Logic():
                return self._logic(step)
            case steps.ListStep() if not step.optional:
                elements = [self.step(element) for element in step.elements]
                self._pending += LIST_COST
                return self._assign(f"[{', '.join(elements)}]")
            case steps.Fold():
                return self._fold(step)
            case _:
                raise Unsupported("a step that leaves something behind")

    def _attribute_step(self, step: steps.AttributeStep) -> str:
        value = self._resolve(step.attribute)
        if not isinstance(step.attribute, paths.ConditionalAttribute):
            self._pending += 1
        if step.test_id is not None:
            self._pending -= 1
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
        self._pending += 1
        if isinstance(qualifier, paths.ConstantQualifier):
            key = self.names.literal_or_constant(qualifier.key)
            look = presence_or_raise if qualifier.test_only else look_up_or_raise
            return self._assign(f"{self.names.constant(look)}({value}, {key})")
        key = self._resolve(qualifier.attribute)
        return self._assign(f"{self.names.constant(look_up_or_raise)}({value}, {key})")

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
        listed = ", ".join(args)
        cost = None if costs_one(step.cost) else self.names.constant(step.cost)
        if step.priced_first and cost is not None:
            self.flush()
            self._line(f"if k + {cost}(({listed},), None) > {COST_LIMIT}: raise over")
        value = self._applied(step, args)
        if cost is None:
            self._pending += 1
        elif step.where[0] in ("_==_", "_!=_"):
            self._line(f"k += 1 if {args[0]}.__class__ is int else {cost}(({listed},), {value})")
        else:
            self._line(f"k += {cost}(({listed},), {value})")
        return value

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
        if second or not isinstance(fold.accu, steps.Constant):
            raise Unsupported("two variables, or an accumulator made on demand")
        over = self.step(fold.iter_range)
        make = self.names.constant(_mutable_if_empty)
        accumulated = self._assign(f"{make}({self.step(fold.accu)})")
        element = self.names.temporary()
        self.flush()
        self._line(f"for {element} in {self.names.constant(iterate_dyn_or_raise)}({over}):")
        self._indent += 1
        self._scopes.append({first: element, accumulator: accumulated})
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
        self._line(f"if k > {COST_LIMIT}: raise over")


assert set(_INT_OPERATORS) | set(_ORDERS) <= set(OPERATORS), "the shortcuts are of operators"
