"""
The fast tier: an expression as one Python expression.

Promise: what it returns is what the exact tier would return. It needs no counters, because it
is used only where the static estimate stays within the limit, and no notion of an error,
because whatever is out of the ordinary raises, and the exact tier is asked instead. It may
therefore refuse anything: a shape it does not know is left to the exact tier altogether.

Types decide what is emitted. Where the checker knows a string or an int, Python's operator is
CEL's; where it knows nothing (`dyn`), the value's class is tested first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.cel.checking import types as t
from dryrack.cel.evaluation import folds
from dryrack.cel.evaluation.dispatch import bind
from dryrack.cel.evaluation.emission import (
    Emitted,
    Names,
    Unsupported,
    fast_call,
    in_list,
    look_up_or_raise,
    presence_or_raise,
    truth,
)
from dryrack.cel.evaluation.values import Err, Optional, Value, Version
from dryrack.cel.functions.equality import equal
from dryrack.cel.functions.strings import PatternMemo, compile_pattern
from dryrack.cel.parsing import ast
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.cel.checking.checker import Checked
    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.device import View

# Python's own parser gives up at 200 nested parentheses, and a level here may open three.
DEPTH_MAX = 50

_SAME = frozenset((t.STRING, t.BOOL, t.BYTES))
_ORDERS = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_COMPARISONS = {**_ORDERS, "_==_": "==", "_!=_": "!="}


def generate(
    checked: Checked, env: Environment, slow: Callable[[View], bool]
) -> Callable[[View], bool] | None:
    """Make the fast function, which asks `slow` in case of doubt; None if it cannot be."""
    generator = _Generator(checked, env)
    try:
        emitted = generator.boolean(checked.expr)
        source = (
            "def fast(device):\n    try:\n"
            f"        return {emitted}\n    except Exception:\n        return slow(device)\n"
        )
        code = compile(source, "<selector>", "exec")
    except (Unsupported, SyntaxError, MemoryError, RecursionError):
        return None
    namespace: dict[str, Any] = {**generator.names.constants, "slow": slow}
    exec(code, namespace)
    made: Callable[[View], bool] = namespace["fast"]
    return made


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    type: t.Type


class _Generator:
    def __init__(self, checked: Checked, env: Environment) -> None:
        self._types = checked.types
        self._references = checked.references
        self._functions = env.functions
        self._variables: dict[str, _Variable] = {}
        self._depth = 0
        self.names = Names()

    # What an expression is, to the checker.

    def _type(self, expr: ast.Expr) -> t.Type:
        return self._types[expr.id]

    def _is_path(self, expr: ast.Expr) -> bool:
        """Whether the value is an attribute of the device: bool, int, string, version, list."""
        if isinstance(expr, ast.Select):
            return not expr.test_only and self._is_domain(expr.operand)
        if isinstance(expr, ast.Call) and expr.function == "_[_]":
            return self._is_domain(expr.args[0])
        return False

    def _is_domain(self, expr: ast.Expr) -> bool:
        """Whether the value is the map of one domain, or is taken from a variable that is."""
        if isinstance(expr, ast.Ident):
            return False
        if isinstance(expr, ast.Call) and expr.function == "_[_]":
            return self._is_domains(expr.args[0])
        return isinstance(expr, ast.Select) and self._is_domains(expr.operand)

    def _is_domains(self, expr: ast.Expr) -> bool:
        return (
            isinstance(expr, ast.Select)
            and isinstance(expr.operand, ast.Ident)
            and expr.operand.name == "device"
            and "device" not in self._variables
            and expr.field in ("attributes", "capacity")
        )

    # Emission.

    def boolean(self, expr: ast.Expr) -> str:
        """Emit what must be a bool; another type is for the exact tier to complain about."""
        emitted = self.emit(expr)
        if self._type(expr) == t.BOOL:
            return emitted.code
        name = self.names.temporary()
        fail = self.names.constant(truth)
        return (
            f"({name} if ({name} := {emitted.code}) is True or {name} is False else {fail}({name}))"
        )

    def emit(self, expr: ast.Expr) -> Emitted:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise Unsupported("nested too deeply")
        emitted = self._emit(expr)
        self._depth -= 1
        return emitted

    def _emit(self, expr: ast.Expr) -> Emitted:
        match expr:
            case ast.Literal():
                return self.names.literal(expr.value)
            case ast.Ident():
                return self._ident(expr)
            case ast.Select():
                return self._select(expr)
            case ast.Call():
                return self._call(expr)
            case ast.ListLiteral():
                return self._list(expr)
            case ast.Comprehension():
                return self._comprehension(expr)
            case _:
                raise Unsupported("maps and structs")

    def _ident(self, expr: ast.Ident) -> Emitted:
        if expr.name in self._variables:
            return Emitted(self._variables[expr.name].name)
        if expr.name == "device":
            return Emitted("device.variable")
        raise Unsupported("types as values")

    def _select(self, expr: ast.Select) -> Emitted:
        if (
            isinstance(expr.operand, ast.Ident)
            and expr.operand.name == "device"
            and "device" not in self._variables
        ):
            return self._device_field(expr)
        operand = self.emit(expr.operand).code
        field = self.names.literal(expr.field).code
        if expr.test_only:
            return self._presence(expr, operand, field)
        if self._type(expr.operand).kind is t.Kind.MAP:
            return Emitted(f"{operand}[{field}]")
        self._refuse_optional(expr.operand)
        return Emitted(f"{self.names.constant(look_up_or_raise)}({operand}, {field})")

    def _device_field(self, expr: ast.Select) -> Emitted:
        if expr.test_only:
            return self.names.literal(value=True)
        field = "multiple" if expr.field == "allowMultipleAllocations" else expr.field
        return Emitted(f"device.{field}")

    def _presence(self, expr: ast.Select, operand: str, field: str) -> Emitted:
        self._refuse_optional(expr.operand)
        if self._is_domain(expr.operand):
            return Emitted(f"({field} in {operand})")
        return Emitted(f"{self.names.constant(presence_or_raise)}({operand}, {field})")

    def _refuse_optional(self, expr: ast.Expr) -> None:
        if self._type(expr).name == "optional_type":
            raise Unsupported("a path from an optional")

    def _list(self, expr: ast.ListLiteral) -> Emitted:
        if expr.optional_indices:
            raise Unsupported("optional elements")
        elements = [self.emit(element) for element in expr.elements]
        if all(element.constant for element in elements):
            return self.names.literal([element.value for element in elements])
        return Emitted(f"[{', '.join(element.code for element in elements)}]")

    # Calls.

    def _call(self, expr: ast.Call) -> Emitted:
        special = _SPECIAL.get(expr.function)
        if special is not None:
            return special(self, expr)
        return self._function(expr)

    def _logic(self, expr: ast.Call) -> Emitted:
        operator = " and " if expr.function == "_&&_" else " or "
        return Emitted(f"({operator.join(self.boolean(arg) for arg in expr.args)})")

    def _not(self, expr: ast.Call) -> Emitted:
        return Emitted(f"(not {self.boolean(expr.args[0])})")

    def _conditional(self, expr: ast.Call) -> Emitted:
        condition, truthy, falsy = expr.args
        chosen = self.emit(truthy).code
        other = self.emit(falsy).code
        code = f"({chosen} if {self.boolean(condition)} else {other})"
        self._refuse_optional(expr)
        if self._type(expr).kind in (t.Kind.DYN, t.Kind.ANY, t.Kind.TYPE_PARAM):
            return Emitted(f"{self.names.constant(folds.plain_or_raise)}({code})")
        return Emitted(code)

    def _index(self, expr: ast.Call) -> Emitted:
        operand, index = expr.args
        self._refuse_optional(operand)
        container = self.emit(operand).code
        key = self.emit(index)
        kind = self._type(operand).kind
        plain_key = self._type(index) == t.STRING and kind is t.Kind.MAP
        plain_index = (
            key.constant and type(key.value) is int and key.value >= 0 and kind is t.Kind.LIST
        )
        if plain_key or plain_index:
            return Emitted(f"{container}[{key.code}]")
        return Emitted(f"{self.names.constant(look_up_or_raise)}({container}, {key.code})")

    def _equality(self, expr: ast.Call) -> Emitted:
        left, right = expr.args
        shortened = self._compared(expr, left, right)
        if shortened is not None:
            return shortened
        operator = _COMPARISONS[expr.function]
        one = self.emit(left)
        other = self.emit(right)
        types = (self._type(left), self._type(right))
        # Versions refuse to be compared with anything else by raising, as CEL wants it.
        plain = types[0] == types[1] and (types[0] in _SAME or types[0] == t.INT)
        if plain or (self._is_path(left) and type(other.value) is str):
            return Emitted(f"({one.code} {operator} {other.code})")
        if self._is_path(left) and type(other.value) is int:
            return self._path_equals_int(one.code, other.code, negated=operator == "!=")
        call = f"{self.names.constant(_equal_or_raise)}({one.code}, {other.code})"
        return Emitted(f"(not {call})" if operator == "!=" else call)

    def _path_equals_int(self, path: str, number: str, *, negated: bool) -> Emitted:
        # True equals 1 in Python and nothing but itself in CEL.
        name = self.names.temporary()
        code = f"(({name} := {path}) == {number} and {name}.__class__ is not bool)"
        return Emitted(f"(not {code})" if negated else code)

    def _order(self, expr: ast.Call) -> Emitted:
        left, right = expr.args
        shortened = self._compared(expr, left, right)
        if shortened is not None:
            return shortened
        operator = _ORDERS[expr.function]
        types = (self._type(left), self._type(right))
        if types[0] == types[1] and types[0] in (t.INT, t.STRING, t.BYTES):
            return Emitted(f"({self.emit(left).code} {operator} {self.emit(right).code})")
        if types[1] in (t.INT, t.STRING) and types[0].kind in (t.Kind.DYN, t.Kind.ANY):
            return self._order_dyn(expr, operator, "int" if types[1] == t.INT else "str")
        return self._function(expr)

    def _order_dyn(self, expr: ast.Call, operator: str, expected: str) -> Emitted:
        left, right = (self.emit(arg).code for arg in expr.args)
        name = self.names.temporary()
        fallback = self._bound(expr)
        return Emitted(
            f"({name} {operator} {right} if ({name} := {left}).__class__ is {expected} "
            f"else {fallback}({name}, {right}))"
        )

    def _compared(self, expr: ast.Call, left: ast.Expr, right: ast.Expr) -> Emitted | None:
        """`a.compareTo(b) <op> 0` needs no -1, 0 or 1 in between."""
        if not (isinstance(right, ast.Literal) and type(right.value) is int and right.value == 0):
            return None
        if not isinstance(left, ast.Call) or left.function != "compareTo" or left.target is None:
            return None
        return self._ordered_opaque(left, _COMPARISONS[expr.function])

    def _ordered_opaque(self, call: ast.Call, operator: str) -> Emitted | None:
        assert call.target is not None, "the caller has seen a member call"
        target = call.target
        other = call.args[0]
        overload = self._references[call.id].overload_ids
        if overload in (("quantity_compare_to",), *_QUANTITY_ORDERS):
            return self._ordered_by("nanos", operator, (target, other))
        if overload in (("semver_compare_to",), *_VERSION_ORDERS):
            return self._ordered_by("key", operator, (target, other))
        return None

    def _ordered_by(
        self, attribute: str, operator: str, pair: tuple[ast.Expr, ast.Expr]
    ) -> Emitted:
        """Compare by an attribute that no other value has: another class raises."""
        left, right = (self._attribute_of(expr, attribute) for expr in pair)
        return Emitted(f"({left} {operator} {right})")

    def _attribute_of(self, expr: ast.Expr, attribute: str) -> str:
        emitted = self.emit(expr)
        if emitted.constant:
            if not isinstance(emitted.value, Quantity if attribute == "nanos" else Version):
                raise Unsupported("a constant of another type")
            return self.names.literal_or_constant(getattr(emitted.value, attribute))
        known = self._type(expr) in (t.QUANTITY, t.SEMVER)
        if known or attribute == "key":
            return f"{emitted.code}.{attribute}"
        raise Unsupported("durations have nanoseconds too")

    def _is_greater(self, expr: ast.Call) -> Emitted:
        if expr.target is not None:
            operator = ">" if expr.function == "isGreaterThan" else "<"
            ordered = self._ordered_opaque(expr, operator)
            if ordered is not None:
                return ordered
        return self._function(expr)

    def _in(self, expr: ast.Call) -> Emitted:
        item = self.emit(expr.args[0])
        container = self.emit(expr.args[1])
        overload = self._references[expr.id].overload_ids
        text = self._type(expr.args[0]) == t.STRING
        if text and overload == ("in_map",):
            return Emitted(f"({item.code} in {container.code})")
        if overload != ("in_list",) or not container.constant or not container.value:
            return self._applied(expr, [item, container])
        fallback = self.names.constant(in_list(container.value))
        if not _all_text(container.value):
            return Emitted(f"{fallback}({item.code})")
        members = self.names.constant(frozenset(container.value))
        if text:
            return Emitted(f"({item.code} in {members})")
        name = self.names.temporary()
        return Emitted(
            f"({name} in {members} if ({name} := {item.code}).__class__ is str "
            f"else {fallback}({name}))"
        )

    def _matches(self, expr: ast.Call) -> Emitted:
        args = expr.args if expr.target is None else (expr.target, *expr.args)
        text, pattern = (self.emit(arg) for arg in args)
        if not pattern.constant or type(pattern.value) is not str:
            return self._applied(expr, [text, pattern])
        compiled = compile_pattern(pattern.value)
        if isinstance(compiled, Err):
            raise Unsupported("an invalid pattern")
        return Emitted(f"{self.names.constant(PatternMemo(compiled))}[{text.code}]")

    def _or_value(self, expr: ast.Call) -> Emitted:
        assert expr.target is not None, "orValue is a member"
        name = self.names.temporary()
        left = self.emit(expr.target).code
        right = self.emit(expr.args[0]).code
        return Emitted(f"({name}.value if ({name} := {left}).present else {right})")

    def _optional_select(self, expr: ast.Call) -> Emitted:
        operand, key = expr.args
        self._refuse_optional(operand)
        if not self._is_domain(operand):
            raise Unsupported("an optional path")
        container = self.emit(operand).code
        name = self.emit(key)
        make = self.names.constant(_optional_entry)
        return Emitted(f"{make}({container}, {name.code})")

    def _function(self, expr: ast.Call) -> Emitted:
        operands = expr.args if expr.target is None else (expr.target, *expr.args)
        return self._applied(expr, [self.emit(operand) for operand in operands])

    def _applied(self, expr: ast.Call, args: Sequence[Emitted]) -> Emitted:
        if expr.function in _STATEFUL:
            raise Unsupported(expr.function)
        if all(arg.constant for arg in args):
            return self._computed(expr, args)
        return Emitted(f"{self._bound(expr)}({', '.join(arg.code for arg in args)})")

    def _computed(self, expr: ast.Call, args: Sequence[Emitted]) -> Emitted:
        binding = bind(
            expr.function, self._references[expr.id].overload_ids, self._functions[expr.function]
        )
        value = binding.implementation(*(arg.value for arg in args))
        if isinstance(value, Err):
            raise Unsupported("a constant that is an error")
        return self.names.literal(value)

    def _bound(self, expr: ast.Call) -> str:
        ids = self._references[expr.id].overload_ids
        binding = bind(expr.function, ids, self._functions[expr.function])
        return self.names.constant(fast_call(binding.implementation))

    # Comprehensions.

    def _comprehension(self, expr: ast.Comprehension) -> Emitted:
        bound = folds.as_binding(expr)
        if bound is not None:
            return self._bind(bound)
        quantified = folds.as_quantifier(expr)
        if quantified is None:
            raise Unsupported("a fold of another shape")
        over = self.emit(quantified.over)
        element = self._element_type(quantified.over)
        dyn = element.kind in (t.Kind.DYN, t.Kind.ANY, t.Kind.TYPE_PARAM)
        iterate = folds.iterate_dyn_or_raise if dyn else folds.iterate_or_raise
        iterable = f"{self.names.constant(iterate)}({over.code})"
        with _Scope(self, quantified.variable, element) as name:
            predicate = self.boolean(quantified.predicate)
        return Emitted(f"{quantified.function}({predicate} for {name} in {iterable})")

    def _element_type(self, expr: ast.Expr) -> t.Type:
        over = self._type(expr)
        return over.parameters[0] if over.parameters else t.DYN

    def _bind(self, bound: folds.Binding) -> Emitted:
        value = self.emit(bound.value).code
        declared = self._type(bound.value)
        if declared.kind not in _SCALARS:
            # An empty list or map changes its nature when it is bound.
            value = f"{self.names.constant(folds.not_empty_or_raise)}({value})"
        with _Scope(self, bound.variable, declared) as name:
            result = self.emit(bound.result).code
        return Emitted(f"({name} := {value}, {result})[1]")


_SCALARS = frozenset(
    (t.Kind.BOOL, t.Kind.INT, t.Kind.UINT, t.Kind.DOUBLE, t.Kind.STRING, t.Kind.BYTES)
)


class _Scope:
    """A variable of the expression, under a name of its own in Python, for a while."""

    def __init__(self, generator: _Generator, variable: str, declared: t.Type) -> None:
        self._variables = generator._variables
        self._variable = variable
        if declared.name == "optional_type":
            raise Unsupported("an optional is taken apart when it is named")
        self._new = _Variable(generator.names.temporary(), declared)
        self._hidden: _Variable | None = None

    def __enter__(self) -> str:
        self._hidden = self._variables.get(self._variable)
        self._variables[self._variable] = self._new
        return self._new.name

    def __exit__(self, *_raised: object) -> None:
        if self._hidden is None:
            del self._variables[self._variable]
        else:
            self._variables[self._variable] = self._hidden


_QUANTITY_ORDERS = (("quantity_is_greater_than",), ("quantity_is_less_than",))
_VERSION_ORDERS = (("semver_is_greater_than",), ("semver_is_less_than",))
# They add to an accumulator in place, or are evaluated on demand.
_STATEFUL = frozenset(("_+_", "cel.@mapInsert", "or", "@not_strictly_false", "_[?_]"))

_SPECIAL: dict[str, Callable[[_Generator, ast.Call], Emitted]] = {
    "_&&_": _Generator._logic,
    "_||_": _Generator._logic,
    "!_": _Generator._not,
    "_?_:_": _Generator._conditional,
    "_[_]": _Generator._index,
    "_==_": _Generator._equality,
    "_!=_": _Generator._equality,
    **dict.fromkeys(_ORDERS, _Generator._order),
    "isGreaterThan": _Generator._is_greater,
    "isLessThan": _Generator._is_greater,
    "@in": _Generator._in,
    "matches": _Generator._matches,
    "orValue": _Generator._or_value,
    "_?._": _Generator._optional_select,
}


def _all_text(values: Value) -> bool:
    return bool(values) and all(type(value) is str for value in values)


def _equal_or_raise(left: Value, right: Value) -> bool:
    same = equal(left, right)
    if type(same) is bool:
        return same
    raise ValueError(same)


def _optional_entry(domain: dict[str, Value], key: str) -> Optional:
    return Optional(domain[key]) if key in domain else Optional()
