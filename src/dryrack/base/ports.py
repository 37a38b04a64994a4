"""
The ports of time and randomness.

Pure packages read no clock and no random numbers. Code that needs the time or an identifier gets
one of these ports; `cluster` and the CLI provide the real ones, and tests and simulations provide
ones that depend on a seed.
"""

from typing import Protocol


class Clock(Protocol):
    """A source of the time, in seconds since 1970."""

    def now(self) -> float: ...


class Chance(Protocol):
    """The only source of randomness of a run."""

    def uuid(self) -> str:
        """Return a lower-case RFC 4122 identifier."""
        ...
