"""
Time and chance, as arguments.

No pure room reads a clock or rolls dice. Whoever needs the time or an identifier asks for
one of these ports; `cluster` and the faces wire the real ones, and tests and simulations
wire ones that a seed decides.
"""

from typing import Protocol


class Clock(Protocol):
    """Tells the time, in seconds since 1970."""

    def now(self) -> float: ...


class Chance(Protocol):
    """The one source of randomness of a run."""

    def uuid(self) -> str:
        """A lower-case RFC 4122 identifier."""
        ...
