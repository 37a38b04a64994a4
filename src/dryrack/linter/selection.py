"""
Which devices a list of selectors picks, by evaluating it on every device there is.

Fleets are many copies of few devices. Devices that look the same to all expressions, because
they differ only in what none of them reads, are one `Shape`. An expression is compiled once,
and a list of selectors runs once per shape, however many claims carry it. As in the scheduler,
selectors run in order, a device that one refuses is not shown to the next, and an error is not
a "no": it stops the pod that met it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

from dryrack import cel
from dryrack.cel.selectors import SelectorFailure, SelectorTable
from dryrack.hardware.names import qualified
from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity
from dryrack.kinds.selectors import tolerates_device_taint
from dryrack.kinds.validation.parts import EXPRESSION_BYTES_MAX, EXPRESSION_COST_MAX
from dryrack.kinds.validation.problems import byte_length

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.releases import Release
    from dryrack.kinds.resource import DeviceSelector, DeviceToleration
    from dryrack.linter.world import PlacedDevice


@dataclass(frozen=True, slots=True)
class Shape:
    """Devices that are equal for all expressions."""

    device: cel.Device
    members: list[PlacedDevice] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failure:
    """An expression that ends in an error on some devices."""

    selector: int
    expression: str
    message: str
    shapes: tuple[Shape, ...]

    @property
    def example(self) -> PlacedDevice:
        return self.shapes[0].members[0]

    @property
    def device_count(self) -> int:
        return sum(len(shape.members) for shape in self.shapes)


@dataclass(frozen=True, eq=False)
class Selected:
    """The shapes that match; all shapes if an expression does not compile."""

    shapes: tuple[Shape, ...]
    failures: tuple[Failure, ...] = ()
    compiled: bool = True

    @property
    def devices(self) -> Iterator[PlacedDevice]:
        return (placed for shape in self.shapes for placed in shape.members)

    @property
    def examples(self) -> Iterator[PlacedDevice]:
        """One device of each shape."""
        return (shape.members[0] for shape in self.shapes)

    @cached_property
    def device_count(self) -> int:
        return sum(len(shape.members) for shape in self.shapes)

    @cached_property
    def drivers(self) -> frozenset[str]:
        return frozenset(placed.entry.value.spec.driver for placed in self.examples)

    def names_of(self, kind: str) -> frozenset[str]:
        """Full names of all attributes, or of all capacities."""
        return self._names[kind]

    @cached_property
    def _names(self) -> Mapping[str, frozenset[str]]:
        return {
            kind: frozenset(
                qualified(name, placed.entry.value.spec.driver)
                for placed in self.examples
                for name in getattr(placed.device, kind)
            )
            for kind in ("attributes", "capacity")
        }


class Selection:
    """All devices of a world, ready to be asked about."""

    def __init__(
        self,
        devices: Iterable[PlacedDevice],
        release: Release,
        visible: frozenset[str] | None = None,
    ) -> None:
        """`visible` are the attributes and capacities that anybody reads; None for all."""
        self.everything = Selected(_shapes(devices, visible))
        # A scheduler compiles stored selectors with it.
        stored = cel.Environment(
            consumable_capacity=True,
            list_type_attributes=False,
            new_expressions=False,
            release=release,
        )
        self._table = SelectorTable(partial(_compile, stored))
        # By identity: every `among` is itself an answer that is kept here.
        self._answers: dict[tuple[Hashable, ...], Selected] = {}

    def select(self, selectors: Sequence[DeviceSelector], among: Selected) -> Selected:
        """Those of `among` that pass all selectors."""
        texts = tuple(each.cel.expression if each.cel else "" for each in selectors)
        key = (id(among), texts)
        if key not in self._answers:
            self._answers[key] = self._run(texts, among)
        return self._answers[key]

    def _run(self, texts: Sequence[str], among: Selected) -> Selected:
        if any(isinstance(self._table.selector(text), cel.CompileError) for text in texts):
            return Selected(among.shapes, compiled=False)
        remaining = among.shapes
        failures = list[Failure]()
        for index, text in enumerate(texts):
            passed, errors = self._evaluate(text, remaining)
            failures += [
                Failure(index, text, message, tuple(shapes)) for message, shapes in errors.items()
            ]
            remaining = passed
        return Selected(remaining, tuple(failures))

    def _evaluate(
        self, text: str, shapes: Iterable[Shape]
    ) -> tuple[tuple[Shape, ...], dict[str, list[Shape]]]:
        passed: list[Shape] = []
        errors: dict[str, list[Shape]] = {}
        for shape in shapes:
            verdict = self._table.judge_one(text, shape.device)
            if isinstance(verdict, SelectorFailure):
                errors.setdefault(verdict.message, []).append(shape)
            elif verdict:
                passed.append(shape)
        return tuple(passed), errors


def _compile(stored: cel.Environment, expression: str) -> cel.Program | cel.CompileError:
    """Compile an expression, or refuse it if the API server would: no cluster stores it."""
    if byte_length(expression) > EXPRESSION_BYTES_MAX:
        return cel.CompileError("too long")
    program = cel.compile_expression(expression, stored)
    if isinstance(program, cel.Program) and program.max_cost > EXPRESSION_COST_MAX:
        return cel.CompileError("too costly")
    return program


def _shapes(devices: Iterable[PlacedDevice], visible: frozenset[str] | None) -> tuple[Shape, ...]:
    found: dict[Hashable, Shape] = {}
    for placed in devices:
        driver = placed.entry.value.spec.driver
        device = placed.device
        key = (
            driver,
            _visible_entries(device.attributes, visible),
            _visible_entries(device.capacity, visible),
            bool(device.allow_multiple_allocations),
        )
        shape = found.get(key)
        if shape is None:
            attributes = _readable(device.attributes)
            capacity = device.capacity
            multiple = device.allow_multiple_allocations
            shape = found[key] = Shape(cel.Device(driver, attributes, capacity, multiple))
        shape.members.append(placed)
    return tuple(found.values())


def _readable(attributes: Mapping[str, DeviceAttribute]) -> Mapping[str, DeviceAttribute]:
    """
    Return the attributes that have a value.

    The API server refuses a slice that has an attribute without one, so no expression sees it. The
    refusal is reported; an error of the expression would be a second finding with another fix.
    """
    if all(_has_value(each) for each in attributes.values()):
        return attributes
    return {name: each for name, each in attributes.items() if _has_value(each)}


def _has_value(attribute: DeviceAttribute) -> bool:
    values = (
        *(attribute.string_value, attribute.int_value),
        *(attribute.version_value, attribute.bool_value),
    )
    return any(value is not None for value in values)


def _visible_entries(
    values: Mapping[str, object], visible: frozenset[str] | None
) -> tuple[object, ...]:
    """Return the visible entries of a map, in the order of their names."""
    names = sorted(
        name
        for name, value in values.items()
        if visible is None or name.rpartition("/")[2] in visible or _is_odd(value)
    )
    return tuple((name, _value(values[name])) for name in names)


def _value(value: object) -> object:
    # A request policy is not visible to expressions.
    return value.value if isinstance(value, DeviceCapacity) else value


def _is_odd(value: object) -> bool:
    """Return whether the value makes every expression on the device fail."""
    return isinstance(value, DeviceAttribute) and (
        value.int_value is None and value.bool_value is None and value.string_value is None
    )


# The effects that keep a request away; None is only a note.
_KEEPING_AWAY = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Reach:
    """The most devices that any node can use, and the first such node, if they have nodes."""

    count: int
    node: str


class Supply:
    """
    The devices that requests can reach.

    All devices of a claim must be reachable from one node. Claims with equal selectors share one
    count.
    """

    def __init__(self, node_names: Sequence[str]) -> None:
        self._order = {name: index for index, name in enumerate(node_names)}
        self._answers: dict[Hashable, Reach] = {}

    def reach(
        self, selections: Sequence[Selected], tolerations: tuple[DeviceToleration, ...]
    ) -> Reach:
        """Return how many devices that any of `selections` picks the best node can reach."""
        # By identity: `Selection` keeps all selections as long as the world exists.
        key = (tuple(sorted({id(each) for each in selections})), tolerations)
        if key not in self._answers:
            shapes = {id(shape): shape for each in selections for shape in each.shapes}
            devices = (placed for shape in shapes.values() for placed in shape.members)
            self._answers[key] = self._count(devices, tolerations)
        return self._answers[key]

    def _count(
        self, devices: Iterable[PlacedDevice], tolerations: tuple[DeviceToleration, ...]
    ) -> Reach:
        shared = 0
        own = Counter[str]()
        for placed in devices:
            if not _is_usable(placed, tolerations):
                continue
            node = placed.node_name
            if node is None:
                shared += 1
            elif node in self._order:
                own[node] += 1
        best = min(own, key=lambda name: (-own[name], self._order[name]), default="")
        return Reach(shared + own[best], best)


def _is_usable(placed: PlacedDevice, tolerations: tuple[DeviceToleration, ...]) -> bool:
    """Return whether a request with these tolerations tolerates all taints of the device."""
    return all(
        any(tolerates_device_taint(toleration, taint) for toleration in tolerations)
        for taint in placed.device.taints
        if taint.effect in _KEEPING_AWAY
    )
