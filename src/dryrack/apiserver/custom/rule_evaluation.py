"""
Tries the rules of custom kinds on what is written, within what one object may cost.

A rule about `oldSelf` is tried only where there is an old value to compare with: of the items of
a list, only those that have keys can be found again. Rules are tried on what has not changed
too, for their cost counts; but nothing is refused for what it was before, unless the rule is
about the change or cannot be evaluated. A rule that costs too much is the last to be tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.cel import CANCELLED, Err, Optional
from dryrack.cel.condition import Values, evaluate
from dryrack.extension.definitions import NO_OLD, NOWHERE, item_key, items_by_key, value_of
from dryrack.kinds.paths import get
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.problems import FieldProblem, Reason, invalid

if TYPE_CHECKING:
    from dryrack.extension.definitions import Rule, Ruled

# What all rules together may cost for one object; one evaluation may cost a tenth of it.
OBJECT_COST_MAX = 10_000_000
MESSAGE_BYTES_MAX = 5 * 1024

_REASONS = {reason.value: reason for reason in Reason}
_NO_MORE = "no further validation rules will be run"


class Unvalued(FieldProblem):
    """A problem whose value is too large to show."""

    __slots__ = ()

    @property
    def message(self) -> str:
        return f"Invalid value: {self.detail}"


@dataclass(frozen=True, slots=True)
class _Spot:
    """A value, what it was before, and the rules for it."""

    ruled: Ruled
    value: Any
    old: Any
    path: str
    # Whether the nearest value around it that can be found again has not changed.
    same: bool

    @property
    def type(self) -> str:
        return self.ruled.schema.get("type") or ""

    def below(self, ruled: Ruled, value: Any, old: Any, path: str) -> _Spot:
        same = self.same if old is NO_OLD else value == old
        return _Spot(ruled, value, NO_OLD if old is None else old, path, same)


def find_broken_rules(ruled: Ruled | None, value: Any, old: Any = NO_OLD) -> list[FieldProblem]:
    """Return the problems of the rules that an object breaks."""
    evaluation = RuleEvaluation()
    if ruled is not None:
        evaluation.visit(_Spot(ruled, value, old, path="", same=value == old))
    return evaluation.found


class RuleEvaluation:
    """The evaluation of all rules of one object, within its budget."""

    def __init__(self) -> None:
        self.found: list[FieldProblem] = []
        # Below zero when nothing more is to be tried.
        self._left = OBJECT_COST_MAX

    def visit(self, spot: _Spot) -> None:
        if spot.value is None or self._left < 0:
            return
        if spot.ruled.rules and self._left == 0:
            self._stop(spot, spot.path, _out_of_budget("validation"))
        for rule in spot.ruled.rules:
            is_optional = bool(rule.raw.get("optionalOldSelf"))
            tried = is_optional or not rule.uses_old or spot.old is not NO_OLD
            if tried and self._left >= 0:
                self._try(rule, spot, _variables(spot, is_optional=is_optional))
        if isinstance(spot.value, dict):
            ruled = spot.ruled
            path = spot.path
            old = spot.old if isinstance(spot.old, dict) else {}
            for name in sorted(spot.value):
                below = ruled.properties.get(name)
                at = f"{path}.{name}" if path else name
                if below is None and name not in get(ruled.schema, "properties", {}):
                    below = ruled.values
                    at = f"{path}[{name}]"
                if below is not None:
                    self.visit(spot.below(below, spot.value[name], old.get(name, NO_OLD), at))
        elif isinstance(spot.value, list):
            ruled = spot.ruled
            if ruled.items is not None:
                old_items = items_by_key(ruled.schema, spot.old)
                for index, item in enumerate(spot.value):
                    before = old_items.get(item_key(ruled.schema, item), NO_OLD)
                    self.visit(spot.below(ruled.items, item, before, f"{spot.path}[{index}]"))

    def _try(self, rule: Rule, spot: _Spot, variables: Values) -> None:
        said, cost = evaluate(rule.condition, variables)
        if cost > self._left:
            self._stop(spot, spot.path, _out_of_budget("validation"))
            return
        self._left -= cost
        if isinstance(said, Err):
            self._fault(spot, spot.path, _failure(said, rule))
            if said.message.startswith(CANCELLED):
                self._left = -1
        elif said is not True:
            self._refuse(rule, spot, variables)

    def _refuse(self, rule: Rule, spot: _Spot, variables: Values) -> None:
        field_path = (rule.raw.get("fieldPath") or "").removeprefix(".")
        at = ".".join(part for part in (spot.path, field_path) if part)
        before = len(self.found)
        detail = self._message(rule, spot, at, variables)
        if self._left >= 0:
            self.found.append(_refusal(rule, spot, at, detail))
        if spot.same and not rule.uses_old:
            # A definition may become stricter without locking what is there.
            del self.found[before:]

    def _message(self, rule: Rule, spot: _Spot, at: str, variables: Values) -> str:
        """Return the message of a broken rule; its expression may fail, or cost too much."""
        plain = str(rule.raw.get("message") or "").strip() or f"failed rule: {rule.text}"
        if rule.message is None:
            return plain
        spoken, cost = evaluate(rule.message, variables)
        if cost > self._left:
            self._stop(spot, at, _out_of_budget("messageExpression evaluation"))
            return plain
        self._left -= cost
        if isinstance(spoken, Err) and spoken.message.startswith(CANCELLED):
            text = quoted(str(rule.raw["messageExpression"]))
            reason = f"due to call cost exceeds limit for messageExpression: {text}"
            self._stop(spot, at, f"{_NO_MORE} {reason}")
        line = spoken.strip() if isinstance(spoken, str) else ""
        is_fit = line and "\n" not in line and len(line.encode()) <= MESSAGE_BYTES_MAX
        return line if is_fit else plain

    def _fault(self, spot: _Spot, path: str, detail: str) -> None:
        self.found.append(invalid(path or NOWHERE, spot.type, detail))

    def _stop(self, spot: _Spot, path: str, detail: str) -> None:
        self._fault(spot, path, detail)
        self._left = -1


def _out_of_budget(what: str) -> str:
    return f"{what} failed due to running out of cost budget, {_NO_MORE}"


def _variables(spot: _Spot, *, is_optional: bool) -> Values:
    schema = spot.ruled.schema
    old = None if spot.old is NO_OLD else value_of(schema, spot.old)
    if is_optional:
        old = Optional() if spot.old is NO_OLD else Optional(old)
    return Values({"self": value_of(schema, spot.value), "oldSelf": old})


def _failure(error: Err, rule: Rule) -> str:
    told = error.message
    if told.startswith("no such overload"):
        return (
            f"'{told}': call arguments did not match a supported operator, function or macro "
            f"signature for rule: {rule.name}"
        )
    if told.startswith(CANCELLED):
        return f"'{told}': {_NO_MORE} due to call cost exceeds limit for rule: {rule.name}"
    return f"{told} evaluating rule: {rule.name}"


def _refusal(rule: Rule, spot: _Spot, at: str, detail: str) -> FieldProblem:
    reason = _REASONS.get(rule.raw.get("reason") or "", Reason.INVALID)
    if reason is Reason.INVALID and spot.type in ("object", "array"):
        return Unvalued(reason, at or NOWHERE, None, detail)
    is_duplicate = reason is Reason.DUPLICATE
    return FieldProblem(reason, at or NOWHERE, spot.value, "" if is_duplicate else detail)
