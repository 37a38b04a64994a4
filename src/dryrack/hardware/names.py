"""
Names that were meant.

What a person typed is compared with what exists; a near miss is offered as the fix. Names
that the API forbids are turned into the nearest one that it allows.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# Below this two names have little in common, and a guess would mislead.
_NEAR = 0.6
# Below this two domains belong to different vendors.
_NEAR_VENDOR = 0.8
_DOMAIN = re.compile(r"(?:[a-z0-9-]+\.)*([a-z][a-z0-9-]*\.[a-z]{2,})(?:-[a-z0-9-]+)?(?:/.*)?")
_OF_ALL_DOMAINS = frozenset({"com", "io", "org", "dev"})
# Comparing takes time with the number of names, and a fleet may have as many wrong ones; among
# more than these a person searches anyway.
_COMPARED_MAX = 500
_DRIVER_MAX = 63
_IDENTIFIER_MAX = 32
_SHOWN_MAX = 3
# A number with a unit of the kind quantities have; the unit is what tells it from a number.
AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kMGTPE]|[KMGTPE]i)B?|([0-9]+) ?KB")


def nearest(name: str, known: Collection[str]) -> str | None:
    """
    Return the known name that is most like `name`, if one is like it.

    The name of another vendor's thing is not: `gpu.amd.com` is no spelling of `gpu.nvidia.com`.
    """
    if len(known) > _COMPARED_MAX:
        return None
    candidates = [each for each in sorted(set(known)) if _is_of_same_vendor(name, each)]
    same_words = [each for each in candidates if _words(each) == _words(name)]
    if same_words:
        return same_words[0]
    found = difflib.get_close_matches(name, candidates, n=1, cutoff=_NEAR)
    if found:
        return found[0]
    # `gpu` for `gpu.example.com`, or the other way round, if no other name has the same words.
    parts = [
        each for each in candidates if _words(each) < _words(name) or _words(name) < _words(each)
    ]
    return parts[0] if len(parts) == 1 and _words(name) and _words(parts[0]) else None


def _is_of_same_vendor(name: str, other: str) -> bool:
    """Return whether the domains in two names may be the same, but for a slip of the pen."""
    mine = _vendor(name)
    other_one = _vendor(other)
    if not mine or not other_one or mine == other_one:
        return True
    return difflib.SequenceMatcher(None, mine, other_one).ratio() >= _NEAR_VENDOR


def _vendor(name: str) -> str:
    """Return `example.com` of `gpu.example.com/model`; empty of a name without a domain."""
    found = _DOMAIN.fullmatch(name.lower())
    return found[1] if found else ""


def _words(name: str) -> frozenset[str]:
    """Return the words of a name, without case, order, and what every domain has."""
    return frozenset(re.findall(r"[a-z0-9]+", name.lower())) - _OF_ALL_DOMAINS


def suggestion(name: str, known: Collection[str]) -> str:
    """`did you mean 'x'?`, or nothing."""
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else ""


def driver_name(name: str) -> str:
    """The nearest driver name that the API allows."""
    text = re.sub(r"[^a-z0-9.-]+", "-", name.lower().replace("/", "."))
    text = re.sub(r"\.{2,}", ".", re.sub(r"(?<!-)-*+\.-*", ".", text))
    return text.strip(".-")[:_DRIVER_MAX].strip(".-") or "dra-driver"


def identifier(name: str) -> str:
    """The nearest C identifier, as attributes and capacities are named; a domain is kept."""
    domain, slash, bare = name.rpartition("/")
    text = re.sub(r"[^A-Za-z0-9_]+", "_", bare)
    if not text or text[0].isdigit():
        text = "_" + text
    return f"{domain}{slash}{text[:_IDENTIFIER_MAX]}"


def label(name: str) -> str:
    """The nearest DNS label, as devices, counter sets and requests are named."""
    text = re.sub(r"[^a-z0-9-]+", "-", name.lower())
    return text[:63].strip("-") or "unnamed"


def amount(text: str) -> str | None:
    """The quantity that was meant by a text such as `80Gi` or `16GB`."""
    found = AMOUNT.fullmatch(text)
    if found is None:
        return None
    number, unit, kilobytes = found.groups()
    return f"{kilobytes}k" if kilobytes else f"{number}{unit}"


def qualified(name: str, driver: str) -> str:
    """The full name: one without a domain is the driver's."""
    return name if "/" in name else f"{driver}/{name}"


def quoted(names: Sequence[str]) -> str:
    """A short list for a message: the first few, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:_SHOWN_MAX])
    more = len(names) - _SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown
