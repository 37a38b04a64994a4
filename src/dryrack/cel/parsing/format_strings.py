"""
Problems of format strings that do not fit the types of their arguments.

Only a literal string applied to a literal list is looked at: there the clauses can be held
against the types of the elements before anything is evaluated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.cel.checking.types import DYN, Kind
from dryrack.cel.parsing import ast
from dryrack.cel.parsing.source import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.cel.checking.checker import Checked
    from dryrack.cel.parsing.ast import Expr

_CLAUSE = re.compile(r"%(?P<precision>\.[0-9]*)?(?P<verb>[\s\S])?")
_PRECISION_MAX = 2**63 - 1
_SCALARS = (Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING, Kind.TIMESTAMP)
_PRINTABLE = (
    *_SCALARS, Kind.BYTES, Kind.DURATION, Kind.TYPE, Kind.NULL, Kind.LIST, Kind.MAP,
)  # fmt: skip
_VERBS = {
    "d": ((Kind.INT, Kind.UINT), "decimal clause can only be used on integers"),
    "f": ((Kind.DOUBLE, Kind.STRING), "fixed-point clause can only be used on doubles"),
    "e": ((Kind.DOUBLE, Kind.STRING), "scientific clause can only be used on doubles"),
    "b": ((Kind.INT, Kind.UINT, Kind.BOOL), "only integers and bools can be formatted as binary"),
    "o": ((Kind.INT, Kind.UINT), "octal clause can only be used on integers"),
    "x": (
        (Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "s": (
        _PRINTABLE,
        (
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
            "lists, types, durations, and timestamps"
        ),
    ),
}
_VERBS["X"] = _VERBS["x"]


class _UnfitError(Exception):
    def __init__(self, problem: str, at: Expr | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at


def format_problems(call: ast.Call, checked: Checked) -> Iterator[Problem]:
    """Say what is wrong with a call of `format`, if it is one."""
    template, args = _literal_format(call)
    if template is None:
        return
    try:
        used = 0
        position = template.find("%")
        while position >= 0:
            if template.startswith("%%", position):
                position = template.find("%", position + 2)
                continue
            if position + 1 == len(template):
                raise _UnfitError("unexpected end of string")
            if used >= len(args):
                raise _UnfitError(f"index {used} out of range")
            end = _fit_clause(template, position, args[used], checked=checked)
            used += 1
            position = template.find("%", end)
    except _UnfitError as error:
        yield Problem((error.at or call).position, error.problem)
        return
    if len(args) > used:
        counts = f"(expected {used}, got {len(args)})"
        problem = f"too many arguments supplied to string.format {counts}"
        yield Problem(call.position, problem)


def _literal_format(call: ast.Call) -> tuple[str | None, Sequence[Expr]]:
    if call.function != "format" or not isinstance(call.target, ast.Literal):
        return None, ()
    template = call.target.value
    arguments = call.args[0]
    if not isinstance(template, str) or not isinstance(arguments, ast.ListLiteral):
        return None, ()
    return template, arguments.elements


def _fit_clause(template: str, position: int, arg: Expr, *, checked: Checked) -> int:
    clause = _CLAUSE.match(template, position)
    assert clause is not None, "it begins with a percent sign"
    if clause["precision"] is not None:
        digits = clause["precision"][1:]
        ended = clause["verb"] is not None
        prefix = "could not parse formatting clause: error while parsing precision: "
        if not ended:
            raise _UnfitError(prefix + "could not find end of precision specifier")
        prefix += f'error while converting precision to integer: strconv.Atoi: parsing "{digits}": '
        if not digits:
            raise _UnfitError(prefix + "invalid syntax")
        if len(digits.lstrip("0")) > 19 or int(digits) > _PRECISION_MAX:
            raise _UnfitError(prefix + "value out of range")
    verb = clause["verb"] or ""
    if verb not in _VERBS:
        shown = verb.encode()[:1].decode("latin-1")
        raise _UnfitError(
            f'could not parse formatting clause: unrecognized formatting clause "{shown}"'
        )
    wanted, complaint = _VERBS[verb]
    for part in _printed_parts(arg) if verb == "s" else (arg,):
        of = checked.types[part.id]
        if of != DYN and of.kind not in wanted:
            problem = f"error during formatting: {complaint}, was given {of.runtime_name}"
            raise _UnfitError(problem, part)
    return clause.end()


def _printed_parts(arg: Expr) -> Iterator[Expr]:
    """Give an argument and, if it is a literal list or map, all that is in it."""
    waiting = [arg]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, ast.ListLiteral):
            waiting += reversed(part.elements)
        elif isinstance(part, ast.MapLiteral):
            inner = [side for entry in part.entries for side in (entry.key, entry.value)]
            waiting += reversed(inner)
