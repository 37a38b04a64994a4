"""
The capacity of a device that an allocation consumes, and whether it is allowed.

With consumable capacity every device is measured, shared or not: a capacity that the request
names must exist under exactly that name; one that it does not name is consumed by the
policy's default, or whole. A policy rounds what was asked for up to a valid amount, and what
cannot be made valid keeps the device from being used.

1.36 and 1.37 differ in the format of rounded amounts, in fractional ranges, and in amounts
that the arithmetic cannot hold: a mismatch before, an error that stops the attempt after.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from dryrack.allocation.model.errors import AllocationError
from dryrack.allocation.model.features import Features
from dryrack.kinds.quantity import INT64_MAX, Format, Quantity
from dryrack.kinds.releases import ALLOCATION, AllocationBehaviour, Release
from dryrack.kinds.resource import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    DeviceCapacity,
)

_NANO = 10**9


class Misfit(Enum):
    """The reason why a device's capacity does not fit."""

    ABSENT = "absent"
    POLICY = "policy"
    SHORT = "short"


@dataclass(frozen=True, slots=True)
class CapacityMisfit:
    """The first capacity that does not fit, and the amount it is short by."""

    kind: Misfit
    name: str
    wanted: Quantity | None = None
    lacking: Quantity | None = None


@dataclass(frozen=True, slots=True)
class CapacityRules:
    """The arithmetic of a release."""

    behaviour: AllocationBehaviour
    fractional: bool

    @staticmethod
    def of(release: Release, features: Features) -> "CapacityRules":
        return CapacityRules(ALLOCATION[release], features.fractional_capacity_range)

    def consumption(
        self, capacity: Mapping[str, DeviceCapacity], wanted: Mapping[str, Quantity]
    ) -> dict[str, Quantity] | CapacityMisfit:
        """Return the amount consumed of each capacity; raise errors that end an attempt."""
        for name in wanted:
            if name not in capacity:
                return CapacityMisfit(Misfit.ABSENT, name, wanted[name])
        return {
            name: self._check_sign(name, self._amount(name, each, wanted.get(name)))
            for name, each in capacity.items()
        }

    def misfit(
        self,
        capacity: Mapping[str, DeviceCapacity],
        consumed: Mapping[str, Quantity],
        allocated: Mapping[str, Quantity],
    ) -> CapacityMisfit | None:
        """Return the first capacity that the consumption exceeds, given the allocated amounts."""
        for name, each in capacity.items():
            amount = consumed[name]
            if each.request_policy is not None and self._violates(amount, each.request_policy):
                return CapacityMisfit(Misfit.POLICY, name, amount)
            total = allocated[name] + amount if name in allocated else amount
            if total > each.value:
                return CapacityMisfit(Misfit.SHORT, name, amount, total - each.value)
        return None

    def _check_sign(self, name: str, amount: Quantity) -> Quantity:
        if self.behaviour.capacity_errors_are_fatal and amount.sign < 0:
            raise AllocationError(f'capacity "{name}": capacity value is negative')
        return amount

    def _amount(self, name: str, capacity: DeviceCapacity, wanted: Quantity | None) -> Quantity:
        policy = capacity.request_policy
        if wanted is None:
            default = policy.default if policy is not None else None
            return capacity.value if default is None else default
        if policy is None:
            return wanted
        if policy.valid_range is not None and policy.valid_range.min is not None:
            return self._rounded_up(name, wanted, policy.valid_range)
        return next((value for value in policy.valid_values if wanted <= value), wanted)

    def _rounded_up(
        self, name: str, wanted: Quantity, limits: CapacityRequestPolicyRange
    ) -> Quantity:
        assert limits.min is not None
        if wanted < limits.min:
            return limits.min
        if limits.step is None:
            return wanted
        milli = self._in_milli(limits)
        if self.behaviour.capacity_errors_are_fatal:
            if milli and not _exact_milli(wanted):
                raise _unrepresentable(name, f"request {wanted} is not a representable milli value")
            if not milli and wanted.nanos > INT64_MAX * _NANO:
                raise _unrepresentable(name, f"request {wanted} exceeds MaxInt64")
        start = _whole(limits.min, milli=milli)
        step = _whole(limits.step, milli=milli)
        if step == 0:
            return wanted
        total = start + step * -(-(_whole(wanted, milli=milli) - start) // step)
        if not self.behaviour.rounds_in_format_of_step:
            return Quantity.of(((total + 2**63) % 2**64 - 2**63) * _NANO, Format.BINARY_SI)
        if total > INT64_MAX:
            where = "the milli-value range" if milli else "MaxInt64"
            raise _unrepresentable(
                name, f"rounding request {wanted} up to the next step passes {where}"
            )
        return Quantity.of(total * (_NANO // 1000 if milli else _NANO), limits.step.format)

    def _violates(self, amount: Quantity, policy: CapacityRequestPolicy) -> bool:
        if policy.default is not None and _same_struct(amount, policy.default):
            return False
        if policy.valid_range is not None:
            limits = policy.valid_range
            if limits.max is not None and amount > limits.max:
                return True
            if limits.step is None or limits.min is None:
                return False
            milli = self._in_milli(limits)
            if milli and not _exact_milli(amount):
                return True
            step = _whole(limits.step, milli=milli)
            away = _whole(amount, milli=milli) - _whole(limits.min, milli=milli)
            return step != 0 and away % step != 0
        return bool(policy.valid_values) and amount not in policy.valid_values

    def _in_milli(self, limits: CapacityRequestPolicyRange) -> bool:
        if not self.fractional:
            return False
        bounds = [each for each in (limits.min, limits.max, limits.step) if each is not None]
        step = limits.step
        return all(map(_exact_milli, bounds)) and (step is None or step.milli_value() >= 1)


def _unrepresentable(name: str, detail: str) -> AllocationError:
    return AllocationError(
        f'capacity "{name}": capacity request cannot be represented in the device\'s '
        f"range arithmetic: {detail}"
    )


def _whole(quantity: Quantity, *, milli: bool) -> int:
    return quantity.milli_value() if milli else quantity.value()


def _exact_milli(quantity: Quantity) -> bool:
    return quantity.milli_value() * 10**6 == quantity.nanos


def _same_struct(left: Quantity, right: Quantity) -> bool:
    """
    Return whether Go's `==` on the two structs holds, which is narrower than being the same amount.

    It compares the representation and the remembered text; big decimals are behind a pointer
    and never the same.
    """
    return (
        not left.big
        and not right.big
        and (left.unscaled, left.scale, left.format) == (right.unscaled, right.scale, right.format)
        and _remembered_text(left) == _remembered_text(right)
    )


def _remembered_text(quantity: Quantity) -> str:
    return quantity.written if quantity.verbatim or quantity.written == "0" else ""
