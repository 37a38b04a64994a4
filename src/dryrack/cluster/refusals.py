"""
The lines of a file that an API server refuses.

The API server names fields and knows no files. This module gives each refusal the line on which
the object has the field, and each unknown field the name that was probably meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver import GoShapes
from dryrack.base.text import hint
from dryrack.conversion import conversion_fix, upgrade
from dryrack.kinds import schemas
from dryrack.kinds.catalog import CURRENT
from dryrack.kinds.convert import GROUP
from dryrack.kinds.migrations import KINDS_GONE
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.apiserver import Registry, Resource
    from dryrack.client.errors import ApiError
    from dryrack.kinds.documents import Document, Problem
    from dryrack.kinds.shape import Path


def kind_problem(document: Document, registry: Registry) -> Problem:
    """Return why the kind of a document is not served."""
    kind = document.kind
    version = document.api_version
    if not kind or not version:
        missing = "apiVersion" if kind else "kind"
        return document.problem("", f"an object without {missing}", f"add {missing}")
    group = version.rpartition("/")[0]
    versions = [each.api_version for each in registry.all() if each.kind == kind]
    if group == GROUP and (kind in KINDS_GONE or (kind in CURRENT and versions)):
        message = f"the cluster has no {kind} of {version!r}"
        place = "kind" if kind in KINDS_GONE else "apiVersion"
        fix = conversion_fix(document, upgrade([document])[0])
        if registry.by_kind(version, kind) is not None:
            fix += f"; or enable the version with --runtime-config {version}=true"
        return document.problem(place, message, fix)
    fixes = [f"write apiVersion: {' or '.join(versions)}"] if versions else []
    if registry.by_kind(version, kind) is not None:
        fixes.append(f"enable the version with --runtime-config {version}=true")
    if fixes:
        message = f"the cluster has no {kind} of {version!r}"
        return document.problem("apiVersion", message, ", or ".join(fixes))
    # A kind of another group is another kind, however similar the names are.
    kinds = {each.kind for each in registry.all() if "create" in each.verbs and each.group == group}
    meant = hint(kind, kinds)
    message = f"the cluster has no kind {kind!r}"
    fix = (
        meant if meant.startswith("did you mean") else "put its CustomResourceDefinition before it"
    )
    return document.problem("kind", message, fix)


def problems(document: Document, resource: Resource, error: ApiError) -> tuple[Problem, ...]:
    """Return the problems of a document, one for every field in the server's refusal."""
    named = f"{document.kind} {document.name}".strip()
    read = GoShapes().conform(resource, document.raw)
    if read.unknown:
        return tuple(_unknown_field(document, resource, path) for path in read.unknown)
    causes = get(error.status, "details.causes", ())
    if causes:
        return tuple(
            document.problem(each["field"], f"{named}, {each['field']}: {each['message']}")
            for each in causes
        )
    return (document.problem(read.mismatch_path, f"{named}: {error}"),)


def _unknown_field(document: Document, resource: Resource, path: Path) -> Problem:
    name = str(path[-1])
    return document.problem(
        path,
        f"{f'{document.kind} {document.name}'.strip()} has no field {name!r} at this place",
        hint(name, _siblings(resource, path)),
    )


def _siblings(resource: Resource, path: Path) -> Sequence[str]:
    """Return the fields that an object may have in the place of an unknown one."""
    if resource.schema is not None:
        schema = schemas.custom(dict(resource.schema))
    else:
        found = schemas.schema_of(resource.group, resource.version, resource.kind, resource.release)
        if found is None:
            return ()
        schema = found
    for step in path[:-1]:
        below = schema.items if isinstance(step, int) else schema.child(step)
        if below is None:
            return ()
        schema = below
    return schema.property_names
