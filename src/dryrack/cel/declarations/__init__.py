"""
The functions that an expression can call: every library's, merged as one table.

Libraries are merged in the order in which Kubernetes adds them. Where two declare the same
function, the overloads of the later one come after those of the earlier one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from dryrack.cel.declarations import extensions, kubernetes, standard
from dryrack.cel.declarations.signatures import Overload, read_table
from dryrack.kinds.releases import CEL, DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Overload", "functions"]

_ALWAYS = (
    standard.OPERATORS,
    standard.CONVERSIONS,
    standard.BASICS,
    standard.TIMES,
    kubernetes.URLS,
    kubernetes.REGEX,
    kubernetes.AGGREGATES,
    kubernetes.AUTHORIZER,
    extensions.OPTIONALS,
    kubernetes.QUANTITIES,
    extensions.STRINGS,
    extensions.SETS,
    kubernetes.IPS,
    kubernetes.CIDRS,
    kubernetes.FORMATS,
    extensions.TWO_VARIABLE_COMPREHENSIONS,
    kubernetes.SEMVERS,
    extensions.LISTS,
)


@cache
def functions(
    *, includes: bool, release: Release = DEFAULT_RELEASE
) -> Mapping[str, tuple[Overload, ...]]:
    """Return the overloads of all functions of a release, with or without `includes`."""
    ids = CEL[release].overloads
    merged: dict[str, tuple[Overload, ...]] = {}
    for table in (*_ALWAYS, *((kubernetes.INCLUDES,) if includes else ())):
        for name, overloads in read_table(table).items():
            own = ((each, ids.get(each.id, each.id)) for each in overloads)
            current = (replace(each, id=new) for each, new in own if new)
            merged[name] = (*merged.get(name, ()), *current)
    return MappingProxyType(merged)
