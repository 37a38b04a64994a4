"""
What the counting code calls: the steps that are not written out.

`FailedError` is CEL's own failure, which other steps may absorb; the code around knows what it
costs. Any other exception says that the exact tier must be asked.
"""

from __future__ import annotations

from dryrack.cel import attributes as paths
from dryrack.cel.ast import Uint
from dryrack.cel.emission import FailedError
from dryrack.cel.folds import plain_or_raise
from dryrack.cel.runtime_cost import CostLimitExceededError
from dryrack.cel.values import (
    Duration,
    Err,
    MutableList,
    MutableMap,
    Optional,
    Timestamp,
    TypeValue,
    Value,
    Version,
)

# Equal ones of these cannot be told from each other.
VALUES: frozenset[type] = frozenset(
    (bool, int, Uint, float, str, bytes, type(None), TypeValue, Duration, Timestamp, Version, Err)
)


NO_OVERLOAD = Err("no such overload")


def over(limit: int, total: int, *prices: int) -> CostLimitExceededError:
    """The end of an evaluation whose last steps had these prices, and cost too much in all."""
    cost = total - sum(prices)
    for price in prices:
        cost += price
        if not 0 <= cost <= limit:
            break
    return CostLimitExceededError(cost)


def mutable_if_empty(value: Value) -> Value:
    if isinstance(value, list) and not value:
        return MutableList()
    if isinstance(value, dict) and not value:
        return MutableMap()
    return plain_or_raise(value)


def finished(value: Value) -> Value:
    if type(value) is MutableList:
        return list(value)
    return dict(value) if type(value) is MutableMap else value


def taken_apart(value: Value) -> Value:
    """What a path is that goes nowhere."""
    if type(value) is not Optional or not value.present:
        return value
    return Optional(paths.unwrapped(value.value))


def present(value: Value, key: Value) -> tuple[Value, bool]:
    found, there, error = paths.look_up_if_present(value, _key(key))
    if error is not None:
        raise FailedError(error)
    return found, there


def look_up_computed(value: Value, key: Value) -> Value:
    """What is under a key that is not known beforehand, and may be none."""
    found = paths.look_up(value, _key(key))
    if type(found) is Err:
        raise FailedError(found)
    return found


def _key(key: Value) -> Value:
    if type(key) not in paths.QUALIFIER_TYPES:
        raise TypeError("not a key, even of what is absent")
    return key


def first_failure(*values: Value) -> FailedError:
    """Of arguments that were all worked out, the first that failed."""
    return FailedError(next(value for value in values if type(value) is Err))


def absorbed(accumulated: Value, value: Value, decisive: Value) -> Value:
    """What is left of two terms: one that decides, or the first failure."""
    if value is decisive:
        return value
    if type(accumulated) is Err:
        return accumulated
    return value if type(value) is Err else NO_OVERLOAD
