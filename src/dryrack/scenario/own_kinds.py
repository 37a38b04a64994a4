"""
Check documents of dryrack's own kinds, which no cluster stores.

Scenario, NodeDevices and Catalogue are each checked by the code that reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.text import hint
from dryrack.cluster import load_catalogue
from dryrack.hardware.catalogue import CatalogueError
from dryrack.kubeletplugin import DevicesError, DevicesFileError, read_devices
from dryrack.scenario.reading import scenario_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.documents import Document, Problem

_KINDS = ("Catalogue", "NodeDevices", "Scenario")


def own_problems(document: Document, content: bytes) -> Sequence[Problem]:
    """Return the problems of a document of our group; `content` is its file."""
    match document.kind:
        case "Catalogue":
            try:
                load_catalogue({document.file: content})
            except CatalogueError as error:
                return error.problems
            return ()
        case "NodeDevices":
            return _node_devices(document)
        case "Scenario":
            return scenario_problems(content, document.file)
        case _:
            message = f"no kind {document.kind!r} in {document.api_version}"
            return [document.problem("kind", message, hint(document.kind, _KINDS))]


def _node_devices(document: Document) -> Sequence[Problem]:
    try:
        read_devices((), catalogue=load_catalogue, documents=[document])
    except DevicesFileError as error:
        return error.problems
    except DevicesError as error:
        _, _, message = str(error).partition(": ")
        return [document.problem("devices", message)]
    return ()
