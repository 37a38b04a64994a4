"""Amounts of resources, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Amounts = dict[str, Quantity]

NOTHING = Quantity.parse("0")
ONE = Quantity.parse("1")


def read(raw: Mapping[str, Any] | None) -> Amounts:
    return {name: Quantity.from_json(value) for name, value in (raw or {}).items()}


def written(amounts: Amounts) -> dict[str, str]:
    return {name: str(amounts[name]) for name in sorted(amounts)}


def added(left: Mapping[str, Quantity], right: Mapping[str, Quantity]) -> Amounts:
    made = dict(left)
    for name, amount in right.items():
        made[name] = made[name] + amount if name in made else amount
    return made


def masked(amounts: Amounts, names: Iterable[str]) -> Amounts:
    wanted = set(names)
    return {name: amount for name, amount in amounts.items() if name in wanted}


def risen(now: Amounts, before: Amounts) -> Amounts:
    """How much more it is; what is less counts as nothing."""
    made: Amounts = {}
    for name, amount in now.items():
        more = amount - before[name] if name in before else amount
        made[name] = max(more, NOTHING)
    return made


def shown(amounts: Amounts) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
