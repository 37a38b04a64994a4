"""
Decisions of a policy about one write.

An expression that fails denies under the failure policy `Fail`, and is ignored under `Ignore`. All
expressions of one evaluation share a budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.cel import Err
from dryrack.cel.condition import Values, evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.cel.condition import Condition
    from dryrack.extension.policies import CompiledPolicy, Mutation, Validation
    from dryrack.kinds.raw import Raw

# What all expressions of a policy may cost for one write, as upstream has it.
_BUDGET = 10_000_000
_MESSAGE_BYTES_MAX = 5 * 1024
_OUT_OF_BUDGET = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


@dataclass(frozen=True, slots=True)
class Denial:
    """The message and reason of a denial."""

    message: str
    reason: str = "Invalid"


class _OutOfBudgetError(Exception):
    """No further expression is evaluated."""


@dataclass(slots=True)
class _PolicyEvaluation:
    policy: CompiledPolicy
    values: Raw
    left: int = _BUDGET

    def matches(self) -> bool | Err:
        """Return whether all match conditions hold; an error if one fails and none is false."""
        errors = []
        for each in self.policy.match_conditions:
            found = self.value_of(each.condition, each.text)
            if found is False:
                return False
            if isinstance(found, Err):
                errors.append(found.message)
        if not errors:
            return True
        told = list(dict.fromkeys(errors))
        return Err(told[0] if len(told) == 1 else f"[{', '.join(told)}]")

    def with_variables(self) -> None:
        """Add the variables; one that fails is an error where it is used, and only there."""
        known: Raw = {}
        self.values["variables"] = known
        for each in self.policy.variables:
            found, cost = evaluate(each.condition, Values(self.values))
            self._pay(cost)
            if isinstance(found, Err):
                text = f'composited variable "{each.name}" fails to evaluate: {found.message}'
                found = Err(text)
            known[each.name] = found

    def find_denials(self) -> Iterator[Denial | Err]:
        for each in self.policy.validations:
            found = self.value_of(each.condition, each.text)
            if isinstance(found, Err):
                yield found
            elif found is not True:
                yield Denial(self._message(each), each.reason)

    def value_of(self, condition: Condition, text: str) -> Any:
        found, cost = evaluate(condition, Values(self.values))
        self._pay(cost)
        if isinstance(found, Err):
            return Err(f"expression '{text}' resulted in error: {found.message}")
        return found

    def _pay(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise _OutOfBudgetError

    def _message(self, validation: Validation) -> str:
        plain = validation.message or f"failed expression: {validation.text.strip()}"
        if validation.spoken is None:
            return plain
        found, _ = evaluate(validation.spoken, Values(self.values))
        line = found.strip() if isinstance(found, str) else ""
        is_fit = line and "\n" not in line and len(line.encode()) <= _MESSAGE_BYTES_MAX
        return line if is_fit else plain


def match_conditions_hold(policy: CompiledPolicy, values: Raw) -> bool | Err:
    """Return whether all match conditions are true; an error if one fails and none is false."""
    try:
        return _PolicyEvaluation(policy, dict(values)).matches()
    except _OutOfBudgetError:
        return Err(_OUT_OF_BUDGET)


def evaluate_mutation(policy: CompiledPolicy, mutation: Mutation, values: Raw) -> Any:
    """Return what a mutation makes of the object in `values`: a patch, or an error."""
    evaluation = _PolicyEvaluation(policy, dict(values))
    try:
        evaluation.with_variables()
        return evaluation.value_of(mutation.condition, mutation.text)
    except _OutOfBudgetError:
        return Err(_OUT_OF_BUDGET)


def denials(policy: CompiledPolicy, values: Raw, *, ignores_failures: bool) -> list[Denial]:
    """Yield the denials of a write."""
    evaluation = _PolicyEvaluation(policy, dict(values))
    found: list[Denial | Err]
    try:
        found = list(_denials(evaluation))
    except _OutOfBudgetError:
        found = [Err(_OUT_OF_BUDGET)]
    if ignores_failures:
        return [each for each in found if isinstance(each, Denial)]
    return [each if isinstance(each, Denial) else Denial(each.message) for each in found]


def _denials(evaluation: _PolicyEvaluation) -> Iterator[Denial | Err]:
    matched = evaluation.matches()
    if isinstance(matched, Err):
        yield matched
    elif matched:
        evaluation.with_variables()
        yield from evaluation.find_denials()
