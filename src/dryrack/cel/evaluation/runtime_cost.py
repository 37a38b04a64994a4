"""
The cost of an evaluation, unit for unit as Kubernetes counts it.

Each step reports here when it is done. A call is charged by the sizes of its arguments; if one
was never evaluated, because an earlier one failed, the call costs nothing. Once the cost exceeds
the limit the evaluation is cancelled.

Upstream looks the arguments up on a stack of the values that steps left behind. In some loops it
finds there what an earlier iteration left, and charges by that; only in those the stack is kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from dryrack.cel.cost_factors import (
    AUTHORIZATION_CHECK,
    LIST_BASE,
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    STRUCT_BASE,
)
from dryrack.cel.evaluation.values import (
    CIDR,
    IP,
    URL,
    Duration,
    NamedFormat,
    Optional,
    PanicError,
    Timestamp,
    Value,
    Version,
    decode_key,
    go_name,
    size_of,
)
from dryrack.cel.parsing.ast import Uint
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COST_LIMIT = 1_000_000
# Since 1.37 a longer range is an error.
RANGE_SIZE_MAX = 1_000_000

CallCost: TypeAlias = "Callable[[Sequence[Value], Value], int]"


class CostLimitExceededError(Exception):
    """The evaluation has cost more than it may."""


class Tracker:
    """
    The running cost of one evaluation, and the variables of its macros.

    There is a stack while `stacked`. `_positions` has, for each step, where on the stack its
    values are, the last one last. Positions that a drop made invalid stay there until they are
    met.
    """

    __slots__ = ("_positions", "cost", "ids", "stacked", "values", "variables")

    def __init__(self) -> None:
        self.cost = 0
        self.variables: dict[str, Value] = {}
        self.stacked = False
        self.ids: list[int] = []
        self.values: list[Value] = []
        self._positions: defaultdict[int, list[int]] = defaultdict(list)

    def push(self, node_id: int, value: Value) -> None:
        # Upstream's count is unsigned: below zero it is a huge number.
        if not 0 <= self.cost <= COST_LIMIT:
            raise CostLimitExceededError
        if not self.stacked:
            return
        ids = self.ids
        positions = self._positions[node_id]
        position = len(ids)
        while positions and positions[-1] >= position:
            positions.pop()
        positions.append(position)
        ids.append(node_id)
        self.values.append(value)

    def charge_ones(self, count: int) -> None:
        """Charge as many steps of one unit; the evaluation ends with the one it cannot pay."""
        self.cost += count
        if self.cost > COST_LIMIT:
            self.cost = COST_LIMIT + 1
            raise CostLimitExceededError

    def drop(self, node_id: int) -> None:
        """Forget the step and all that came after it; a step that is not there is let be."""
        position = self._find(node_id) if self.stacked else -1
        if position >= 0:
            del self.ids[position:]
            del self.values[position:]

    def unstack(self) -> None:
        """Keep no stack from here on."""
        self.stacked = False
        self.ids.clear()
        self.values.clear()

    def drop_arguments(self, argument_ids: list[int]) -> list[Value] | None:
        """Take the values of a call's arguments off the stack; None if one is missing."""
        if not self.stacked:
            return None
        count = len(argument_ids)
        values = self.values
        if count and self.ids[-count:] == argument_ids:
            # They mostly are the last there are.
            arguments = values[-count:]
            del self.ids[-count:]
            del values[-count:]
            return arguments
        arguments = []
        for wanted in reversed(argument_ids):
            position = self._find(wanted)
            if position < 0:
                return None
            arguments.append(values[position])
            del self.ids[position:]
            del values[position:]
        arguments.reverse()
        return arguments

    def _find(self, node_id: int) -> int:
        positions = self._positions[node_id]
        ids = self.ids
        while positions:
            position = positions.pop()
            if position < len(ids) and ids[position] == node_id:
                return position
        return -1

    def check(self, more: int) -> None:
        """Cancel before work whose price is known already and cannot be paid."""
        if self.cost + more > COST_LIMIT:
            self.cost += more
            raise CostLimitExceededError


def _scale(size: float, factor: float = STRING_TRAVERSAL) -> int:
    return math.ceil(size * factor)


def _deep_size(value: Value) -> int:
    while type(value) is Optional and value.present:
        value = value.value
    return size_of(value)


def one(_args: Sequence[Value], _result: Value) -> int:
    """Most calls cost as much."""
    return 1


def _first(args: Sequence[Value], _result: Value) -> int:
    return _scale(size_of(args[0]))


def _first_deep(args: Sequence[Value], _result: Value) -> int:
    return _scale(_deep_size(args[0]))


