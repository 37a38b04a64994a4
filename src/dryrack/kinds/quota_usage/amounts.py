"""Amounts of resources, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Amounts = dict[str, Quantity]

NOTHING = Quantity.parse("0")
ONE = Quantity.parse("1")


def parse_amounts(raw: Mapping[str, Any] | None) -> Amounts:
    """Return the amounts of a JSON object."""
    return {name: Quantity.from_json(value) for name, value in (raw or {}).items()}


def amounts_to_json(amounts: Amounts) -> dict[str, str]:
    """Return a JSON object, sorted by name."""
    return {name: str(amounts[name]) for name in sorted(amounts)}


def add_amounts(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Amounts:
    """Return the sums of amounts of the same name."""
    result = dict(left)
    for name, amount in right.items():
        result[name] = result[name] + amount if name in result else amount
    return result


def select_amounts(amounts: Amounts, names: Iterable[str]) -> Amounts:
    """Return only the amounts with these names."""
    wanted = set(names)
    return {name: amount for name, amount in amounts.items() if name in wanted}


def compute_increase(now: Amounts, before: Amounts) -> Amounts:
    """Return the increase of each amount; a decrease counts as nothing."""
    result: Amounts = {}
    for name, amount in now.items():
        more = amount - before[name] if name in before else amount
        result[name] = max(more, NOTHING)
    return result


def format_amounts(amounts: Amounts) -> str:
    """Return the amounts as text for a message."""
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
