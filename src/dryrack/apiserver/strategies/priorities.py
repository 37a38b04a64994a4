"""PriorityClasses. The value cannot change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.answer.status import Subject, forbidden
from dryrack.apiserver.strategies.pods.admission import PRIORITY_CLASSES
from dryrack.apiserver.strategies.validated_as_new import ValidatedAsNewStrategy
from dryrack.kinds.rules.priorities import PriorityClassRules
from dryrack.kinds.validation.problems import Token, invalid
from dryrack.kinds.validation.problems import forbidden as forbidden_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


_SUBJECT = Subject("scheduling.k8s.io", "priorityclasses")


class PriorityClassStrategy(ValidatedAsNewStrategy):
    """PriorityClasses. At most one is the global default."""

    counts_generations = True

    def __init__(self) -> None:
        super().__init__(PriorityClassRules())

    def admit(self, obj: Raw, old: Raw | None, write: Write) -> Raw:
        if not obj.get("globalDefault"):
            return obj
        name = obj["metadata"].get("name") or ""
        for other in write.lookup.list(PRIORITY_CLASSES, None):
            taken = other["metadata"]["name"]
            if other.get("globalDefault") and (old is None or taken != name):
                detail = f"PriorityClass {taken} is already marked as default. "
                raise forbidden(_SUBJECT, name, f"{detail}Only one default can exist")
        return obj

    def counted_part(self, obj: Raw) -> Any:
        """Return None: a class has no spec, so its generation never changes."""
        return None

    def changes(self, obj: Raw, old: Raw) -> Iterator[FieldProblem]:
        if obj.get("value", 0) != old.get("value", 0):
            yield forbidden_field("value", "may not be changed in an update.")
        policy = obj.get("preemptionPolicy")
        if policy != old.get("preemptionPolicy"):
            yield invalid("preemptionPolicy", Token(policy or ""), "field is immutable")
