"""
Estimated costs of calls of the extension libraries and of Kubernetes' own libraries.

Extension estimators are found by overload, Kubernetes' by function name: a user's dynamic
value makes one call stand for several overloads, and each is asked on its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from dryrack.cel.checking.types import Kind
from dryrack.cel.cost_factors import (
    AUTHORIZATION_CHECK,
    LIST_BASE,
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    STRUCT_BASE,
)
from dryrack.cel.estimation.arithmetic import (
    ONE,
    UINT64_MAX,
    ZERO,
    Estimate,
    SizeEstimate,
    fixed,
    wrap,
)
from dryrack.cel.estimation.calls import CallEstimate, call_estimate
from dryrack.cel.estimation.paths import ATTRIBUTE_VALUES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.estimation.calls import CallSite, Operand

    Estimator: TypeAlias = Callable[[CallSite], CallEstimate | None]


def library_estimate(call: CallSite) -> CallEstimate | None:
    """None: no library has an opinion, the standard rules apply."""
    by_overload = _BY_OVERLOAD.get(call.overload)
    estimate = by_overload(call) if by_overload else None
    if estimate:
        return estimate
    by_function = _BY_FUNCTION.get(call.function)
    return by_function(call) if by_function else None


def _nominal(call: CallSite) -> CallEstimate:
    return call_estimate(1)


def _authorization_check(call: CallSite) -> CallEstimate:
    return call_estimate(AUTHORIZATION_CHECK)


def _selector(call: CallSite) -> CallEstimate | None:
    if len(call.arguments) != 1:
        return None
    length = call.size(call.arguments[0])
    # The shortest requirement is two characters; each makes a struct and a list.
    requirements = length.scale(0.5).scale(LIST_BASE + STRUCT_BASE)
    return CallEstimate(fixed(LIST_BASE) + length.scale(STRING_TRAVERSAL) + requirements)


def _list_traversal(call: CallSite) -> CallEstimate | None:
    """`sum`, `indexOf` and the like; the last two also exist on strings."""
    target = call.target
    if target is None:
        return None
    if not target.type.parameters:
        return CallEstimate(call.size(target).scale(STRING_TRAVERSAL))
    per_element = ONE
    if target.type.parameters[0].kind in (Kind.STRING, Kind.BYTES):
        per_element = ONE + call.element_size(target).scale(STRING_TRAVERSAL)
    return CallEstimate(call.size(target) * per_element)


def _url(call: CallSite) -> CallEstimate | None:
    if len(call.arguments) != 1:
        return None
    size = call.size(call.arguments[0])
    return CallEstimate(size.scale(STRING_TRAVERSAL), size)


def _same_length(call: CallSite) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return CallEstimate(size.scale(STRING_TRAVERSAL), size)


def _replace(call: CallSite) -> CallEstimate | None:
    if call.target is None or len(call.arguments) < 2:
        return None
    size = call.size(call.target)
    old = call.size(call.arguments[0])
    new = call.size(call.arguments[1])
    longest_count, longest_kept = _longest_replacement(size.max, old=old.min, new=new.max)
    shortest_count, shortest_kept = _shortest_replacement(size.min, old=old.max, new=new.min)
    result = Estimate(shortest_count, longest_count) * new + Estimate(shortest_kept, longest_kept)
    return CallEstimate(size.scale(2 * STRING_TRAVERSAL), result)


def _longest_replacement(size: int, *, old: int, new: int) -> tuple[int, int]:
    """Return the highest number of times, and the remaining characters of the original."""
    if old == 0:
        return min(size + 1, UINT64_MAX), size
    if new <= old:
        return 0, size
    return _ceiling_ratio(size, old), 0


def _shortest_replacement(size: int, *, old: int, new: int) -> tuple[int, int]:
    if old == 0:
        return min(size + 1, UINT64_MAX), size
    if old <= new:
        return 0, size
    return _ceiling_ratio(size, old), 0


def _ceiling_ratio(size: int, length: int) -> int:
    # In floats, as the reference divides: a huge size loses its low digits.
    return min(math.ceil(float(size) / float(length)), UINT64_MAX)


def _split(call: CallSite) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    count_max = size.max
    if len(call.arguments) > 1:
        limit = call.arguments[1].literal
        count_max = wrap(limit) if _is_int(limit) else size.max
    return CallEstimate(size.scale(2 * STRING_TRAVERSAL), SizeEstimate(0, count_max))


def _join(call: CallSite) -> CallEstimate | None:
    if call.target is None:
        return None
    count = call.size(call.target)
    size = ZERO
    if call.target.type.parameters:
        size = count * call.element_size(call.target)
    if call.arguments:
        separators = Estimate(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size + call.size(call.arguments[0]) * separators
    return CallEstimate(size.scale(STRING_TRAVERSAL), size)


def _find(call: CallSite) -> CallEstimate | None:
    if call.target is None or not call.arguments:
        return None
    size = call.size(call.target)
    pattern = call.size(call.arguments[0]).scale(REGEX_LENGTH)
    cost = (size + ONE).scale(STRING_TRAVERSAL) * pattern
    return CallEstimate(cost, SizeEstimate(0, size.max))


def _parse(call: CallSite) -> CallEstimate | None:
    if not call.arguments:
        return None
    return CallEstimate(call.size(call.arguments[0]).scale(STRING_TRAVERSAL))


def _ip(call: CallSite) -> CallEstimate | None:
    return _nominal(call) if call.overload == "cidr_ip" else _parse(call)


def _is_canonical(call: CallSite) -> CallEstimate | None:
    if not call.arguments:
        return None
    return CallEstimate(call.size(call.arguments[0]).scale(2 * STRING_TRAVERSAL))


# An address has 4 or 16 bytes.
_ADDRESS_SIZE = SizeEstimate(4, 16)


def _contains_ip(call: CallSite) -> CallEstimate | None:
    if not call.arguments:
        return None
    cost = (_ADDRESS_SIZE + _ADDRESS_SIZE).scale(STRING_TRAVERSAL)
    if call.overload == "cidr_contains_ip_string":
        cost = cost + call.size(call.arguments[0]).scale(STRING_TRAVERSAL)
    return CallEstimate(cost)


def _contains_cidr(call: CallSite) -> CallEstimate | None:
    if not call.arguments:
        return None
    comparing = (_ADDRESS_SIZE + _ADDRESS_SIZE).scale(STRING_TRAVERSAL)
    masking = _ADDRESS_SIZE.scale(STRING_TRAVERSAL) + ONE
    cost = comparing + masking
    if call.overload == "cidr_contains_cidr_string":
        cost = cost + call.size(call.arguments[0]).scale(STRING_TRAVERSAL)
    return CallEstimate(cost)


_FORMAT_REGEX_LENGTH_MAX = 128
_FORMAT_NAME_LENGTH_MAX = 64


def _validate(call: CallSite) -> CallEstimate | None:
    if not call.arguments:
        return None
    reading = call.size(call.arguments[0]).scale(STRING_TRAVERSAL)
    return CallEstimate(reading.scale(_FORMAT_REGEX_LENGTH_MAX * REGEX_LENGTH))


_EQUAL_IN_ONE_STEP = frozenset(
    {
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.PathCheck",
        "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.ResourceCheck",
        "kubernetes.authorization.Decision",
    }
)


def _equals(call: CallSite) -> CallEstimate | None:
    """Only for two values of one Kubernetes type; a null or a dynamic side is standard."""
    left, right = call.arguments
    if left.type.name != right.type.name:
        return None
    if left.type.name in _EQUAL_IN_ONE_STEP:
        return _nominal(call)
    if left.type.name == "kubernetes.NamedFormat":
        return CallEstimate(Estimate(1, _FORMAT_NAME_LENGTH_MAX).scale(STRING_TRAVERSAL))
    if left.type.name == "kubernetes.URL":
        size_max = right.size.max if right.size else 1
        return CallEstimate(Estimate(1, size_max).scale(STRING_TRAVERSAL))
    return None


def _includes(call: CallSite) -> CallEstimate | None:
    if call.target is None:
        return None
    if call.overload == "list_includes_dyn":
        # A target of an unknown type can be a list, and each of its elements costs one.
        is_known = bool(call.target.type.parameters)
        return _list_traversal(call) if is_known else CallEstimate(call.size(call.target))
    return CallEstimate(Estimate(0, ATTRIBUTE_VALUES_MAX))


def _sets(factor: float) -> Estimator:
    def estimator(call: CallSite) -> CallEstimate | None:
        if len(call.arguments) != 2:
            return None
        pairs = call.size(call.arguments[0]) * call.size(call.arguments[1])
        return CallEstimate(pairs.scale(factor) + ONE)

    return estimator


def _new_list(factor: float, size: SizeEstimate) -> CallEstimate:
    return CallEstimate(size.scale(factor) + fixed(1 + LIST_BASE), size)


def _list_slice(call: CallSite) -> CallEstimate | None:
    if call.target is None or len(call.arguments) != 2:
        return None
    start = _written_int(call.arguments[0], otherwise=0)
    end = _written_int(call.arguments[1], otherwise=call.size(call.target).max)
    return _new_list(1, fixed(wrap(end - start)))


def _list_flatten(call: CallSite) -> CallEstimate | None:
    if call.target is None or len(call.arguments) > 1:
        return None
    depth = _written_int(call.arguments[0], otherwise=UINT64_MAX) if call.arguments else 1
    return _new_list(float(depth), call.size(call.target))


def _lists_range(call: CallSite) -> CallEstimate | None:
    if call.target is not None or len(call.arguments) != 1:
        return None
    return _new_list(1, fixed(_written_int(call.arguments[0], otherwise=UINT64_MAX)))


def _list_reverse(call: CallSite) -> CallEstimate | None:
    if call.target is None or call.arguments:
        return None
    return _new_list(1, call.size(call.target))


def _list_distinct(call: CallSite) -> CallEstimate | None:
    if call.target is None or call.arguments:
        return None
    size = call.size(call.target)
    return _new_list(2.0, size * size)


def _list_sort(factor: float) -> Estimator:
    def estimator(call: CallSite) -> CallEstimate | None:
        if call.target is None or call.arguments:
            return None
        size = call.size(call.target)
        return _new_list(factor, size * size)

    return estimator


def _list_sort_by(factor: float) -> Estimator:
    def estimator(call: CallSite) -> CallEstimate | None:
        if call.target is None or len(call.arguments) != 1:
            return None
        size = call.size(call.arguments[0])
        return _new_list(factor, size * size)

    return estimator


def _written_int(operand: Operand, *, otherwise: int) -> int:
    value = operand.literal
    return max(value, 0) if _is_int(value) else otherwise


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


_PLAIN_ELEMENTS = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
)
_TEXT_ELEMENTS = ("string", "bytes")

# Sorting and removing duplicates compare each element with each other, twice.
_COMPARE = 2.0
_COMPARE_TEXT = _COMPARE + STRING_TRAVERSAL

_BY_OVERLOAD: dict[str, Estimator] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _list_slice,
    "list_flatten": _list_flatten,
    "list_flatten_int": _list_flatten,
    "list_flatten_depth": _list_flatten,
    "lists_range": _lists_range,
    "lists_range_limited": _lists_range,
    "list_reverse": _list_reverse,
    "list_distinct": _list_distinct,
    **{f"list_{name}_sort": _list_sort(_COMPARE) for name in _PLAIN_ELEMENTS},
    **{f"list_{name}_sort": _list_sort(_COMPARE_TEXT) for name in _TEXT_ELEMENTS},
    **{f"list_{name}_sortByAssociatedKeys": _list_sort_by(_COMPARE) for name in _PLAIN_ELEMENTS},
    **{
        f"list_{name}_sortByAssociatedKeys": _list_sort_by(_COMPARE_TEXT) for name in _TEXT_ELEMENTS
    },
}

_NOMINAL_FUNCTIONS = (
    # authorizer
    *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name"),
    *("allowed", "reason", "error", "errored"),
    # IP and CIDR
    *("masked", "prefixLength", "family", "isUnspecified", "isLoopback"),
    *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"),
    # quantity and semver
    *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan"),
    *("compareTo", "add", "sub", "major", "minor", "patch"),
    # URL
    *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    "format.named",
)

_BY_FUNCTION: dict[str, Estimator] = {
    "check": _authorization_check,
    **dict.fromkeys(_NOMINAL_FUNCTIONS, _nominal),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"),
        _list_traversal,
    ),
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _same_length),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _parse),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _parse),
    "ip": _ip,
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "includes": _includes,
    "_==_": _equals,
}
