"""Puts words to schemas, where there are any; see the data beside this module."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

_SPOKEN_OF = ("io.k8s.api.resource.", "io.k8s.apimachinery.pkg.apis.meta.v1.")


@cache
def _words() -> dict[str, dict[str, str]]:
    text = resources.files("dryrack.apiserver.pages").joinpath("openapi_words.yaml").read_text()
    found: dict[str, dict[str, str]] = yaml.safe_load(text)
    return found


def of_custom_kinds() -> dict[str, str]:
    """Return the descriptions of the fields that every custom kind has."""
    return _words()["CustomResource"]


def add_descriptions(name: str, schema: Raw) -> Raw:
    """A definition with what is said of it and of its fields."""
    words = _words().get(name.rpartition(".")[2]) if name.startswith(_SPOKEN_OF) else None
    if words is None:
        return schema
    properties = {
        key: {**place, "description": words[key]} if key in words else place
        for key, place in schema.get("properties", {}).items()
    }
    return {**schema, "description": words[""], "properties": properties}
