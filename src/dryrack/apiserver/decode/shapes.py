"""
Strict decoding by resource: the schema of a built-in kind, or of a custom one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds import schemas
from dryrack.kinds.schemas.strict_decode import Conformed, conform, conform_custom

if TYPE_CHECKING:
    from dryrack.apiserver.registry import Resource
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.schemas import Schema


class GoShapes:
    """Knows the fields of every built-in kind, and of custom ones by their schema."""

    def __init__(self) -> None:
        self._custom: dict[str, tuple[object, Schema]] = {}

    def conform(self, resource: Resource, obj: Raw) -> Conformed:
        raw = resource.schema
        if raw is None:
            schema = schemas.schema_of(
                resource.group, resource.version, resource.kind, resource.release
            )
            return Conformed(obj) if schema is None else conform(schema, obj)
        place = f"{resource.plural}.{resource.api_version}"
        read_from, schema = self._custom.get(place, (None, None))
        if schema is None or read_from is not raw:
            schema = schemas.custom(dict(raw))
            self._custom[place] = (raw, schema)
        return conform_custom(schema, obj)
