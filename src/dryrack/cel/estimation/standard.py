"""
Estimated costs of CEL's standard functions, by overload.

Everything that is not listed costs one unit. The four overloads that only some of their
arguments are evaluated for, or whose result is a container, are left to the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dryrack.cel.cost_factors import REGEX_LENGTH, STRING_TRAVERSAL
from dryrack.cel.estimation.arithmetic import ONE, Estimate, SizeEstimate, wrap
from dryrack.cel.estimation.calls import CallEstimate, call_estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.estimation.calls import CallSite

    Estimator: TypeAlias = Callable[[CallSite], CallEstimate | None]


def standard_estimate(call: CallSite) -> CallEstimate:
    estimator = _BY_OVERLOAD.get(call.overload)
    return (estimator(call) if estimator else None) or call_estimate(1)


def _format(call: CallSite) -> CallEstimate | None:
    if call.target is None:
        return None
    return CallEstimate(call.target.size_or_unknown.scale(STRING_TRAVERSAL))


# The next three let the size of their result wrap around, as the reference does.
def _string_to_bytes(call: CallSite) -> CallEstimate | None:
    size = call.arguments[0].size_or_unknown
    result = SizeEstimate(size.min, wrap(size.max * 4))
    return CallEstimate(size.scale(STRING_TRAVERSAL), result)


def _bytes_to_string(call: CallSite) -> CallEstimate | None:
    size = call.arguments[0].size_or_unknown
    return CallEstimate(size.scale(STRING_TRAVERSAL), SizeEstimate(size.min // 4, size.max))


def _quote(call: CallSite) -> CallEstimate | None:
    size = call.arguments[0].size_or_unknown
    result = SizeEstimate(wrap(size.min + 2), wrap(size.max * 2 + 2))
    return CallEstimate(size.scale(STRING_TRAVERSAL), result)


def _affix(call: CallSite) -> CallEstimate | None:
    if len(call.arguments) != 1:
        return None
    return CallEstimate(call.arguments[0].size_or_unknown.scale(STRING_TRAVERSAL))


def _in_list(call: CallSite) -> CallEstimate | None:
    if len(call.arguments) != 2:
        return None
    return CallEstimate(call.arguments[1].size_or_unknown.scale(1))


def _matches(call: CallSite) -> CallEstimate | None:
    operands = call.arguments if call.target is None else (call.target, *call.arguments)
    if len(operands) != 2:
        return None
    text = (operands[0].size_or_unknown + ONE).scale(STRING_TRAVERSAL)
    return CallEstimate(text * operands[1].size_or_unknown.scale(REGEX_LENGTH))


def _contains(call: CallSite) -> CallEstimate | None:
    if call.target is None or len(call.arguments) != 1:
        return None
    text = call.target.size_or_unknown.scale(STRING_TRAVERSAL)
    return CallEstimate(text * call.arguments[0].size_or_unknown.scale(STRING_TRAVERSAL))


def _comparison(call: CallSite) -> CallEstimate | None:
    left, right = (argument.size_or_unknown for argument in call.arguments)
    size_max = min(left.max, right.max)
    return CallEstimate(Estimate(min(size_max, 1), size_max).scale(STRING_TRAVERSAL))


_RELATIONS = ("less", "greater", "less_equals", "greater_equals")
_COMPARISONS = (
    "equals",
    "not_equals",
    *(f"{relation}_string" for relation in _RELATIONS),
    *(f"{relation}_bytes" for relation in _RELATIONS),
)

_BY_OVERLOAD: dict[str, Estimator] = {
    "string_format": _format,
    "string_to_bytes": _string_to_bytes,
    "bytes_to_string": _bytes_to_string,
    "strings_quote": _quote,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "starts_with_string_by_argument": _affix,
    "ends_with_string_by_argument": _affix,
    "matches_by_size": _matches,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    **dict.fromkeys(_COMPARISONS, _comparison),
}