def _second_deep(args: Sequence[Value], _result: Value) -> int:
    return _scale(_deep_size(args[1]))


def _first_twice(args: Sequence[Value], _result: Value) -> int:
    return _scale(size_of(args[0]) * 2)


def _joined_twice(args: Sequence[Value], result: Value) -> int:
    size = size_of(result) if result is not None else _joined_size(*args)
    return _scale(size * 2)


def _joined_size(parts: Value, separator: Value = "") -> int:
    """Return how long the joined text will be; 0 if the parts cannot be joined."""
    if not isinstance(parts, list) or {*map(type, parts), type(separator)} != {str}:
        return 0
    return sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1)


def _smaller(args: Sequence[Value], _result: Value) -> int:
    left, right = args
    if type(left) is str and type(right) is str:
        return _scale(min(len(left), len(right)))
    return _scale(min(_deep_size(args[0]), _deep_size(args[1])))


_OPAQUE = (Quantity, IP, CIDR, NamedFormat, URL, Version)


def _equality(args: Sequence[Value], result: Value) -> int:
    return 1 if isinstance(args[0], _OPAQUE) else _smaller(args, result)


def _both(args: Sequence[Value], _result: Value) -> int:
    left, right = args
    if type(left) is str and type(right) is str:
        return _scale(len(left) + len(right))
    return _scale(_deep_size(args[0]) + _deep_size(args[1]))


def _pattern(args: Sequence[Value], _result: Value) -> int:
    return _scale(1.0 + size_of(args[0])) * _scale(size_of(args[1]), REGEX_LENGTH)


def _pattern_deep(args: Sequence[Value], _result: Value) -> int:
    return _scale(1.0 + _deep_size(args[0])) * _scale(_deep_size(args[1]), REGEX_LENGTH)


def _search(args: Sequence[Value], _result: Value) -> int:
    return _scale(_deep_size(args[0])) * _scale(_deep_size(args[1]))


def _list_size(args: Sequence[Value], _result: Value) -> int:
    return _deep_size(args[1])


def _traversal(args: Sequence[Value], _result: Value) -> int:
    return _traverse(args[0])


def _traverse(value: Value, known: dict[int, int] | None = None) -> int:
    if type(value) is str:
        return int(len(value.encode()) * STRING_TRAVERSAL)
    if type(value) is bytes:
        return int(len(value) * STRING_TRAVERSAL)
    if not isinstance(value, (list, dict)):
        return 1
    # What is in many places is gone through once.
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = _traverse_held(value, known)
    return known[id(value)]


def _traverse_held(value: list[Value] | dict[object, Value], known: dict[int, int]) -> int:
    # Lists, not generators: what nests deeply must not nest in C as well.
    if isinstance(value, list):
        if set(map(type, value)) <= {int, bool}:
            return len(value)
        return sum([_traverse(element, known) for element in value])
    return sum(
        [_traverse(decode_key(key), known) + _traverse(item, known) for key, item in value.items()]
    )


def _validate(args: Sequence[Value], _result: Value) -> int:
    if type(args[0]) is not NamedFormat:
        return 1
    return _scale(1.0 + size_of(args[1])) * _scale(args[0].regex_size, REGEX_LENGTH)


def _authorization(_args: Sequence[Value], _result: Value) -> int:
    return AUTHORIZATION_CHECK


def _selector(args: Sequence[Value], _result: Value) -> int:
    length = size_of(args[1])
    return LIST_BASE + _scale(length) + _scale(length, 0.5) * (LIST_BASE + STRUCT_BASE)


def _contains_ip(text_size: Callable[[Value], int]) -> CallCost:
    def cost(args: Sequence[Value], _result: Value) -> int:
        return _scale(2 * size_of(args[0])) + text_size(args[1])

    return cost


def _contains_cidr(text_size: Callable[[Value], int]) -> CallCost:
    def cost(args: Sequence[Value], _result: Value) -> int:
        size = size_of(args[0])
        return _scale(2 * size) + _scale(size) + 1 + text_size(args[1])

    return cost


def _text_size(value: Value) -> int:
    return _scale(size_of(value))


def _no_size(_value: Value) -> int:
    return 0


def _sets(factor: int) -> CallCost:
    def cost(args: Sequence[Value], _result: Value) -> int:
        return 1 + size_of(args[0]) * size_of(args[1]) * factor

    return cost


def _allocation_cost(size: float, factor: float = 1.0) -> int:
    return _whole(float(size) * factor) + 1 + LIST_BASE


