"""
The expansion of each macro.

The shapes are those of the reference implementation, down to the hidden variables, because the
cost of an expression is the cost of what its macros expand to. All macros but `has` are called
on a target. An expander answers with the expansion, or with nothing if the call is not the
macro after all, or raises `MacroError` at the argument that is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dryrack.cel.evaluation.nodes import ACCUMULATOR
from dryrack.cel.parsing import ast

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.evaluation.nodes import MacroNodes

Args: TypeAlias = tuple[ast.Expr, ...]
Expander: TypeAlias = "Callable[[MacroNodes, ast.Expr, Args], ast.Expr | None]"

# The name of the accumulator in older releases of the language is still not for the taking.
_RESERVED = (ACCUMULATOR, "__result__")
_UNUSED = ("#unused", "")
_SORTED = "@__sortBy_input__"


class MacroError(Exception):
    """An argument of a macro is not what it must be."""

    def __init__(self, argument: ast.Expr, problem: str) -> None:
        super().__init__(problem)
        self.position = argument.position
        self.problem = problem


def expand(
    nodes: MacroNodes, function: str, args: Args, *, target: ast.Expr | None
) -> ast.Expr | None:
    """Expand a call, if it is a macro."""
    if target is None:
        return _has(nodes, args[0]) if function == "has" and len(args) == 1 else None
    expander = _MACROS.get((function, len(args)))
    return None if expander is None else expander(nodes, target, args)


def _has(nodes: MacroNodes, argument: ast.Expr) -> ast.Expr:
    if not isinstance(argument, ast.Select):
        raise MacroError(argument, "invalid argument to has() macro")
    return nodes.presence(argument)


def _name(argument: ast.Expr, problem: str) -> str:
    if not isinstance(argument, ast.Ident):
        raise MacroError(argument, problem)
    return argument.name


def _variable(argument: ast.Expr, problem: str) -> tuple[str, str]:
    name = _name(argument, problem)
    if name in _RESERVED:
        raise MacroError(argument, "iteration variable overwrites accumulator variable")
    return name, ""


def _two_variables(args: Args) -> tuple[str, str]:
    first = _name(args[0], "argument must be a simple name")
    second = _name(args[1], "argument must be a simple name")
    if first == second:
        raise MacroError(args[1], f"duplicate variable name: {first}")
    for argument, name in zip(args, (first, second), strict=False):
        if name in _RESERVED:
            raise MacroError(argument, "iteration variable overwrites accumulator variable")
    return first, second


def _quantifier(args: Args) -> tuple[tuple[str, str], ast.Expr]:
    if len(args) == 2:
        return _variable(args[0], "argument must be a simple name"), args[1]
    return _two_variables(args), args[2]


def _all(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    variables, predicate = _quantifier(args)
    return nodes.fold(
        target,
        variables,
        ACCUMULATOR,
        start=nodes.literal(True),
        condition=nodes.call("@not_strictly_false", nodes.accumulator()),
        step=nodes.call("_&&_", nodes.accumulator(), predicate),
        result=nodes.accumulator(),
    )


def _exists(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    variables, predicate = _quantifier(args)
    return nodes.fold(
        target,
        variables,
        ACCUMULATOR,
        start=nodes.literal(False),
        condition=nodes.call("@not_strictly_false", nodes.call("!_", nodes.accumulator())),
        step=nodes.call("_||_", nodes.accumulator(), predicate),
        result=nodes.accumulator(),
    )


def _exists_one(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    variables, predicate = _quantifier(args)
    return nodes.fold(
        target,
        variables,
        ACCUMULATOR,
        start=nodes.literal(0),
        condition=nodes.literal(True),
        step=nodes.call(
            "_?_:_",
            predicate,
            nodes.call("_+_", nodes.accumulator(), nodes.literal(1)),
            nodes.accumulator(),
        ),
        result=nodes.call("_==_", nodes.accumulator(), nodes.literal(1)),
    )


def _map(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    variables = _variable(args[0], "argument is not an identifier")
    return _collect(nodes, target, (variables, args[1:]))


def _filter(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    variables = _variable(args[0], "argument is not an identifier")
    return _collect(nodes, target, (variables, (args[1], args[0])))


def _transform_list(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    return _collect(nodes, target, (_two_variables(args), args[2:]))


def _collect(
    nodes: MacroNodes, target: ast.Expr, loop: tuple[tuple[str, str], Args]
) -> ast.Comprehension:
    """Fold into a list; the loop has its variables, then maybe a filter, then the element."""
    variables, (*tests, element) = loop
    start = nodes.list()
    condition = nodes.literal(True)
    step = nodes.call("_+_", nodes.accumulator(), nodes.list(element))
    for test in tests:
        step = nodes.call("_?_:_", test, step, nodes.accumulator())
    return nodes.fold(
        target,
        variables,
        ACCUMULATOR,
        start=start,
        condition=condition,
        step=step,
        result=nodes.accumulator(),
    )


def _transform_map(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    variables = _two_variables(args)
    *tests, value = args[2:]
    step = nodes.call("cel.@mapInsert", nodes.accumulator(), nodes.ident(variables[0]), value)
    return _insert(nodes, target, (variables, step, tests))


def _transform_map_entry(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    variables = _two_variables(args)
    *tests, entry = args[2:]
    step = nodes.call("cel.@mapInsert", nodes.accumulator(), entry)
    return _insert(nodes, target, (variables, step, tests))


def _insert(
    nodes: MacroNodes, target: ast.Expr, loop: tuple[tuple[str, str], ast.Call, list[ast.Expr]]
) -> ast.Comprehension:
    variables, step, tests = loop
    for test in tests:
        step = nodes.call("_?_:_", test, step, nodes.accumulator())
    return nodes.fold(
        target,
        variables,
        ACCUMULATOR,
        start=nodes.map(),
        condition=nodes.literal(True),
        step=step,
        result=nodes.accumulator(),
    )


def _bind(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr | None:
    if not isinstance(target, ast.Ident) or target.name != "cel":
        return None
    name = _name(args[0], "cel.bind() variable names must be simple identifiers")
    return nodes.fold(
        nodes.list(),
        _UNUSED,
        name,
        start=args[1],
        condition=nodes.literal(False),
        step=nodes.ident(name),
        result=args[2],
    )


def _opt_map(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    name = _name(args[0], "optMap() variable name must be a simple identifier")
    return nodes.call(
        "_?_:_",
        nodes.member(target, "hasValue"),
        nodes.call("optional.of", _with_value(nodes, target, (name, args[1]))),
        nodes.call("optional.none"),
    )


def _opt_flat_map(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    name = _name(args[0], "optFlatMap() variable name must be a simple identifier")
    return nodes.call(
        "_?_:_",
        nodes.member(target, "hasValue"),
        _with_value(nodes, target, (name, args[1])),
        nodes.call("optional.none"),
    )


def _with_value(
    nodes: MacroNodes, target: ast.Expr, bound: tuple[str, ast.Expr]
) -> ast.Comprehension:
    name, result = bound
    return nodes.fold(
        nodes.list(),
        _UNUSED,
        name,
        start=nodes.member(nodes.copy(target), "value"),
        condition=nodes.literal(False),
        step=nodes.ident(name),
        result=result,
    )


def _sort_by(nodes: MacroNodes, target: ast.Expr, args: Args) -> ast.Expr:
    taken = nodes.ident(_SORTED)
    if isinstance(target, ast.Literal | ast.MapLiteral | ast.StructLiteral):
        raise MacroError(
            target,
            "sortBy can only be applied to a list, identifier, comprehension, call or select "
            "expression",
        )
    keys = _map(nodes, nodes.copy(taken), args)
    ordered = nodes.member(nodes.copy(taken), "@sortByAssociatedKeys", keys)
    return nodes.fold(
        nodes.list(),
        _UNUSED,
        _SORTED,
        start=target,
        condition=nodes.literal(False),
        step=taken,
        result=ordered,
    )


_MACROS: dict[tuple[str, int], Expander] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("exists_one", 3): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
}
