"""A selector, compiled from its text and ready to be evaluated on devices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from dryrack.base.errors import DryrackError
from dryrack.cel.checking import types as t
from dryrack.cel.checking.checker import Checked
from dryrack.cel.checking.frontend import compile_text
from dryrack.cel.device import with_own_quantities
from dryrack.cel.device_reads import reads_of
from dryrack.cel.estimation import estimate
from dryrack.cel.evaluation.interpreter import Variables, evaluate
from dryrack.cel.evaluation.planner import PlanError, Planner
from dryrack.cel.evaluation.result import to_bool
from dryrack.cel.evaluation.values import UINT_MAX, Err, PanicError, Value
from dryrack.cel.parsing.depth import depth_of, evaluation_depth, raised_recursion_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.device import Device
    from dryrack.cel.device_reads import Read
    from dryrack.cel.evaluation.attributes import Step

_COMPARE = frozenset({"quantity_is_greater_than", "quantity_is_less_than", "quantity_compare_to"})
_COMPUTE = frozenset({"quantity_add", "quantity_add_int", "quantity_sub", "quantity_sub_int"})
_ASK = frozenset({"quantity_get_int", "quantity_is_integer"})


@dataclass(frozen=True, slots=True)
class CompileError:
    """The reason why a text is not a selector, in Kubernetes' words."""

    message: str


class EvaluationError(DryrackError):
    """The expression cannot be answered for this device; the message is Kubernetes'."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


Judged: TypeAlias = tuple[bool | EvaluationError, int]


class Program:
    """A compiled selector."""

    def __init__(self, checked: Checked, env: Environment, depth: int) -> None:
        self._checked = checked
        self._env = env
        self._depth = depth
        self._step: Step = Planner(checked, env).plan(checked.expr)
        # Upstream keeps large numbers in another form than others. A comparison with a large one
        # changes the form of a quantity, which is then no integer; an addition to a large one
        # changes the large one. The expression may show that.
        used = {name for each in checked.references.values() for name in each.overload_ids}
        self._changes = bool(used & _COMPUTE) or bool(used & _COMPARE and used & _ASK)
        self._evaluation_depth = evaluation_depth(checked.expr)

    @cached_property
    def max_cost(self) -> int:
        """The highest cost of an evaluation, as Kubernetes estimates it beforehand."""
        with raised_recursion_limit(self._depth):
            return estimate(self._checked, self._env).max

    @property
    def reads(self) -> tuple[Read, ...] | None:
        """The attributes and capacities that the selector reads; None if not only by name."""
        return reads_of(self._checked.expr)

    def matches(self, device: Device) -> bool:
        """Return whether the expression selects the device, or raise `EvaluationError`."""
        verdict, _cost = self.matches_with_cost(device)
        if isinstance(verdict, EvaluationError):
            raise verdict
        return verdict

    def matches_with_cost(self, device: Device) -> Judged:
        """Return whether the expression selects the device, or the error, and the cost."""
        value, cost = self.evaluate(device)
        if isinstance(value, EvaluationError):
            return value, cost
        verdict = to_bool(value)
        return EvaluationError(verdict.message) if isinstance(verdict, Err) else verdict, cost

    def evaluate(self, device: Device) -> tuple[Value | EvaluationError, int]:
        """Return the value of the expression for the device, or the error, and the cost."""
        lists = self._env.evaluates_lists
        variable = device.variable(lists=lists)
        if isinstance(variable, Err):
            return EvaluationError(variable.message), 0
        if self._changes:
            variable = with_own_quantities(variable)
        value, cost = evaluate(self._step, Variables({"device": variable}), self._evaluation_depth)
        result = EvaluationError(value.message) if type(value) is Err else value
        return result, cost & UINT_MAX


def _output_problem(output: t.Type, env: Environment) -> str:
    """Return why the type of an expression is not that of a selector, or ""."""
    behaviour = env.behaviour
    is_any = output == t.ANY and behaviour.any_is_a_result
    is_wrapped = output == t.wrapper(t.BOOL) and behaviour.wrapped_bool_is_a_result
    if is_any or is_wrapped or output in (t.BOOL, env.attribute_type):
        return ""
    return f"must evaluate to bool or the unknown type, not {output.qualified()}"


def compile_expression(
    text: str,
    env: Environment,
    *,
    check_output: Callable[[t.Type, Environment], str] = _output_problem,
) -> Program | CompileError:
    """Compile a selector, or return why it does not compile."""
    checked = compile_text(text, env)
    if not isinstance(checked, Checked):
        return CompileError(f"compilation failed: {checked.text}")
    depth = depth_of(checked.expr)
    with raised_recursion_limit(depth):
        problem = check_output(checked.output_type, env)
        if problem:
            return CompileError(problem)
        try:
            return Program(checked, env, depth)
        except (PlanError, PanicError) as error:
            return CompileError(f"program instantiation failed: {error}")