def _whole(cost: float) -> int:
    # What does not fit into 64 bits becomes this one number where clusters run, on amd64.
    return int(cost) if -(2.0**63) <= cost < 2.0**64 else 2**63


def _output(_args: Sequence[Value], result: Value) -> int:
    return _allocation_cost(size_of(result))


def _range(args: Sequence[Value], _result: Value) -> int:
    return _allocation_cost(max(0, args[0]) if type(args[0]) is int else 1)


def _limited_range(args: Sequence[Value], _result: Value) -> int:
    is_made = type(args[0]) is int and 0 <= args[0] <= RANGE_SIZE_MAX
    return _allocation_cost(args[0] if is_made else 1)


def _flatten(args: Sequence[Value], _result: Value) -> int:
    if len(args) == 2 and type(args[1]) is not int:
        raise PanicError(f"interface conversion: ref.Val is {go_name(args[1])}, not types.Int")
    return _allocation_cost(size_of(args[0]), float(args[1]) if len(args) == 2 else 1.0)


def _flatten_depth(args: Sequence[Value], result: Value) -> int:
    below_zero = type(args[1]) is int and args[1] < 0
    return _flatten((args[0], 1) if below_zero else args, result)


_ADDABLE = (int, Uint, float, str, bytes, Duration, Timestamp)


def _self_compare(position: int) -> CallCost:
    def cost(args: Sequence[Value], _result: Value) -> int:
        values = args[position]
        if not isinstance(values, list):
            missing = "Contains" if type(values) in _ADDABLE else "Add"
            raise PanicError(
                f"interface conversion: {go_name(values)} is not traits.Lister: "
                f"missing method {missing}"
            )
        textual = bool(values) and type(values[0]) in (str, bytes)
        return _allocation_cost(len(values) ** 2, 2.0 + STRING_TRAVERSAL if textual else 2.0)

    return cost


_BY_OVERLOAD: dict[str, CallCost] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_flatten_depth": _flatten_depth,
    "lists_range": _range,
    "lists_range_limited": _limited_range,
    "list_reverse": _output,
    "list_distinct": _self_compare(0),
}

_BY_FUNCTION: dict[str, CallCost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    "join": _joined_twice,
    **dict.fromkeys(("find", "findAll"), _pattern),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip"), _first),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _first),
    "jsonpatch.escapeKey": _first,
    "validate": _validate,
    "check": _authorization,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    "_==_": _equality,
}

_BY_STANDARD_OVERLOAD: dict[str, CallCost] = {
    **dict.fromkeys(
        ("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"),
        _first_deep,
    ),
    **dict.fromkeys(
        ("starts_with_string_by_argument", "ends_with_string_by_argument"), _second_deep
    ),
    "matches_by_size": _pattern_deep,
    "list_includes_dyn": _traversal,
    **dict.fromkeys(("strings_quote", "string_format"), _first_deep),
    "in_list": _list_size,
    **{
        f"{order}_{kind}": _smaller
        for order in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    },
    "equals": _smaller,
    "not_equals": _smaller,
    "add_string": _both,
    "add_bytes": _both,
    "matches_string": _pattern_deep,
    "contains_string": _search,
}

_BY_BOTH: dict[tuple[str, str], CallCost] = {
    ("ip", "cidr_ip"): one,
    ("containsIP", "cidr_contains_ip_string"): _contains_ip(_text_size),
    ("containsCIDR", "cidr_contains_cidr_string"): _contains_cidr(_text_size),
}

# These do work in the square of their arguments' size, or make texts of which they are only some
# part of the price, so the price is asked first.
PRICED_FIRST = frozenset(
    (
        "list_distinct",
        "lists_range",
        "lists_range_limited",
        "replace",
        "join",
        "sort",
        "@sortByAssociatedKeys",
        "list_sets_contains_list",
        "list_sets_intersects_list",
        "list_sets_equivalent_list",
    )
)


def call_cost(function: str, overload: str) -> CallCost:
    """Return the cost function of a call; `overload` is empty if the arguments decide it."""
    if overload in _BY_OVERLOAD:
        return _BY_OVERLOAD[overload]
    if overload.endswith("_sort"):
        return _self_compare(0)
    if overload.endswith("_sortByAssociatedKeys"):
        return _self_compare(1)
    if (function, overload) in _BY_BOTH:
        return _BY_BOTH[function, overload]
    if function in ("containsIP", "containsCIDR"):
        return (_contains_ip if function == "containsIP" else _contains_cidr)(_no_size)
    if function in _BY_FUNCTION:
        return _BY_FUNCTION[function]
    return _BY_STANDARD_OVERLOAD.get(overload, one)
