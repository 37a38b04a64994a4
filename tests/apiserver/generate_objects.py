"""
Random objects and patches of the served kinds, made from their schemas.

Words, keys and numbers are few, so that two objects of a kind mostly disagree about something
that both have. The same seed makes the same object.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.apiserver.go_oracle import ASKED

from dryrack.kinds.schemas import schema_of
from dryrack.kinds.schemas.node import INT_OR_STRING, QUANTITY, Schema

if TYPE_CHECKING:
    from random import Random

    from dryrack.kinds.releases import Release

KINDS = (
    ("", "v1", "ConfigMap"),
    ("", "v1", "Pod"),
    ("", "v1", "Node"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "Deployment"),
    ("batch", "v1", "Job"),
    ("resource.k8s.io", "v1", "ResourceClaim"),
    ("resource.k8s.io", "v1", "ResourceSlice"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
)
_WORDS = ("a", "b", "c")
_DEPTH_MAX = 9
# Nobody sets these by hand, and some would make an object of another identity.
_SKIPPED = frozenset({"managedFields", "selfLink", "uid", "generateName", "namespace", "name"})
_TIMES = ("2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z")


@dataclass(frozen=True, slots=True)
class Kind:
    api_version: str
    kind: str
    schema: Schema


def kind_of(group: str, version: str, kind: str, release: Release = ASKED) -> Kind:
    schema = schema_of(group, version, kind, release)
    assert schema is not None, f"no schema of {kind}"
    return Kind(f"{group}/{version}" if group else version, kind, schema)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes objects of one kind."""

    kind: Kind
    random: Random

    def object(self) -> dict[str, Any]:
        made = self._fields(self.kind.schema, 0, root=True)
        metadata = made.get("metadata") or {}
        return {
            **made,
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": {**metadata, "name": "x"},
        }

    def _fields(self, schema: Schema, depth: int, *, root: bool = False) -> dict[str, Any]:
        names = [name for name in schema.property_names if name not in _SKIPPED or depth > 1]
        if root:
            names = [name for name in names if name not in ("apiVersion", "kind")]
        wanted = min(len(names), self.random.choice((1, 2, 3) if depth else (2, 3, 4)))
        chosen = set(self.random.sample(names, wanted)) | self._keys(schema)
        made: dict[str, Any] = {}
        for name in sorted(chosen):
            below = schema.named(name)
            assert below is not None
            value = self.value(below, depth + 1)
            if value is not None:
                made[name] = value
        return made

    def _keys(self, schema: Schema) -> set[str]:
        """Always set the keys of items, or most lists would be refused."""
        return {name for name in ("name", "type", "key", "uid") if name in schema.required}

    def value(self, schema: Schema, depth: int) -> Any:
        if schema.name == QUANTITY:
            return self.random.choice(("1", "2", "1500m"))
        if schema.name == INT_OR_STRING:
            return self.random.choice((1, "25%"))
        match schema.type:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._list(schema, depth)
            case "string":
                return self._string(schema)
            case "integer" | "number":
                return self.random.choice((1, 2, 3))
            case "boolean":
                return self.random.random() < 0.7
            case _:
                return None

    def _string(self, schema: Schema) -> Any:
        if schema.format == "date-time":
            return self.random.choice(_TIMES)
        if schema.format == "byte":
            return self.random.choice(("YQ==", "Yg=="))
        return self.random.choice(schema.raw.get("enum") or _WORDS)

    def _object(self, schema: Schema, depth: int) -> Any:
        if depth > _DEPTH_MAX:
            return None
        if schema.property_names:
            return self._fields(schema, depth)
        values = schema.values
        if values is None:
            return None
        keys = self.random.sample(_WORDS, self.random.randint(1, 2))
        made = {key: self.value(values, depth + 1) for key in keys}
        return {key: value for key, value in made.items() if value is not None}

    def _list(self, schema: Schema, depth: int) -> Any:
        items = schema.items
        if items is None or depth > _DEPTH_MAX:
            return None
        made = [self.value(items, depth + 1) for _ in range(self.random.randint(1, 3))]
        return self._distinct(schema, [item for item in made if item is not None])

    def _distinct(self, schema: Schema, items: list[Any]) -> list[Any]:
        if schema.list_type == "atomic" and not schema.merge_key:
            return items
        keys = schema.list_keys or ((schema.merge_key,) if schema.merge_key else ())
        kept: dict[str, Any] = {}
        for item in items:
            shown = [item.get(key) for key in keys] if isinstance(item, dict) else item
            kept.setdefault(repr(shown), item)
        return list(kept.values())

    def changed(self, value: dict[str, Any]) -> dict[str, Any]:
        """The object with some of it from another one."""
        other = self.object()
        made = _blend(self.random, copy.deepcopy(value), other)
        assert isinstance(made, dict)
        return {**made, "apiVersion": self.kind.api_version, "kind": self.kind.kind}

    def patch(self, live: dict[str, Any]) -> dict[str, Any]:
        """A strategic merge patch that is about the object, with directives."""
        made = self._patch(self.kind.schema, live, self.changed(live), 0)
        return {name: value for name, value in made.items() if name not in ("apiVersion", "kind")}

    def _patch(self, schema: Schema, live: Any, wanted: Any, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in wanted.items():
            below = schema.named(name)
            if below is None or self.random.random() < 0.2:
                made[name] = self.random.choice((value, None))
            elif isinstance(value, dict) and isinstance(live.get(name), dict):
                made[name] = self._patch(below, live[name], value, depth + 1)
            elif isinstance(value, list):
                made.update(self._list_patch(name, below, live.get(name), value))
            else:
                made[name] = value
        return self._directed(schema, made, depth)

    def _directed(self, schema: Schema, made: dict[str, Any], depth: int) -> dict[str, Any]:
        chance = self.random.random()
        if depth and chance < 0.04:
            made["$patch"] = self.random.choice(("replace", "delete"))
        elif depth and chance < 0.08 and "retainKeys" in schema.patch_strategies:
            made["$retainKeys"] = sorted(name for name in made if not name.startswith("$"))
        return made

    def _list_patch(
        self, name: str, schema: Schema, live: Any, wanted: list[Any]
    ) -> dict[str, Any]:
        key = schema.merge_key
        if key and all(isinstance(item, dict) and key in item for item in wanted):
            return self._items_patch(name, key, live or [], wanted)
        made: dict[str, Any] = {name: wanted}
        if "merge" in schema.patch_strategies and not key and live:
            # Whether an item that is both added and deleted stays is not defined.
            others = [item for item in live if item not in wanted]
            if others and self.random.random() < 0.4:
                made[f"$deleteFromPrimitiveList/{name}"] = self.random.sample(others, 1)
            if self.random.random() < 0.4:
                both = [*wanted, *(item for item in live if item not in wanted)]
                made[f"$setElementOrder/{name}"] = both
        return made

    def _items_patch(
        self, name: str, key: str, live: list[Any], wanted: list[Any]
    ) -> dict[str, Any]:
        items = list(wanted)
        known = [item[key] for item in wanted]
        others = [item[key] for item in live if key in item and item[key] not in known]
        if others and self.random.random() < 0.3:
            items.append({key: self.random.choice(others), "$patch": "delete"})
        if self.random.random() < 0.1:
            items.insert(0, {"$patch": "replace"})
        made: dict[str, Any] = {name: items}
        if self.random.random() < 0.4:
            self.random.shuffle(others)
            order = [*known, *others]
            made[f"$setElementOrder/{name}"] = [{key: value} for value in order]
        return made


def _blend(random: Random, mine: Any, other: Any) -> Any:
    if isinstance(mine, dict) and isinstance(other, dict):
        made = {name: value for name, value in mine.items() if random.random() < 0.85}
        for name, value in other.items():
            if name in made:
                made[name] = _blend(random, made[name], value)
            elif random.random() < 0.5:
                made[name] = value
        return {**made, **{name: mine[name] for name in ("name", "type") if name in mine}}
    if isinstance(mine, list) and isinstance(other, list):
        return random.choice((mine, other, list(reversed(mine))))
    return random.choice((mine, other))


def spoiled(random: Random, value: Any) -> Any:
    """The value with, now and then, something else in its place."""
    if random.random() < 0.01:
        return random.choice((None, "", 0, False, [], {}, 1.5, "word", 2**40, {"a": 1}))
    if isinstance(value, dict):
        made = {name: spoiled(random, each) for name, each in value.items()}
        return made | {"colour": "red"} if random.random() < 0.01 else made
    if isinstance(value, list):
        return [spoiled(random, each) for each in value]
    return value
