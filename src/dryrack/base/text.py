"""Lists of names in messages."""

from collections.abc import Iterable

# More names than this do not help a reader.
NAMES_MAX = 10


def listed(names: Iterable[str]) -> str:
    """Return names in order, the first few of many."""
    ordered = sorted(names)
    more = len(ordered) - NAMES_MAX
    shown = ", ".join(ordered[:NAMES_MAX])
    return f"{shown} and {more} more" if more > 0 else shown


def hint(name: str, known: Iterable[str]) -> str:
    """
    Return the known names that are closest to an unknown name, or all known names.

    Names are `NAMESPACE/NAME`. A name in the wrong namespace leads to the right namespace.
    """
    from difflib import get_close_matches

    ordered = sorted(known)
    bare = name.rpartition("/")[2]
    by_bare = {each.rpartition("/")[2]: each for each in reversed(ordered)}
    similar = [each for each in ordered if each.rpartition("/")[2] == bare]
    similar = similar or get_close_matches(name, ordered, n=1)
    similar = similar or [by_bare[each] for each in get_close_matches(bare, by_bare, n=1)]
    if similar:
        return f"did you mean {' or '.join(map(repr, similar[:NAMES_MAX]))}?"
    # A name from a file may contain line ends, which would look like further output.
    if not ordered:
        return "none exist"
    return f"use one of: {listed(repr(each)[1:-1] for each in ordered)}"
