"""
Objects as rows for people, with the columns that kubectl users know.

The names, types, order and priority of columns and the contents of cells are those of the real
server; the descriptions of columns are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.tables.catalog import shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.tables.columns import Shape
    from dryrack.kinds.raw import Raw

__all__ = ["PrintedTables"]


@dataclass(frozen=True, slots=True)
class PrintedTables:
    """The `Tables` of the server; custom kinds bring their own shapes."""

    custom: Callable[[Resource], Shape | None]

    def columns(self, resource: Resource) -> list[Raw]:
        return [column.as_json() for column in self._shape(resource).columns]

    def cells(
        self, resource: Resource, objects: Sequence[Raw], now: float, *, is_list: bool
    ) -> list[list[Any]]:
        shape = self._shape(resource)
        if is_list and shape.list_cells is not None:
            return shape.list_cells(objects, now)
        return [shape.cells(obj, now) for obj in objects]

    def conditions(self, resource: Resource, obj: Raw) -> list[dict[str, str]]:
        """Return the conditions by which a client can hide rows, such as completed pods."""
        conditions = self._shape(resource).conditions
        return conditions(obj) if conditions else []

    def _shape(self, resource: Resource) -> Shape:
        return self.custom(resource) or shape_of(resource.storage, resource.release)
