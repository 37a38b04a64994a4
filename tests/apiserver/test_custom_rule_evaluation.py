"""Rules of custom kinds, tried on objects: what they may cost, and what changes excuse."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.apiserver.custom import rule_evaluation
from dryrack.apiserver.custom.rule_evaluation import find_broken_rules
from dryrack.extension.definitions.rules import compile_rules

if TYPE_CHECKING:
    from dryrack.kinds.validation.problems import FieldProblem

LIST = {"type": "array", "items": {"type": "integer"}}
# Far above the limit of one evaluation.
RUINOUS = "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"
NUMBERS = list(range(100))


def ruled(schema: dict[str, Any], *rules: dict[str, Any]) -> Any:
    return {**schema, "x-kubernetes-validations": list(rules)}


def told(schema: dict[str, Any], value: Any, *old: Any) -> list[tuple[str, str]]:
    found: list[FieldProblem] = find_broken_rules(compile_rules(schema, is_root=False), value, *old)
    return [(problem.field, problem.message) for problem in found]


def test_a_rule_that_costs_too_much_is_the_last_that_is_tried() -> None:
    """One rule may cost a million; a rule that exceeds that ends the evaluation."""
    schema = ruled(LIST, {"rule": RUINOUS}, {"rule": "false"})
    text = (
        "Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': "
        "no further validation rules will be run due to call cost exceeds limit "
        f"for rule: {RUINOUS}"
    )

    assert told(schema, NUMBERS) == [("<nil>", text)]


@pytest.mark.parametrize("budget", [20, 23])
def test_all_rules_of_an_object_have_one_budget(
    budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that are cheap one by one are stopped when their sum is too much."""
    assert rule_evaluation.OBJECT_COST_MAX == 10_000_000, "the number is Kubernetes' own"
    monkeypatch.setattr(rule_evaluation, "OBJECT_COST_MAX", budget)
    # Each costs 4: two names, a call and a comparison.
    number = ruled({"type": "integer"}, {"rule": "self + self > 0"})
    schema = {"type": "object", "additionalProperties": number}
    some = {f"k{n}": 1 for n in range(10)}

    assert told(schema, dict(list(some.items())[: budget // 4])) == []
    [(field, message)] = told(schema, some)
    assert field == f"[k{budget // 4}]"
    assert message == (
        'Invalid value: "integer": validation failed due to running out of cost budget, '
        "no further validation rules will be run"
    )


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            f"{RUINOUS} ? 'a' : 'b'",
            f"cost exceeds limit for messageExpression: \"{RUINOUS} ? 'a' : 'b'\"",
        ),
        ("'a' + string(self[1000])", "failed rule: self.size() == 0"),
        ("' in place '", "in place"),
        ("'two\\nlines'", "failed rule: self.size() == 0"),
        ("'x'.size() == 1 ? '' : 'x'", "failed rule: self.size() == 0"),
    ],
)
def test_a_message_may_fail_and_must_not_cost_too_much(expression: str, message: str) -> None:
    """An expression for a message that says nothing gives way to the plain one."""
    rule = {"rule": "self.size() == 0", "messageExpression": expression}
    [(_, said), *_] = told(ruled(LIST, rule), NUMBERS)

    assert said.endswith(message)


def test_what_was_broken_before_may_stay_so() -> None:
    """A rule says nothing about what has not changed, unless it is about the change."""
    number = ruled({"type": "integer"}, {"rule": "self > 5", "message": "too small"})
    schema = {"type": "object", "properties": {"a": number, "b": number}}

    assert told(schema, {"a": 1, "b": 2}, {"a": 1, "b": 3}) == [
        ("b", "Invalid value: 2: too small")
    ]
    moving = ruled({"type": "integer"}, {"rule": "self != oldSelf", "message": "must move"})
    assert told({"type": "object", "properties": {"a": moving}}, {"a": 1}, {"a": 1}) == [
        ("a", "Invalid value: 1: must move")
    ]


def test_items_without_keys_change_with_their_list() -> None:
    """An item that cannot be found again is excused only if the whole list is as it was."""
    items = {"type": "array", "items": ruled({"type": "integer"}, {"rule": "self > 5"})}
    schema = {"type": "object", "properties": {"a": items, "b": {"type": "integer"}}}

    assert told(schema, {"a": [1], "b": 2}, {"a": [1], "b": 1}) == []
    assert [field for field, _ in told(schema, {"a": [1, 7]}, {"a": [1]})] == ["a[0]"]


def test_a_rule_that_cannot_be_evaluated_is_no_excuse() -> None:
    """An error is reported also for unchanged values, as by the real server."""
    schema = ruled(LIST, {"rule": "self[7] > 0"})

    assert told(schema, [1], [1]) == [
        ("<nil>", 'Invalid value: "array": index out of bounds: 7 evaluating rule: self[7] > 0')
    ]


def test_a_rule_may_nest_deeply() -> None:
    """A chain of thousands of levels is evaluated, and Python's limit is left as it was."""
    before = sys.getrecursionlimit()
    rule = " + ".join(["1"] * 200) + " == 200 && self.size() == 0"

    assert told(ruled(LIST, {"rule": rule, "message": "full"}), []) == []
    assert told(ruled(LIST, {"rule": rule, "message": "full"}), [1]) == [
        ("<nil>", "Invalid value: full")
    ]
    assert sys.getrecursionlimit() == before
