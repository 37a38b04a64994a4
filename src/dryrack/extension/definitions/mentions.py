"""Whether a schema says something anywhere, so that values need not be searched for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dryrack.kinds.paths import get

Schema = Mapping[str, Any]


def mentions_key(schema: Schema, key: str) -> bool:
    """Return whether a key is set in a schema, or in a schema below it."""
    return bool(schema.get(key)) or any(mentions_key(each, key) for each in _below(schema))


def _below(schema: Schema) -> Iterator[Schema]:
    yield from get(schema, "properties", {}).values()
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield schema[key]
