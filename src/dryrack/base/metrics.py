"""
Metrics in the text format of Prometheus (version 0.0.4).

A `Registry` contains families of metrics; a family contains one cell for each combination of label
values. A component gets its cells from the registry once, and then only adds to them. Numbers that
exist elsewhere, such as the length of a queue, are read when the text is rendered. The text is the
same for the same numbers.

dryrack does not use prometheus_client because its import takes 50 ms, a quarter of a start.
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
"""The suffix of the family's name, the labels, and the number."""


class Number:
    """The value of a counter or a gauge."""

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
    """A histogram: the number of observed values up to each of some increasing bounds."""

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
        for bound, size in zip((*self._bounds, math.inf), self._buckets, strict=True):
            count += size
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
        """Return the cell of these label values."""
        if len(values) != len(self.labels):
            raise InternalError(f"metric {self.name}: labels {self.labels}, values {values}")
        cell = self._cells.get(values)
        if cell is None:
            cell = self._cells[values] = self.new()
        return cell

    def samples(self) -> Iterator[Sample]:
        if not self.labels:
            # A metric that was never counted is rendered as zero.
            self.of()
        for values in sorted(self._cells):
            yield from self._cells[values].samples(tuple(zip(self.labels, values, strict=True)))


@dataclass(slots=True)
class Reading:
    """Gauges that are read when the text is rendered; several readers are added up."""

    name: str
    text: str
    labels: tuple[str, ...]
    kind: str = "gauge"
    _readers: list[Callable[[], Mapping[tuple[str, ...], float]]] = field(default_factory=list)

    def read_from(self, reader: Callable[[], Mapping[tuple[str, ...], float]]) -> None:
        """Add a function that returns numbers by label values."""
        self._readers.append(reader)

    def samples(self) -> Iterator[Sample]:
        sums: dict[tuple[str, ...], float] = {}
        for reader in self._readers:
            for values, value in reader().items():
                sums[values] = sums.get(values, 0) + value
        for values in sorted(sums):
            yield "", tuple(zip(self.labels, values, strict=True)), sums[values]


AnyFamily = Family[Number] | Family[Distribution] | Reading
Asked = TypeVar("Asked", Family[Number], Family[Distribution], Reading)


class Registry:
    """All families of a process, or of a part of it; each name has one family."""

    def __init__(self) -> None:
        self._families: dict[str, AnyFamily] = {}

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Number]:
        return self._register(Family(name, text, tuple(labels), "counter", Number))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Number]:
        return self._register(Family(name, text, tuple(labels), "gauge", Number))

    def reading(self, name: str, text: str, labels: Sequence[str] = ()) -> Reading:
        """Return gauges whose numbers are read from functions."""
        return self._register(Reading(name, text, tuple(labels)))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> Family[Distribution]:
        """Return a histogram with increasing bounds; the last, infinity, is added."""
        new = partial(Distribution, tuple(bounds))
        return self._register(Family(name, text, tuple(labels), "histogram", new))

    @property
    def families(self) -> tuple[AnyFamily, ...]:
        """All families, in the order of their names."""
        return tuple(self._families[name] for name in sorted(self._families))

    def render(self) -> str:
        """Return the text of all families."""
        return "".join(line for family in self.families for line in _lines(family))

    def _register(self, new: Asked) -> Asked:
        family = self._families.setdefault(new.name, new)
        is_same = (family.kind, family.labels, family.text) == (new.kind, new.labels, new.text)
        if type(family) is not type(new) or not is_same:
            raise InternalError(f"metric {new.name} is defined twice, and not alike")
        return family


def _lines(family: AnyFamily) -> Iterator[str]:
    text = family.text.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {family.name} {text}\n"
    yield f"# TYPE {family.name} {family.kind}\n"
    for suffix, labels, value in family.samples():
        pairs = ",".join(f'{name}="{_escape(each)}"' for name, each in labels)
        braces = f"{{{pairs}}}" if pairs else ""
        yield f"{family.name}{suffix}{braces} {number(value)}\n"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def number(value: float) -> str:
    """Return a number as text for Prometheus."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    # Larger floats are not exact, and most of their digits would have no meaning.
    is_whole = float(value).is_integer() and abs(value) < 2**53
    return str(int(value)) if is_whole else repr(float(value))
