"""
What selectors say about devices, each expression once per shape.

A selector sees a device's driver, attributes, capacities and whether it may be shared, and
nothing else. Devices that agree in these have one shape, and an expression is compiled once and
evaluated once per shape, for as long as a table lives. Errors are kept like any other verdict:
whether they matter depends on who asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dryrack.cel.evaluation.program import CompileError, EvaluationError

if TYPE_CHECKING:
    from dryrack.cel.device import Device


class Selector(Protocol):
    """A compiled expression."""

    def matches(self, device: Device) -> bool:
        """Whether the device is selected; raises `EvaluationError`."""
        ...


class SelectorCompiler(Protocol):
    """Makes a selector of an expression, or says why it is none."""

    def compile(self, expression: str) -> Selector | CompileError: ...


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector that could not be evaluated, by its place in the list."""

    index: int
    # "compile" or "runtime"
    stage: str
    message: str


# Selected, not selected, or a selector failed.
Verdict = bool | SelectorFailure


class SelectorTable:
    """Compiled expressions and what they said about each shape."""

    def __init__(self, compiler: SelectorCompiler) -> None:
        self._compiler = compiler
        self._programs: dict[str, Selector | CompileError] = {}
        self._verdicts: dict[str, dict[Device, Verdict]] = {}
        self._lists: dict[tuple[str, ...], dict[Device, Verdict]] = {}

    def program(self, expression: str) -> Selector | CompileError:
        """The expression, compiled once."""
        known = self._programs.get(expression)
        if known is None:
            known = self._programs[expression] = self._compiler.compile(expression)
        return known

    def verdicts(self, expressions: tuple[str, ...]) -> dict[Device, Verdict]:
        """What is known for a list of selectors, by shape; `judge` adds to it."""
        return self._lists.setdefault(expressions, {})

    def judge(self, expressions: tuple[str, ...], shape: Device) -> Verdict:
        """Whether all selectors let the device through; the first that fails decides."""
        verdict = self.verdicts(expressions)[shape] = self._judge_all(expressions, shape)
        return verdict

    def _judge_all(self, expressions: tuple[str, ...], shape: Device) -> Verdict:
        for index, expression in enumerate(expressions):
            verdict = self.judge_one(expression, shape)
            if isinstance(verdict, SelectorFailure):
                return SelectorFailure(index, verdict.stage, verdict.message)
            if not verdict:
                return False
        return True

    def judge_one(self, expression: str, shape: Device) -> Verdict:
        """What one selector says of the device."""
        known = self._verdicts.setdefault(expression, {})
        if shape not in known:
            known[shape] = self._evaluate(expression, shape)
        return known[shape]

    def _evaluate(self, expression: str, shape: Device) -> Verdict:
        program = self.program(expression)
        if isinstance(program, CompileError):
            return SelectorFailure(0, "compile", program.message)
        try:
            return program.matches(shape)
        except EvaluationError as error:
            return SelectorFailure(0, "runtime", error.message)
