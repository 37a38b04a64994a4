"""
The configuration of publishers of fake devices, read as a publisher reads it.

The problems are those that the reader of the configuration formats reports. In a ConfigMap, each
text that contains mappings counts as a configuration, under any key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from dryrack.hardware.config_formats import remarked_config, remarked_dra_config, remarked_overlay

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dryrack.hardware.config_formats import Read
    from dryrack.kinds.documents import Document


class Publishing(NamedTuple):
    """A document, and what its reader remarked."""

    document: Document
    read: Read


def publishings(
    documents: Iterable[Document], contents: Mapping[str, bytes]
) -> Iterator[Publishing]:
    """All of them, in file order; `contents` are the files."""
    for document in documents:
        match document.kind:
            case "ConfigMap":
                content = contents.get(document.file, b"").decode(errors="replace")
                for key in _keys(document):
                    yield Publishing(document, remarked_config(document, key, content=content))
            case "NodeOverlay":
                yield Publishing(document, remarked_overlay(document))
            case "DRAConfig":
                yield Publishing(document, remarked_dra_config(document))


def _keys(document: Document) -> Iterator[str]:
    data = document.raw.get("data")
    for key, text in data.items() if isinstance(data, Mapping) else ():
        if isinstance(text, str) and "mappings" in text:
            yield key
