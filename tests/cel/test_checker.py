"""Types and references of expressions, and the refused ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cel.recordings import ENVIRONMENTS, checked_cases

from dryrack.cel.checking.checker import Checked
from dryrack.cel.checking.environment import Environment
from dryrack.cel.checking.frontend import compile_text
from dryrack.cel.parsing import ast
from dryrack.cel.parsing.source import Issues
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

STORED = Environment(consumable_capacity=True, list_type_attributes=False, new_expressions=False)
CASES = checked_cases()


def environment(name: str, release: Release = DEFAULT_RELEASE) -> Environment:
    return Environment(
        consumable_capacity=ENVIRONMENTS[name].get("consumableCapacity", False),
        list_type_attributes=ENVIRONMENTS[name].get("listTypeAttributes", False),
        new_expressions=ENVIRONMENTS[name].get("newExpressions", False),
        release=release,
    )


def checked(text: str, env: Environment = STORED) -> Checked:
    result = compile_text(text, env)
    assert isinstance(result, Checked), result
    return result


def refusal(text: str, env: Environment = STORED) -> str:
    result = compile_text(text, env)
    assert isinstance(result, Issues), result
    return result.text


def overloads(text: str, env: Environment = STORED) -> tuple[str, ...]:
    result = checked(text, env)
    return result.references[result.expr.id].overload_ids


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_verdict_is_that_of_kubernetes(case: dict[str, Any]) -> None:
    """Every recorded expression has the recorded type, or is refused at the recorded place."""
    env = environment(case["environment"], Release(case["release"]))
    result = compile_text(case["expression"], env)

    if isinstance(result, Checked):
        assert case["answer"].get("type") == result.output_type.qualified()
    else:
        assert result.text.startswith(case["answer"].get("refused", "it is not refused"))


def test_there_are_enough_cases() -> None:
    """The file of recorded answers was found and read whole."""
    assert len(CASES) > 400 * len(Release)


def test_a_call_on_an_unknown_value_keeps_every_overload() -> None:
    """All possible overloads stay, in order, if the types are not known."""
    assert overloads("device.attributes['a'].b.indexOf('x')") == (
        "list_a_index_of_int",
        "string_index_of_string",
    )


def test_known_types_leave_one_overload() -> None:
    """Only overloads that fit known types stay."""
    assert overloads("1 + 2") == ("add_int64",)
    assert overloads("1 < 2.0") == ("less_int64_double",)


def test_a_function_in_a_namespace_loses_its_target() -> None:
    """`sets.contains(a, b)` is a call of one name and not a member call."""
    expr = checked("sets.contains([1], [2])").expr

    assert isinstance(expr, ast.Call)
    assert (expr.function, expr.target) == ("sets.contains", None)


def test_a_qualified_type_name_becomes_one_identifier() -> None:
    """`net.IP` is the name of a type and not the field of a variable."""
    expr = checked("net.IP").expr

    assert isinstance(expr, ast.Ident)
    assert expr.name == "net.IP"


def test_unknown_overloads_make_the_result_dynamic() -> None:
    """A sum of values of unknown types can be of any type."""
    assert str(checked("dyn(1) + dyn(2)").output_type) == "dyn"


@pytest.mark.parametrize(("env", "accepted"), [("stored", True), ("new", False), ("lists", True)])
def test_gates_hide_what_they_guard_from_new_expressions_only(env: str, accepted: bool) -> None:
    """A stored expression may use `includes` and the field even if the gates are off."""
    for text in ("device.allowMultipleAllocations", "device.attributes['a'].b.includes(1)"):
        result = compile_text(text, environment(env))

        assert isinstance(result, Checked) is accepted


def test_all_errors_are_shown_in_the_order_of_the_text() -> None:
    """One look shows all that is wrong, each with its line and a pointer."""
    assert refusal("foo +\n  bar") == (
        "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n"
        " | foo +\n"
        " | ^\n"
        "ERROR: <input>:2:3: undeclared reference to 'bar' (in container '')\n"
        " |   bar\n"
        " | ..^"
    )


def test_the_pointer_is_full_width_below_full_width_characters() -> None:
    """The mark stands below the character that it is about, also after wide ones."""
    assert refusal("'日' + x").endswith("\n | '日' + x\n | .．....^")


def test_more_than_a_hundred_errors_are_counted_and_not_shown() -> None:
    """A page of errors ends with how many more there are."""
    text = refusal("[" + ",".join(["x"] * 105) + "].size() == 1")

    assert text.count("ERROR:") == 100
    assert text.endswith("5 more errors were truncated")


DEEP = {
    "lists in lists": "[" * 249 + "]" * 249,
    "calls in calls": "dyn(" * 249 + "1" + ")" * 249,
    "macros in macros": "[1].map(x, " * 249 + "x" + ")" * 249,
    "macros in a chain": "[1]" + ".map(x, [x])" * 248,
    "bindings in bindings": "cel.bind(x, 1, " * 249 + "x" + ")" * 249,
    "a long disjunction": "||".join(["1 == 1"] * 1000),
}


@pytest.mark.parametrize("name", DEEP)
def test_depth_up_to_the_limit_is_no_problem(name: str) -> None:
    """Python's recursion limit refuses no expression that Kubernetes accepts."""
    assert isinstance(compile_text(DEEP[name], STORED), Checked)


HOSTILE = {
    "lists of lists of variables": (
        "cel.bind(a, 1, " + f"cel.bind(a, {'[' * 100}a{']' * 100}, " * 30 + "a" + ")" * 31,
        "types nest deeper than 300 levels",
    ),
    "targets that double": (
        "optional.of(1)" + ".optMap(x, x)" * 200,
        "expression expands to more than 20000 nodes",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_grows_without_end_is_refused(name: str) -> None:
    """Doubling and endless nesting end in an error about the whole expression."""
    text, problem = HOSTILE[name]

    assert refusal(text) == f"ERROR: <input>:-1:0: {problem}"
