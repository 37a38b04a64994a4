"""
Derived attributes: what an expression computes from a device, as an attribute for constraints.

The result is a bool, an int, a string, a version, or a list of these. It is computed once for each
device that looks the same. Errors have the words of Kubernetes and are remembered like values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.cel.checking import types as t
from dryrack.cel.evaluation.program import (
    CompileError,
    EvaluationError,
    Program,
    compile_expression,
)
from dryrack.cel.evaluation.values import (
    CIDR,
    IP,
    URL,
    Duration,
    Err,
    Optional,
    Timestamp,
    TypeValue,
    Value,
    Version,
)
from dryrack.cel.parsing.ast import Uint
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import DeviceAttribute

if TYPE_CHECKING:
    from dryrack.cel.checking.environment import Environment
    from dryrack.cel.checking.types import Type
    from dryrack.cel.device import Device

_SCALARS = (t.BOOL, t.INT, t.STRING, t.SEMVER, t.ANY, t.DYN)
# The field of an attribute for one value and for a list, and the name in errors.
_FIELDS: dict[type, tuple[str, str, str]] = {
    bool: ("bool_value", "bool_values", "bool"),
    int: ("int_value", "int_values", "int"),
    str: ("string_value", "string_values", "string"),
    Version: ("version_value", "version_values", "semver"),
}
# The types of Go that stand behind values, which errors name.
_GO_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    str: "string",
    Version: "semver.Version",
    Uint: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    list: "[]ref.Val",
    Duration: "time.Duration",
    Timestamp: "time.Time",
    IP: "netip.Addr",
    CIDR: "netip.Prefix",
    URL: "*url.URL",
    Optional: "<nil>",
}


def compile_derived(text: str, env: Environment) -> Program | CompileError:
    """Compile the expression of a derived attribute, or return why it does not compile."""
    return compile_expression(text, env, check_output=_output_problem)


def derive(program: Program, device: Device) -> tuple[DeviceAttribute | EvaluationError, int]:
    """Return the attribute that an expression computes, or the error; and the cost."""
    value, cost = program.evaluate(device)
    if isinstance(value, EvaluationError):
        return value, cost
    attribute = _attribute(value)
    if isinstance(attribute, Err):
        return EvaluationError(attribute.message), cost
    return attribute, cost


class DerivedTable:
    """Compiled expressions of derived attributes, and the attributes of each shape of a device."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._programs: dict[str, Program | CompileError] = {}
        self._known: dict[tuple[str, Device], DeviceAttribute | EvaluationError] = {}

    def attribute(
        self, expression: str, shape: Device
    ) -> DeviceAttribute | CompileError | EvaluationError:
        """Return the attribute that the expression computes, or why it cannot."""
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = compile_derived(expression, self._env)
        if isinstance(program, CompileError):
            return program
        known = self._known.get((expression, shape))
        if known is None:
            known, _cost = derive(program, shape)
            self._known[expression, shape] = known
        return known


def _output_problem(output: Type, env: Environment) -> str:
    """Return why the type of an expression cannot be that of an attribute, or ""."""
    has_lists = env.list_type_attributes or not env.new_expressions
    element = output.parameters[0] if output.kind is t.Kind.LIST and has_lists else output
    if element in _SCALARS:
        return ""
    lists = " or a list of these scalars" if has_lists else ""
    return (
        f"must evaluate to a primitive scalar (string, integer, boolean, semver){lists}, "
        f"not {output.qualified()}"
    )


def _attribute(value: Value) -> DeviceAttribute | Err:
    if isinstance(value, list):
        return _list_attribute([_plain(each) for each in value])
    value = _plain(value)
    fields = _FIELDS.get(type(value))
    if fields is None:
        return Err(f"unsupported CEL return type: {_go_type(value)}")
    return _new_attribute(fields[0], _text(value))


def _list_attribute(values: list[Value]) -> DeviceAttribute | Err:
    if not values:
        return DeviceAttribute(string_values=())
    fields = _FIELDS.get(type(values[0]))
    if fields is None:
        return Err(f"unsupported list element type: {_go_type(values[0])}")
    for index, value in enumerate(values):
        if type(value) is not type(values[0]):
            found = _go_type(value)
            return Err(f"expected list element at index {index} to be {fields[2]}, got {found}")
    return _new_attribute(fields[1], tuple(map(_text, values)))


def _new_attribute(field: str, value: Any) -> DeviceAttribute:
    return DeviceAttribute(**{field: value})


def _plain(value: Value) -> Value:
    """Return a type as its name, and an optional as its value."""
    while type(value) is Optional and value.present:
        value = value.value
    return value.name if type(value) is TypeValue else value


def _text(value: Value) -> Value:
    return str(value.semver) if type(value) is Version else value


def _go_type(value: Value) -> str:
    if isinstance(value, Quantity):
        return "*resource.Quantity"
    return "map[ref.Val]ref.Val" if isinstance(value, dict) else _GO_TYPES.get(type(value), "any")
