"""
From kubectl's own apply to the server's.

`kubectl apply` used to keep what was applied in an annotation. When kubectl applies on the
server, fields that the annotation names, with the values that are still there, are its own: they
are no conflict with the update by which kubectl wrote them. And the annotation, where there is
one, is kept up to date, so that one can go back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.ownership.server_side_apply import fieldsets, typed
from dryrack.apiserver.ownership.server_side_apply.comparing import compare
from dryrack.kinds.paths import metadata_of

if TYPE_CHECKING:
    from dryrack.apiserver.ownership.server_side_apply.atoms import Atom
    from dryrack.apiserver.ownership.server_side_apply.entries import Author
    from dryrack.apiserver.ownership.server_side_apply.fieldsets import FieldSet, Path
    from dryrack.apiserver.ownership.server_side_apply.tracked import Object

KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_ANNOTATIONS_BYTES_MAX = 256 * 1024


def disputed(
    conflicts: list[tuple[Author, Path]], live: Object, atom: Atom, api_version: str
) -> list[tuple[Author, Path]]:
    """The conflicts that are not about what kubectl itself wrote."""
    text = _annotations(live).get(ANNOTATION)
    own = _own(text, live, atom, api_version) if isinstance(text, str) and text else {}
    return [each for each in conflicts if not fieldsets.has(own, each[1])]


def _own(text: str, live: Object, atom: Atom, api_version: str) -> FieldSet:
    """The fields of the annotation that still have its values."""
    try:
        before = json.loads(text)
        if not isinstance(before, dict) or before.get("apiVersion") != api_version:
            return {}
        typed.check(atom, before, allow_duplicates=False)
        changes = compare(atom, before, live)
    except (ValueError, RecursionError, typed.TypeViolationError):
        return {}
    own = typed.field_set(atom, before)
    for gone in (changes.modified, changes.added, changes.removed):
        own = fieldsets.difference(own, gone)
    return own


def renewed(made: Object, configuration: Object) -> Object:
    """The object with the annotation as of this apply, if it has one."""
    annotations = _annotations(made)
    if not annotations.get(ANNOTATION):
        return made
    renewed = {**annotations, ANNOTATION: _text(configuration)}
    if sum(len(key.encode()) + len(str(value).encode()) for key, value in renewed.items()) > (
        _ANNOTATIONS_BYTES_MAX
    ):
        renewed.pop(ANNOTATION)
    return {**made, "metadata": {**made["metadata"], "annotations": renewed}}


def _text(configuration: Object) -> str:
    metadata = dict(metadata_of(configuration))
    annotations = {
        key: value for key, value in _annotations(configuration).items() if key != ANNOTATION
    }
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    shown = {**configuration, "metadata": metadata}
    return json.dumps(shown, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"


def _annotations(value: Object) -> dict[str, Any]:
    metadata = value.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
