"""
Manifests: the typed objects of documents for a what-if.

Workloads, and custom kinds that have pod templates, stand for the pods that they create. Other
kinds that placement does not use (see `cluster_context`) are ignored with a note, because people
keep whole applications in one file. A kind that does not exist is a mistake. If several documents
are about one object, the last one counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.documents import latest
from dryrack.kinds.expansion.compute_domains import (
    faults,
    is_compute_domain,
    template_name,
    workload_template,
)
from dryrack.kinds.expansion.embedded_templates import is_custom_workload
from dryrack.kinds.expansion.workload_pods import Made, WorkloadPods, with_name
from dryrack.kinds.expansion.workloads import TEMPLATES
from dryrack.kinds.other_kinds import Standing, standing
from dryrack.kinds.rules.pods.pod_rules import as_stored
from dryrack.placement.whatif.cluster_context import decode_context_object
from dryrack.placement.whatif.what_if import nodes_of
from dryrack.placement.whatif.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dryrack.kinds.documents import Document, Problem

    # Ignored documents, by file and kind.
    _Ignored = dict[tuple[str, str], list[Document]]

# Notes name so many ignored objects of a kind, and so many workloads that create no pods.
_NAMED_MAX = 3
# Notes are about so many kinds each; a dump of a whole cluster has more.
_KINDS_NAMED_MAX = 5


@dataclass(slots=True)
class Manifests:
    """The objects, in the order of their documents, with notes and problems."""

    objects: tuple[Typed, ...] = ()
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def manifests(documents: Iterable[Document]) -> Manifests:
    """Return the objects of documents; with a problem, some of the objects are missing."""
    result = Manifests()
    ignored: _Ignored = {}
    used, repeats = latest(each for each in documents if not _is_ignored(each, ignored))
    result.notes += _notes_of_ignored(ignored)
    result.notes += [
        str(repeat.document.problem("metadata.name", repeat.message)) for repeat in repeats
    ]
    used = tuple(_with_domain_templates(used, result))
    objects = {id(each): _decode(each, result) for each in used if not _is_workload(each)}
    every = list(objects.values())
    if len(every) < len(used):
        every = _with_pods(used, objects, result)
    result.objects = tuple(each for each in every if each is not None)
    return result


def _with_domain_templates(documents: Sequence[Document], result: Manifests) -> Iterator[Document]:
    """Yield the documents, with the claim template of each ComputeDomain in its place."""
    present = {each.identity for each in documents if each.kind == "ResourceClaimTemplate"}
    for each in documents:
        if not is_compute_domain(each):
            yield each
            continue
        refusals = [
            each.problem(
                fault.path,
                f"ComputeDomain {each.name}, {'.'.join(map(str, fault.path))}: {fault.what}",
                fault.fix,
            )
            for fault in faults(each.raw)
        ]
        result.problems += refusals
        if refusals or not template_name(each.raw):
            continue
        template = replace(each, raw=workload_template(each.raw))
        if template.identity not in present:
            note = f"ComputeDomain/{each.name}: creates ResourceClaimTemplate {template.name}"
            result.notes.append(str(each.problem("", note)))
            yield template


def _with_pods(
    documents: Sequence[Document], objects: Mapping[int, Typed | None], result: Manifests
) -> list[Typed | None]:
    """Return the objects with the pods of workloads, in the order of the documents."""
    world = World.of(each.object for each in objects.values() if each is not None)
    nodes = [to_builtins(node) for node in nodes_of(world)[0]]
    workloads = WorkloadPods(documents, nodes)
    present: list[str] = []
    every: list[Typed | None] = []
    for each in documents:
        if id(each) in objects:
            every.append(objects[id(each)])
        else:
            stated = decode_context_object(each)
            every.append(stated if isinstance(stated, Typed) else None)
            for made in _pods_of(workloads, each):
                if not isinstance(made, Made):
                    result.problems.append(made)
                    continue
                (present if made.are_present else result.notes).append(
                    str(each.problem("", made.note))
                )
                every += [_decode(pod, result) for pod in made.pods]
    if len(present) > _NAMED_MAX:
        present = [f"{len(present)} workloads create no pods: the files contain their pods"]
    result.notes += present
    return every


def _pods_of(workloads: WorkloadPods, document: Document) -> Sequence[Made | Problem]:
    """Return the pods of a workload, with notes that name it, or its problems."""
    if document.kind not in TEMPLATES or standing(document) is Standing.CUSTOM:
        return workloads.of_custom(document)
    made = workloads.of(document)
    if not isinstance(made, Made):
        return made
    title = f"{document.kind} {document.name}".strip()
    return (replace(made, note=f"{title}: {made.note}"),)


def _decode(document: Document, result: Manifests) -> Typed | None:
    """Return the typed object of a document; None if it has problems, or is ignored."""
    if standing(document) is Standing.BYSTANDER:
        answer = decode_context_object(document)
    else:
        answer = typed(with_name(document) if document.kind == "Pod" else document)
    if isinstance(answer, Typed) and isinstance(answer.object, Pod):
        # As a server stores it: with the values of selectors that follow labels, and with requests
        # that default to limits.
        raw = as_stored(answer.raw)
        if raw.get("spec") is answer.raw.get("spec"):
            return answer
        return replace(answer, object=decode(raw, Pod), raw=raw)
    if isinstance(answer, Typed) and isinstance(answer.object, Node) and not document.name:
        # Slices refer to nodes by name, and a server generates no names for nodes.
        answer = (document.problem("metadata", "the Node has no name", "set metadata.name"),)
    if isinstance(answer, Typed):
        return answer
    result.problems += answer or ()
    return None


def _is_workload(document: Document) -> bool:
    """Return True if Kubernetes or an operator creates pods for the object."""
    if document.kind in TEMPLATES and standing(document) is Standing.BYSTANDER:
        return True
    return is_custom_workload(document)


def _is_ignored(document: Document, ignored: _Ignored) -> bool:
    """Return True if the document is ignored; then add it to `ignored`."""
    if is_compute_domain(document) and document.name:
        return False
    if _is_workload(document) or standing(document) not in (Standing.BYSTANDER, Standing.CUSTOM):
        return False
    if standing(document) is Standing.BYSTANDER and decode_context_object(document) is not None:
        return False
    ignored.setdefault((document.file, document.kind), []).append(document)
    return True


def _notes_of_ignored(ignored: _Ignored) -> Iterator[str]:
    """Yield notes about ignored objects; one line for the many kinds of a whole dump."""
    kinds: dict[str, dict[str, int]] = {}
    for (file, kind), documents in ignored.items():
        kinds.setdefault(file, {})[kind] = len(documents)
    many = {file: each for file, each in kinds.items() if len(each) > _KINDS_NAMED_MAX}
    for file, each in many.items():
        names = ", ".join(sorted(each))
        count = sum(each.values())
        yield f"{file}: ignored {count} objects of kinds that dryrack does not use: {names}"
    why = "dryrack does not use this kind"
    for (file, kind), documents in ignored.items():
        if file in many:
            continue
        if len(documents) > _NAMED_MAX:
            yield f"{file}: ignored {len(documents)} objects of kind {kind}: {why}"
            continue
        for document in documents:
            yield str(document.problem("", f"ignored {kind} {document.name}: {why}"))
