"""The problems for which the API server would refuse objects in the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.core import Pod
from dryrack.kinds.text.source_positions import parse_path
from dryrack.kinds.validation.meta import DEFAULT_NAMESPACE
from dryrack.kinds.validation.pods import pod_claims
from dryrack.linter.lines import key_of, line_of
from dryrack.linter.object_rules import object_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.validation import FieldProblem
    from dryrack.linter.finding import Path
    from dryrack.linter.world import Entry, World


@dataclass(frozen=True, slots=True)
class Refusal:
    """A problem for which the server refuses an object."""

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
    """Yield everything that an API server of the release would refuse."""
    for document, problem in world.undecodable:
        yield Refusal(world.entry_of(document), parse_path(problem.field), problem)
    # Nothing more is known of a document with values of the wrong type.
    mistyped = {id(document) for document, _ in world.mismatches}
    judged = set()
    for document in world.documents:
        namespace = world.namespace_of.get(document.namespace or DEFAULT_NAMESPACE)
        labels = namespace.value.metadata.labels if namespace else None
        problems = object_problems(document, labels, world.decoded.get(id(document)), world.release)
        if problems is None:
            continue
        judged.add(id(document))
        for problem in problems if id(document) not in mistyped else ():
            yield Refusal(world.entry_of(document), parse_path(problem.field), problem)
    for pod in (*world.pods, *world.replaced_pods):
        if id(pod.entry.document) not in judged:
            for problem in pod_claims(Pod(spec=pod.spec)):
                # The path is that of a pod; in a workload the spec is further down.
                below_spec = parse_path(problem.field)[1:]
                yield Refusal(pod.entry, (*pod.path, *below_spec), problem)
