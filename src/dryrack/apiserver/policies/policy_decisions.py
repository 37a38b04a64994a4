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
            value = self.value_of(each.condition, each.text)
            if value is False:
                return False
            if isinstance(value, Err):
                errors.append(value.message)
        if not errors:
            return True
        messages = list(dict.fromkeys(errors))
        return Err(messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")

    def add_variables(self) -> None:
        """Add the variables; one that fails is an error where it is used, and only there."""
        variables: Raw = {}
        self.values["variables"] = variables
        for each in self.policy.variables:
            value, cost = evaluate(each.condition, Values(self.values))
            self._pay(cost)
            if isinstance(value, Err):
                text = f'composited variable "{each.name}" fails to evaluate: {value.message}'
                value = Err(text)
            variables[each.name] = value

    def find_denials(self) -> Iterator[Denial | Err]:
        for each in self.policy.validations:
            value = self.value_of(each.condition, each.text)
            if isinstance(value, Err):
                yield value
            elif value is not True:
                yield Denial(self._message(each), each.reason)

    def value_of(self, condition: Condition, text: str) -> Any:
        value, cost = evaluate(condition, Values(self.values))
        self._pay(cost)
        if isinstance(value, Err):
            return Err(f"expression '{text}' resulted in error: {value.message}")
        return value

    def _pay(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise _OutOfBudgetError

    def _message(self, validation: Validation) -> str:
        plain = validation.message or f"failed expression: {validation.text.strip()}"
        if validation.spoken is None:
            return plain
        value, _ = evaluate(validation.spoken, Values(self.values))
        line = value.strip() if isinstance(value, str) else ""
        is_fit = line and "\n" not in line and len(line.encode()) <= _MESSAGE_BYTES_MAX
        return line if is_fit else plain


def match_conditions_hold(policy: CompiledPolicy, values: Raw) -> bool | Err:
    """Return whether all match conditions are true; an error if one fails and none is false."""
    try:
        return _PolicyEvaluation(policy, dict(values)).matches()
    except _OutOfBudgetError:
        return Err(_OUT_OF_BUDGET)


def evaluate_mutation(policy: CompiledPolicy, mutation: Mutation, values: Raw) -> Any:
    """Return the patch of a mutation for the object in `values`, or an error."""
    evaluation = _PolicyEvaluation(policy, dict(values))
    try:
        evaluation.add_variables()
        return evaluation.value_of(mutation.condition, mutation.text)
    except _OutOfBudgetError:
        return Err(_OUT_OF_BUDGET)


def denials(policy: CompiledPolicy, values: Raw, *, ignores_failures: bool) -> list[Denial]:
    """Return the denials of a write."""
    evaluation = _PolicyEvaluation(policy, dict(values))
    results: list[Denial | Err] = []
    try:
        matches = evaluation.matches()
        if isinstance(matches, Err):
            results.append(matches)
        elif matches:
            evaluation.add_variables()
            results.extend(evaluation.find_denials())
    except _OutOfBudgetError:
        results = [Err(_OUT_OF_BUDGET)]
    if ignores_failures:
        return [each for each in results if isinstance(each, Denial)]
    return [each if isinstance(each, Denial) else Denial(each.message) for each in results]
