"""
Paths into values: a variable or the result of a step, followed by fields, keys and indices.

`device.attributes["d"].model` is one attribute with three qualifiers, not three steps, and is
priced so: one unit for each qualifier and one for the whole. Once an optional qualifier has
been met, or the start was an optional, what is missing makes the path absent, not wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from dryrack.cel.evaluation.values import (
    CIDR,
    INT_MAX,
    INT_MIN,
    IP,
    NONE,
    URL,
    DomainMap,
    EmptyMessage,
    Err,
    MutableList,
    MutableMap,
    NamedFormat,
    Optional,
    StringMap,
    TypeValue,
    Value,
    Version,
    find,
    go_name,
    no_such_overload,
    type_name,
)
from dryrack.cel.functions.formatting import go_text
from dryrack.cel.parsing.ast import Uint
from dryrack.kinds.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cel.evaluation.runtime_cost import Tracker


class Scope(Protocol):
    def resolve(self, name: str) -> Value: ...


class Step(Protocol):
    """Anything that can be evaluated and leaves its value under its id."""

    @property
    def id(self) -> int: ...

    def eval(self, scope: Scope, tracker: Tracker) -> Value: ...


# What a lookup that need not succeed found, whether it was there, and what went wrong.
Opened: TypeAlias = "Callable[[Value], Value]"
Found: TypeAlias = "tuple[Value, bool, Err | None]"

QUALIFIER_TYPES = (str, int, Uint, bool, float)


def look_up(value: Value, key: Value) -> Value:
    found, present, error = look_up_if_present(value, key)
    if error is not None:
        return error
    if present:
        return found
    what = "index out of bounds" if isinstance(value, list) else "no such key"
    return Err(f"{what}: {go_text(key)}")


def look_up_if_present(value: Value, key: Value) -> Found:
    if isinstance(value, dict):
        found, present = find(value, key)
        return (None, False, found) if type(found) is Err else (found, present, None)
    if isinstance(value, list):
        index = _index(key)
        if isinstance(index, Err):
            return None, False, index
        return (value[index], True, None) if 0 <= index < len(value) else (None, False, None)
    if type(value) is Err:
        return None, False, value
    if type(value) is EmptyMessage:
        return None, False, _no_field(key)
    return None, False, None


def _no_field(key: Value) -> Err:
    return Err(f"no such field '{key}'") if type(key) is str else no_such_overload()


def _index(key: Value) -> int | Err:
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is Uint and key.value <= INT_MAX:
        return int(key.value)
    if kind is float and key == key and INT_MIN <= key < INT_MAX and key == int(key):
        return int(key)
    if kind is Uint or kind is float:
        return Err(f"unsupported index value {go_text(key)} in list")
    return Err(f"unsupported index type '{type_name(key)}' in list")


_OPAQUE_NAMES: dict[type, str] = {
    Version: "semver.Version",
    IP: "netip.Addr",
    CIDR: "netip.Prefix",
    URL: "*url.URL",
    NamedFormat: "cel.Format",
}


def unwrap(value: Value) -> Value:
    """
    Return an optional's value as a path sees it that starts there, in Kubernetes 1.36.

    That release takes the value apart and puts it together again. Types come back as strings, the
    maps of a device forget their defaults, and what Kubernetes added does not come back at all.
    """
    kind = type(value)
    if kind is TypeValue:
        return value.name
    if kind is DomainMap:
        return dict(value)
    if kind is Optional:
        return unwrap(value.value) if value.present else None
    if isinstance(value, Quantity):
        return Err(f"unsupported conversion to ref.Val: (*resource.Quantity){value}")
    if kind in _OPAQUE_NAMES and kind is not NamedFormat:
        return Err(f"unsupported conversion to ref.Val: ({_OPAQUE_NAMES[kind]}){_go_text(value)}")
    if kind is Err:
        # What did not come back the first time is an error inside an optional.
        return Err(f"unsupported conversion to ref.Val: (*errors.errorString){value.message}")
    return value


def _go_text(value: Value) -> str:
    if type(value) is Version:
        return str(value.semver)
    if type(value) is URL:
        return str(value.text)
    return f"{value.address}/{value.bits}" if type(value) is CIDR else str(value.address)


class ConstantQualifier:
    """A field or a key that is known beforehand; `test_only` asks whether it is there."""

    __slots__ = ("id", "key", "optional", "test_only")

    def __init__(self, node_id: int, key: Value, *, optional: bool, test_only: bool) -> None:
        self.id = node_id
        self.key = key
        self.optional = optional
        self.test_only = test_only

    def qualify(self, _scope: Scope, tracker: Tracker, value: Value) -> Value:
        if self.test_only:
            _, present, error = look_up_if_present(value, self.key)
            result = present if error is None else error
        else:
            result = look_up(value, self.key)
        tracker.cost += 1
        tracker.push(self.id, result)
        return result

    def qualify_if_present(self, _scope: Scope, tracker: Tracker, value: Value) -> Found:
        found, present, error = look_up_if_present(value, self.key)
        if present:
            tracker.cost += 1
            tracker.push(self.id, found)
        return found, present, error


class ComputedQualifier:
    """An index that is itself an attribute, or the result of a step (`relative`)."""

    __slots__ = ("attribute", "id", "optional", "relative")

    def __init__(
        self, node_id: int, attribute: Attribute, *, optional: bool, relative: bool
    ) -> None:
        self.id = node_id
        self.attribute = attribute
        self.optional = optional
        self.relative = relative

    def _key(self, scope: Scope, tracker: Tracker) -> Value:
        key = self.attribute.resolve(scope, tracker)
        if type(key) in QUALIFIER_TYPES or type(key) is Err:
            return key
        return Err(f"invalid qualifier type: {go_name(key)}")

    def _charge(self, tracker: Tracker, found: Value) -> None:
        if self.relative:
            tracker.drop(self.attribute.id)
        tracker.cost += 1
        tracker.push(self.id, found)

    def qualify(self, scope: Scope, tracker: Tracker, value: Value) -> Value:
        key = self._key(scope, tracker)
        result = key if type(key) is Err else look_up(value, key)
        self._charge(tracker, result)
        return result

    def qualify_if_present(self, scope: Scope, tracker: Tracker, value: Value) -> Found:
        key = self._key(scope, tracker)
        if type(key) is Err:
            return None, False, key
        found, present, error = look_up_if_present(value, key)
        if present:
            self._charge(tracker, found)
        return found, present, error


Qualifier: TypeAlias = ConstantQualifier | ComputedQualifier


def _apply(scope: Scope, tracker: Tracker, start: Value, path: _Path) -> Value:
    """Follow the qualifiers; the result is wrapped if the path turned optional on the way."""
    value = start
    optional = False
    holder = None
    if type(start) is Optional:
        if not start.present:
            return start
        value = path.opened(start.value)
        optional = True
    for qualifier in path.qualifiers:
        optional = optional or qualifier.optional
        holder = value
        if optional:
            value, present, error = qualifier.qualify_if_present(scope, tracker, value)
            if error is not None:
                return error
            if not present:
                return NONE
        else:
            value = qualifier.qualify(scope, tracker, value)
            if type(value) is Err:
                return value
    value = handed_out(holder, value)
    return Optional(value) if optional else value


def handed_out(holder: Value, value: Value) -> Value:
    """
    Return what a path finds in a device; upstream wraps it anew each time.

    It shows only where a map or a list is a key, because such a key is found by itself alone.
    """
    if type(holder) is not DomainMap and type(holder) is not StringMap:
        return value
    if type(value) is StringMap and value:
        return StringMap(value)
    return list(value) if type(value) is list else value


class _Path:
    """A start, and the steps that are taken from it; known by the last of them."""

    __slots__ = ("opened", "own_id", "qualifiers")

    def __init__(self, node_id: int, opened: Opened) -> None:
        self.own_id = node_id
        self.opened = opened
        self.qualifiers: list[Qualifier] = []

    @property
    def id(self) -> int:
        return self.qualifiers[-1].id if self.qualifiers else self.own_id

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)


class VariableAttribute(_Path):
    """A path that starts from a variable of the environment."""

    __slots__ = ("name",)

    def __init__(self, node_id: int, name: str, opened: Opened) -> None:
        super().__init__(node_id, opened)
        self.name = name

    def start(self, scope: Scope, _tracker: Tracker) -> Value:
        return scope.resolve(self.name)

    def resolve(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.start(scope, tracker)
        if (not self.qualifiers and type(value) is not Optional) or type(value) is Err:
            return value
        return _apply(scope, tracker, value, self)


class LocalAttribute(VariableAttribute):
    """A path that starts from a variable of a macro; an accumulator has a step that makes it."""

    __slots__ = ("first",)

    def __init__(self, node_id: int, name: str, first: Step | None, opened: Opened) -> None:
        super().__init__(node_id, name, opened)
        self.first = first

    def start(self, scope: Scope, tracker: Tracker) -> Value:
        variables = tracker.variables
        if self.name in variables:
            return variables[self.name]
        assert self.first is not None, "a loop sets its variables before they are asked for"
        value = self.first.eval(scope, tracker)
        if isinstance(value, list) and not value:
            value = MutableList()
        elif isinstance(value, dict) and not value:
            value = MutableMap()
        variables[self.name] = value
        return value


class RelativeAttribute(_Path):
    """A path that starts from the result of a step."""

    __slots__ = ("operand",)

    def __init__(self, node_id: int, operand: Step, opened: Opened) -> None:
        super().__init__(node_id, opened)
        self.operand = operand

    def resolve(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.operand.eval(scope, tracker)
        if type(value) is Err:
            return value
        return _apply(scope, tracker, value, self)


class ConditionalAttribute:
    """`condition ? truthy : falsy`; qualifiers after it go to both branches."""

    __slots__ = ("condition", "falsy", "own_id", "truthy")

    def __init__(
        self, node_id: int, condition: Step, *, truthy: Attribute, falsy: Attribute
    ) -> None:
        self.own_id = node_id
        self.condition = condition
        self.truthy = truthy
        self.falsy = falsy

    @property
    def id(self) -> int:
        after = self.truthy.id
        return after if after == self.falsy.id else self.own_id

    def add(self, qualifier: Qualifier) -> None:
        self.truthy.add(qualifier)
        self.falsy.add(qualifier)

    def resolve(self, scope: Scope, tracker: Tracker) -> Value:
        value = self.condition.eval(scope, tracker)
        if value is True:
            return self.truthy.resolve(scope, tracker)
        if value is False:
            return self.falsy.resolve(scope, tracker)
        return value if type(value) is Err else Err("no such overload")


Attribute: TypeAlias = VariableAttribute | RelativeAttribute | ConditionalAttribute
