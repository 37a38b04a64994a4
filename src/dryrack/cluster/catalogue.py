"""
Load the hardware catalog: the packaged files, and files of the user on top.

It is read when it is first needed; a cluster without a catalog never opens these files.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from dryrack.hardware.catalogue import Catalogue, CatalogueCheck, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable


def load_catalogue(own: Mapping[str, bytes] | None = None) -> Catalogue:
    """Return the packaged catalog with the user's files, by name, on top of it."""
    packaged = parse(packaged_files(), check=CatalogueCheck.NOTHING)
    return parse(own, packaged) if own else packaged


def packaged_files() -> dict[str, bytes]:
    """Return the packaged files, by name."""
    data = resources.files("dryrack.hardware.catalogue") / "data"
    return {f"{folder.name}/{file.name}": file.read_bytes() for folder, file in _files(data)}


def _files(data: Traversable) -> Iterator[tuple[Traversable, Traversable]]:
    for folder in sorted(data.iterdir(), key=lambda each: each.name):
        for file in sorted(folder.iterdir(), key=lambda each: each.name):
            if file.name.endswith(".yaml"):
                yield folder, file
