"""Namespaces: they carry their own name as a label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.meta import Naming
from dryrack.kinds.validation.names import checked, label, label_key
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
_STANDARD = (FINALIZER, "orphan", "foregroundDeletion")
_UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"


def _label_prefix(text: str) -> tuple[str, ...]:
    """Allow a dash at the end, because the server appends characters."""
    return label(f"{text[:-1]}a" if text.endswith("-") else text)


LABEL = Naming(label, _label_prefix)


class NamespaceRules(KindRules):
    """A name that is a label, and finalizers."""

    def __init__(self) -> None:
        super().__init__(namespaced=False, naming=LABEL, has_status=True)

    def default(self, obj: Raw) -> Raw:
        return with_name_label(obj)

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        given = get(obj, "spec.finalizers", ())
        return [
            problem for name in given for problem in finalizer_problems("spec.finalizers", name)
        ]


def with_name_label(obj: Raw) -> Raw:
    """Return the namespace with its name as a label, which selectors use."""
    meta = obj["metadata"]
    name = meta.get("name")
    labels = get(meta, "labels", {})
    if not name or labels.get(NAME_LABEL) == name:
        return obj
    return {**obj, "metadata": {**meta, "labels": {**labels, NAME_LABEL: name}}}


def finalizer_problems(field: str, name: str) -> Iterator[FieldProblem]:
    """Check a finalizer of the spec, not of the metadata."""
    yield from checked(field, name, label_key)
    if "/" not in name and name not in _STANDARD:
        yield invalid(field, name, _UNQUALIFIED)
