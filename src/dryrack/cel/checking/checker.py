"""
Types for every node, and what every name and call refers to.

A call may mean several overloads when the types of its arguments are not known; then all their
ids are kept, in the order of declaration, and its own type is `dyn` unless they agree. What is
learnt is kept beside the tree; the tree itself changes only where a qualified name turns out to
be one name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from dryrack.cel.checking import types as t
from dryrack.cel.checking.types import Kind, Type
from dryrack.cel.checking.unify import Bindings, is_dynamic, more_general, same
from dryrack.cel.declarations.messages import message_of
from dryrack.cel.evaluation.trampoline import run
from dryrack.cel.parsing import ast
from dryrack.cel.parsing.source import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.declarations import Overload
    from dryrack.cel.evaluation.trampoline import Steps
    from dryrack.cel.parsing.ast import Constant, Expr

# A literal cannot nest deeper than 249 levels, so only variables that hold such literals inside
# one another get here. Kubernetes has no bound of its own and needs quadratic time for them.
TYPE_DEPTH_MAX = 300


class Reference(msgspec.Struct, frozen=True):
    """
    The reference of a node: a variable or type by `name`, or the overloads of a call.

    A call with several ids is dispatched by the types of its arguments at run time.
    """

    name: str = ""
    overload_ids: tuple[str, ...] = ()
    constant: Constant = None


@dataclass(frozen=True, slots=True)
class Checked:
    """
    An expression that compiles: names resolved in `expr`, types and references by node id.

    In `expr` a qualified name is one `Ident` (`net.IP`), and a call of a function in a
    namespace (`sets.contains(a, b)`) has no target and the full name as its function.
    """

    expr: Expr
    types: Mapping[int, Type]
    references: Mapping[int, Reference]

    @property
    def output_type(self) -> Type:
        return self.types[self.expr.id]


class _TooDeepError(Exception):
    """A type nests deeper than the functions that walk types can follow."""


def check(expr: Expr, env: Environment) -> Checked | list[Problem]:
    """Check an expression, or say all that is wrong with its types and names."""
    checker = _Checker(env)
    try:
        checked = run(checker.check(expr))
    except _TooDeepError:
        return [Problem(None, f"types nest deeper than {TYPE_DEPTH_MAX} levels")]
    if checker.problems:
        return checker.problems
    return Checked(checked, checker.bindings.settle_all(checker.types), checker.references)


def qualified_name(expr: Expr) -> str | None:
    """Give `a.b.c` as a name, if the expression could be one."""
    fields: list[str] = []
    while isinstance(expr, ast.Select) and not expr.test_only:
        fields.append(expr.field)
        expr = expr.operand
    if not isinstance(expr, ast.Ident):
        return None
    return ".".join((expr.name, *reversed(fields)))


class _Checker:
    def __init__(self, env: Environment) -> None:
        self._env = env
        self._functions = env.functions
        self._scopes: list[dict[str, Type]] = [dict(env.identifiers)]
        self._fresh = 0
        self.bindings = Bindings()
        self.problems: list[Problem] = []
        self.types: dict[int, Type] = {}
        self.references: dict[int, Reference] = {}

    def check(self, expr: Expr) -> Steps[Expr]:
        match expr:
            case ast.Literal():
                return self._literal(expr)
            case ast.Ident():
                return self._ident(expr)
            case ast.Select():
                return self._select(expr)
            case ast.Call():
                if expr.function == "_?._":
                    return self._optional_select(expr)
                return self._call(expr)
            case ast.ListLiteral():
                return self._list(expr)
            case ast.MapLiteral():
                return self._map(expr)
            case ast.StructLiteral():
                return self._struct(expr)
            case ast.Comprehension():
                return self._comprehension(expr)

    def _set(self, expr: Expr, of: Type) -> None:
        if of.depth > TYPE_DEPTH_MAX:
            raise _TooDeepError
        self.types[expr.id] = of

    # Names

    def _literal(self, expr: ast.Literal) -> Steps[Expr]:
        yield from ()
        self.types[expr.id] = _type_of_constant(expr.value)
        return expr

    def _ident(self, expr: ast.Ident) -> Steps[Expr]:
        yield from ()
        name = expr.name.removeprefix(".")
        of = self._find(name)
        if of is None:
            self._report_undeclared(expr, expr.name)
            return expr
        self._refer(expr, name, of)
        return expr if name == expr.name else replace(expr, name=name)

    def _find(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            of = scope.get(name)
            if of is not None:
                return of
        return None

    def _refer(self, expr: Expr, name: str, found: Type) -> None:
        self.types[expr.id] = found
        self.references[expr.id] = Reference(name)

    def _report_undeclared(self, expr: Expr, name: str) -> None:
        self.types[expr.id] = t.ERROR
        self._wrong(expr, f"undeclared reference to '{name}' (in container '')")

    def _wrong(self, at: Expr | ast.MapEntry | ast.StructField, problem: str) -> None:
        self.problems.append(Problem(at.position, problem))

    def _mismatch(self, at: Expr, expected: Type, found: Type) -> None:
        self._wrong(at, f"expected type '{expected}' but found '{found}'")

    # Fields

    def _select(self, expr: ast.Select) -> Steps[Expr]:
        name = qualified_name(expr)
        if name is not None:
            name = name.removeprefix(".")
            of = self._find(name)
            if of is not None:
                self._refer(expr, name, of)
                return ast.Ident(expr.id, expr.position, name)
        operand: Expr = yield self.check(expr.operand)
        result = self._field(expr, operand, expr.field)
        self._set(expr, t.BOOL if expr.test_only else self.bindings.resolve(result))
        return expr if operand is expr.operand else replace(expr, operand=operand)

    def _optional_select(self, expr: ast.Call) -> Steps[Expr]:
        operand, field = expr.args
        assert isinstance(field, ast.Literal), "the parser makes no other"
        operand = yield self.check(operand)
        result = self._field(expr, operand, str(field.value))
        if not _is_optional(self.bindings.resolve(self.types[operand.id])):
            result = t.optional_of(result)
        self._set(expr, self.bindings.resolve(result))
        self.references[expr.id] = Reference(overload_ids=("select_optional_field",))
        return replace(expr, args=(operand, field))

    def _field(self, expr: Expr, operand: Expr, field: str) -> Type:
        """Give the type of a field; it is optional if what it is selected from is."""
        of = self.bindings.resolve(self.types[operand.id])
        if _is_optional(of):
            return t.optional_of(self._plain_field(expr, of.parameters[0], field))
        return self._plain_field(expr, of, field)

    def _plain_field(self, expr: Expr, of: Type, field: str) -> Type:
        match of.kind:
            case Kind.MAP:
                return of.parameters[1]
            case Kind.STRUCT:
                return self._struct_field(expr, of.name, field)
            case Kind.TYPE_PARAM:
                # A later type of the parameter must not be narrower.
                self.bindings.fits((t.DYN,), (of,))
            case Kind.DYN | Kind.ANY | Kind.ERROR:
                pass
            case _:
                self._wrong(expr, f"type '{of}' does not support field selection")
        return t.DYN

    def _struct_field(self, at: Expr | ast.StructField, message: str, field: str) -> Type:
        fields = self._env.fields_of(message)
        if fields is None:
            self._wrong(at, f"unexpected failed resolution of '{message}'")
        elif field not in fields:
            self._wrong(at, f"undefined field '{field}'")
        else:
            return fields[field]
        return t.ERROR

    # Calls

    def _call(self, expr: ast.Call) -> Steps[Expr]:
        args: tuple[Expr, ...] = yield self._all(expr.args)
        if args is not expr.args:
            expr = replace(expr, args=args)
        if expr.target is None:
            return self._static_call(expr, expr.function)
        prefix = qualified_name(expr.target)
        if prefix is not None:
            name = f"{prefix}.{expr.function}".removeprefix(".")
            if name in self._functions:
                return self._static_call(replace(expr, target=None), name)
        target: Expr = yield self.check(expr.target)
        if target is not expr.target:
            expr = replace(expr, target=target)
        overloads = self._functions.get(expr.function)
        if overloads is None:
            self._report_undeclared(expr, expr.function)
        else:
            self._resolve(expr, overloads)
        return expr

    def _all(self, exprs: tuple[Expr, ...]) -> Steps[tuple[Expr, ...]]:
        checked: list[Expr] = []
        for expr in exprs:
            checked.append((yield self.check(expr)))  # noqa: PERF401 - it yields
        return exprs if all(map(_is, checked, exprs)) else tuple(checked)

    def _static_call(self, expr: ast.Call, written: str) -> Expr:
        name = written.removeprefix(".")
        overloads = self._functions.get(name)
        if overloads is None:
            self._report_undeclared(expr, written)
            return expr
        expr = expr if name == expr.function else replace(expr, function=name)
        self._resolve(expr, overloads)
        return expr

    def _resolve(self, expr: ast.Call, overloads: Sequence[Overload]) -> None:
        operands = expr.args if expr.target is None else (expr.target, *expr.args)
        if expr.function in ("_&&_", "_||_"):
            self._resolve_logic(expr, overloads[0])
            return
        given = [self.types[operand.id] for operand in operands]
        ids: list[str] = []
        result: Type | None = None
        for overload in overloads:
            if overload.member is (expr.target is None):
                continue
            returned = self._apply(overload, given)
            if returned is not None:
                ids.append(overload.id)
                result = _merge(result, returned)
        if result is None:
            self.types[expr.id] = t.ERROR
            shown = [str(self.bindings.settle(of)) for of in given]
            receiver = "" if expr.target is None else f"{shown.pop(0)}."
            applied = f"{receiver}({', '.join(shown)})"
            self._wrong(
                expr, f"found no matching overload for '{expr.function}' applied to '{applied}'"
            )
            return
        self._set(expr, result)
        self.references[expr.id] = Reference(overload_ids=tuple(ids))

    def _resolve_logic(self, expr: ast.Call, overload: Overload) -> None:
        self.types[expr.id] = t.BOOL
        self.references[expr.id] = Reference(overload_ids=(overload.id,))
        for operand in expr.args:
            of = self.types[operand.id]
            if not self.bindings.fits((of,), (t.BOOL,)):
                self._mismatch(operand, t.BOOL, of)
                self.types[expr.id] = t.ERROR

    def _apply(self, overload: Overload, given: Sequence[Type]) -> Type | None:
        """Give the type of a call of this overload, or nothing if it cannot be called so."""
        args = overload.args
        result = overload.result
        if overload.type_params:
            fresh = {name: self._unknown() for name in overload.type_params}
            args = tuple(_rename(arg, fresh) for arg in args)
            result = _rename(result, fresh)
        return self.bindings.resolve(result) if self.bindings.fits(given, args) else None

    def _unknown(self) -> Type:
        self._fresh += 1
        return t.type_param(f"_var{self._fresh - 1}")

    # Literals with parts

    def _list(self, expr: ast.ListLiteral) -> Steps[Expr]:
        element: Type | None = None
        elements: list[Expr] = []
        for index, part in enumerate(expr.elements):
            elements.append((yield self.check(part)))
            of = self._present(part, optional=index in expr.optional_indices)
            element = self._join(element, of)
        self._set(expr, t.list_of(element or self._unknown()))
        if all(map(_is, elements, expr.elements)):
            return expr
        return replace(expr, elements=tuple(elements))

    def _present(self, expr: Expr, *, optional: bool) -> Type:
        """Give the type that a part has once it is there."""
        of = self.types[expr.id]
        if not optional:
            return of
        if _is_optional(of):
            return of.parameters[0]
        if not is_dynamic(of):
            self._mismatch(expr, t.optional_of(of), of)
        return of

    def _join(self, before: Type | None, of: Type) -> Type:
        if before is None:
            return of
        return more_general(before, of) if self.bindings.fits((before,), (of,)) else t.DYN

    def _map(self, expr: ast.MapLiteral) -> Steps[Expr]:
        key: Type | None = None
        value: Type | None = None
        entries: list[ast.MapEntry] = []
        for entry in expr.entries:
            checked_key: Expr = yield self.check(entry.key)
            key = self._join(key, self.types[entry.key.id])
            checked_value: Expr = yield self.check(entry.value)
            value = self._join(value, self._present(entry.value, optional=entry.optional))
            entries.append(replace(entry, key=checked_key, value=checked_value))
        # The key's unknown comes first, as the numbers of unknowns are seen in errors.
        key = key or self._unknown()
        self._set(expr, t.map_of(key, value or self._unknown()))
        return replace(expr, entries=tuple(entries))

    def _struct(self, expr: ast.StructLiteral) -> Steps[Expr]:
        name = expr.type_name.removeprefix(".")
        found = self._literal_type(name)
        if found is None:
            self._report_undeclared(expr, expr.type_name)
            return expr
        self.references[expr.id] = Reference(name)
        self.types[expr.id] = result = self._struct_type(expr, found)
        message = message_of(result) or name
        fields: list[ast.StructField] = []
        for field in expr.fields:
            value: Expr = yield self.check(field.value)
            fields.append(replace(field, value=value))
            of = self._present(value, optional=field.optional)
            wanted = self._struct_field(field, message, field.name)
            if not self.bindings.fits((wanted,), (of,)):
                self._wrong(
                    field,
                    f"expected type of field '{field.name}' is '{wanted}' "
                    f"but provided type is '{of}'",
                )
        return replace(expr, type_name=name, fields=tuple(fields))

    def _literal_type(self, name: str) -> Type | None:
        """Find the type that a literal names. Up to 1.36, a variable can hide it."""
        found = self._find(name)
        if self._env.behaviour.types_are_not_variables:
            found = self._env.identifiers.get(name)
            if found is not None and found.kind is not Kind.TYPE:
                found = None
            elif name == "list":
                found = t.type_of(t.list_of(t.DYN))
        return found or self._env.message_type(name)

    def _struct_type(self, expr: ast.StructLiteral, declared: Type) -> Type:
        if declared.kind is Kind.ERROR:
            return t.ERROR
        if declared.kind is not Kind.TYPE:
            self._wrong(expr, f"'{declared.runtime_name}' is not a type")
            return t.ERROR
        result = declared.parameters[0] if declared.parameters else declared
        if message_of(result) is None:
            self._wrong(expr, f"'{result.runtime_name}' is not a message type")
            return t.ERROR
        return result

    # Folds

    def _comprehension(self, expr: ast.Comprehension) -> Steps[Expr]:
        iter_range: Expr = yield self.check(expr.iter_range)
        accu_init: Expr = yield self.check(expr.accu_init)
        accumulated = self.types[accu_init.id]
        self._scopes.append({expr.accu_var: accumulated})
        self._scopes.append(self._loop_variables(expr, iter_range))
        loop_condition: Expr = yield self.check(expr.loop_condition)
        self._assert(loop_condition, t.BOOL)
        loop_step: Expr = yield self.check(expr.loop_step)
        self._assert(loop_step, accumulated)
        self._scopes.pop()
        result: Expr = yield self.check(expr.result)
        self._scopes.pop()
        self._set(expr, self.bindings.resolve(self.types[result.id]))
        return replace(
            expr,
            iter_range=iter_range,
            accu_init=accu_init,
            loop_condition=loop_condition,
            loop_step=loop_step,
            result=result,
        )

    def _loop_variables(self, expr: ast.Comprehension, over: Expr) -> dict[str, Type]:
        first, second = self._element_type(over, indexed=bool(expr.iter_var2))
        variables = {expr.iter_var: first}
        if expr.iter_var2:
            variables[expr.iter_var2] = second
        return variables

    def _element_type(self, over: Expr, *, indexed: bool) -> tuple[Type, Type]:
        of = self.bindings.resolve(self.types[over.id])
        match of.kind:
            case Kind.LIST:
                element = of.parameters[0]
                return (t.INT, element) if indexed else (element, element)
            case Kind.MAP:
                return of.parameters[0], of.parameters[1]
            case Kind.DYN | Kind.ERROR | Kind.TYPE_PARAM:
                self.bindings.fits((t.DYN,), (of,))
                return t.DYN, t.DYN
            case _:
                self._wrong(
                    over,
                    f"expression of type '{of}' cannot be range of a comprehension "
                    "(must be list, map, or dynamic)",
                )
                return t.ERROR, t.ERROR

    def _assert(self, expr: Expr, wanted: Type) -> None:
        of = self.types[expr.id]
        if not self.bindings.fits((wanted,), (of,)):
            self._mismatch(expr, wanted, of)


def _is(one: object, other: object) -> bool:
    return one is other


def _is_optional(of: Type) -> bool:
    return of.kind is Kind.OPAQUE and of.name == "optional_type" and bool(of.parameters)


def _merge(before: Type | None, returned: Type) -> Type:
    if before is None:
        return returned
    if not is_dynamic(before) and not same(returned, before):
        return t.DYN
    return before


def _rename(of: Type, names: Mapping[str, Type]) -> Type:
    if of.kind is Kind.TYPE_PARAM:
        return names[of.name]
    if not of.parameters:
        return of
    return Type(of.kind, of.name, tuple(_rename(inner, names) for inner in of.parameters))


def _type_of_constant(value: Constant) -> Type:
    match value:
        case None:
            return t.NULL
        case bool():
            return t.BOOL
        case int():
            return t.INT
        case ast.Uint():
            return t.UINT
        case float():
            return t.DOUBLE
        case str():
            return t.STRING
        case bytes():
            return t.BYTES
