"""
From files to the world: which documents are objects that rules can read.

A document that is not well typed yields mismatches and no object. The rest of the world is
still judged, so one wrong line does not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.kinds import core, shape
from dryrack.kinds.catalog import CURRENT, Unknown, model_of
from dryrack.kinds.convert import misplaced, to_v1
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.defaults import with_defaults
from dryrack.kinds.documents import Document, Problem, latest, read
from dryrack.kinds.expansion.workloads import TEMPLATES
from dryrack.linter.world import (
    DEFAULT_NAMESPACE,
    Entry,
    PodEntry,
    UnknownField,
    World,
    is_own_kind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.meta import KubernetesObject
    from dryrack.linter.finding import Path

# What is wrong with a document of a kind of dryrack's own; the bytes are its file's.
OwnKindCheck: TypeAlias = Callable[[Document, bytes], Iterable[Problem]]

# The kinds of which every field is known.
_WHOLE = frozenset({*CURRENT, "Pod", "Node", "Namespace", "ConfigMap"})

_POD_SPECS: Mapping[str, Path] = {
    "Pod": ("spec",),
    **{kind: (*path, "spec") for kind, path in TEMPLATES.items()},
}


def read_world(files: Iterable[tuple[str, bytes]], check_own_kind: OwnKindCheck) -> World:
    """Everything that the files say."""
    documents: list[Document] = []
    faults: list[Problem] = []
    own_kind_faults: list[Problem] = []
    contents: dict[str, bytes] = {}
    for name, content in files:
        contents[name] = content
        reading = read(content, name)
        documents += reading.documents
        faults += reading.problems
        own = filter(is_own_kind, reading.documents if not reading.problems else ())
        own_kind_faults += (each for it in own for each in check_own_kind(it, content))
    kept, repeats = latest(documents)
    readings = {id(document): _Read.of(document) for document in documents}
    objects = readings.values()
    return World(
        documents=tuple(documents),
        repeats=repeats,
        entries=_entries(readings[id(document)] for document in kept),
        pods=tuple(pod for document in kept for pod in _pods(document)),
        replaced=_entries(readings[id(each.before)] for each in repeats),
        replaced_pods=tuple(pod for each in repeats for pod in _pods(each.before)),
        faults=tuple(faults),
        own_kind_faults=tuple(own_kind_faults),
        mismatches=tuple(pair for each in objects for pair in each.mismatches),
        unknown_fields=tuple(field for each in objects for field in each.unknown_fields),
        contents=contents,
    )


def _entries(objects: Iterable[_Read]) -> tuple[Entry[KubernetesObject], ...]:
    return tuple(each.entry for each in objects if each.entry is not None)


@dataclass(frozen=True, slots=True)
class _Read:
    """What came of one document."""

    entry: Entry[KubernetesObject] | None = None
    mismatches: tuple[tuple[Document, shape.Mismatch], ...] = ()
    unknown_fields: tuple[UnknownField, ...] = ()

    @staticmethod
    def of(document: Document) -> _Read:
        model = model_of(document.api_version, document.kind)
        if isinstance(model, Unknown):
            return _Read(unknown_fields=tuple(_unknown_in_template(document)))
        unknown: tuple[UnknownField, ...] = ()
        if document.kind in _WHOLE:
            raw = to_v1(document.raw)
            unknown = (
                *_unknown(document, raw, shape.of(model)),
                *(UnknownField(document, path, ()) for path in misplaced(document.raw)),
            )
        try:
            entry = Entry(document, decode(to_v1(with_defaults(document.raw)), model))
        except DecodeError as error:
            return _Read(None, tuple((document, each) for each in error.mismatches), unknown)
        return _Read(entry, (), unknown)


def _unknown(
    document: Document, raw: Any, root: shape.Shape, prefix: Path = ()
) -> Iterator[UnknownField]:
    """Fields below `prefix` that Kubernetes does not have."""
    for path in shape.unknown(raw, root):
        yield UnknownField(document, (*prefix, *path), _siblings(root, path[:-1]))


def _siblings(root: shape.Shape, parent: Path) -> tuple[str, ...]:
    """The names of the fields that the object at `parent` may have."""
    found = root
    for step in parent:
        match found:
            case shape.Fields(fields=fields):
                found = fields[str(step)]
            case shape.Entries(value=inner) | shape.Items(item=inner):
                found = inner
    return tuple(found.fields) if isinstance(found, shape.Fields) else ()


def _pod_spec(document: Document) -> tuple[Path, dict[str, Any]] | None:
    """Where a workload keeps the spec of its pods, and the spec."""
    path = _POD_SPECS.get(document.kind)
    raw: Any = document.raw
    for step in path or ():
        raw = raw.get(step) if isinstance(raw, dict) else None
    return (path, raw) if path is not None and isinstance(raw, dict) else None


def _unknown_in_template(document: Document) -> Iterator[UnknownField]:
    found = _pod_spec(document)
    if found is not None:
        path, raw = found
        yield from _unknown(document, raw, shape.of(core.PodSpec), path)


def _pods(document: Document) -> Iterator[PodEntry]:
    found = _pod_spec(document)
    if found is None:
        return
    path, raw = found
    try:
        spec = decode(raw, core.PodSpec)
    except DecodeError:
        # A pod's own mismatches are told with the pod; workloads are not ours to judge.
        return
    yield PodEntry(Entry(document, None), spec, path, document.namespace or DEFAULT_NAMESPACE)
