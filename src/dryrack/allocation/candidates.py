"""
Which devices the selectors of a request let through.

A selector sees a device's driver, attributes, capacities and whether it may be shared, and
nothing else. Devices that agree in these have one shape, and an expression is evaluated once
per shape, for all nodes and all attempts of an allocator's life. Errors are kept like any
other verdict: whether they matter depends on whether the search gets that far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from dryrack import cel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation.features import Features
    from dryrack.allocation.pools import PooledDevice
    from dryrack.kinds.resource import Device, DeviceSelector


class Selector(Protocol):
    """A compiled expression."""

    def matches(self, device: cel.Device) -> bool:
        """Whether the device is selected; raises `cel.EvaluationError`."""
        ...


@runtime_checkable
class SelectorCompiler(Protocol):
    """The seam to CEL."""

    def compile(self, expression: str) -> Selector | cel.CompileError: ...


class CelCompiler:
    """CEL as the scheduler uses it: expressions that were stored, every library on."""

    def __init__(self, features: Features) -> None:
        self._environment = cel.Environment(
            consumable_capacity=features.consumable_capacity,
            list_type_attributes=features.list_type_attributes,
            new_expressions=False,
        )

    def compile(self, expression: str) -> Selector | cel.CompileError:
        return cel.compile_expression(expression, self._environment)


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector that could not be evaluated, by its place in the list."""

    index: int
    # "compile" or "runtime"
    stage: str
    message: str


# Selected, or not selected by the selector at this place, or it failed.
Verdict = bool | SelectorFailure


class SelectorTable:
    """Compiled expressions and what they said about each shape."""

    def __init__(self, compiler: SelectorCompiler) -> None:
        self._compiler = compiler
        self._programs: dict[str, Selector | cel.CompileError] = {}
        self._numbers: dict[object, int] = {}
        self._devices: list[cel.Device] = []
        self._verdicts: dict[str, dict[int, Verdict]] = {}
        self._lists: dict[tuple[str, ...], dict[int, Verdict]] = {}

    def verdicts(self, expressions: tuple[str, ...]) -> dict[int, Verdict]:
        """What is known for a list of selectors, by shape; `judge` fills it."""
        return self._lists.setdefault(expressions, {})

    def judge(self, expressions: tuple[str, ...], pooled: PooledDevice) -> Verdict:
        """Whether all selectors let the device through; the first that fails decides."""
        shape = pooled.shape
        if shape < 0:
            shape = self._shape(pooled)
        known = self._lists.setdefault(expressions, {})
        verdict = known.get(shape)
        if verdict is None:
            verdict = known[shape] = self._judge_all(expressions, shape)
        return verdict

    def first_unmet(self, expressions: tuple[str, ...], pooled: PooledDevice) -> str:
        """The first expression that does not let the device through."""
        shape = self._shape(pooled)
        return next(e for e in expressions if self._judge_one(e, shape) is not True)

    def _judge_all(self, expressions: tuple[str, ...], shape: int) -> Verdict:
        for index, expression in enumerate(expressions):
            verdict = self._judge_one(expression, shape)
            if isinstance(verdict, SelectorFailure):
                return SelectorFailure(index, verdict.stage, verdict.message)
            if not verdict:
                return False
        return True

    def _judge_one(self, expression: str, shape: int) -> Verdict:
        known = self._verdicts.setdefault(expression, {})
        if shape not in known:
            known[shape] = self._evaluate(expression, shape)
        return known[shape]

    def _evaluate(self, expression: str, shape: int) -> Verdict:
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = self._compiler.compile(expression)
        if isinstance(program, cel.CompileError):
            return SelectorFailure(0, "compile", program.message)
        try:
            return program.matches(self._devices[shape])
        except cel.EvaluationError as error:
            return SelectorFailure(0, "runtime", error.message)

    def _shape(self, pooled: PooledDevice) -> int:
        if pooled.shape < 0:
            key = _shape_key(pooled.id.driver, pooled.device)
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = len(self._devices)
                self._devices.append(_prepared(pooled.id.driver, pooled.device))
            pooled.shape = number
        return pooled.shape


def expressions_of(selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def _shape_key(driver: str, device: Device) -> object:
    # Two quantities of one value may be held differently, and CEL can tell.
    capacity = tuple(
        (name, each.value.unscaled, each.value.scale, each.value.big)
        for name, each in device.capacity.items()
    )
    return driver, tuple(device.attributes.items()), capacity, device.allow_multiple_allocations


def _prepared(driver: str, device: Device) -> cel.Device:
    return cel.Device(driver, device.attributes, device.capacity, device.allow_multiple_allocations)
