"""
Kinds in files that the catalog has no model of.

Files contain whole applications. Other kinds of Kubernetes are bystanders, and kinds in other
groups are custom kinds. Everything else is a mistake: a kind of Kubernetes in the wrong group, or
an unknown kind.
"""

from dataclasses import dataclass
from enum import Enum

from dryrack.kinds import registry
from dryrack.kinds.catalog import CURRENT, Unknown, fix_of, is_modelled, model_of
from dryrack.kinds.documents import Document
from dryrack.kinds.shape import Path, described

# Kinds of Kubernetes that dryrack does not serve.
_UNSERVED = {
    "authentication.k8s.io": ("TokenRequest",),
    "autoscaling": ("Scale",),
    "coordination.k8s.io": ("LeaseCandidate",),
    "internal.apiserver.k8s.io": ("StorageVersion",),
    "policy": ("Eviction",),
    "resource.k8s.io": ("ResourcePoolStatusRequest",),
}
_GROUPS = (*dict.fromkeys((*(kind.group for kind in registry.KINDS), *_UNSERVED)),)
# By group: the kinds of all releases that the catalog does not model.
_OTHERS = {
    group: (
        *(each.kind for each in registry.KINDS if each.group == group and not is_modelled(each)),
        *_UNSERVED.get(group, ()),
    )
    for group in _GROUPS
}
# Kinds whose names belong to Kubernetes alone: in another group they are a mistake.
_UNMISTAKABLE = frozenset(CURRENT)


class Standing(Enum):
    """A class of documents that dryrack treats alike."""

    OURS = "ours"
    BYSTANDER = "bystander"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Mistaken:
    """The problem of a document's kind, with the path and a fix."""

    path: Path
    message: str
    fix: str


def standing(document: Document) -> Standing | Mistaken:
    """Classify a document by its apiVersion and kind."""
    for key in ("apiVersion", "kind"):
        value = document.raw.get(key)
        if value is not None and not isinstance(value, str):
            return Mistaken((key,), f"{key}: expected a string, got {described(value)}", "")
    model = model_of(document.api_version, document.kind)
    if not isinstance(model, Unknown):
        return Standing.OURS
    group = document.api_version.rpartition("/")[0]
    if document.kind and document.api_version:
        if document.kind in _OTHERS.get(group, ()):
            return Standing.BYSTANDER
        if _is_custom(group) and document.kind not in _UNMISTAKABLE:
            return Standing.CUSTOM
    return _mistaken(document, model)


def _is_custom(group: str) -> bool:
    """Return whether custom kinds can be in the group: a domain that is not built in."""
    return "." in group and group not in _OTHERS


def _mistaken(document: Document, model: Unknown) -> Mistaken:
    if not document.kind or not document.api_version:
        return Mistaken((), model.message, model.fix)
    homes = [group for group, kinds in _OTHERS.items() if document.kind in kinds]
    if homes:
        message = f"{document.kind} is not in {document.api_version!r}"
        versions = " or ".join(f"{group}/v1" if group else "v1" for group in homes)
        return Mistaken(("apiVersion",), message, f"write apiVersion: {versions}")
    is_elsewhere = not model.message.startswith("unknown kind")
    return Mistaken(
        ("apiVersion" if is_elsewhere else "kind",), model.message, fix_of(model, document)
    )
