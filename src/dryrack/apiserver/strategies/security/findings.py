"""What a pod does that it may not, in words; and who in it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Finding(NamedTuple):
    """A reason, and the details that somebody needs who wants to put it right."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def told(found: Iterable[Finding]) -> str:
    return ", ".join(map(str, found))


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in items)


def counted(one: str, items: Sequence[str]) -> str:
    """`container "a"`, or `containers "a", "b"`."""
    return f"{plural(one, items)} {quoted(items)}"


def plural(one: str, items: Sequence[object], many: str = "") -> str:
    return one if len(items) == 1 else many or f"{one}s"


def setters(names: Sequence[str], *, pod: bool = False) -> str:
    """Who sets something: the pod, containers of it, or both."""
    found = ["pod"] if pod else []
    return " and ".join([*found, *([counted("container", names)] if names else [])])
