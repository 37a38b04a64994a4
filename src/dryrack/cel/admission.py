"""
The API server's check of a selector: it must compile, and its highest cost is limited.

`kinds.validation` calls it by its `ExpressionChecker` port. Many claims have the same selectors,
so each is compiled once.
"""

from functools import lru_cache

from dryrack.cel.checking.environment import Environment
from dryrack.cel.derived import compile_derived
from dryrack.cel.evaluation.program import CompileError, compile_expression
from dryrack.kinds.releases import FeatureSet
from dryrack.kinds.validation.parts import EXPRESSION_COST_MAX, TOO_COMPLEX, ExpressionProblem

# As many distinct selectors as a large cluster has; each is a few kilobytes.
_KNOWN_MAX = 4096
_DEFAULT_FEATURES = FeatureSet()


class SelectorChecker:
    """The compiler of a release, with its feature gates."""

    def __init__(self, features: FeatureSet = _DEFAULT_FEATURES) -> None:
        new, stored = (
            Environment(
                consumable_capacity=features.is_on("DRAConsumableCapacity"),
                list_type_attributes=features.is_on("DRAListTypeAttributes"),
                new_expressions=is_new,
                release=features.release,
            )
            for is_new in (True, False)
        )
        self._new = new
        self._stored = stored

    def check(self, expression: str, *, stored: bool) -> ExpressionProblem | None:
        return _problem(expression, self._stored if stored else self._new)

    def check_derived(self, expression: str) -> tuple[ExpressionProblem | None, int]:
        return _derived_problem(expression, self._new)


@lru_cache(maxsize=_KNOWN_MAX)
def _problem(expression: str, environment: Environment) -> ExpressionProblem | None:
    program = compile_expression(expression, environment)
    if isinstance(program, CompileError):
        return ExpressionProblem(program.message)
    return TOO_COMPLEX if program.max_cost > EXPRESSION_COST_MAX else None


@lru_cache(maxsize=_KNOWN_MAX)
def _derived_problem(
    expression: str, environment: Environment
) -> tuple[ExpressionProblem | None, int]:
    """Return the first problem, and the highest cost."""
    program = compile_derived(expression, environment)
    if isinstance(program, CompileError):
        return ExpressionProblem(program.message), 0
    is_costly = program.max_cost > EXPRESSION_COST_MAX
    return TOO_COMPLEX if is_costly else None, program.max_cost
