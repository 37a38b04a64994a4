"""The variables of an expression, and what decides about their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel.counting.lines import Lines
from dryrack.cel.counting.natures import Natures
from dryrack.cel.emission import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.cel.attributes import Step

_DEVICE = "device"


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A variable of `cel.bind`, whose value is worked out where it is first asked for."""

    name: str
    value: Step
    scopes: tuple[dict[str, str | Bound], ...]
    # The block that it is bound in.
    block: set[str]


class Scopes(Lines):
    """Statements that are written where certain variables are known."""

    def __init__(self, limit: int, *, catches: bool) -> None:
        super().__init__(limit, catches=catches)
        self._scopes: list[dict[str, str | Bound]] = [{_DEVICE: _DEVICE}]
        self._natures = Natures()
        # The variables of each loop that goes on around, as far as what is written depends on it.
        self._loops: list[frozenset[str]] = []
        self._elements: set[str] = set()
        self._made_of: dict[str, frozenset[str] | None] = {}

    def _is_certain(self, bound: Bound) -> bool:
        """Whether it was worked out before, whatever happened."""
        return any(bound.name in block for block in self._blocks)

    def _deciding(self, step: Step) -> frozenset[str] | None:
        """The loops' variables that decide about a step; None if something else does, too."""
        names = self._natures.of(step).names
        bound = (find(name, self._scopes) for name in names)
        if any(isinstance(one, Bound) and not self._is_certain(one) for one in bound):
            return None
        return self._decide(names, self._scopes)

    def _decide(
        self, names: Iterable[str], scopes: Sequence[dict[str, str | Bound]]
    ) -> frozenset[str] | None:
        deciding: set[str] = set()
        for name in names:
            bound = find(name, scopes)
            made_of = self._behind(bound) if isinstance(bound, Bound) else self._itself(bound)
            if made_of is None:
                return None
            deciding |= made_of
        return frozenset(deciding)

    def _itself(self, name: str) -> frozenset[str] | None:
        if name == _DEVICE:
            return frozenset()
        # An accumulator is another one in each round.
        return frozenset((name,)) if name in self._elements else None

    def _behind(self, bound: Bound) -> frozenset[str] | None:
        if bound.name not in self._made_of:
            names = self._natures.of(bound.value).names
            self._made_of[bound.name] = self._decide(names, bound.scopes)
        return self._made_of[bound.name]


def find(name: str, scopes: Sequence[dict[str, str | Bound]]) -> str | Bound:
    for scope in reversed(scopes):
        if name in scope:
            return scope[name]
    raise Unsupported("an unknown variable")
