"""
Price lists: what an hour of each instance type costs, with date and source.

    apiVersion: dryrack.dev/v1alpha1
    kind: PriceList
    currency: USD
    date: "2026-01-19"
    source: our contract
    prices:
      p5.48xlarge: 31.5

A later list replaces the prices of earlier ones. A type that no list has has no price.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.kinds.documents import read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.documents import Document, Problem

API_VERSION = "dryrack.dev/v1alpha1"
KIND = "PriceList"
CURRENCY = "USD"
_TEXTS = ("currency", "date", "source", "provider", "region")
_REQUIRED = ("date", "source", "prices")


@dataclass(frozen=True, slots=True)
class Price:
    """The price of an hour in US dollars, and the date and the source of it."""

    amount: Fraction
    date: str
    source: str


class PriceError(ContentError):
    """Price lists are invalid; contains all problems, with file and line."""


def parse_prices(files: Mapping[str, bytes]) -> dict[str, Price]:
    """Return the prices of these files by instance type; raise `PriceError`."""
    prices: dict[str, Price] = {}
    problems: list[Problem] = []
    for name, content in files.items():
        reading = read(content, name)
        problems += reading.problems
        for document in reading.documents:
            found = list(_problems(document))
            problems += found
            if not found:
                prices.update(_prices(document))
        if not reading.documents and not reading.problems:
            raise PriceError(f"{name}: no PriceList found; see: dryrack plan --help")
    if problems:
        raise PriceError("\n".join(map(str, problems)))
    return prices


def _prices(document: Document) -> Iterator[tuple[str, Price]]:
    raw = document.raw
    for name, amount in raw["prices"].items():
        yield name, Price(Fraction(str(amount)), str(raw["date"]), raw["source"])


def _problems(document: Document) -> Iterator[Problem]:
    raw: Mapping[str, Any] = document.raw
    if raw.get("kind") != KIND or raw.get("apiVersion") != API_VERSION:
        fix = f"write apiVersion: {API_VERSION} and kind: {KIND}"
        yield document.problem("kind", f"kind {raw.get('kind')!r} is not a price list", fix)
        return
    for name in raw:
        if name not in ("apiVersion", "kind", "prices", *_TEXTS):
            known = ", ".join(("prices", *_TEXTS))
            yield document.problem(name, f"{name}: unknown field", f"use one of: {known}")
    for name in _REQUIRED:
        if not raw.get(name):
            yield document.problem("", f"{name} is missing", f"set {name}")
    if raw.get("currency", CURRENCY) != CURRENCY:
        fix = f"convert the prices to {CURRENCY}"
        yield document.problem("currency", f"currency {raw['currency']!r} is not supported", fix)
    prices = raw.get("prices")
    if not isinstance(prices, dict):
        if prices:
            fix = "write one line for each instance type, such as p5.48xlarge: 55.04"
            yield document.problem("prices", "prices is not a mapping", fix)
        return
    for name, amount in prices.items():
        is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not is_number or not 0 < amount < float("inf"):
            fix = "write the US dollars of an hour, greater than zero"
            yield document.problem(("prices", name), f"price {amount!r} of {name}", fix)


def date_and_source(prices: Iterable[Price]) -> tuple[str, str]:
    """Return the earliest date of the prices, and all their sources."""
    used = list(prices)
    dates = sorted({each.date for each in used})
    sources = sorted({each.source for each in used})
    return (dates[0] if dates else ""), "; ".join(sources)
