"""What is wrong with the numbers that a controller writes about its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.checks import non_negative
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

_COLLISIONS = "collisionCount"


def counted(status: Raw, names: Sequence[str]) -> Iterator[FieldProblem]:
    """Numbers of pods, none of them below nothing."""
    for name in names:
        yield from non_negative(f"status.{name}", status.get(name))


def at_most_replicas(
    status: Raw, names: Sequence[str], *, ready: str = "readyReplicas"
) -> Iterator[FieldProblem]:
    """Parts of all replicas; those that are available are ready, which goes by `ready` here."""
    replicas = status.get("replicas", 0)
    for name in names:
        count = status.get(name, 0)
        if count > replicas:
            yield invalid(f"status.{name}", count, "cannot be greater than status.replicas")
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        yield invalid("status.availableReplicas", available, f"cannot be greater than {ready}")


def only_more_collisions(status: Raw, old: Raw) -> Iterator[FieldProblem]:
    """Names that were taken are not forgotten."""
    count = status.get(_COLLISIONS, 0)
    if old.get(_COLLISIONS) is not None and count < old[_COLLISIONS]:
        yield invalid(f"status.{_COLLISIONS}", count, "cannot be decremented")
