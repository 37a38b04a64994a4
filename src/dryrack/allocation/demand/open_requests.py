"""The devices that requests still need at some point of a search, and the available ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.allocation.search.problem import RequestRow


@dataclass(frozen=True, slots=True)
class Demand:
    """The number of devices that one request still needs, in one of several ways."""

    request: int
    ways: tuple[RequestRow, ...]
    need: int
    # The first and the end of the places, in the order of its only way, that can still be chosen.
    cursor: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Demands that the same devices would serve."""

    demands: tuple[Demand, ...]
    need: int
    # The number of suitable devices of each sort, after it has been counted.
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
    """The demands of the current request and of later requests."""

    now: Demand | None
    later: Sequence[Group]
