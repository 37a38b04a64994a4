"""
Requirements of labels: which values a label of a node may have.

All requirements of one key are combined into one `Allowed`. The operators are those of node
affinity, with `Gte` and `Lte` in addition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Requirement(Protocol):
    """A requirement of a NodePool, a NodeClaim, or a pod."""

    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a label may have."""

    values: frozenset[str] | None = None
    """None: any value that is not excluded."""
    excluded: frozenset[str] = frozenset()
    low: int | None = None
    """The smallest and the largest integer, if the value must be an integer."""
    high: int | None = None
    may_be_absent: bool = True
    """Whether a node without the label is allowed."""
    may_be_present: bool = True

    def admits(self, value: str | None) -> bool:
        """Return whether a label may have the value; None stands for a node without the label."""
        if value is None:
            return self.may_be_absent
        if not self.may_be_present or value in self.excluded:
            return False
        if self.values is not None and value not in self.values:
            return False
        if self.low is None and self.high is None:
            return True
        number = _integer(value)
        return (
            number is not None
            and (self.low is None or number >= self.low)
            and (self.high is None or number <= self.high)
        )

    def list_values(self) -> tuple[str, ...]:
        """Return the values that the requirements name and that are allowed, in order."""
        return tuple(value for value in sorted(self.values or ()) if self.admits(value))

    def narrowed_by(self, requirement: Requirement) -> Allowed:
        """Return the values that the requirement allows as well."""
        values = frozenset(requirement.values)
        match requirement.operator:
            case "In":
                both = values if self.values is None else self.values & values
                return replace(self, values=both, may_be_absent=False)
            case "NotIn":
                return replace(self, excluded=self.excluded | values)
            case "Exists":
                return replace(self, may_be_absent=False)
            case "DoesNotExist":
                return replace(self, may_be_present=False)
        number = _integer(next(iter(requirement.values), ""))
        if number is None:
            return replace(self, may_be_absent=False, may_be_present=False)
        match requirement.operator:
            case "Gt" | "Gte":
                low = number + (requirement.operator == "Gt")
                low = low if self.low is None else max(low, self.low)
                return replace(self, low=low, may_be_absent=False)
            case "Lt" | "Lte":
                high = number - (requirement.operator == "Lt")
                high = high if self.high is None else min(high, self.high)
                return replace(self, high=high, may_be_absent=False)
        return replace(self, may_be_absent=False, may_be_present=False)


ANY_VALUE = Allowed()


def combine(requirements: Iterable[Requirement]) -> dict[str, Allowed]:
    """Return the allowed values by key; all requirements hold."""
    allowed: dict[str, Allowed] = {}
    for each in requirements:
        allowed[each.key] = allowed.get(each.key, ANY_VALUE).narrowed_by(each)
    return allowed


def first_mismatch(allowed: Mapping[str, Allowed], labels: Mapping[str, str]) -> str | None:
    """Return the first key whose requirements the labels do not meet, None if they meet all."""
    return next((key for key, each in allowed.items() if not each.admits(labels.get(key))), None)


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
