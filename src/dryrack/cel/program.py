"""
From the text of a selector to something that can be asked about devices.

A program has up to three tiers. The fast one is generated Python; it is there if the expression
has a shape that it knows and cannot exceed the cost limit. The counting one is generated too,
for what can be expensive. The exact one can do everything and is asked whenever another meets
anything out of the ordinary.

Code is generated when it is needed: at once for what has loops, and otherwise when the
expression is asked about for the second time. Many are only checked, or have one device to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dryrack.base.errors import DryrackError
from dryrack.cel import types as t
from dryrack.cel.checker import Checked
from dryrack.cel.codegen import generate
from dryrack.cel.counting import count, sharing_in
from dryrack.cel.depth import depth_of, reach_of, room_for
from dryrack.cel.estimation import estimate
from dryrack.cel.folds import has_loops
from dryrack.cel.forms import Change, change_in
from dryrack.cel.frontend import compile_text
from dryrack.cel.interpreter import Variables
from dryrack.cel.planner import PlanError, Planner
from dryrack.cel.result import to_bool
from dryrack.cel.runtime_cost import COST_LIMIT, CostLimitExceededError, Tracker
from dryrack.cel.values import UINT_MAX, Err, PanicError, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.attributes import Step
    from dryrack.cel.counting import Counted
    from dryrack.cel.device import Device, View
    from dryrack.cel.environment import Environment

# What may cost more is worth generating code for, even to be asked once.
_CHEAP = 20_000
_LIMIT_EXCEEDED = "operation cancelled: actual cost limit exceeded"


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
        *("_change", "_checked", "_cost", "_counted", "_depth", "_env"),
        *("_lists", "_reach", "_run", "_step"),
    )

    def __init__(self, checked: Checked, env: Environment, depth: int) -> None:
        self._checked = checked
        self._env = env
        self._lists = env.list_type_attributes
        self._depth = depth
        self._step: Step = Planner(checked, env).plan(checked.expr)
        self._cost: int | None = None
        self._counted: Counted | None = None
        self._change = change_in(checked)
        self._reach, loops = reach_of(checked.expr)
        self._run: Callable[[View], bool] = self._prepare if loops else self._once

    @property
    def max_cost(self) -> int:
        """What an evaluation may cost, as Kubernetes estimates it beforehand."""
        if self._cost is None:
            with room_for(self._depth):
                self._cost = estimate(self._checked, self._env).max
        return self._cost

    def _once(self, view: View) -> bool:
        self._run = self._prepare
        return self._slow(view)

    def _prepare(self, view: View) -> bool:
        self._generate()
        return self._run(view)

    def _generate(self) -> None:
        self._run = self._slow
        with room_for(self._reach):
            if self.max_cost > _CHEAP and has_loops(self._checked.expr):
                self._counted = count(self._step, sharing_in(self._checked))
            if self._counted is not None:
                self._run = self._limited
            if self.max_cost <= COST_LIMIT and self._change is not Change.ALWAYS:
                self._run = generate(self._checked, self._env, self._run) or self._run

    @property
    def is_generated(self) -> bool:
        """Whether there is a tier before the exact one."""
        if self._run in (self._once, self._prepare):
            self._generate()
        return self._run != self._slow

    def matches(self, device: Device) -> bool:
        """Whether the expression selects the device, or raise `EvaluationError`."""
        view = device.lists if self._lists else device.scalars
        if view.error:
            raise EvaluationError(view.error)
        return self._limited(view) if self._sees_changes(view) else self._run(view)

    def matches_with_cost(self, device: Device) -> Judged:
        """The verdict and what it cost."""
        view = device.lists if self._lists else device.scalars
        if view.error:
            return EvaluationError(view.error), 0
        return self._count(view) or self._evaluate(view)

    def _sees_changes(self, view: View) -> bool:
        return self._change is not Change.NEVER and (
            self._change is Change.ALWAYS or view.has_large_amounts
        )

    def matches_exactly(self, device: Device, limit: int = COST_LIMIT) -> Judged:
        """The same by the exact tier alone, which is the measure of the others."""
        view = device.lists if self._lists else device.scalars
        return (EvaluationError(view.error), 0) if view.error else self._evaluate(view, limit)

    def matches_counting(self, device: Device, limit: int = COST_LIMIT) -> Judged | None:
        """The same by the counting tier alone; None if it cannot tell."""
        view = device.lists if self._lists else device.scalars
        with room_for(self._reach):
            counted = count(self._step, sharing_in(self._checked), limit)
        return None if view.error else self._counted_by(counted, view)

    def _limited(self, view: View) -> bool:
        return _verdict(self._count(view) or self._evaluate(view))

    def _slow(self, view: View) -> bool:
        return _verdict(self._evaluate(view))

    def _count(self, view: View) -> Judged | None:
        """Ask the counting tier; None if there is none, or it has met anything unusual."""
        if self._run == self._prepare:
            self._generate()
        return self._counted_by(self._counted, view)

    def _counted_by(self, counted: Counted | None, view: View) -> Judged | None:
        if counted is None:
            return None
        try:
            value, cost = counted(self._variable(view))
        except CostLimitExceededError as exceeded:
            return EvaluationError(_LIMIT_EXCEEDED), exceeded.cost & UINT_MAX
        except Exception:  # noqa: BLE001 - for the exact tier to judge
            return None
        if type(value) is Err:
            return EvaluationError(value.message), cost
        return (value, cost) if type(value) is bool else None

    def _variable(self, view: View) -> dict[str, Value]:
        return view.own() if self._sees_changes(view) else view.variable

    def _evaluate(self, view: View, limit: int = COST_LIMIT) -> Judged:
        tracker = Tracker(limit)
        verdict = self._value(view, tracker)
        judged = EvaluationError(verdict.message) if isinstance(verdict, Err) else verdict
        return judged, tracker.cost & UINT_MAX

    def _value(self, view: View, tracker: Tracker) -> bool | Err:
        try:
            with room_for(self._reach):
                value = self._step.eval(Variables({"device": self._variable(view)}), tracker)
        except CostLimitExceededError:
            return Err(_LIMIT_EXCEEDED)
        except PanicError as panic:
            return Err(f"internal error: {panic}")
        return value if type(value) is Err else to_bool(value)


def _verdict(judged: Judged) -> bool:
    verdict, _cost = judged
    if isinstance(verdict, EvaluationError):
        raise verdict
    return verdict


def compile_expression(text: str, env: Environment) -> Program | CompileError:
    """Compile a selector, or say why it is none."""
    checked = compile_text(text, env)
    if not isinstance(checked, Checked):
        return CompileError(f"compilation failed: {checked.text}")
    depth = depth_of(checked.expr)
    with room_for(depth):
        return _program(checked, env, depth)


def _program(checked: Checked, env: Environment, depth: int) -> Program | CompileError:
    output = checked.output_type
    if output not in (t.BOOL, t.ANY) and not (env.list_type_attributes and output == t.DYN):
        return CompileError(f"must evaluate to bool or the unknown type, not {output.qualified()}")
    try:
        return Program(checked, env, depth)
    except (PlanError, PanicError) as error:
        return CompileError(f"program instantiation failed: {error}")
