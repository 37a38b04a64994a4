"""
The line of a field, in any version of the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.convert import V1BETA1

if TYPE_CHECKING:
    from dryrack.kinds.documents import Document
    from dryrack.linter.finding import Path


def line_of(document: Document, path: Path) -> int:
    """The line of a path of v1, or of its nearest parent that is there."""
    return document.place(_path_as_written(document, path)).line


def key_of(document: Document, path: Path, name: str) -> str | None:
    """Return the key at `path` that is `name`, with or without a domain, or None."""
    value: Any = document.raw
    for step in _path_as_written(document, path):
        is_there = isinstance(value, dict) and step in value
        is_item = isinstance(value, list) and isinstance(step, int) and step < len(value)
        value = value[step] if is_there or is_item else None
    keys = value if isinstance(value, dict) else {}
    return next((key for key in keys if key == name or key.endswith(f"/{name}")), None)


def _path_as_written(document: Document, path: Path) -> Path:
    """
    Return the path in the document of a field that is named by its path in v1.

    v1beta1 has the fields of an exact request in the request itself, and those of a device
    under `basic`.
    """
    if document.api_version != V1BETA1:
        return path
    if document.kind == "ResourceSlice" and path[:2] == ("spec", "devices"):
        inner = path[3:]
        return (*path[:3], "basic", *inner) if inner and inner[0] != "name" else path
    return tuple(step for step in path if step != "exactly")
