"""
Turns a checked expression into steps, with the shortcuts that Kubernetes takes.

What is constant is computed now: lists and maps of constants, conversions of constants, sets
for `in`, patterns of regular expressions. Such a step costs nothing when the expression runs,
and an error in it is an error of the expression, not of a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.cel.checking import types as t
from dryrack.cel.evaluation.attributes import (
    Attribute,
    ComputedQualifier,
    ConditionalAttribute,
    ConstantQualifier,
    LocalAttribute,
    RelativeAttribute,
    Step,
    VariableAttribute,
    unwrap,
)
from dryrack.cel.evaluation.dispatch import Style, bind
from dryrack.cel.evaluation.interpreter import (
    AttributeStep,
    Call,
    Constant,
    Equality,
    Fold,
    ListStep,
    LocalStep,
    Logic,
    MapStep,
    Membership,
    MessageStep,
    OptionalOr,
    Variables,
)
from dryrack.cel.evaluation.runtime_cost import Tracker
from dryrack.cel.evaluation.values import (
    INT_MAX,
    UINT_MAX,
    Err,
    Optional,
    TypeValue,
    Value,
    encode_key,
    go_name,
    no_such_overload,
)
from dryrack.cel.functions.conversions import double_to_int
from dryrack.cel.functions.messages import KNOWN
from dryrack.cel.functions.strings import compile_pattern, search_all, search_first
from dryrack.cel.mutation import is_patch_type
from dryrack.cel.parsing import ast
from dryrack.cel.parsing.ast import Uint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cel.checking.checker import Checked
    from dryrack.cel.checking.environment import Environment

_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
_NOTHING = Variables({})


def _keep(value: Value) -> Value:
    return value


class PlanError(Exception):
    """The expression compiles but cannot be made into a program."""


class Planner:
    def __init__(self, checked: Checked, env: Environment) -> None:
        self._types = checked.types
        self._references = checked.references
        self._functions = env.functions
        self._identifiers = env.identifiers
        self._behaviour = env.behaviour
        # What a path that starts from an optional sees of its value.
        self._opened = _keep if env.behaviour.optionals_keep_values else unwrap
        # Variables of macros: the name of each in a run, and the step that makes an accumulator.
        self._locals: dict[str, tuple[str, Step | None]] = {}
        # How many calls have three arguments or more, and stop at the first that fails.
        self._wide = 0

    def plan(self, expr: ast.Expr) -> Step:
        match expr:
            case ast.Literal():
                return Constant(expr.id, expr.value)
            case ast.Ident():
                return self._ident(expr)
            case ast.Select():
                path = self._path(self.plan(expr.operand))
                path.attribute.add(
                    ConstantQualifier(expr.id, expr.field, optional=False, test_only=expr.test_only)
                )
                return AttributeStep(path.attribute, expr.id) if expr.test_only else path
            case ast.Call():
                operands = expr.args if expr.target is None else (expr.target, *expr.args)
                args = []
                for operand in operands:
                    args.append(self.plan(operand))  # noqa: PERF401 - a comprehension costs a frame more
                special = _SPECIAL.get(expr.function)
                return self._function(expr, args) if special is None else special(self, expr, args)
            case ast.ListLiteral():
                return self._list(expr)
            case ast.MapLiteral():
                return self._map(expr)
            case ast.Comprehension():
                return self._fold(expr)
            case ast.StructLiteral():
                if expr.type_name not in KNOWN and not is_patch_type(expr.type_name):
                    raise PlanError(f"unknown type: {expr.type_name}")
                fields = []
                for field in expr.fields:
                    fields.append((field.name, self.plan(field.value), field.optional))  # noqa: PERF401
                return MessageStep(expr.id, expr.type_name, fields)

    def _ident(self, expr: ast.Ident) -> Step:
        declared = self._types[expr.id]
        if declared.kind is not t.Kind.TYPE:
            if expr.name in self._locals:
                return LocalStep(LocalAttribute(expr.id, *self._locals[expr.name], self._opened))
            return AttributeStep(VariableAttribute(expr.id, expr.name, self._opened))
        if expr.name not in self._identifiers:
            raise PlanError(f"reference to undefined type: {expr.name}")
        return Constant(expr.id, TypeValue(declared.parameters[0].runtime_name))

    def _path(self, step: Step) -> AttributeStep:
        """The step as a path that qualifiers can be added to."""
        if isinstance(step, LocalStep):
            return AttributeStep(step.attribute)
        if isinstance(step, AttributeStep):
            return step
        return AttributeStep(RelativeAttribute(step.id, step, self._opened))

    def _and(self, expr: ast.Call, args: list[Step]) -> Step:
        return Logic(expr.id, args, decisive=False)

    def _or(self, expr: ast.Call, args: list[Step]) -> Step:
        return Logic(expr.id, args, decisive=True)

    def _equal(self, expr: ast.Call, args: list[Step]) -> Step:
        return Equality(expr.id, args, negated=expr.function == "_!=_")

    def _conditional(self, expr: ast.Call, args: list[Step]) -> Step:
        condition, truthy, falsy = args
        branches = {"truthy": self._branch(truthy), "falsy": self._branch(falsy)}
        return AttributeStep(ConditionalAttribute(expr.id, condition, **branches))

    def _branch(self, step: Step) -> Attribute:
        if isinstance(step, AttributeStep):
            return step.attribute
        return RelativeAttribute(step.id, step, self._opened)

    def _index(self, expr: ast.Call, args: list[Step]) -> Step:
        path = self._path(args[0])
        index = args[1]
        optional = expr.function != "_[_]"
        qualifier: ConstantQualifier | ComputedQualifier
        if isinstance(index, Constant):
            _check_qualifier(index.value)
            qualifier = ConstantQualifier(expr.id, index.value, optional=optional, test_only=False)
        elif isinstance(index, AttributeStep):
            qualifier = ComputedQualifier(
                expr.id, index.attribute, optional=optional, relative=False
            )
        else:
            relative = RelativeAttribute(expr.id, index, self._opened)
            qualifier = ComputedQualifier(expr.id, relative, optional=optional, relative=True)
        path.attribute.add(qualifier)
        return path

    def _optional_or(self, expr: ast.Call, args: list[Step]) -> Step:
        other = no_such_overload() if self._behaviour.or_needs_optional else None
        unwraps = expr.function == "orValue"
        return OptionalOr(expr.id, args[0], args[1], unwraps=unwraps, other=other)

    def _function(self, expr: ast.Call, args: list[Step]) -> Step:
        ids = self._references[expr.id].overload_ids
        overload = ids[0] if len(ids) == 1 else ""
        binding = bind(expr.function, ids, self._functions[expr.function])
        if overload == "in_list" and isinstance(args[1], Constant):
            member = _membership(expr.id, args[0], args[1].value)
            if member is not None:
                return member
        run = binding.implementation
        stops = binding.style is Style.FIRST_FAILURE
        pattern = _compiled(expr.function, args)
        if pattern is not None:
            run = pattern
            stops = True
        self._wide += stops and len(args) > 2
        call = Call(
            expr.id, (expr.function, overload), args, run=run, stops=stops, strict=binding.strict
        )
        folds = expr.function in _CONVERSIONS and len(args) == 1 and isinstance(args[0], Constant)
        return _fold(call) if folds else call

    def _list(self, expr: ast.ListLiteral) -> Step:
        elements = []
        for element in expr.elements:
            elements.append(self.plan(element))  # noqa: PERF401 - as in _call
        step = ListStep(expr.id, elements, frozenset(expr.optional_indices))
        if all(isinstance(element, Constant) for element in elements):
            return Constant(expr.id, step.eval(_NOTHING, Tracker()))
        return step

    def _map(self, expr: ast.MapLiteral) -> Step:
        entries = []
        for entry in expr.entries:
            key = self.plan(entry.key)
            entries.append((key, self.plan(entry.value), entry.optional))
        step = MapStep(expr.id, entries)
        if all(isinstance(part, Constant) for entry in entries for part in entry[:2]):
            return Constant(expr.id, step.eval(_NOTHING, Tracker()))
        return step

    def _fold(self, expr: ast.Comprehension) -> Step:
        accu = self.plan(expr.accu_init)
        iter_range = self.plan(expr.iter_range)
        # A node's id makes the names of its variables unlike those of all others.
        first = f"{expr.iter_var} {expr.id}"
        accumulator = f"{expr.accu_var} {expr.id}"
        second = expr.iter_var2 and f"{expr.iter_var2} {expr.id}"
        outer = self._locals
        wide = self._wide
        after = {**outer, expr.accu_var: (accumulator, accu)}
        self._locals = {**outer, expr.iter_var: (first, None), expr.iter_var2: (second, None)}
        self._locals[expr.accu_var] = after[expr.accu_var]
        condition = self.plan(expr.loop_condition)
        step = self.plan(expr.loop_step)
        # A call that stops leaves its first arguments on the stack. Most macros take them off with
        # their accumulator; a step that begins with a test leaves them to the next iteration.
        stacks = self._wide > wide and isinstance(step, AttributeStep)
        self._locals = after
        result = self.plan(expr.result)
        self._locals = outer
        return Fold(
            expr.id,
            (first, second, accumulator),
            iter_range=iter_range,
            condition=condition,
            step=step,
            result=result,
            stacks=stacks,
        )


_SPECIAL: dict[str, Callable[[Planner, ast.Call, list[Step]], Step]] = {
    "_&&_": Planner._and,
    "_||_": Planner._or,
    "_?_:_": Planner._conditional,
    "_==_": Planner._equal,
    "_!=_": Planner._equal,
    "_[_]": Planner._index,
    "_[?_]": Planner._index,
    "_?._": Planner._index,
    "or": Planner._optional_or,
    "orValue": Planner._optional_or,
}


def _check_qualifier(value: Value) -> None:
    if not isinstance(value, (str, bool, int, float, Uint)):
        raise PlanError(f"invalid qualifier type: {go_name(value)}")


def _fold(call: Call) -> Step:
    value = call.eval(_NOTHING, Tracker())
    if type(value) is Err:
        raise PlanError(value.message)
    return Constant(call.id, value)


def _compiled(function: str, args: Sequence[Step]) -> Callable[..., Value] | None:
    """The function with its constant pattern compiled, if it has one."""
    if function not in ("matches", "find", "findAll"):
        return None
    if not isinstance(args[1], Constant) or type(args[1].value) is not str:
        return None
    pattern = compile_pattern(args[1].value)
    if isinstance(pattern, Err):
        raise PlanError(pattern.message)
    if function == "matches":
        return lambda text, _pattern: _match(pattern, text)
    search = search_first if function == "find" else search_all
    return lambda text, _pattern, *limit: search(pattern, _plain(text), *map(_plain, limit))


def _match(pattern: Any, text: Value) -> Value:
    plain = _plain(text)
    return pattern.search(plain) is not None if type(plain) is str else Err("no such overload")


def _plain(value: Value) -> Value:
    """Return a value as shortcuts see it: a type as its name, an optional as its value."""
    while type(value) is Optional and value.present:
        value = value.value
    return value.name if type(value) is TypeValue else value


def _membership(node_id: int, arg: Step, values: list[Value]) -> Step | None:
    """`arg in values` as a set, if all values are simple enough."""
    if not values:
        return Constant(node_id, value=False)
    members: set[object] = set()
    for value in values:
        if not isinstance(value, (bool, int, Uint, float, str)):
            return None
        members.add(encode_key(value))
        members.update(encode_key(same) for same in _same_number(value))
    return Membership(node_id, arg, frozenset(members))


def _same_number(value: Value) -> list[Value]:
    """The number in the other numeric types, as far as it converts without loss."""
    kind = type(value)
    if kind is float:
        whole = double_to_int(value)
        signed = [whole] if type(whole) is int and float(whole) == value else []
        unsigned = 0 <= value < 2.0**64 and value == int(value)
        return [*signed, Uint(int(value))] if unsigned else list(signed)
    if kind is int:
        return [float(value), Uint(value)] if value >= 0 else [float(value)]
    if kind is Uint:
        signed = [value.value] if value.value <= INT_MAX else []
        assert value.value <= UINT_MAX, "uints are checked when they are made"
        return [float(value.value), *signed]
    return []
