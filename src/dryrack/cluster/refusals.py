"""
The lines of a file that an API server refuses.

A server speaks of fields and knows no files. Here each thing that it has against an object is
given the line on which the object has it, and an unknown field the name that was probably meant.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from dryrack.apiserver import schemas
from dryrack.base.text import hint
from dryrack.kinds.text.source_positions import parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.registry import Registry, Resource
    from dryrack.client.errors import ApiError
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.shape import Path

_UNKNOWN_FIELD = re.compile(r'unknown field ("(?:[^"\\]|\\.)*")')
_GO_FIELD = re.compile(r"Go struct field \w+\.(?P<path>\S+) of type (?P<type>\S+)")
_GO_TYPES: dict[str, type] = {"string": str, "bool": bool, "int32": int, "int64": int}


def kind_problem(document: Document, registry: Registry) -> Problem:
    """Why a document is of no kind that is served."""
    kind, version = document.kind, document.api_version
    if not kind or not version:
        missing = "apiVersion" if kind else "kind"
        return document.problem("", f"an object without {missing}", "say of which kind it is")
    versions = [each.api_version for each in registry.all() if each.kind == kind]
    fixes = [f"write apiVersion: {' or '.join(versions)}"] if versions else []
    if registry.by_kind(version, kind) is not None:
        fixes.append(f"serve it: --runtime-config {version}=true")
    if fixes:
        message = f"the cluster has no {kind} of {version!r}"
        return document.problem("apiVersion", message, ", or ".join(fixes))
    meant = hint(kind, {each.kind for each in registry.all() if "create" in each.verbs})
    message = f"the cluster has no kind {kind!r}"
    fix = meant if meant.startswith("did you mean") else "put its definition before it"
    return document.problem("kind", message, fix)


def problems(document: Document, resource: Resource, error: ApiError) -> tuple[Problem, ...]:
    """What a server has against the object of a document, one for every field that it names."""
    named = f"{document.kind} {document.name}".strip()
    fields = [parse_path(json.loads(each)) for each in _UNKNOWN_FIELD.findall(error.message)]
    if fields:
        return tuple(_unknown_field(document, resource, path) for path in fields)
    causes = (error.status.get("details") or {}).get("causes") or ()
    if causes:
        return tuple(
            document.problem(each["field"], f"{named}, {each['field']}: {each['message']}")
            for each in causes
        )
    return (document.problem(mismatch_path(error.message, document.raw), f"{named}: {error}"),)


def _unknown_field(document: Document, resource: Resource, path: Path) -> Problem:
    name = str(path[-1])
    return document.problem(
        path,
        f"{f'{document.kind} {document.name}'.strip()} has no field {name!r} here",
        hint(name, _siblings(resource, path)),
    )


def _siblings(resource: Resource, path: Path) -> Sequence[str]:
    """The fields that there are in the place of one that there is not."""
    if resource.schema is not None:
        schema = schemas.custom(dict(resource.schema))
    else:
        found = schemas.schema_of(resource.group, resource.version, resource.kind)
        if found is None:
            return ()
        schema = found
    for step in path[:-1]:
        below = schema.items if isinstance(step, int) else schema.child(step)
        if below is None:
            return ()
        schema = below
    return schema.property_names


def mismatch_path(sentence: str, raw: Raw) -> Path:
    """The place of the value that a decoder could not read, by its words; () if they tell none."""
    found = _GO_FIELD.search(sentence)
    if found is None:
        return ()
    wanted = _GO_TYPES.get(found["type"], object)
    paths = _matching(raw, found["path"].split("."))
    return next((path for path, value in paths if not isinstance(value, wanted)), ())


def _matching(value: Any, steps: Sequence[str], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """What is under these keys; Go's words name no place in a list."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _matching(each, steps, (*path, index))
    elif not steps:
        yield path, value
    elif isinstance(value, dict) and steps[0] in value:
        yield from _matching(value[steps[0]], steps[1:], (*path, steps[0]))
