"""
Suggestions for misspelled names, and valid names for invalid ones.

A name that does not exist is compared with the names that do; a similar one is suggested. Names
that the API forbids are converted to the nearest one that it allows.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# Below this ratio two names have little in common, and a suggestion would mislead.
_NEAR = 0.6
# Below this ratio two domains belong to different vendors.
_NEAR_VENDOR = 0.8
_DOMAIN = re.compile(r"(?:[a-z0-9-]+\.)*([a-z][a-z0-9-]*\.[a-z]{2,})(?:-[a-z0-9-]+)?(?:/.*)?")
_OF_ALL_DOMAINS = frozenset({"com", "io", "org", "dev"})
# The time grows with the number of names, and a cluster may have as many wrong ones. A person who
# has more names than this searches anyway.
_COMPARED_MAX = 500
_DRIVER_MAX = 63
_IDENTIFIER_MAX = 32
_SHOWN_MAX = 3
# A number with a unit of quantities; without a unit it is only a number.
AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kMGTPE]|[KMGTPE]i)B?|([0-9]+) ?KB")


def nearest(name: str, known: Collection[str]) -> str | None:
    """
    Return the known name that is most similar to `name`, if one is similar.

    Names of different vendors are not similar: `gpu.amd.com` is no spelling of `gpu.nvidia.com`.
    """
    if len(known) > _COMPARED_MAX:
        return None
    candidates = [each for each in sorted(set(known)) if _is_of_same_vendor(name, each)]
    same_words = [each for each in candidates if _words(each) == _words(name)]
    if same_words:
        return same_words[0]
    matches = difflib.get_close_matches(name, candidates, n=1, cutoff=_NEAR)
    if matches:
        return matches[0]
    # `gpu` for `gpu.example.com`, or the other way round, if no other name has the same words.
    parts = [
        each for each in candidates if _words(each) < _words(name) or _words(name) < _words(each)
    ]
    return parts[0] if len(parts) == 1 and _words(name) and _words(parts[0]) else None


def _is_of_same_vendor(name: str, other: str) -> bool:
    """Return whether the domains in two names are equal, or a misspelling of each other."""
    vendor = _vendor(name)
    other_vendor = _vendor(other)
    if not vendor or not other_vendor or vendor == other_vendor:
        return True
    return difflib.SequenceMatcher(None, vendor, other_vendor).ratio() >= _NEAR_VENDOR


def _vendor(name: str) -> str:
    """Return `example.com` for `gpu.example.com/model`, and "" for a name without a domain."""
    match = _DOMAIN.fullmatch(name.lower())
    return match[1] if match else ""


def _words(name: str) -> frozenset[str]:
    """Return the words of a name, without case, order, and top-level domains."""
    return frozenset(re.findall(r"[a-z0-9]+", name.lower())) - _OF_ALL_DOMAINS


def suggestion(name: str, known: Collection[str]) -> str:
    """Return `did you mean 'x'?`, or "" if no known name is similar."""
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else ""


def driver_name(name: str) -> str:
    """Return the nearest driver name that the API allows."""
    text = re.sub(r"[^a-z0-9.-]+", "-", name.lower().replace("/", "."))
    text = re.sub(r"\.{2,}", ".", re.sub(r"(?<!-)-*+\.-*", ".", text))
    return text.strip(".-")[:_DRIVER_MAX].strip(".-") or "dra-driver"


def identifier(name: str) -> str:
    """Return the nearest C identifier, for attributes and capacities; keep a domain."""
    domain, slash, bare = name.rpartition("/")
    text = re.sub(r"[^A-Za-z0-9_]+", "_", bare)
    if not text or text[0].isdigit():
        text = "_" + text
    return f"{domain}{slash}{text[:_IDENTIFIER_MAX]}"


def label(name: str) -> str:
    """Return the nearest DNS label, for devices, counter sets, and requests."""
    text = re.sub(r"[^a-z0-9-]+", "-", name.lower())
    return text[:63].strip("-") or "unnamed"


def amount(text: str) -> str | None:
    """Return the quantity for a text such as `80Gi` or `16GB`."""
    match = AMOUNT.fullmatch(text)
    if match is None:
        return None
    number, unit, kilobytes = match.groups()
    return f"{kilobytes}k" if kilobytes else f"{number}{unit}"


def qualified(name: str, driver: str) -> str:
    """Return the name with its domain; without one it is in the domain of the driver."""
    return name if "/" in name else f"{driver}/{name}"


def quoted(names: Sequence[str]) -> str:
    """Return a short list for a message: the first names, and the number of others."""
    shown = ", ".join(repr(name) for name in names[:_SHOWN_MAX])
    more = len(names) - _SHOWN_MAX
    return f"{shown} and {more} more" if more > 0 else shown
