"""
The schema of one place in an object, from the OpenAPI of Kubernetes.

A `Schema` has all facts about a place: its fields, how a list or a map is merged and owned, and its
default values. Schemas are created on the first use, because the schema of a pod is deep and most
of it is never visited. Custom resources use the same class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.schemas.structs import Struct

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_NAMED_PREFIX = "#/components/schemas/"


@dataclass(eq=False, slots=True, repr=False)
class Definitions:
    """Definitions and Go structs by name, with the schemas created so far."""

    raw: Mapping[str, Any]
    structs: Mapping[str, Struct] = field(default_factory=dict)
    _nodes: dict[str, Schema] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Schema:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = Schema(self.raw[name], definitions=self, name=name)
        return node

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def at(self, place: Mapping[str, Any]) -> Schema:
        """Return the schema of a place, which may refer to a named definition."""
        reference = referred(place)
        if reference is None:
            return Schema(place, definitions=self)
        if not place.keys() - _REFERRING:
            return self[reference]
        return Schema(self.raw[reference], definitions=self, name=reference, place=place)


@dataclass(eq=False, slots=True, repr=False)
class Schema:
    """
    The schema of one place.

    `raw` is the definition of the type; `place` what the field that refers to it adds, such as
    a default or how it is merged.
    """

    raw: Mapping[str, Any]
    definitions: Definitions
    name: str = ""
    place: Mapping[str, Any] = field(default_factory=dict)
    # Custom resources may keep unknown fields at and below a place.
    preserves: bool = False
    # Values that other modules derive from this schema, by name.
    derived: dict[str, object] = field(default_factory=dict)
    _fields: dict[str, Schema] = field(default_factory=dict)

    def extension(self, key: str) -> Any:
        """Return an `x-kubernetes-…` value of the place, or else of its type."""
        found = self.place.get(key)
        return self.raw.get(key) if found is None else found

    @property
    def type(self) -> str:
        """`object`, `array`, `string`, `integer`, `number`, `boolean`, or empty for any."""
        return str(self.raw.get("type", ""))

    @property
    def format(self) -> str:
        return str(self.raw.get("format", ""))

    @property
    def struct(self) -> Struct | None:
        """The Go struct of the object; None for a map or a custom object."""
        return self.definitions.structs.get(self.name) if self.name else None

    @property
    def property_names(self) -> tuple[str, ...]:
        return tuple(self.raw.get("properties", ()))

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self.raw.get("required", ()))

    @property
    def default(self) -> Any:
        """The default value in the schema, or None."""
        return self.extension("default")

    @property
    def is_scalar(self) -> bool:
        return self.name in (QUANTITY, INT_OR_STRING) or self.type not in ("", "object", "array")

    @property
    def keeps_unknown(self) -> bool:
        """True if unknown fields are preserved here."""
        return self.preserves or bool(self.raw.get("x-kubernetes-preserve-unknown-fields"))

    def named(self, name: str) -> Schema | None:
        """Return the schema of a field, if the object has this field."""
        node = self._fields.get(name)
        if node is None:
            place = self.raw.get("properties", {}).get(name)
            if place is None:
                return None
            node = self._fields[name] = self._below(place)
        return node

    @property
    def values(self) -> Schema | None:
        """The schema of the values of a map."""
        place = self.raw.get("additionalProperties")
        return self._cached("{}", place) if isinstance(place, dict) else None

    @property
    def items(self) -> Schema | None:
        """The schema of the items of a list."""
        place = self.raw.get("items")
        return self._cached("[]", place) if isinstance(place, dict) else None

    def child(self, name: str) -> Schema | None:
        """Return the schema of a field, or else of the values of the map."""
        return self.named(name) or self.values

    @property
    def list_type(self) -> str:
        """`map`, `set` or `atomic`: how owners identify items."""
        declared = self.extension("x-kubernetes-list-type")
        if declared is not None:
            return str(declared)
        # Lists from before list types have only a patch strategy.
        if not self.patch_strategies & {"merge"}:
            return "atomic"
        return "map" if self.merge_key else "set"

    @property
    def list_keys(self) -> tuple[str, ...]:
        """The fields that identify the items of a `map` list."""
        if self.extension("x-kubernetes-list-type") is not None:
            return tuple(self.extension("x-kubernetes-list-map-keys") or ())
        return (self.merge_key,) if self.merge_key else ()

    @property
    def is_atomic_map(self) -> bool:
        return bool(self.extension("x-kubernetes-map-type") == "atomic")

    @property
    def patch_strategies(self) -> frozenset[str]:
        return frozenset(
            name
            for name in str(self.extension("x-kubernetes-patch-strategy") or "").split(",")
            if name
        )

    @property
    def merge_key(self) -> str:
        """The field by which strategic merge patches identify items of a list."""
        return str(self.extension("x-kubernetes-patch-merge-key") or "")

    @property
    def kinds(self) -> tuple[tuple[str, str, str], ...]:
        """Group, version and kind of each kind that has this schema."""
        return tuple(
            (kind["group"], kind["version"], kind["kind"])
            for kind in self.raw.get("x-kubernetes-group-version-kind", ())
        )

    def _cached(self, key: str, place: Mapping[str, Any]) -> Schema:
        node = self._fields.get(key)
        if node is None:
            node = self._fields[key] = self._below(place)
        return node

    def _below(self, place: Mapping[str, Any]) -> Schema:
        node = self.definitions.at(place)
        if self.keeps_unknown and not node.name:
            node.preserves = True
        return node


def referred(place: Mapping[str, Any]) -> str | None:
    """Return the name of the definition to which a place refers, or None."""
    reference = place.get("$ref")
    if reference is None and len(place.get("allOf", ())) == 1:
        reference = place["allOf"][0].get("$ref")
    return None if reference is None else str(reference).removeprefix(_NAMED_PREFIX)


_REFERRING = frozenset({"$ref", "allOf"})
