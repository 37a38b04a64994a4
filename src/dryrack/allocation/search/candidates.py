"""
Which devices the selectors of a request let through.

A selector sees a device's driver, attributes, capacities and whether it may be shared, and
nothing else. Devices that agree in these have one shape, and an expression is evaluated once
per shape, for all nodes and all attempts of an allocator's life. Errors are kept like any
other verdict: whether they matter depends on whether the search gets that far.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from dryrack import cel
from dryrack.allocation.model.features import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.allocation.model.features import Features
    from dryrack.allocation.supply.pools import PooledDevice
    from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity, DeviceSelector


class Selector(Protocol):
    """A compiled expression."""

    def matches(self, device: cel.Device) -> bool:
        """Whether the device is selected; raises `cel.EvaluationError`."""
        ...


class SelectorCompiler(Protocol):
    """The seam to CEL."""

    def compile(self, expression: str) -> Selector | cel.CompileError: ...


class CelCompiler:
    """CEL as the scheduler uses it: expressions that were stored, every library on."""

    def __init__(self, features: Features, release: Release = Release.V1_36) -> None:
        # From 1.37 on a stored expression may look at lists whatever the gate says.
        lists = features.list_type_attributes or release is not Release.V1_36
        self._environment = cel.Environment(
            consumable_capacity=features.consumable_capacity,
            list_type_attributes=lists,
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


# Selected, not selected, or a selector failed.
Verdict = bool | SelectorFailure


class SelectorTable:
    """Compiled expressions and what they said about each shape."""

    def __init__(self, compiler: SelectorCompiler) -> None:
        self._compiler = compiler
        self._programs: dict[str, Selector | cel.CompileError] = {}
        self._verdicts: dict[str, dict[cel.Device, Verdict]] = {}
        self._lists: dict[tuple[str, ...], dict[cel.Device, Verdict]] = {}

    def verdicts(self, expressions: tuple[str, ...]) -> dict[cel.Device, Verdict]:
        """What is known for a list of selectors, by shape; `judge` adds to it."""
        return self._lists.setdefault(expressions, {})

    def judge(self, expressions: tuple[str, ...], shape: cel.Device) -> Verdict:
        """Whether all selectors let the device through; the first that fails decides."""
        verdict = self.verdicts(expressions)[shape] = self._judge_all(expressions, shape)
        return verdict

    def first_unmet(self, expressions: tuple[str, ...], shape: cel.Device) -> str:
        """The first expression that does not let the device through."""
        return next(e for e in expressions if self._judge_one(e, shape) is not True)

    def _judge_all(self, expressions: tuple[str, ...], shape: cel.Device) -> Verdict:
        for index, expression in enumerate(expressions):
            verdict = self._judge_one(expression, shape)
            if isinstance(verdict, SelectorFailure):
                return SelectorFailure(index, verdict.stage, verdict.message)
            if not verdict:
                return False
        return True

    def _judge_one(self, expression: str, shape: cel.Device) -> Verdict:
        known = self._verdicts.setdefault(expression, {})
        if shape not in known:
            known[shape] = self._evaluate(expression, shape)
        return known[shape]

    def _evaluate(self, expression: str, shape: cel.Device) -> Verdict:
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = self._compiler.compile(expression)
        if isinstance(program, cel.CompileError):
            return SelectorFailure(0, "compile", program.message)
        try:
            return program.matches(shape)
        except cel.EvaluationError as error:
            return SelectorFailure(0, "runtime", error.message)


def shape_of(pooled: PooledDevice) -> cel.Device:
    """The device as selectors see it: the same object for devices that look the same."""
    shape = pooled.shape
    if shape is None:
        device = pooled.device
        # Two quantities of one value may be held differently, and CEL can tell.
        capacity = tuple(
            [
                (name, each.value.unscaled, each.value.scale, each.value.big, each)
                for name, each in device.capacity.items()
            ]
        )
        shape = pooled.shape = _prepared(
            pooled.slice.spec.driver,
            tuple(device.attributes.items()),
            capacity,
            device.allow_multiple_allocations,
        )
    return shape


# A scheduler makes an allocator for each pod, and sees the same devices every time.
@lru_cache(maxsize=65536)
def _prepared(
    driver: str,
    attributes: tuple[tuple[str, DeviceAttribute], ...],
    capacity: tuple[tuple[str, int, int, bool, DeviceCapacity], ...],
    multiple: bool | None,
) -> cel.Device:
    amounts = {name: each for name, _, _, _, each in capacity}
    return cel.Device(driver, dict(attributes), amounts, multiple)


def expressions_of(selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)
