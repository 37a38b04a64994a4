"""The failure policy and the success policy of jobs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.checks import non_negative
from dryrack.kinds.rules.json_edit import map_items, set_defaults, update_at
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation.names import checked, label_key
from dryrack.kinds.validation.problems import (
    OMITTED,
    Token,
    byte_length,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_RULES_MAX = 20
_EXIT_CODES_MAX = 255
_CONDITIONS_MAX = 20
_INDEXES_BYTES_MAX = 64 * 1024
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}").fullmatch


def set_defaults_of_failure_policy(spec: Raw) -> Raw:
    """Return the spec with the default status of conditions in the failure policy."""

    def rule(given: Raw) -> Raw:
        return map_items(
            given, "onPodConditions", lambda one: set_defaults(one, {"status": "True"})
        )

    return update_at(spec, "podFailurePolicy", lambda policy: map_items(policy, "rules", rule))


def failure_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of `podFailurePolicy`."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return
    at = "spec.podFailurePolicy.rules"
    rules = get(policy, "rules", ())
    if len(rules) > _RULES_MAX:
        yield too_many(at, len(rules), _RULES_MAX)
    pod = get(spec, "template.spec", {})
    names = [
        container.get("name") or ""
        for key in ("containers", "initContainers")
        for container in pod.get(key) or ()
    ]
    for position, rule in enumerate(rules):
        yield from _failure_rule(f"{at}[{position}]", rule, spec, names)


def _failure_rule(
    at: str, rule: Raw, spec: Raw, containers: Collection[str]
) -> Iterator[FieldProblem]:
    yield from _action(f"{at}.action", rule.get("action") or "", spec)
    codes = rule.get("onExitCodes")
    conditions = get(rule, "onPodConditions", ())
    if codes is not None:
        yield from _exit_codes(f"{at}.onExitCodes", codes, containers)
    if conditions:
        yield from _conditions(f"{at}.onPodConditions", conditions)
    both = "OnExitCodes and OnPodConditions"
    if codes is not None and conditions:
        yield invalid(at, OMITTED, f"specifying both {both} is not supported")
    if codes is None and not conditions:
        yield invalid(at, OMITTED, f"specifying one of {both} is required")


def _action(at: str, action: str, spec: Raw) -> Iterator[FieldProblem]:
    if not action:
        yield required(at, f"valid values: {_format_list(_ACTIONS)}")
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield invalid(at, Token(action), "requires the backoffLimitPerIndex to be set")
    elif action not in _ACTIONS:
        yield not_supported(at, action, _ACTIONS)


def _format_list(words: Sequence[str]) -> str:
    """Format a list of words as Go does."""
    return "[" + " ".join(quoted(word) for word in words) + "]"


def _choice(at: str, value: str, known: Sequence[str]) -> Iterator[FieldProblem]:
    if not value:
        yield required(at, f"valid values: {_format_list(known)}")
    elif value not in known:
        yield not_supported(at, value, known)


def _exit_codes(at: str, given: Raw, containers: Collection[str]) -> Iterator[FieldProblem]:
    operator = given.get("operator") or ""
    yield from _choice(f"{at}.operator", operator, _OPERATORS)
    name = given.get("containerName")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{at}.containerName", name, detail)
    values = get(given, "values", [])
    if not values:
        yield invalid(f"{at}.values", given.get("values"), "at least one value is required")
    elif len(values) > _EXIT_CODES_MAX:
        yield too_many(f"{at}.values", len(values), _EXIT_CODES_MAX)
    seen: set[int] = set()
    for position, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{at}.values[{position}]", 0, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{at}.values[{position}]", value)
        seen.add(value)
    if values != sorted(values):
        yield invalid(f"{at}.values", values, "must be ordered")


def _conditions(at: str, given: Sequence[Raw]) -> Iterator[FieldProblem]:
    if len(given) > _CONDITIONS_MAX:
        yield too_many(at, len(given), _CONDITIONS_MAX)
    for position, pattern in enumerate(given):
        here = f"{at}[{position}]"
        yield from checked(f"{here}.type", pattern.get("type") or "", label_key)
        yield from _choice(f"{here}.status", pattern.get("status") or "", _STATUSES)


def success_problems(spec: Raw) -> Iterator[FieldProblem]:
    """Yield the problems of `successPolicy`."""
    policy = spec.get("successPolicy")
    if policy is None:
        return
    at = "spec.successPolicy"
    rules = get(policy, "rules", ())
    if spec.get("completionMode") != "Indexed":
        yield invalid(at, policy, "requires indexed completion mode")
        return
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required(f"{at}.rules", detail)
    if len(rules) > _RULES_MAX:
        yield too_many(f"{at}.rules", len(rules), _RULES_MAX)
    # Without completions the real server would panic here; validation refused the job before.
    if spec.get("completions") is not None:
        for position, rule in enumerate(rules):
            yield from _success_rule(f"{at}.rules[{position}]", rule, spec["completions"])


def _success_rule(at: str, rule: Raw, completions: int) -> Iterator[FieldProblem]:
    indexes = rule.get("succeededIndexes")
    count = rule.get("succeededCount")
    if indexes is None and count is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        yield required(at, detail)
    total = 0
    if indexes is not None:
        if byte_length(indexes) > _INDEXES_BYTES_MAX:
            yield too_long(f"{at}.succeededIndexes", _INDEXES_BYTES_MAX)
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            detail = f"error parsing succeededIndexes: {error}"
            yield invalid(f"{at}.succeededIndexes", indexes, detail)
    if count is not None:
        limits = {completions: "the number of specified completions"}
        yield from non_negative(f"{at}.succeededCount", count)
        yield from _at_most(f"{at}.succeededCount", count, limits)
        if indexes is not None:
            limits = {total: "the number of indexes in the specified succeededIndexes field"}
            yield from _at_most(f"{at}.succeededCount", count, limits)


def _at_most(at: str, value: int, limits: dict[int, str]) -> Iterator[FieldProblem]:
    for limit, meaning in limits.items():
        if value > limit:
            yield invalid(at, value, f"must be less than or equal to {limit} ({meaning})")


class IndexesError(ValueError):
    """The text is not a list of indexes; the message is that of the server."""


def count_indexes(indexes: str, completions: int) -> int:
    """Return the number of indexes in a list such as `1,3-5`, or raise an `IndexesError`."""
    total = 0
    last = -1
    for interval in indexes.split(",") if indexes else ():
        first, end = _interval(interval, completions)
        if total and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        raise IndexesError(
            f"the fragment {quoted(text)} violates the requirement that an index interval can "
            "have at most two parts separated by '-'"
        )
    numbers = [_index(part, completions) for part in parts]
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        previous, current = numbers
        raise IndexesError(f"non-increasing order, previous: {previous}, current: {current}")
    return numbers[0], numbers[-1]


def _index(text: str, completions: int) -> int:
    if not _INTEGER(text):
        raise IndexesError(f"cannot convert string to integer for index: {quoted(text)}")
    if int(text) >= completions:
        raise IndexesError(f"too large index: {quoted(text)}")
    return int(text)
