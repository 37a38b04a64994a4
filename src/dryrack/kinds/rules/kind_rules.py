"""
Defaults and validation of one kind.

Objects are raw JSON, and are never changed in place: a method answers with the object that it was
given, or with a copy of the parts that it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.rules.copies import without
from dryrack.kinds.validation.meta import SUBDOMAIN, common_metadata, metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.meta import ObjectMeta
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem
    from dryrack.kinds.validation.meta import Naming


class KindRules:
    """A kind with metadata and nothing else to say about it; others derive from it."""

    def __init__(
        self, *, namespaced: bool, naming: Naming = SUBDOMAIN, has_status: bool = False
    ) -> None:
        self.namespaced = namespaced
        self.naming = naming
        self.has_status = has_status

    def default(self, obj: Raw) -> Raw:
        return obj

    def as_new(self, obj: Raw) -> Raw:
        """A new object as it is judged, with stand-ins for what only a cluster could add."""
        return without(obj, "status") if self.has_status else obj

    def problems(self, obj: Raw) -> Sequence[FieldProblem]:
        """What is wrong with the kind's own fields."""
        return ()

    def new_problems(self, obj: Raw, meta: ObjectMeta) -> Sequence[FieldProblem]:
        """All that is wrong with a new object, whose metadata is given as a model besides."""
        found = [*metadata(meta, self.naming, namespaced=self.namespaced), *self.problems(obj)]
        if found or self.naming is SUBDOMAIN:
            # A subdomain is more than what is asked of any name.
            return found
        return tuple(common_metadata(meta, namespaced=self.namespaced))
