"""
Kinds whose updates are validated like creates, and then as a change.

Most kinds of Kubernetes do so. A bad label is therefore reported three times for an update: by the
check of all kinds, by that of the change and by that of the object.
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


class ValidatedAsNewStrategy(Strategy):
    """Base for kinds whose updates are validated like creates; `changes` checks the change."""

    counts_generations: bool = False
    """Whether metadata.generation counts the changes of the spec."""

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        made = super().prepare_create(obj, write)
        return with_metadata(made, "generation", 1) if self.counts_generations else made

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        made = super().prepare_update(obj, old, write)
        if not self.counts_generations or self.counted_part(made) == self.counted_part(old):
            return made
        return with_metadata(made, "generation", old["metadata"].get("generation", 0) + 1)

    def counted_part(self, obj: Raw) -> Any:
        """Return the part of the object whose changes metadata.generation counts."""
        return obj.get("spec")

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return list(self.status_changes(obj, old))
        return [
            *self.changes(obj, old),
            *metadata(
                object_meta(obj),
                self.naming,
                namespaced=self.namespaced,
                behaviour=self.rules.behaviour,
            ),
            *self.rules.problems(obj),
        ]

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from ()

    def status_changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        yield from ()
