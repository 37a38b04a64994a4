"""
Capacity that several claims share: what may be asked of it.

All quantities compare exactly; only the question whether a value is a whole number of steps away
from the minimum is asked of whole numbers, rounded up, as the server does it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)
from dryrack.kinds.validation.parts import distinct
from dryrack.kinds.validation.problems import (
    FieldProblem,
    Reason,
    forbidden,
    invalid,
    required,
)

VALID_VALUES_MAX = 10
_INT64_MAX = 2**63 - 1
_NANOS_OF_MILLI = 10**6


class RangeLimits(NamedTuple):
    """The limits of amounts in a release."""

    # Whether the server accepts only what it can compute with.
    exist: bool
    # Whether amounts can be fractions (gate DRAFractionalCapacityRange).
    allow_fractions: bool

    def key(self, value: Quantity) -> str:
        """Return the text by which the server compares values; "500m" and "0.5" differ."""
        if not self.allow_fractions:
            return str(value.value())
        decimals = max(-value.scale, 0)
        digits = str(abs(value.unscaled) * 10 ** max(value.scale, 0)).zfill(decimals + 1)
        sign = "-" if value.unscaled < 0 else ""
        whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
        return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def exclusive_capacity(field: str, capacity: DeviceCapacity) -> Iterator[FieldProblem]:
    """Capacity of a device that one claim has for itself: nothing to be asked for."""
    if capacity.request_policy is not None:
        yield forbidden(
            f"{field}.requestPolicy",
            "allowMultipleAllocations must be true",
            fix="set allowMultipleAllocations: true on the device, or leave the policy out",
        )


def shared_capacity(
    field: str, capacity: DeviceCapacity, *, limits: RangeLimits
) -> Iterator[FieldProblem]:
    policy = capacity.request_policy
    if policy is not None:
        yield from _policy(f"{field}.requestPolicy", policy, capacity.value, limits)


def _policy(
    field: str,
    policy: CapacityRequestPolicy,
    available: Quantity,
    limits: RangeLimits,
) -> Iterator[FieldProblem]:
    if policy.valid_values and policy.valid_range is not None:
        detail = (
            'exactly one policy can be specified, cannot specify "validValues" and "validRange" '
            "at the same time"
        )
        yield forbidden(field, detail)
    elif policy.valid_values:
        if policy.default is None:
            yield required(f"{field}.default", "required when validValues is defined")
        else:
            yield from _values(f"{field}.validValues", policy, available, limits)
    elif policy.valid_range is not None:
        if policy.default is None:
            yield required(f"{field}.default", "required when validRange is defined")
        else:
            at = f"{field}.validRange"
            given = (policy.default, available)
            if limits.exist:
                yield from _limited_range(at, policy.valid_range, given, limits)
            else:
                yield from _range(at, policy.valid_range, given)


def _values(
    field: str, policy: CapacityRequestPolicy, available: Quantity, limits: RangeLimits
) -> Iterator[FieldProblem]:
    values = policy.valid_values
    for position in range(1, len(values)):
        if values[position - 1] > values[position]:
            detail = "values must be sorted in ascending order"
            yield invalid(f"{field}[{position}]", str(values[position]), detail)

    def check(at: str, value: Quantity) -> Iterator[FieldProblem]:
        if value > available:
            yield invalid(at, str(value), f"option is larger than capacity value: {available}")

    yield from distinct(field, values, check, key=limits.key, count_max=VALID_VALUES_MAX)
    # The server does not look for the default in a list that is too long, and so misses it.
    if len(values) > VALID_VALUES_MAX or policy.default not in values:
        detail = "default value is not valid according to the requestPolicy"
        yield invalid(field, str(policy.default), detail, fix="add the default to validValues")


def _range(
    field: str, given: CapacityRequestPolicyRange, policy: tuple[Quantity, Quantity]
) -> Iterator[FieldProblem]:
    default, available = policy
    if given.min is None:
        yield required(f"{field}.min", "required when validRange is defined")
        return
    if given.min > available:
        detail = f"min is larger than capacity value: {available}"
        yield invalid(f"{field}.min", str(given.min), detail)
    if default < given.min:
        yield invalid(f"{field}.min", str(default), f"default is less than min: {given.min}")
    if given.max is not None:
        yield from _maximum(f"{field}.max", (given.min, given.max), policy)
    if given.step is not None:
        yield from _steps(f"{field}.step", (given.min, given.max, given.step), policy)


def _maximum(
    field: str, bounds: tuple[Quantity, Quantity], policy: tuple[Quantity, Quantity]
) -> Iterator[FieldProblem]:
    (low, high), (default, available) = bounds, policy
    if low > high:
        yield invalid(field, str(low), f"min is larger than max: {high}")
    if high > available:
        yield invalid(field, str(high), f"max is larger than capacity value: {available}")
    if default > high:
        yield invalid(field, str(default), f"default is more than max: {high}")


def _steps(
    field: str,
    given: tuple[Quantity, Quantity | None, Quantity],
    policy: tuple[Quantity, Quantity],
) -> Iterator[FieldProblem]:
    (low, high, step), (default, available) = given, policy
    if low + step > available:
        detail = f"one step {low + step} is larger than capacity value: {available}"
        yield invalid(field, str(step), detail)
    if step.value() == 0:
        # The server divides by it, and answers with an internal error instead of a cause.
        detail = "the API server cannot work with a step of zero"
        yield FieldProblem(Reason.INTERNAL, field, str(step), detail, "leave the step out")
        return
    for value in (default, high):
        if value is not None and (value.value() - low.value()) % step.value():
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            yield invalid(field, str(value), detail)


def _limited_range(
    field: str,
    given: CapacityRequestPolicyRange,
    policy: tuple[Quantity, Quantity],
    limits: RangeLimits,
) -> Iterator[FieldProblem]:
    """Check a range as 1.37 does: the server can compute with every step that it accepts."""
    default, available = policy
    low, high = given.min, given.max
    if low is None:
        yield required(f"{field}.min", "required when validRange is defined")
        return
    if low > available:
        detail = f"min is larger than capacity value: {available}"
        yield invalid(f"{field}.min", str(low), detail)
    if default < low:
        yield invalid(f"{field}.default", str(default), f"default is less than min: {low}")
    if high is not None:
        if low > high:
            yield invalid(f"{field}.max", str(low), f"min is larger than max: {high}")
        if high > available:
            detail = f"max is larger than capacity value: {available}"
            yield invalid(f"{field}.max", str(high), detail)
        if default > high:
            yield invalid(f"{field}.default", str(default), f"default is more than max: {high}")
    amounts = {"default": default, "min": low, "max": high, "step": given.step}
    known = {name: value for name, value in amounts.items() if value is not None}
    by_milli = limits.allow_fractions and any(each.nanos % 10**9 for each in known.values())
    imprecise = [
        invalid(f"{field}.{name}", str(value), "value cannot be represented as a milli value")
        for name, value in known.items()
        if by_milli and not _is_milli(value)
    ]
    yield from imprecise
    if given.step is not None and not imprecise:
        yield from _limited_steps(field, known, available, by_milli=by_milli)


def _is_milli(value: Quantity) -> bool:
    milli, rest = divmod(value.nanos, _NANOS_OF_MILLI)
    return not rest and -_INT64_MAX <= milli <= _INT64_MAX


def _limited_steps(
    field: str, known: Mapping[str, Quantity], available: Quantity, *, by_milli: bool
) -> Iterator[FieldProblem]:
    low, step = known["min"], known["step"]
    if step.sign <= 0:
        detail = "must be greater than zero"
        yield invalid(f"{field}.step", str(step), detail, fix="leave the step out")
        return
    if low + step > available:
        detail = f"one step {low + step} is larger than capacity value: {available}"
        yield invalid(f"{field}.step", str(step), detail)
    outside = [
        invalid(f"{field}.{name}", str(value), detail)
        for name, value in known.items()
        if not by_milli and (detail := _outside_int64(value))
    ]
    yield from outside
    for name in ("default", "max") if not outside else ():
        value = known.get(name, low)
        if by_milli:
            rest = (value.nanos - low.nanos) % step.nanos
        else:
            rest = (value.value() - low.value()) % step.value()
        if rest:
            detail = f"value is not a multiple of a given step ({step}) from ({low})"
            yield invalid(f"{field}.step", str(value), detail)


def _outside_int64(value: Quantity) -> str:
    if value.sign < 0:
        return "must be greater than or equal to 0"
    return f"must not be larger than {_INT64_MAX}" if value.nanos > _INT64_MAX * 10**9 else ""
