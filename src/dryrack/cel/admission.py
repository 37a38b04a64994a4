"""
The API server's check of a selector: it must compile, and its highest cost is limited.

`kinds.validation` calls it by its `ExpressionChecker` port. Many claims have the same selectors,
so each is compiled once.
"""

from functools import lru_cache

from dryrack.cel.checking.environment import Environment
from dryrack.cel.evaluation.program import CompileError, compile_expression
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.kinds.validation.parts import EXPRESSION_COST_MAX, TOO_COMPLEX, ExpressionProblem

# As many distinct selectors as a large cluster has; each is a few kilobytes.
_KNOWN_MAX = 4096


class SelectorChecker:
    """The compiler of a release with its default gates."""

    def __init__(self, release: Release = DEFAULT_RELEASE) -> None:
        self._release = release

    def check(self, expression: str, *, stored: bool) -> ExpressionProblem | None:
        return _problem(expression, stored, self._release)


@lru_cache(maxsize=_KNOWN_MAX)
def _problem(expression: str, stored: bool, release: Release) -> ExpressionProblem | None:
    environment = Environment(
        consumable_capacity=True,
        list_type_attributes=False,
        new_expressions=not stored,
        release=release,
    )
    program = compile_expression(expression, environment)
    if isinstance(program, CompileError):
        return ExpressionProblem(program.message)
    return TOO_COMPLEX if program.max_cost > EXPRESSION_COST_MAX else None
