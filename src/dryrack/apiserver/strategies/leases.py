"""Leases: who holds something, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.copies import within, without
from dryrack.apiserver.strategy import PlainStrategy
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

# Their gate is off in the reference release.
_NOT_YET = ("strategy", "preferredHolder")


class LeaseStrategy(PlainStrategy):
    """A PUT makes one that is not there; none is written over blindly."""

    creates_on_update = True
    updates_unconditionally = False

    def __init__(self) -> None:
        super().__init__(namespaced=True)

    def prepare_create(self, obj: Raw, write: Write) -> Raw:
        return within(obj, "spec", lambda spec: without(spec, *_NOT_YET))

    def prepare_update(self, obj: Raw, old: Raw, write: Write) -> Raw:
        return within(obj, "spec", lambda spec: without(spec, *_NOT_YET))

    def problems(self, obj: Raw, write: Write) -> Sequence[FieldProblem]:
        return list(_spec(obj.get("spec") or {}))


def _spec(spec: Raw) -> Iterator[FieldProblem]:
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        detail = "must be greater than or equal to 0"
        yield invalid("spec.leaseTransitions", transitions, detail)
