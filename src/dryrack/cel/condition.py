"""
An expression with variables of its own: the rules of custom kinds, and admission policies.

Compiled once, against the types of its variables, and evaluated with its cost, because what
an evaluation costs is counted against a budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel.checking.checker import Checked
from dryrack.cel.checking.frontend import compile_text
from dryrack.cel.evaluation import interpreter
from dryrack.cel.evaluation.planner import PlanError, Planner
from dryrack.cel.evaluation.values import PanicError
from dryrack.cel.parsing.depth import depth_of, raised_recursion_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.evaluation.attributes import Scope, Step
    from dryrack.cel.evaluation.values import Value


@dataclass(frozen=True, slots=True)
class Condition:
    """An expression that compiles: its types, how to evaluate it, and how deeply it nests."""

    checked: Checked
    step: Step
    depth: int


class Values:
    """The outermost scope: variables by name."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def resolve(self, name: str) -> Value:
        return self._values[name]


def compile_condition(text: str, env: Environment) -> Condition | str:
    """The expression, or why it does not compile, in Kubernetes' words."""
    checked = compile_text(text, env)
    if not isinstance(checked, Checked):
        return f"compilation failed: {checked.text}"
    depth = depth_of(checked.expr)
    try:
        with raised_recursion_limit(depth):
            return Condition(checked, Planner(checked, env).plan(checked.expr), depth)
    except (PlanError, PanicError) as error:
        return f"program instantiation failed: {error}"


def evaluate(condition: Condition, scope: Scope) -> tuple[Value, int]:
    """The value of an expression, or its error; and what that cost."""
    return interpreter.evaluate(condition.step, scope, condition.depth)
