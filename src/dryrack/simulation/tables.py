"""
Rows of a CSV file with a header, and errors that name the line.

A column that is not known is an error with the nearest known name: a typing mistake would otherwise
silently change the result.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.base.text import hint
from dryrack.kinds.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


# Three thousand years in seconds: floating-point numbers still tell milliseconds apart.
_NUMBER_MAX = 1e11
# The largest value of an integer in most fields of the API.
_WHOLE_MAX = 2**31 - 1


class TraceError(ContentError):
    """A trace or a list of nodes cannot be read."""


class Row:
    """One row of a table, by the names of the columns."""

    __slots__ = ("_table", "_values", "line")

    def __init__(self, table: Table, values: dict[str, str], line: int) -> None:
        self._table = table
        self._values = values
        self.line = line

    def text(self, column: str, default: str = "") -> str:
        return self._values.get(column, "").strip() or default

    def number(self, column: str, default: float | None = None) -> float:
        """Return a number that is neither negative nor too large for a time."""
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number <= _NUMBER_MAX:
            raise self.error(column, f"{text!r} is not a number from 0 to {_NUMBER_MAX:.0f}")
        return number

    def optional(self, column: str) -> float | None:
        """Return a number that is not negative, or None for an empty field."""
        return self.number(column) if self.text(column) else None

    def whole(
        self,
        column: str,
        default: int | None = None,
        *,
        least: int = 0,
        most: int = _WHOLE_MAX,
    ) -> int:
        """Return a whole number between the limits."""
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise self.error(column, f"{text!r} is not a whole number from {least} to {most}")
        return number

    def quantity(self, column: str) -> str:
        """Return a Kubernetes quantity that is not negative, as it is written."""
        text = self.text(column)
        try:
            is_valid = not text or Quantity.parse(text).sign >= 0
        except QuantityError:
            is_valid = False
        if not is_valid:
            raise self.error(
                column, f"{text!r} is not a quantity of 0 or more, such as 500m or 4Gi"
            )
        return text

    def error(self, column: str, problem: str) -> TraceError:
        return TraceError(f"{self._table.source}:{self.line}: column {column}: {problem}")


class Table:
    """A CSV file with a header, which is read row by row."""

    def __init__(
        self,
        lines: Sequence[str],
        source: str,
        *,
        required: Collection[str],
        known: Collection[str],
        delimiter: str = ",",
    ) -> None:
        """`known` are all columns of the format."""
        self.source = source
        self._reader = csv.reader(lines, delimiter=delimiter)
        header = [each.strip() for each in next(self._reader, [])]
        if not any(header):
            names = ", ".join(required)
            raise TraceError(f"{source}: the file is empty; it needs a header with: {names}")
        self.columns = header
        if len(header) == 1 and delimiter not in header[0]:
            other = next((each for each in ",;|\t" if each in header[0]), "")
            if other:
                problem = f"the columns are separated by {other!r}; separate them by {delimiter!r}"
                raise TraceError(f"{source}:1: {problem}")
        for number, name in enumerate(header):
            if name not in known:
                raise TraceError(f"{source}:1: unknown column {name!r}; {hint(name, known)}")
            if name and name in header[:number]:
                raise TraceError(f"{source}:1: column {name!r} occurs twice")
        for name in required:
            if name not in header:
                near = hint(name, header)
                raise TraceError(f"{source}:1: column {name!r} is missing; {near}")

    def __iter__(self) -> Iterator[Row]:
        width = len(self.columns)
        try:
            for values in self._reader:
                if not values:
                    continue
                line = self._reader.line_num
                if len(values) != width:
                    raise TraceError(
                        f"{self.source}:{line}: {len(values)} fields; the header has {width}"
                    )
                yield Row(self, dict(zip(self.columns, values, strict=True)), line)
        except csv.Error as error:
            raise TraceError(f"{self.source}:{self._reader.line_num}: {error}") from error
