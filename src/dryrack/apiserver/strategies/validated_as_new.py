"""
Kinds whose updates are judged as if they were new, and for the change besides.

Most kinds of Kubernetes do it so, which is why a bad label is told three times over an update:
once for every kind, once for the change, once for the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategy import Strategy, object_meta
from dryrack.kinds.rules.json_edit import with_metadata
from dryrack.kinds.validation.meta import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


class WholeStrategy(Strategy):
    """For others to derive from: `changes` is what an update may not do."""

    counts_generations: bool = False
    """Whether metadata.generation counts the changes of the spec."""

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = super().prepare_create(obj, write)
        return with_metadata(made, "generation", 1) if self.counts_generations else made

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        if not self.counts_generations or self.desired(made) == self.desired(old):
            return made
        return with_metadata(made, "generation", old["metadata"].get("generation", 0) + 1)

    def desired(self, obj: Raw) -> Any:
        """What a generation is counted by."""
        return obj.get("spec")

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return list(self.status_changes(obj, old))
        return [
            *self.changes(obj, old),
            *metadata(object_meta(obj), self.naming, namespaced=self.namespaced),
            *self.rules.problems(obj),
        ]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from ()

    def status_changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from ()
