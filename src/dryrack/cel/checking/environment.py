"""
The environment of an expression: functions, the variable `device`, and types by name.

The release and three switches select it. With `new_expressions` it is the stricter environment in
which an API server compiles new expressions: there the two feature gates hide the functions that
they guard. Expressions that are already stored may use everything. The type of an attribute is
`any`, or `dyn` where attributes may be lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from dryrack.cel.checking import types as t
from dryrack.cel.declarations import functions, messages
from dryrack.kinds.releases import CEL, DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.cel.declarations import Overload
    from dryrack.kinds.releases import CelBehaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    consumable_capacity: bool
    list_type_attributes: bool
    new_expressions: bool
    release: Release = DEFAULT_RELEASE

    @property
    def behaviour(self) -> CelBehaviour:
        return CEL[self.release]

    @property
    def functions(self) -> Mapping[str, tuple[Overload, ...]]:
        """Every function's overloads, in the order in which a call tries them."""
        includes = self.list_type_attributes or not self.new_expressions
        return functions(includes=includes, release=self.release)

    @property
    def identifiers(self) -> Mapping[str, t.Type]:
        """The type of each name that stands for a value: `device`, and the names of types."""
        return _identifiers(optional_is_dyn=self.behaviour.optional_type_is_dyn)

    @property
    def attribute_type(self) -> t.Type:
        is_dyn = not self.new_expressions and self.behaviour.stored_attributes_are_dyn
        return t.DYN if is_dyn or self.list_type_attributes else t.ANY

    @property
    def evaluates_lists(self) -> bool:
        """Return whether the value of an attribute can be a list."""
        return self.list_type_attributes or self.behaviour.evaluates_lists

    @property
    def device_fields(self) -> Mapping[str, t.Type]:
        """The fields of `device` and their types."""
        return _device_fields(
            self.attribute_type,
            multiple=self.consumable_capacity or not self.new_expressions,
        )

    def message_type(self, name: str) -> t.Type | None:
        """Return the type of a message that is no identifier, as `Object.spec` of a mutation."""
        return None

    def fields_of(self, message: str) -> Mapping[str, t.Type] | None:
        """The fields of a message by its name, or nothing if it has none that are known."""
        return self.device_fields if message == t.DEVICE.name else messages.FIELDS.get(message)


@cache
def _device_fields(attribute: t.Type, *, multiple: bool) -> Mapping[str, t.Type]:
    fields = {
        "driver": t.STRING,
        "attributes": t.map_of(t.STRING, t.map_of(t.STRING, attribute)),
        "capacity": t.map_of(t.STRING, t.map_of(t.STRING, t.QUANTITY)),
    }
    if multiple:
        fields["allowMultipleAllocations"] = t.BOOL
    return MappingProxyType(fields)


@cache
def _identifiers(*, optional_is_dyn: bool) -> Mapping[str, t.Type]:
    a = t.type_param("A")
    b = t.type_param("B")
    optional = t.optional_of(t.DYN) if optional_is_dyn else t.Type(t.Kind.OPAQUE, "optional_type")
    named = {
        "bool": t.BOOL,
        "bytes": t.BYTES,
        "double": t.DOUBLE,
        "duration": t.DURATION,
        "int": t.INT,
        "kubernetes.DRADevice": t.DEVICE,
        "list": t.list_of(a),
        "map": t.map_of(a, b),
        "net.CIDR": t.CIDR,
        "net.IP": t.IP,
        "null_type": t.NULL,
        "optional_type": optional,
        "string": t.STRING,
        "timestamp": t.TIMESTAMP,
        "type": t.TYPE,
        "uint": t.UINT,
        **messages.MADE,
    }
    types = {name: t.type_of(named_type) for name, named_type in named.items()}
    return MappingProxyType({"device": t.DEVICE, **types})
