"""
Text to a checked expression: parse, check, validate.

Each step runs only if the one before it found nothing wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cel.checking.checker import Checked, check
from dryrack.cel.checking.types import Kind
from dryrack.cel.checking.unify import equivalent
from dryrack.cel.evaluation.values import Err
from dryrack.cel.functions import conversions
from dryrack.cel.functions.strings import compile_pattern
from dryrack.cel.parsing import ast
from dryrack.cel.parsing.depth import children, depth_of, raised_recursion_limit
from dryrack.cel.parsing.format_strings import format_problems
from dryrack.cel.parsing.parser import parse
from dryrack.cel.parsing.source import Issues, Problem, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dryrack.cel.checking.checker import Checked
    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.checking.types import Type
    from dryrack.cel.parsing.ast import Expr


def compile_text(text: str, env: Environment) -> Checked | Issues:
    """Compile an expression, or say all that is wrong with it."""
    parsed = parse(text, env.behaviour)
    if isinstance(parsed, Issues):
        return parsed
    # The tree is walked without nesting, but types nest as deeply as their expressions.
    with raised_recursion_limit(depth_of(parsed)):
        checked = check(parsed, env)
        if isinstance(checked, list):
            return report(text, checked)
        problems = validate(checked)
    return report(text, problems) if problems else checked


def validate(checked: Checked) -> list[Problem]:
    """Say what is wrong with an expression whose types are right."""
    problems: list[Problem] = []
    nodes = list(_descendants(checked.expr))
    for node, exempt in nodes:
        if isinstance(node, ast.ListLiteral) and not exempt:
            problems += _mixed_list(node, checked)
    for node, exempt in nodes:
        if isinstance(node, ast.MapLiteral) and not exempt:
            problems += _mixed_map(node, checked)
    calls = [node for node, _ in nodes if isinstance(node, ast.Call)]
    for function, holds in _LITERALS.items():
        problems += _bad_literals(calls, function, holds)
    for call in calls:
        problems += format_problems(call, checked)
    return problems


def _descendants(root: Expr) -> Iterator[tuple[Expr, bool]]:
    """Walk the tree, each node with whether it is somewhere inside a call of `format`."""
    waiting = [(root, False)]
    while waiting:
        node, exempt = waiting.pop()
        yield node, exempt
        exempt = exempt or (isinstance(node, ast.Call) and node.function == "format")
        waiting += [(child, exempt) for child in reversed(children(node))]


def _mixed_list(literal: ast.ListLiteral, checked: Checked) -> Iterator[Problem]:
    first: Type | None = None
    for index, element in enumerate(literal.elements):
        of = _present(element, checked, optional=index in literal.optional_indices)
        first = first or of
        if not equivalent(first, of):
            yield _mismatch(element, first, of)
            return


def _mixed_map(literal: ast.MapLiteral, checked: Checked) -> Iterator[Problem]:
    if not literal.entries:
        return
    head, *rest = literal.entries
    key = checked.types[head.key.id]
    value = _present(head.value, checked, optional=head.optional)
    for entry in rest:
        entry_key = checked.types[entry.key.id]
        entry_value = _present(entry.value, checked, optional=entry.optional)
        if not equivalent(key, entry_key):
            yield _mismatch(entry.key, key, entry_key)
        if not equivalent(value, entry_value):
            yield _mismatch(entry.value, value, entry_value)


def _present(expr: Expr, checked: Checked, *, optional: bool) -> Type:
    of = checked.types[expr.id]
    return of.parameters[0] if optional and of.kind is Kind.OPAQUE else of


def _mismatch(at: Expr, expected: Type, found: Type) -> Problem:
    return Problem(at.position, f"expected type '{expected}' but found '{found}'")


def _bad_literals(
    calls: Sequence[ast.Call], function: str, holds: Callable[[ast.Constant], bool]
) -> Iterator[Problem]:
    for call in calls:
        if call.function != function or not call.args:
            continue
        # The first argument, also of `matches(text, pattern)`, where it is the text.
        literal = call.args[0]
        if isinstance(literal, ast.Literal) and not holds(literal.value):
            yield Problem(literal.position, f"invalid {function} argument")


def _converts(target: str) -> Callable[[ast.Constant], bool]:
    def holds(value: ast.Constant) -> bool:
        if value is None:
            # As far as types go null can stand for either.
            return False
        source = "string" if isinstance(value, str) else "int64"
        return not isinstance(conversions.OVERLOADS[f"{source}_to_{target}"](value), Err)

    return holds


def _is_pattern(value: ast.Constant) -> bool:
    return not isinstance(compile_pattern(str(value)), Err)


_LITERALS = {
    "duration": _converts("duration"),
    "timestamp": _converts("timestamp"),
    "matches": _is_pattern,
}
