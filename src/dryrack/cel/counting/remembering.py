"""
Steps that are done once for many rounds.

A step that is done again and again with the same variables is done once: its value and its
price are remembered, by the values of the variables that decide about it. So a loop in a loop
is gone through once if it does not depend on the outer one, and so is the part of a round that
depends on one of the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cel.counting import calls
from dryrack.cel.counting.scopes import Scopes
from dryrack.cel.counting.sharing import Sharing

if TYPE_CHECKING:
    from dryrack.cel.attributes import Step
    from dryrack.cel.counting.lines import Region


@dataclass(frozen=True, slots=True)
class _Memory:
    """A variable for the results of a step, by the variables that decide about it."""

    name: str
    deciding: tuple[str, ...]

    @property
    def empty(self) -> str:
        return "{}" if self.deciding else "None"

    @property
    def place(self) -> str:
        return f"{self.name}[{', '.join(self.deciding)}]" if self.deciding else self.name

    @property
    def usable(self) -> str:
        """Whether the variables are such that what is equal is the same: 1 and true are not."""
        known = (f"({one}.__class__ is int or {one}.__class__ is str)" for one in self.deciding)
        return " and ".join(known) or "True"

    @property
    def found(self) -> str:
        if not self.deciding:
            return self.name
        return f"{self.name}.get(({', '.join(self.deciding)})) if {self.usable} else None"


class Remembering(Scopes, ABC):
    """Statements for steps, each either in full or with what is remembered of it."""

    def __init__(self, sharing: Sharing, limit: int, *, catches: bool) -> None:
        super().__init__(limit, catches=catches)
        self.memories: list[str] = []
        self._sharing = sharing

    def step(self, step: Step) -> str:
        """Leaves the value of the step in the name that is returned."""
        deciding = self._worth_remembering(step)
        return self._written(step) if deciding is None else self._remembered(step, deciding)

    @abstractmethod
    def _written(self, step: Step) -> str:
        """The same, done in full."""

    def _worth_remembering(self, step: Step) -> frozenset[str] | None:
        """The variables to remember it by, unless it is another one in every round."""
        if not self._loops or self._sharing is Sharing.NOTHING:
            return None
        if not self._natures.of(step).heavy:
            return None
        deciding = self._deciding(step)
        if deciding is None or all(loop & deciding for loop in self._loops):
            return None
        return deciding

    def _remembered(self, step: Step, deciding: frozenset[str]) -> str:
        """If what is remembered cannot be paid, it is done again, for the place where it ends."""
        memory = _Memory(self.names.temporary(), tuple(sorted(deciding)))
        self.memories.append(f"{memory.name} = {memory.empty}")
        self.flush()
        value, found = self.names.temporary(), self._assign(memory.found)
        with self._block(f"if {found} is None or k + {found}[1] > {self.limit}:"):
            region = self._remember(step, value, memory)
        self._line("else:")
        self._line(f" {value} = {found}[0]; k += {found}[1]")
        if region.sites:
            self._fail_if_failed(value)
        return value

    def _remember(self, step: Step, value: str, memory: _Memory) -> Region:
        start = self._assign("k")
        around, self._loops = (
            self._loops,
            [loop for loop in self._loops if loop.intersection(memory.deciding)],
        )
        with self._caught(value) as region:
            self._line(f"{value} = {self._written(step)}")
        self.flush()
        self._loops = around
        keeps = memory.usable
        if self._sharing is Sharing.VALUES:
            keeps += f" and {value}.__class__ in {self.names.constant(calls.VALUES)}"
        self._line(f"if {keeps}: {memory.place} = {value}, k - {start}")
        return region
