"""
Metrics: numbers about what happened, in the text that Prometheus reads (version 0.0.4).

A `Registry` holds families of measures; a family holds one cell for each combination of its
labels' values. Whoever counts is given a registry, takes its cells once, and then only adds to
them. What somebody else knows already, such as the length of a queue, is asked for when the text
is made. The text is the same for the same numbers.

It is written here because prometheus_client takes 50 ms to import, a quarter of a start.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from dryrack.base.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Pairs = tuple[tuple[str, str], ...]
Sample = tuple[str, Pairs, float]
"""What follows the family's name, the labels, and the number."""


class Number:
    """A number that grows, and if it is a gauge goes down too."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def set(self, value: float) -> None:
        self.value = value

    def add(self, amount: float = 1.0) -> None:
        self.value += amount

    def samples(self, labels: Pairs) -> Iterator[Sample]:
        yield "", labels, self.value


class Distribution:
    """How many of the observed numbers are at most as large as each of some rising bounds."""

    __slots__ = ("_bounds", "_buckets", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._buckets = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        self._buckets[bisect.bisect_left(self._bounds, value)] += 1
        self._total += value

    def samples(self, labels: Pairs) -> Iterator[Sample]:
        count = 0
        for bound, found in zip((*self._bounds, math.inf), self._buckets, strict=True):
            count += found
            yield "_bucket", (*labels, ("le", number(bound))), count
        yield "_sum", labels, self._total
        yield "_count", labels, count


Cell = TypeVar("Cell", Number, Distribution)


@dataclass(slots=True)
class Family(Generic[Cell]):
    """All cells of one name."""

    name: str
    text: str
    labels: tuple[str, ...]
    kind: str
    new: Callable[[], Cell]
    _cells: dict[tuple[str, ...], Cell] = field(default_factory=dict)

    def of(self, *values: str) -> Cell:
        """The cell of these values of the labels, in their order."""
        if len(values) != len(self.labels):
            raise InternalError(f"metric {self.name}: labels {self.labels}, values {values}")
        found = self._cells.get(values)
        if found is None:
            found = self._cells[values] = self.new()
        return found

    def samples(self) -> Iterator[Sample]:
        if not self.labels:
            # What has never happened is a zero, and not a number that is missing.
            self.of()
        for values in sorted(self._cells):
            yield from self._cells[values].samples(tuple(zip(self.labels, values, strict=True)))


@dataclass(slots=True)
class Reading:
    """Gauges that are read when the text is made: the sum of what everybody who knows says."""

    name: str
    text: str
    labels: tuple[str, ...]
    kind: str = "gauge"
    _readers: list[Callable[[], Mapping[tuple[str, ...], float]]] = field(default_factory=list)

    def read_from(self, reader: Callable[[], Mapping[tuple[str, ...], float]]) -> None:
        """Asks for numbers by the values of the labels."""
        self._readers.append(reader)

    def samples(self) -> Iterator[Sample]:
        found: dict[tuple[str, ...], float] = {}
        for reader in self._readers:
            for values, value in reader().items():
                found[values] = found.get(values, 0) + value
        for values in sorted(found):
            yield "", tuple(zip(self.labels, values, strict=True)), found[values]


AnyFamily = Family[Number] | Family[Distribution] | Reading
Asked = TypeVar("Asked", Family[Number], Family[Distribution], Reading)


class Registry:
    """All families of a process, or of a part of it; asking twice for one gives the same."""

    def __init__(self) -> None:
        self._families: dict[str, AnyFamily] = {}

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Number]:
        return self._known(Family(name, text, tuple(labels), "counter", Number))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Number]:
        return self._known(Family(name, text, tuple(labels), "gauge", Number))

    def reading(self, name: str, text: str, labels: Sequence[str] = ()) -> Reading:
        """Gauges of which somebody else keeps the numbers."""
        return self._known(Reading(name, text, tuple(labels)))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> Family[Distribution]:
        """The bounds rise; the last, infinity, is understood."""
        new = partial(Distribution, tuple(bounds))
        return self._known(Family(name, text, tuple(labels), "histogram", new))

    @property
    def families(self) -> tuple[AnyFamily, ...]:
        """All of them, in the order of their names."""
        return tuple(self._families[name] for name in sorted(self._families))

    def render(self) -> str:
        """The text of all of them."""
        return "".join(line for family in self.families for line in _lines(family))

    def _known(self, asked: Asked) -> Asked:
        known = self._families.setdefault(asked.name, asked)
        is_alike = (known.kind, known.labels, known.text) == (asked.kind, asked.labels, asked.text)
        if type(known) is not type(asked) or not is_alike:
            raise InternalError(f"metric {asked.name} is defined twice, and not alike")
        return known


def _lines(family: AnyFamily) -> Iterator[str]:
    text = family.text.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {family.name} {text}\n"
    yield f"# TYPE {family.name} {family.kind}\n"
    for suffix, labels, value in family.samples():
        pairs = ",".join(f'{name}="{_escaped(each)}"' for name, each in labels)
        braces = f"{{{pairs}}}" if pairs else ""
        yield f"{family.name}{suffix}{braces} {number(value)}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def number(value: float) -> str:
    """A number as Prometheus reads it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    # Beyond this a float has no units any more, and its digits would be made up.
    is_whole = float(value).is_integer() and abs(value) < 2**53
    return str(int(value)) if is_whole else repr(float(value))
