"""What is still needed at some point of a search, and what would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.allocation.search.problem import RequestRow


@dataclass(frozen=True, slots=True)
class Demand:
    """What one request still needs; one of several ways will do."""

    request: int
    ways: tuple[RequestRow, ...]
    need: int
    # Where in the order of its only way the devices begin that may still be chosen, and end.
    cursor: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Demands that the same devices would serve."""

    demands: tuple[Demand, ...]
    need: int
    # How many devices of each sort would do, once that has been counted.
    supply: Mapping[int, int] = field(default_factory=dict)

    @property
    def demand(self) -> Demand:
        return self.demands[0]

    @property
    def last(self) -> Demand:
        return self.demands[-1]

    @property
    def requests(self) -> int:
        return len(self.demands)


@dataclass(frozen=True, slots=True)
class Question:
    """Whether what is demanded now, and later, can be met."""

    now: Demand | None
    later: Sequence[Group]
