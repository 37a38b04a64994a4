"""
The verdicts of selectors, each computed once for all devices that the selector sees alike.

Most selectors read a few attributes and capacities by name. Devices that agree in these, in their
driver, and in whether they can be shared get the same verdict, which is computed on a device that
has nothing else. A selector that looks at a device in another way is evaluated once per shape: a
shape is all that selectors can see of a device. Errors are remembered like any other verdict:
whether they matter depends on the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel.device import Device
from dryrack.cel.evaluation.program import CompileError, EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dryrack.cel.device_reads import Read
    from dryrack.cel.evaluation.program import Program


@dataclass(frozen=True, slots=True)
class SelectorFailure:
    """A selector that could not be evaluated, by its place in the list."""

    index: int
    # "compile" or "runtime"
    stage: str
    message: str


# Selected, not selected, or a selector failed.
Verdict = bool | SelectorFailure


class Selector:
    """A compiled selector and its verdicts."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._reads = program.reads
        # Names of the attributes and capacities that it reads, by driver.
        self._names: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._verdicts: dict[Hashable, Verdict] = {}

    def judge(self, device: Device) -> Verdict:
        """Return whether the selector selects the device, or why it cannot be evaluated."""
        if self._reads is None or device.is_irregular:
            verdict = self._verdicts.get(device)
            if verdict is None:
                verdict = self._verdicts[device] = self._evaluate(device)
            return verdict
        names = self._names.get(device.driver)
        if names is None:
            names = self._names[device.driver] = _names(self._reads, device.driver)
        # Two quantities of one value can be held in different forms, and CEL shows which.
        forms = [
            each and (each.value.unscaled, each.value.scale, each.value.big)
            for each in map(device.capacity.get, names[1])
        ]
        key = (device.driver, device.is_shareable, *map(device.attributes.get, names[0]), *forms)
        verdict = self._verdicts.get(key)
        if verdict is None:
            seen = Device(
                device.driver,
                {name: device.attributes[name] for name in names[0] if name in device.attributes},
                {name: device.capacity[name] for name in names[1] if name in device.capacity},
                device.is_shareable,
            )
            verdict = self._verdicts[key] = self._evaluate(seen)
        return verdict

    def _evaluate(self, device: Device) -> Verdict:
        try:
            return self._program.matches(device)
        except EvaluationError as error:
            return SelectorFailure(0, "runtime", error.message)


def _names(reads: tuple[Read, ...], driver: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that attributes, and capacities, of these reads can have in a slice."""
    names: dict[str, list[str]] = {"attributes": [], "capacity": []}
    for read in reads:
        names[read.kind].append(f"{read.domain}/{read.name}")
        if read.domain == driver:
            names[read.kind].append(read.name)
    return tuple(names["attributes"]), tuple(names["capacity"])


class SelectorTable:
    """Compiled selectors and the verdicts of lists of selectors for each shape."""

    def __init__(self, compiler: Callable[[str], Program | CompileError]) -> None:
        self._compile = compiler
        self._selectors: dict[str, Selector | CompileError] = {}
        self._verdicts: dict[tuple[str, ...], dict[Device, Verdict]] = {}

    def selector(self, expression: str) -> Selector | CompileError:
        """Return the selector, which is compiled once."""
        selector = self._selectors.get(expression)
        if selector is None:
            program = self._compile(expression)
            selector = program if isinstance(program, CompileError) else Selector(program)
            self._selectors[expression] = selector
        return selector

    def verdicts(self, expressions: tuple[str, ...]) -> dict[Device, Verdict]:
        """Return the known verdicts of a list of selectors, by shape; `judge` adds to it."""
        return self._verdicts.setdefault(expressions, {})

    def judge(self, expressions: tuple[str, ...], shape: Device) -> Verdict:
        """Return whether all selectors select the device; the first that does not decides."""
        verdict: Verdict = True
        for index, expression in enumerate(expressions):
            verdict = self.judge_one(expression, shape)
            if isinstance(verdict, SelectorFailure):
                verdict = SelectorFailure(index, verdict.stage, verdict.message)
            if verdict is not True:
                break
        self.verdicts(expressions)[shape] = verdict
        return verdict

    def judge_one(self, expression: str, shape: Device) -> Verdict:
        """Return the verdict of one selector."""
        selector = self.selector(expression)
        if isinstance(selector, CompileError):
            return SelectorFailure(0, "compile", selector.message)
        return selector.judge(shape)
