"""
What the API server would refuse, of all objects in the files.

Expressions are checked with the compiler of the API server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel.admission import SelectorChecker
from dryrack.kinds.convert import to_v1
from dryrack.kinds.core import Pod
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kinds.validation import FieldProblem, validate
from dryrack.linter.lines import key_of, line_of
from dryrack.linter.object_rules import object_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.documents import Document
    from dryrack.linter.finding import Path
    from dryrack.linter.world import Entry, PodEntry, World


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that the server has against one object."""

    entry: Entry[object]
    path: Path
    problem: FieldProblem

    @property
    def key(self) -> str | None:
        """The key that is refused, where the field is a map and the server names only the map."""
        if not isinstance(self.problem.value, str):
            return None
        return key_of(self.entry.document, self.path, self.problem.value)

    @property
    def line(self) -> int:
        """The line of what is refused."""
        key = self.key
        return line_of(self.entry.document, self.path if key is None else (*self.path, key))


def refusals(world: World) -> Iterator[Refusal]:
    """Everything that a server of the reference release would refuse, in file order."""
    compiler = SelectorChecker()
    for entry in world.validated:
        namespace = world.namespace_of.get(entry.value.metadata.namespace or "default")
        labels = namespace.value.metadata.labels if namespace else None
        for problem in validate(
            entry.value,
            expressions=compiler,
            namespace_labels=labels,
            document=to_v1(entry.document.raw),
        ):
            yield Refusal(entry, parse_path(problem.field), problem)
    for document, problem in world.undecodable:
        yield Refusal(world.entry_of(document), parse_path(problem.field), problem)
    judged = _judged(world)
    mistyped = {id(document) for document, _ in world.mismatches}
    for document, problems in judged.values():
        # Of what is mistyped nothing more is known, and that is told already.
        for problem in problems if id(document) not in mistyped else ():
            yield Refusal(world.entry_of(document), parse_path(problem.field), problem)
    for pod in (*world.pods, *world.replaced_pods):
        if id(pod.entry.document) not in judged:
            yield from _pod_refusals(pod)


def _judged(world: World) -> dict[int, tuple[Document, tuple[FieldProblem, ...]]]:
    """What is wrong with objects that are not about devices, by the identity of the document."""
    found = ((document, object_problems(document)) for document in world.documents)
    return {
        id(document): (document, problems) for document, problems in found if problems is not None
    }


def _pod_refusals(pod: PodEntry) -> Iterator[Refusal]:
    for problem in validate(Pod(spec=pod.spec)):
        # The verdict speaks of a pod; in a workload its spec is further down.
        below_spec = parse_path(problem.field)[1:]
        yield Refusal(pod.entry, (*pod.path, *below_spec), problem)
