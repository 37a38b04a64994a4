"""
From files to the world: which documents are objects that rules can read.

A document that is not well typed yields mismatches and no object. The rest of the world is
still judged, so one wrong line does not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from dryrack.kinds import core, shape
from dryrack.kinds.catalog import CURRENT, Unknown, model_of
from dryrack.kinds.convert import to_v1
from dryrack.kinds.decode import DecodeError, decode
from dryrack.kinds.defaults import with_defaults
from dryrack.kinds.documents import Document, Problem, latest, read
from dryrack.kinds.expansion.embedded_templates import embedded_templates, is_custom_workload
from dryrack.kinds.expansion.workloads import TEMPLATES
from dryrack.kinds.validation.meta import DEFAULT_NAMESPACE
from dryrack.linter.decoding import (
    built_in_schema,
    decode_document,
    field_home,
    field_names,
)
from dryrack.linter.object_rules import has_rules, mismatch_problem
from dryrack.linter.world import (
    Entry,
    PodEntry,
    UnknownField,
    World,
    is_own_kind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.meta import KubernetesObject
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.releases import Release
    from dryrack.kinds.schemas import Schema
    from dryrack.kinds.schemas.strict_decode import Conformed
    from dryrack.kinds.validation import FieldProblem
    from dryrack.linter.finding import Path

# What is wrong with a document of a kind of dryrack's own; the bytes are its file's.
OwnKindCheck: TypeAlias = Callable[[Document, bytes], Iterable[Problem]]

# The kinds of which the model has every field.
_WHOLE = frozenset({*CURRENT, "Pod", "Node", "Namespace", "ConfigMap"})

_POD_SPECS: Mapping[str, Path] = {
    "Pod": ("spec",),
    **{kind: (*path, "spec") for kind, path in TEMPLATES.items()},
}


def read_world(
    files: Iterable[tuple[str, bytes]], check_own_kind: OwnKindCheck, release: Release
) -> World:
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
    readings = {id(document): _read_object(document, release) for document in documents}
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
        undecodable=tuple(pair for each in objects for pair in each.undecodable),
        decoded={key: each.decoded for key, each in readings.items() if each.decoded},
        contents=contents,
        release=release,
    )


def _entries(objects: Iterable[_Read]) -> tuple[Entry[KubernetesObject], ...]:
    return tuple(each.entry for each in objects if each.entry is not None)


@dataclass(frozen=True, slots=True)
class _Read:
    """The result of reading one document."""

    entry: Entry[KubernetesObject] | None = None
    mismatches: tuple[tuple[Document, shape.Mismatch], ...] = ()
    unknown_fields: tuple[UnknownField, ...] = ()
    undecodable: tuple[tuple[Document, FieldProblem], ...] = ()
    decoded: Conformed | None = None


def _read_object(document: Document, release: Release) -> _Read:
    """Decode a document as the server does, if Kubernetes has its kind."""
    model = model_of(document.api_version, document.kind)
    schema = built_in_schema(document, release)
    if schema is None:
        if isinstance(model, Unknown):
            return _Read(unknown_fields=tuple(_unknown_in_template(document)))
        return _decode_model(document, document.raw, model)
    conformed = decode_document(document, schema)
    unknown = tuple(
        UnknownField(document, path, field_names(schema, path[:-1]), field_home(schema, path))
        for path in conformed.unknown
    )
    if isinstance(model, Unknown):
        refused = has_rules(document) or not conformed.mismatch
        problems = () if refused else ((document, mismatch_problem(conformed)),)
        return _Read(unknown_fields=unknown, undecodable=problems, decoded=conformed)
    if conformed.mismatch:
        return _read_mistyped(document, schema, model)
    read = _decode_model(document, conformed.object, model)
    return replace(read, unknown_fields=unknown, decoded=conformed)


def _decode_model(document: Document, raw: Raw, model: type[KubernetesObject]) -> _Read:
    """Return the object as the server completes it, after it has been decoded."""
    try:
        return _Read(Entry(document, decode(to_v1(with_defaults(raw)), model)))
    except DecodeError as error:
        return _Read(None, tuple((document, each) for each in error.mismatches))


def _read_mistyped(document: Document, schema: Schema, model: type[KubernetesObject]) -> _Read:
    """
    Return all values of the wrong type that the model knows, or the one that ends decoding.

    The server stops at the first; with the unknown fields a reader can mend all at once.
    """
    raw = to_v1(document.raw)
    unknown = tuple(
        UnknownField(document, path, siblings, field_home(schema, path))
        for path in (shape.unknown(raw, shape.of(model)) if document.kind in _WHOLE else ())
        # The release can have a field that others do not have.
        if path[-1] not in (siblings := field_names(schema, path[:-1]))
    )
    try:
        # Before defaults, which replace empty values of any type.
        decode(raw, model)
    except DecodeError as error:
        return _Read(None, tuple((document, each) for each in error.mismatches), unknown)
    problem = mismatch_problem(decode_document(document, schema))
    return _Read(None, (), unknown, () if has_rules(document) else ((document, problem),))


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
    """Return the path of a workload's pod spec, and the spec."""
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
    """Yield the pod of a document, or the pod templates of a workload, also of a custom kind."""
    if is_custom_workload(document):
        specs = [(each.spec_path, each.template["spec"]) for each in embedded_templates(document)]
    else:
        found = _pod_spec(document)
        specs = [found] if found is not None else []
    for path, raw in specs:
        try:
            spec = decode(raw, core.PodSpec)
        except DecodeError:
            # The mismatches of a pod are reported with the pod.
            continue
        yield PodEntry(Entry(document, None), spec, path, document.namespace or DEFAULT_NAMESPACE)
