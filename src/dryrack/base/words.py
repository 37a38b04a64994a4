"""How things are named to people."""

from collections.abc import Iterable

# More names than this are no help to anybody.
NAMES_MAX = 10


def listed(names: Iterable[str]) -> str:
    """Names in order, the first few of many."""
    ordered = sorted(names)
    more = len(ordered) - NAMES_MAX
    shown = ", ".join(ordered[:NAMES_MAX])
    return f"{shown} and {more} more" if more > 0 else shown
