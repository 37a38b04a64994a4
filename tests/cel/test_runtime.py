"""Evaluations: limits, depth, and invalid devices."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from dryrack import cel
from dryrack.kinds.releases import Release
from dryrack.kinds.resource import DeviceAttribute

_ENV = cel.Environment(consumable_capacity=True, list_type_attributes=False, new_expressions=False)
_LISTS = cel.Environment(consumable_capacity=True, list_type_attributes=True, new_expressions=False)
_NOTHING = cel.Device("d.example.com", {}, {}, None)
_LIMIT = "operation cancelled: actual cost limit exceeded"


def _program(text: str, env: cel.Environment = _ENV) -> cel.Program:
    program = cel.compile_expression(text, env)
    assert isinstance(program, cel.Program), program
    return program


def _error(text: str, device: cel.Device, env: cel.Environment = _ENV) -> str:
    with pytest.raises(cel.EvaluationError) as raised:
        _program(text, env).matches(device)
    return raised.value.message


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
        "lists.range(100000).map(x, x).size() == 1",
        "lists.range(2000).distinct().size() == 2000",
        "sets.contains(lists.range(2000), lists.range(2000))",
    ],
)
def test_a_bomb_ends_at_the_cost_limit(text: str) -> None:
    """Too much work is refused in Kubernetes' words and never done."""
    assert _error(text, _NOTHING) == _LIMIT


def test_an_attribute_without_a_value_fails_every_expression() -> None:
    """A device that is wrong is wrong for selectors that do not look at the wrong part, too."""
    device = cel.Device("d.example.com", {"x": DeviceAttribute()}, {}, None)

    assert _error("true", device) == "attribute x: unsupported attribute value"


def test_an_attribute_that_is_no_version_fails_every_expression() -> None:
    """The version is parsed before the expression runs."""
    device = cel.Device("d.example.com", {"x": DeviceAttribute(version_value="1.0")}, {}, None)

    expected = "attribute x: parse semantic version: No Major.Minor.Patch elements found"
    assert _error("true", device) == expected


def test_a_list_attribute_is_a_value_for_each_kind_of_expressions_by_its_rules() -> None:
    """One device serves expressions with and without the gate; 1.36 fails without it."""
    device = cel.Device("d.example.com", {"x": DeviceAttribute(int_values=(1, 2))}, {}, None)
    text = 'device.attributes["d.example.com"].x.includes(2)'

    assert _program(text, _LISTS).matches(device)
    assert _program(text).matches(device)
    before = replace(_ENV, release=Release.V1_36)
    assert _error(text, device, before) == "attribute x: unsupported attribute value"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('int("x") == 1', "type conversion error from 'string' to 'int'"),
        ('"a".find("(") == ""', "error parsing regexp: missing closing ): `(`"),
        ("[int].exists(t, t == int)", "reference to undefined type: t"),
    ],
)
def test_a_constant_that_is_wrong_is_no_program(text: str, problem: str) -> None:
    """A wrong constant is a compile error."""
    refused = cel.compile_expression(text, _ENV)

    assert refused == cel.CompileError(f"program instantiation failed: {problem}")


def test_depth_leaves_pythons_own_limit_as_it_was() -> None:
    """A deeply nested expression runs, and the interpreter is not changed by it."""
    before = sys.getrecursionlimit()
    text = "!" + "(" * 40 + "false" + ")" * 40 + " && 1" + " + 1" * 150 + " == 151"

    assert _program(text).matches(_NOTHING)
    assert sys.getrecursionlimit() == before


def test_an_error_does_not_matter_if_the_other_side_decides() -> None:
    """`false && error` is false and `true || error` is true, in either order."""
    wrong = 'device.attributes["d.example.com"].missing'

    assert not _program(f"{wrong} && false").matches(_NOTHING)
    assert _program(f"{wrong} || true").matches(_NOTHING)
    assert _error(f"{wrong} && true", _NOTHING) == "no such key: missing"


def test_a_result_that_is_no_bool_is_an_error() -> None:
    """The type of an attribute shows only when it is read."""
    device = cel.Device("d.example.com", {"x": DeviceAttribute(int_value=1)}, {}, None)

    assert _error('device.attributes["d.example.com"].x', device) == (
        "CEL result of type int could not be converted to bool: "
        "unsupported type conversion from 'int' to bool"
    )


@pytest.mark.parametrize(("driver", "kept"), [("d.example.com", 1), ("z.example.com", 2)])
def test_a_name_that_is_there_twice_is_decided_by_the_order_of_names(
    driver: str, kept: int
) -> None:
    """The last of two names of one attribute in order counts, in any order of the device."""
    named = {
        "index": DeviceAttribute(int_value=1),
        f"{driver}/index": DeviceAttribute(int_value=2),
    }
    program = _program(f'device.attributes["{driver}"].index == {kept}')

    for attributes in (named, dict(reversed(named.items()))):
        assert program.matches(cel.Device(driver, attributes, {}, None))
