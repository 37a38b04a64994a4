"""Leases: who holds something, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.paths import spec_of
from dryrack.kinds.rules.kind_rules import KindRules
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


class LeaseRules(KindRules):
    """Times and counts that make sense."""

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def problems(self, obj: Raw) -> Iterator[FieldProblem]:
        spec = spec_of(obj)
        seconds = spec.get("leaseDurationSeconds")
        transitions = spec.get("leaseTransitions")
        if seconds is not None and seconds <= 0:
            yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
        if transitions is not None and transitions < 0:
            detail = "must be greater than or equal to 0"
            yield invalid("spec.leaseTransitions", transitions, detail)
