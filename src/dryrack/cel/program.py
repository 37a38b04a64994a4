"""
From the text of a selector to something that can be asked about devices.

A program has two tiers. The fast one is generated Python; it is there if the expression has a
shape that it knows and cannot exceed the cost limit. The exact one can do everything and is
asked whenever the fast one meets anything out of the ordinary.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cel import types as t
from dryrack.cel.checker import Checked
from dryrack.cel.codegen import generate
from dryrack.cel.counting import count
from dryrack.cel.depth import depth_of
from dryrack.cel.estimation import estimate
from dryrack.cel.frontend import compile_text
from dryrack.cel.interpreter import Variables
from dryrack.cel.planner import PlanError, Planner
from dryrack.cel.result import to_bool
from dryrack.cel.runtime_cost import COST_LIMIT, CostLimitExceededError, Tracker
from dryrack.cel.values import UINT_MAX, Err, PanicError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dryrack.cel.attributes import Step
    from dryrack.cel.device import Device, View
    from dryrack.cel.environment import Environment
    from dryrack.cel.values import Value

# An attribute within an attribute is the deepest a single level of the tree goes.
_FRAMES_PER_LEVEL = 6
_FRAMES_TO_SPARE = 500
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


class Program:
    """A compiled selector."""

    __slots__ = ("_counted", "_depth", "_lists", "_run", "_step", "max_cost")

    def __init__(self, checked: Checked, env: Environment) -> None:
        self._lists = env.list_type_attributes
        self._depth = depth_of(checked.expr)
        with _frames(self._depth):
            self._step: Step = Planner(checked, env).plan(checked.expr)
        self.max_cost: int = estimate(checked, env).max
        self._counted: Callable[[Value], Value] | None = None
        if self.max_cost <= COST_LIMIT:
            fast = generate(checked, env, self._slow)
            self._run = self._slow if fast is None else fast
        else:
            self._counted = count(self._step)
            self._run = self._slow if self._counted is None else self._count

    @property
    def is_generated(self) -> bool:
        """Whether there is a tier before the exact one."""
        return self._run != self._slow

    def matches(self, device: Device) -> bool:
        """Whether the expression selects the device, or raise `EvaluationError`."""
        view = device.lists if self._lists else device.scalars
        if view.error:
            raise EvaluationError(view.error)
        return self._run(view)

    def matches_with_cost(self, device: Device) -> tuple[bool | EvaluationError, int]:
        """The verdict and what it cost, by the exact tier."""
        view = device.lists if self._lists else device.scalars
        if view.error:
            return EvaluationError(view.error), 0
        tracker = Tracker()
        verdict = self._evaluate(view, tracker)
        return (EvaluationError(verdict.message) if isinstance(verdict, Err) else verdict), (
            tracker.cost & UINT_MAX
        )

    def _count(self, view: View) -> bool:
        assert self._counted is not None, "the constructor has seen to it"
        try:
            value = self._counted(view.variable)
        except CostLimitExceededError:
            raise EvaluationError(_LIMIT_EXCEEDED) from None
        except Exception:  # noqa: BLE001 - anything unusual is for the exact tier to judge
            return self._slow(view)
        return value if type(value) is bool else self._slow(view)

    def _slow(self, view: View) -> bool:
        verdict = self._evaluate(view, Tracker())
        if isinstance(verdict, Err):
            raise EvaluationError(verdict.message)
        return verdict

    def _evaluate(self, view: View, tracker: Tracker) -> bool | Err:
        try:
            with _frames(self._depth):
                value = self._step.eval(Variables({"device": view.variable}), tracker)
        except CostLimitExceededError:
            return Err(_LIMIT_EXCEEDED)
        except PanicError as panic:
            return Err(f"internal error: {panic}")
        return value if type(value) is Err else to_bool(value)


@contextmanager
def _frames(depth: int) -> Iterator[None]:
    """
    Let Python nest as deeply as the expression does.

    A chain such as `1 + 1 + …` is thousands of levels deep and steps call each other directly,
    so it takes no more of the machine's stack; only Python's own count has to allow it.
    """
    needed = depth * _FRAMES_PER_LEVEL + _FRAMES_TO_SPARE
    allowed = sys.getrecursionlimit()
    if needed <= allowed:
        yield
        return
    sys.setrecursionlimit(allowed + needed)
    try:
        yield
    finally:
        sys.setrecursionlimit(allowed)


def compile_expression(text: str, env: Environment) -> Program | CompileError:
    """Compile a selector, or say why it is none."""
    checked = compile_text(text, env)
    if not isinstance(checked, Checked):
        return CompileError(f"compilation failed: {checked.text}")
    output = checked.output_type
    if output not in (t.BOOL, t.ANY) and not (env.list_type_attributes and output == t.DYN):
        return CompileError(f"must evaluate to bool or the unknown type, not {output.qualified()}")
    try:
        return Program(checked, env)
    except (PlanError, PanicError) as error:
        return CompileError(f"program instantiation failed: {error}")
