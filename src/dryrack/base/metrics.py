"""
Numbers about what happened, and the text in which Prometheus reads them.

A `Registry` holds families of measures; a family holds one cell for each combination of its
labels' values. Whoever counts is given a registry, takes its cells once, and then only adds to
them. What somebody else knows already, such as the length of a queue, is asked for when the text
is made.

Promise: the text is version 0.0.4 of the exposition format, the same for the same numbers.
"""

from __future__ import annotations

import bisect
import math
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from dryrack.base.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# The format's own name for the bounds of a histogram.
_BOUND = "le"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")

Pairs = tuple[tuple[str, str], ...]
Sample = tuple[str, Pairs, float]
"""What follows the family's name, the labels, and the number."""


class Kind(StrEnum):
    """What may happen to a number."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Count:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1.0) -> None:
        assert amount >= 0, "a counter never goes back"
        self.value += amount

    def samples(self, labels: Pairs) -> Iterator[Sample]:
        yield "", labels, self.value


class Level:
    """A number that goes up and down."""

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
    """How many of the observed numbers are at most as large as each of some bounds."""

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
            yield "_bucket", (*labels, (_BOUND, number(bound))), count
        yield "_sum", labels, self._total
        yield "_count", labels, count


Cell = TypeVar("Cell", Count, Level, Distribution)


class Family(Generic[Cell]):
    """All cells of one name."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], *, kind: Kind, new: Callable[[], Cell]
    ) -> None:
        self.name = name
        self.text = text
        self.labels = tuple(labels)
        self.kind = kind
        self._new: Callable[[], Cell] = new
        self._cells: dict[tuple[str, ...], Cell] = {}
        if not labels:
            # What has never happened is a zero, and not a number that is missing.
            self.of()

    def of(self, *values: str) -> Cell:
        """The cell of these values of the labels, in their order."""
        if len(values) != len(self.labels):
            raise InternalError(f"metric {self.name}: labels {self.labels}, values {values}")
        found = self._cells.get(values)
        if found is None:
            found = self._cells[values] = self._new()
        return found

    def samples(self) -> Iterator[Sample]:
        for values in sorted(self._cells):
            pairs = tuple(zip(self.labels, values, strict=True))
            yield from self._cells[values].samples(pairs)


class Reading:
    """Gauges that are read when the text is made: the sum of what everybody who knows says."""

    kind = Kind.GAUGE

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        self.name = name
        self.text = text
        self.labels = tuple(labels)
        self._readers: list[Callable[[], Mapping[tuple[str, ...], float]]] = []

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


AnyFamily = Family[Count] | Family[Level] | Family[Distribution] | Reading
Asked = TypeVar("Asked", Family[Count], Family[Level], Family[Distribution], Reading)


class Registry:
    """All families of a process, or of a part of it; asking twice for one gives the same."""

    def __init__(self) -> None:
        self._families: dict[str, AnyFamily] = {}

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Count]:
        return self._known(Family(name, text, labels, kind=Kind.COUNTER, new=Count))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Level]:
        return self._known(Family(name, text, labels, kind=Kind.GAUGE, new=Level))

    def reading(self, name: str, text: str, labels: Sequence[str] = ()) -> Reading:
        """Gauges of which somebody else keeps the numbers."""
        return self._known(Reading(name, text, labels))

    def histogram(
        self, name: str, text: str, labels: Sequence[str] = (), *, bounds: Sequence[float]
    ) -> Family[Distribution]:
        """The bounds rise; the last, infinity, is understood."""
        if list(bounds) != sorted(set(bounds)) or not all(map(math.isfinite, bounds)):
            raise InternalError(f"metric {name}: the bounds {list(bounds)} do not rise")
        kept = tuple(bounds)
        family = Family(name, text, labels, kind=Kind.HISTOGRAM, new=lambda: Distribution(kept))
        return self._known(family)

    @property
    def families(self) -> tuple[AnyFamily, ...]:
        """All of them, in the order of their names."""
        return tuple(self._families[name] for name in sorted(self._families))

    def render(self) -> str:
        """The text of all of them."""
        return "".join(line for family in self.families for line in _lines(family))

    def _known(self, asked: Asked) -> Asked:
        _check(asked)
        known = self._families.setdefault(asked.name, asked)
        if type(known) is not type(asked) or _shape(known) != _shape(asked):
            raise InternalError(f"metric {asked.name}: {_shape(known)} and {_shape(asked)}")
        return known


def _check(family: AnyFamily) -> None:
    if not _NAME.fullmatch(family.name):
        raise InternalError(f"metric {family.name!r}: no name of a metric")
    wrong = [each for each in family.labels if not _LABEL.fullmatch(each) or each == _BOUND]
    if wrong or len(set(family.labels)) != len(family.labels):
        raise InternalError(f"metric {family.name}: no labels: {family.labels}")


def _shape(family: AnyFamily) -> tuple[Kind, tuple[str, ...], str]:
    return family.kind, family.labels, family.text


def _lines(family: AnyFamily) -> Iterator[str]:
    text = family.text.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {family.name} {text}\n"
    yield f"# TYPE {family.name} {family.kind}\n"
    for suffix, labels, value in family.samples():
        yield f"{family.name}{suffix}{_braces(labels)} {number(value)}\n"


def _braces(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _quoted(value: str) -> str:
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
