"""
From files to typed objects, for the commands that reckon with them.

All problems of all files are told at once, each with its line. Workloads stand for the pods that
they will make. Kinds that allocation does not look at, Kubernetes' own and custom ones, are passed
over with a word, because people keep whole applications in one file; a kind that does not exist is
a mistake. Of documents about one object the last counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.cli.files import ContentError, read_sources
from dryrack.cli.output import say, shown
from dryrack.kinds.bystanders import Standing, standing
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.core import Node
from dryrack.kinds.decode import to_builtins
from dryrack.kinds.documents import latest, read
from dryrack.kinds.workload_pods import Made, WorkloadPods, named
from dryrack.kinds.workloads import TEMPLATES
from dryrack.placement.whatif import nodes_of
from dryrack.placement.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.documents import Document, Problem


def load(names: Sequence[str]) -> tuple[Typed, ...]:
    """The objects in the files, in file order; `ContentError` with all that is wrong."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for source in read_sources(names):
        reading = read(source.content, source.name)
        problems += reading.problems
        documents += [each for each in reading.documents if not _is_bystander(each)]
    kept, repeats = latest(documents)
    for repeat in repeats:
        say(shown(str(repeat.document.problem("metadata.name", repeat.message))))
    objects = {id(each): _typed(each, problems) for each in kept if not _is_workload(each)}
    found = list(objects.values())
    if len(found) < len(kept):
        found = _with_pods(kept, objects, problems)
    # The pods of a workload have the same faults, in the same place.
    told = dict.fromkeys(str(problem) for problem in problems)
    if told:
        raise ContentError("\n".join(told))
    return tuple(each for each in found if each is not None)


def _with_pods(
    documents: Sequence[Document], objects: Mapping[int, Typed | None], problems: list[Problem]
) -> list[Typed | None]:
    """The objects with the pods of workloads, in file order."""
    world = World.of(each.object for each in objects.values() if each is not None)
    nodes = [to_builtins(node) for node in nodes_of(world)[0]]
    workloads = WorkloadPods(documents, nodes)
    found: list[Typed | None] = []
    for each in documents:
        if id(each) in objects:
            found.append(objects[id(each)])
        else:
            found += [_typed(pod, problems) for pod in _pods(each, workloads, problems)]
    return found


def _typed(document: Document, problems: list[Problem]) -> Typed | None:
    found = typed(named(document) if document.kind == "Pod" else document)
    if isinstance(found, Typed) and isinstance(found.object, Node) and not document.name:
        # Devices are for nodes by their names, and a server gives a node none.
        found = (document.problem("metadata", "a Node without a name", "write metadata.name"),)
    if isinstance(found, Typed):
        return found
    problems += found
    return None


def _pods(
    workload: Document, workloads: WorkloadPods, problems: list[Problem]
) -> tuple[Document, ...]:
    made = workloads.of(workload)
    if not isinstance(made, Made):
        problems += made
        return ()
    name = f"{workload.kind} {workload.name}".strip()
    say(shown(f"{workload.file}:{workload.line}: {name}: {made.note}"))
    return made.pods


def _is_workload(document: Document) -> bool:
    """Whether it is one of Kubernetes' own kinds that make pods."""
    return document.kind in TEMPLATES and standing(document) is Standing.BYSTANDER


def _is_bystander(document: Document) -> bool:
    if _is_workload(document) or standing(document) not in (Standing.BYSTANDER, Standing.CUSTOM):
        return False
    name = shown(f"{document.kind} {document.name}")
    hint = "; to try its pods, write one of them as a Pod" if _asks_for_devices(document) else ""
    say(f"{shown(document.file)}:{document.line}: {name} takes no part; ignored{hint}")
    return True


def _asks_for_devices(document: Document) -> bool:
    """Whether pods of a custom kind have claims, where most of these keep them."""
    spec: Any = document.raw
    for step in (*TEMPLATES["Deployment"], "spec"):
        spec = spec.get(step) if isinstance(spec, dict) else None
    return isinstance(spec, dict) and bool(spec.get("resourceClaims"))
