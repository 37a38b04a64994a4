"""Documents that the tests of the dialects read."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.hardware.config_formats import (
    read_config,
    read_config_map,
    read_dra_config,
    read_overlay,
)
from dryrack.kinds import documents
from dryrack.kinds.core import Node
from dryrack.kinds.meta import ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.config_formats import Reading
    from dryrack.kinds.documents import Document

SEEDS = Path(__file__).parents[2] / "seeds"
BAD = Path(__file__).parent / "bad"


def document(text: str, file: str = "file.yaml") -> Document:
    """The one document of a file."""
    (found,) = documents.read(text, file).documents
    return found


def seed_text(name: str) -> str:
    """The configuration inside an example's ConfigMap."""
    text = document((SEEDS / name).read_text(), name).raw["data"]["config.yaml"]
    assert isinstance(text, str)
    return text


def seed(name: str) -> Reading:
    """An example of the documents, as it is written there."""
    content = (SEEDS / name).read_text()
    found = document(content, name)
    return (
        read_overlay(found)
        if found.kind == "NodeOverlay"
        else read_config_map(found, content=content)
    )


def read(path: Path) -> Reading:
    """A file of any dialect."""
    content = path.read_text()
    match path.stem.partition("-")[0]:
        case "configmap":
            return read_config_map(document(content, path.name), content=content)
        case "draconfig":
            return read_dra_config(document(content, path.name))
        case "overlay":
            return read_overlay(document(content, path.name))
        case _:
            return read_config(content, file=path.name)


def config(devices: str, *, slice_fields: str = "", driver: str = "gpu.example.com") -> str:
    """A configuration with one mapping, for nodes with the label gpu=a."""
    fields = textwrap.indent(textwrap.dedent(slice_fields), "    ")
    return (
        f"driver: {driver}\n"
        "mappings:\n"
        "- name: gpus\n"
        "  nodeSelectorTerms:\n"
        "  - matchExpressions:\n"
        "    - {key: gpu, operator: In, values: [a]}\n"
        "  resourceSlice:\n"
        f"{fields}"
        "    devices:\n" + textwrap.indent(textwrap.dedent(devices), "    ")
    )


def node(
    name: str = "n1",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Node:
    """A node with these labels and annotations."""
    return Node(metadata=ObjectMeta(name=name, labels=labels or {}, annotations=annotations or {}))
