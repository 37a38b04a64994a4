"""Which condition of a selector a device does not meet, and what the device has."""

from __future__ import annotations

import pytest

from dryrack.cel import CompileError, Device, Environment, Program, compile_expression
from dryrack.cel.selector_parts import compared_texts, split, unmet_parts, with_text
from dryrack.cel.selectors import SelectorTable
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity

_A = "device.attributes['gpu.example.com']"
_C = "device.capacity['gpu.example.com']"


_ENVIRONMENT = Environment(
    consumable_capacity=True, list_type_attributes=False, new_expressions=False
)


def _compile(expression: str) -> Program | CompileError:
    return compile_expression(expression, _ENVIRONMENT)


def gpu(**strings: str) -> Device:
    attributes = {
        **{name: decode({"string": text}, DeviceAttribute) for name, text in strings.items()},
        "cores": decode({"int": 16}, DeviceAttribute),
        "mig": decode({"bool": False}, DeviceAttribute),
        "driverVersion": decode({"version": "1.2.3"}, DeviceAttribute),
    }
    memory = decode({"value": "80Gi"}, DeviceCapacity)
    return Device("gpu.example.com", attributes, {"memory": memory})


def told(*expressions: str, **strings: str) -> list[str]:
    parts = unmet_parts(expressions, gpu(**strings), SelectorTable(_compile))
    return [part.fact for part in parts]


@pytest.mark.parametrize(
    ("condition", "fact"),
    [
        (
            f"{_C}.memory.compareTo(quantity('80Gi')) > 0",
            "memory is 80Gi, the selector requires more than 80Gi",
        ),
        (
            f"{_C}.memory.isGreaterThan(quantity('100Gi'))",
            "memory is 80Gi, the selector requires more than 100Gi",
        ),
        (f"{_A}.cores >= 32", "cores is 16, the selector requires at least 32"),
        (f"8 > {_A}.cores", "cores is 16, the selector requires less than 8"),
        (f"{_A}.mig", "mig is false, the selector requires true"),
        (
            f"{_A}.driverVersion.isGreaterThan(semver('2.0.0'))",
            "driverVersion is 1.2.3, the selector requires more than 2.0.0",
        ),
        (
            f"{_A}.model in ['h100', 'h200']",
            "model is 'a100', the selector requires 'h100' or 'h200'",
        ),
        (f"has({_A}.profile)", "has no attribute profile"),
        (
            "device.driver == 'other.example.com'",
            "driver is 'gpu.example.com', the selector requires 'other.example.com'",
        ),
        (
            f"{_A}.model.startsWith('h')",
            f"model is 'a100', the selector requires {_A}.model.startsWith('h')",
        ),
    ],
)
def test_the_condition_that_fails_is_told_with_the_value_of_the_device(
    condition: str, fact: str
) -> None:
    """Conditions that the device meets are not reported."""
    assert told(f"{_A}.cores == 16 && {condition}", model="a100") == [fact]


def test_a_guard_is_told_and_not_the_condition_that_it_guards() -> None:
    """The second condition cannot be evaluated on a device without the attribute."""
    guarded = f"'profile' in {_A} && {_A}.profile == '1g.5gb'"

    assert told(guarded) == ["has no attribute profile"]


def test_a_choice_is_told_as_a_whole() -> None:
    """Neither side of `||` is required by itself."""
    choice = f"{_A}.model == 'h100' || {_A}.cores > 20"

    assert split(choice) == (choice,)
    values = "model is 'a100', cores is 16"
    assert told(choice, model="a100") == [f"{values}, the selector requires {choice}"]


def test_the_device_that_is_nearly_selected_is_nearest() -> None:
    """A name with an ending more is nearer than another name."""
    wanted = (f"{_A}.productName == 'NVIDIA H100 80GB'",)
    table = SelectorTable(_compile)
    distances = [
        unmet_parts(wanted, gpu(productName=name), table)[0].distance
        for name in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "Tesla T4")
    ]

    assert distances == sorted(distances)
    assert 0 < distances[0] < distances[1] < distances[2] <= 1


def test_a_text_is_replaced_where_it_stands() -> None:
    """Only the literal that is compared, with quotes as CEL reads them."""
    expression = f"{_A}.model == \"x\" && {_A}.other == 'x'"
    (_, first), (_, second) = compared_texts(expression)

    assert with_text(expression, first, "y") == f"{_A}.model == 'y' && {_A}.other == 'x'"
    assert with_text(expression, second, "it's") == f'{_A}.model == "x" && {_A}.other == "it\'s"'
