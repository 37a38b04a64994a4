"""
Strict decoding by resource: the schema of a built-in kind, or of a custom one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds import schemas
from dryrack.kinds.schemas.strict_decode import Conformed, conform, conform_custom

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.apiserver.registry import Resource
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.schemas import Schema


class GoShapes:
    """Knows the fields of every built-in kind, and of custom ones by their schema."""

    def __init__(self) -> None:
        self._custom: dict[str, tuple[object, Schema]] = {}

    def conform(self, resource: Resource, obj: Raw) -> Conformed:
        if resource.schema is not None:
            return conform_custom(self._read(resource, resource.schema), obj)
        schema = schemas.schema_of(resource.group, resource.version, resource.kind)
        return Conformed(obj) if schema is None else conform(schema, obj)

    def _read(self, resource: Resource, raw: Mapping[str, Any]) -> Schema:
        """The schema of a custom kind, read once for each that a definition had."""
        place = f"{resource.plural}.{resource.api_version}"
        known, made = self._custom.get(place, (None, None))
        if made is None or known is not raw:
            made = schemas.custom(dict(raw))
            self._custom[place] = (raw, made)
        return made
