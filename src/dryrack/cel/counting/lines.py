"""
Python statements with one counter, `k`, and what it must show if a statement fails.

Cost only ever rises, so it is added up and compared with the limit once for many steps. If it
is too high then, the steps are gone through again, one by one, for the one at which the exact
tier stops.

A failure is an exception, so that statements which succeed need not look for it. Whoever
catches it knows by the number of its line what was done and not yet paid for at that place,
what the failed step costs itself, and what the steps around it cost that only pass it on.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.cel.emission import Names, Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# The line that names the function, and the one that makes its variables.
HEADER_LINES = 2
# The error that was caught, where the price of a failure depends on it.
ERROR = "err"
# Loops and branches; Python's own parser allows a hundred levels of indentation.
_DEPTH_MAX = 60
# Loops and what may fail, inside each other: Python allows fewer than twenty.
_NESTED_MAX = 19
# A variable that is bound may have to be worked out in several branches.
_LINES_MAX = 4000


@dataclass(frozen=True, slots=True)
class Region:
    """Statements whose failures are caught together."""

    # For each line that can fail, the prices to be paid then.
    sites: dict[int, tuple[str, ...]] = field(default_factory=dict)
    # What the steps that are being written cost if they only pass on a failure; the inner last.
    around: list[tuple[str, ...]] = field(default_factory=list)


class TooMuchError(Unsupported):
    """It could be written, but Python would not take it."""


class Lines:
    """The statements that are written so far."""

    def __init__(self, limit: int, *, catches: bool) -> None:
        self.limit = limit
        self.lines: list[str] = []
        self.names = Names()
        self._indent = 1
        self._nested = 0
        self._pending: list[str] = []
        # For each block that is open, the bound variables that have their values for certain.
        self._blocks: list[set[str]] = [set()]
        # None where failures are left to the exact tier.
        self._region: Region | None = Region() if catches else None

    def _line(self, text: str) -> None:
        if self._indent > _DEPTH_MAX or len(self.lines) > _LINES_MAX:
            raise TooMuchError("nested too deeply, or too long")
        self.lines.append(" " * self._indent + text)

    def flush(self) -> None:
        if self._pending:
            self._pay(self._pending)
            self._pending = []

    def _pay(self, prices: Sequence[str]) -> None:
        self._line(f"k += {_sum(prices)}")
        self._line(f"if k > {self.limit}: raise over(k, {', '.join(prices)})")

    def _charge(self, price: int | str) -> None:
        self._pending.append(str(price))

    def _assign(self, code: str) -> str:
        name = self.names.temporary()
        self._line(f"{name} = {code}")
        return name

    @contextmanager
    def _block(self, opening: str) -> Iterator[None]:
        """What is only done if, or as often as, the line says."""
        self._line(opening)
        nests = opening.startswith(("for ", "try:"))
        self._nested += nests
        if self._nested > _NESTED_MAX:
            raise TooMuchError("too much inside each other")
        self._indent += 1
        self._blocks.append(set())
        yield
        self.flush()
        self._blocks.pop()
        self._indent -= 1
        self._nested -= nests

    # Failures.

    def _risky(self, line: str, *prices: str) -> None:
        """A statement that may fail, and what the step costs that it is of if it does."""
        self._line(line)
        region = self._region
        if region is not None:
            passed = [price for prices in reversed(region.around) for price in prices]
            region.sites[len(self.lines) + HEADER_LINES] = (*self._pending, *prices, *passed)

    def _risk(self, code: str, *prices: str) -> str:
        name = self.names.temporary()
        self._risky(f"{name} = {code}", *prices)
        return name

    @contextmanager
    def _around(self, *prices: str) -> Iterator[None]:
        """Parts of a step that costs so much if one of them fails."""
        region = self._region
        if region is None:
            yield
            return
        region.around.append(prices)
        yield
        region.around.pop()

    @contextmanager
    def _uncaught(self) -> Iterator[None]:
        """Where a failure has consequences that are not written out."""
        region, self._region = self._region, None
        yield
        self._region = region

    @contextmanager
    def _caught(self, value: str) -> Iterator[Region]:
        """Statements that give the variable its value, which is the error if one of them fails."""
        outer, region = self._region, Region()
        if outer is None:
            yield region
            return
        self._region, start = region, len(self.lines)
        with self._block("try:"):
            yield region
        self._region = outer
        if region.sites:
            self._catch(region, value)
        else:
            self.lines[start] = self.lines[start].replace("try:", "if True:")

    def _catch(self, region: Region, value: str) -> None:
        self._line("except Failed as failed:")
        self._indent += 1
        # Python goes through all lines for the number of one, so it is asked once for each.
        self._line("i = failed.__traceback__.tb_lasti")
        self._line("at = places.get(i)")
        self._line("if at is None: at = places[i] = failed.__traceback__.tb_lineno")
        self._line(f"{value} = {ERROR} = failed.error")
        word = "if"
        for prices, lines in _by_prices(region.sites).items():
            self._line(f"{word} at in {lines!r}:")
            self._indent += 1
            self._pay(prices or ("0",))
            # The price of a failure can be less than nothing, which is too much as well.
            self._line(f"if k < 0: raise over(k, {', '.join(prices)})")
            self._indent -= 1
            word = "elif"
        self._line("else: raise")
        self._indent -= 1

    def _fail_if_failed(self, value: str, *prices: str) -> None:
        self._risky(f"if {value}.__class__ is Err: raise Failed({value})", *prices)


def _by_prices(sites: dict[int, tuple[str, ...]]) -> dict[tuple[str, ...], tuple[int, ...]]:
    grouped: dict[tuple[str, ...], tuple[int, ...]] = {}
    for line, prices in sites.items():
        grouped[prices] = (*grouped.get(prices, ()), line)
    return grouped


def _sum(prices: Sequence[str]) -> str:
    """The prices that are known as one number, and the names of the others."""
    known = sum(int(price) for price in prices if price.isdigit())
    return " + ".join([str(known), *(price for price in prices if not price.isdigit())])
