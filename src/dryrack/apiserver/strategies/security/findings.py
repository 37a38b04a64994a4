"""Violations of a Pod Security level, and the containers that cause them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Finding(NamedTuple):
    """A reason, and the details that are needed to correct the pod."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def describe_findings(found: Iterable[Finding]) -> str:
    return ", ".join(map(str, found))


def quote_all(items: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in items)


def name_items(one: str, items: Sequence[str]) -> str:
    """`container "a"`, or `containers "a", "b"`."""
    return f"{plural(one, items)} {quote_all(items)}"


def plural(one: str, items: Sequence[object], many: str = "") -> str:
    return one if len(items) == 1 else many or f"{one}s"


def setters(names: Sequence[str], *, pod: bool = False) -> str:
    """The pod, containers of it, or both, as the source of a violation."""
    found = ["pod"] if pod else []
    return " and ".join([*found, *([name_items("container", names)] if names else [])])
