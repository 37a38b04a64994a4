"""
From the text of a selector to something that can be asked about devices.

A program has up to two tiers. The fast one is generated Python; it is there if the expression
has a shape that it knows and cannot exceed the cost limit. The exact one can do everything and is
asked whenever the fast one meets anything out of the ordinary.

Code is generated when the expression is asked about for the second time. Many are only checked,
or have one device to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dryrack.base.errors import DryrackError
from dryrack.cel.checking import types as t
from dryrack.cel.checking.checker import Checked
from dryrack.cel.checking.frontend import compile_text
from dryrack.cel.estimation import estimate
from dryrack.cel.evaluation.codegen import generate
from dryrack.cel.evaluation.interpreter import Variables, evaluate
from dryrack.cel.evaluation.planner import PlanError, Planner
from dryrack.cel.evaluation.result import to_bool
from dryrack.cel.evaluation.runtime_cost import COST_LIMIT
from dryrack.cel.evaluation.values import UINT_MAX, Err, PanicError
from dryrack.cel.parsing.depth import depth_of, evaluation_depth, raised_recursion_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.device import Device, View
    from dryrack.cel.evaluation.attributes import Step

_COMPARE = frozenset({"quantity_is_greater_than", "quantity_is_less_than", "quantity_compare_to"})
_COMPUTE = frozenset({"quantity_add", "quantity_add_int", "quantity_sub", "quantity_sub_int"})
_ASK = frozenset({"quantity_get_int", "quantity_is_integer"})


@dataclass(frozen=True, slots=True)
class CompileError:
    """Why a text is not a selector, in Kubernetes' words."""

    message: str


class EvaluationError(DryrackError):
    """The expression cannot be answered for this device; the message is Kubernetes'."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


Judged: TypeAlias = tuple[bool | EvaluationError, int]


class Program:
    """A compiled selector."""

    __slots__ = (
        *("_changes", "_checked", "_cost", "_depth", "_env", "_evaluation_depth", "_lists"),
        *("_run", "_step"),
    )

    def __init__(self, checked: Checked, env: Environment, depth: int) -> None:
        self._checked = checked
        self._env = env
        self._lists = env.list_type_attributes
        self._depth = depth
        self._step: Step = Planner(checked, env).plan(checked.expr)
        self._cost: int | None = None
        self._changes = _sees_changes(checked)
        self._evaluation_depth = evaluation_depth(checked.expr)
        self._run: Callable[[View], bool] = self._once

    @property
    def max_cost(self) -> int:
        """What an evaluation may cost, as Kubernetes estimates it beforehand."""
        if self._cost is None:
            with raised_recursion_limit(self._depth):
                self._cost = estimate(self._checked, self._env).max
        return self._cost

    def _once(self, view: View) -> bool:
        self._run = self._prepare
        return self._slow(view)

    def _prepare(self, view: View) -> bool:
        self._run = self._generated() or self._slow
        return self._run(view)

    def _generated(self) -> Callable[[View], bool] | None:
        if self._changes or self.max_cost > COST_LIMIT:
            return None
        with raised_recursion_limit(self._evaluation_depth):
            return generate(self._checked, self._env, self._slow)

    def matches(self, device: Device) -> bool:
        """Whether the expression selects the device, or raise `EvaluationError`."""
        view = device.lists if self._lists else device.scalars
        if view.error:
            raise EvaluationError(view.error)
        return self._run(view)

    def matches_with_cost(self, device: Device) -> Judged:
        """The verdict and what it cost, by the exact tier alone."""
        view = device.lists if self._lists else device.scalars
        return (EvaluationError(view.error), 0) if view.error else self._evaluate(view)

    def _slow(self, view: View) -> bool:
        verdict, _cost = self._evaluate(view)
        if isinstance(verdict, EvaluationError):
            raise verdict
        return verdict

    def _evaluate(self, view: View) -> Judged:
        variable = view.own() if self._changes else view.variable
        value, cost = evaluate(self._step, Variables({"device": variable}), self._evaluation_depth)
        verdict = value if type(value) is Err else to_bool(value)
        judged = EvaluationError(verdict.message) if isinstance(verdict, Err) else verdict
        return judged, cost & UINT_MAX


def _sees_changes(checked: Checked) -> bool:
    """
    Whether the expression may see that quantities change by being used.

    Upstream keeps large numbers in another form than others. To compare a quantity with a large
    one changes its form, and then it is no integer; to add to a large one changes the large one.
    """
    used = {name for each in checked.references.values() for name in each.overload_ids}
    return bool(used & _COMPUTE) or bool(used & _COMPARE and used & _ASK)


def compile_expression(text: str, env: Environment) -> Program | CompileError:
    """Compile a selector, or say why it is none."""
    checked = compile_text(text, env)
    if not isinstance(checked, Checked):
        return CompileError(f"compilation failed: {checked.text}")
    depth = depth_of(checked.expr)
    with raised_recursion_limit(depth):
        return _program(checked, env, depth)


def _program(checked: Checked, env: Environment, depth: int) -> Program | CompileError:
    output = checked.output_type
    if output not in (t.BOOL, t.ANY) and not (env.list_type_attributes and output == t.DYN):
        return CompileError(f"must evaluate to bool or the unknown type, not {output.qualified()}")
    try:
        return Program(checked, env, depth)
    except (PlanError, PanicError) as error:
        return CompileError(f"program instantiation failed: {error}")
